"""What every benchmark here needs: where things are, the peers' Python, tables, and the record of a run."""
import datetime
import json
import os
import platform
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BENCH = ROOT / "bench"
RELEASE = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release"
NGAME = RELEASE / "ngame"
MINILM = ROOT / "encoders" / "all-MiniLM-L6-v2"


def output(*words):
    done = subprocess.run([str(word) for word in words], cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)
    return done.stdout.strip()


def peer_python(venv, packages, *limits):
    """A Python with the peers' packages from PyPI, made once; `limits` say which versions work."""
    python = BENCH / venv / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", BENCH / venv], check=True)
    if len(versions(python, packages)) < len(packages):
        subprocess.run([python, "-m", "pip", "install", "--quiet", *packages, *limits], check=True)
    return python


def versions(python, packages):
    """Those of the packages that are installed, with their versions."""
    program = ("import importlib.metadata as m, json, sys\n"
               "found = {}\n"
               "for name in sys.argv[1:]:\n"
               "    try: found[name] = m.version(name)\n"
               "    except m.PackageNotFoundError: pass\n"
               "print(json.dumps(found))")
    return json.loads(output(python, "-c", program, *packages))


def table(rows):
    """Columns side by side, the first to the left."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "\n".join("  ".join(cell.ljust(width) if column == 0 else cell.rjust(width)
                               for column, (cell, width) in enumerate(zip(row, widths))).rstrip() for row in rows)


def kept(path, make):
    """A result that is made once, and read after that."""
    if not path.exists():
        path.write_text(json.dumps(make(), indent=1))
    return json.loads(path.read_text())


def train(data, model, asked, quiet=False):
    """Makes sure that a model is there: trained before, or now, with options of `ngame train`. A run that was stopped
    goes on, and what all of them took is kept beside the model."""
    if (model / "plan.toml").exists():
        return
    begun = Path(f"{model}.run/plan.toml").exists()
    words = [str(word) for word in (NGAME, "train", data, "--out", model, *(["--resume"] if begun else asked))]
    print(f"training {model.name}", file=sys.stderr)
    began, stopped = time.perf_counter(), None
    told = subprocess.DEVNULL if quiet else sys.stderr
    process = subprocess.Popen(words, stdout=told, stderr=told)
    try:
        _, status, usage = os.wait4(process.pid, 0)
    except KeyboardInterrupt as interrupt:  # The command has heard it too, and saves what it has.
        stopped = interrupt
        _, status, usage = os.wait4(process.pid, 0)
    path = cost_file(model)
    before = json.loads(path.read_text()) if begun and path.exists() else {"cpu_seconds": 0.0, "seconds": 0.0, "peak_mb": 0.0}
    path.write_text(json.dumps({"cpu_seconds": before["cpu_seconds"] + usage.ru_utime + usage.ru_stime,
                                "seconds": before["seconds"] + time.perf_counter() - began,
                                "peak_mb": max(before["peak_mb"], usage.ru_maxrss / 1024)}))
    if stopped:
        raise stopped
    if status != 0:
        raise subprocess.CalledProcessError(os.waitstatus_to_exitcode(status), words)


def cost_file(model):
    return Path(f"{model}.cost.json")


def cost_of(model):
    """CPU seconds, seconds and memory that training took."""
    if not cost_file(model).exists():
        sys.exit(f"nobody timed how {model} was trained: delete it, and it is trained again")
    return json.loads(cost_file(model).read_text())


def write(name, title, command, text, raw, peers=None, facts=(), after=""):
    """Keeps a run in bench/results/, with what it takes to repeat it; returns the folder.

    `peers` are versions by name, `facts` further lines, `after` stands below the table.
    """
    commit = output("git", "rev-parse", "--short", "HEAD")
    commit += " with changes" if output("git", "status", "--porcelain", "crates", "bench", ":!bench/results") else ""
    today = datetime.date.today().isoformat()
    lines = [f"command: `{command}`", f"commit: {commit}",
             f"machine: {os.cpu_count()} cores, {platform.machine()}, {platform.system()}; load when it ended: "
             f"{os.getloadavg()[0]:.1f}"]
    if peers:
        lines.append("peers: " + ", ".join(f"{name} {version}" for name, version in peers.items())
                     + f", Python {platform.python_version()}")
    lines += [*facts, f"date: {today}"]
    folder = BENCH / "results" / f"{today}-{name}"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "README.md").write_text(
        f"# {title}\n\n" + "".join(f"- {line}\n" for line in lines) + f"\n```\n{text.rstrip()}\n```\n{after}")
    (folder / "raw.json").write_text(json.dumps(raw, indent=1) + "\n")
    return folder
