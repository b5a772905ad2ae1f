"""What a model reaches beside strong linear systems on the same texts, filters and metrics.

    make bench-accuracy DATA="/path/to/debian-related /path/to/msdocs-seealso" [TEXT=title] [SEEDS=3] [ENCODER=bag]

For every data set: `ngame train` with its defaults for each seed, and omikuji's Parabel and Bonsai (installed from
PyPI into bench/.venv-accuracy) on TF-IDF of words and pairs of words. All predictions are scored by `ngame metrics`
or `ngame evaluate`, whose numbers agree with pyxclib's. Runs are kept in bench/data/accuracy: what is finished is not
run again, what was stopped goes on. The table goes to standard output and to bench/results/.
"""
import argparse
import datetime
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BENCH = ROOT / "bench"
NGAME = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release" / "ngame"
PYTHON = BENCH / ".venv-accuracy" / "bin" / "python"
METRICS = ["P@1", "P@5", "PSP@1", "PSP@5", "R@100"]


def install_peers():
    if not PYTHON.exists():
        subprocess.run([sys.executable, "-m", "venv", BENCH / ".venv-accuracy"], check=True)
    try:
        subprocess.run([PYTHON, "-c", "import omikuji, sklearn"], check=True, capture_output=True)
    except subprocess.CalledProcessError:
        subprocess.run([PYTHON, "-m", "pip", "install", "-q", "omikuji", "scikit-learn"], check=True)


def call(*words):
    command = [str(word) for word in words]
    print(" ".join(command), file=sys.stderr)
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def named(metrics, recall_100):
    values = [metrics["precision"][0], metrics["precision"][4], metrics["psprecision"][0], metrics["psprecision"][4], recall_100]
    return dict(zip(METRICS, (100 * value for value in values)))


def kept(path, make):
    """A result that is made once."""
    if not path.exists():
        path.write_text(json.dumps(make()))
    return json.loads(path.read_text())


def ours(args, data, seed, folder):
    model = folder / f"{data.name}-{args.text}-{Path(args.encoder).name}-{seed}"

    def run():
        before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        if not (model / "manifest.json").exists():
            if Path(f"{model}.run/plan.toml").exists():
                call(NGAME, "train", data, "--out", model, "--resume")
            else:
                call(NGAME, "train", data, "--text", args.text, "--out", model, "--encoder", args.encoder,
                     "--seed", seed, *args.options)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        wall = time.perf_counter() - began
        evaluation = json.loads(call(NGAME, "evaluate", model, data, "--json"))
        size = sum(file.stat().st_size for file in model.rglob("*") if file.is_file())
        parts = {part: named(evaluation[part], evaluation[part]["recall_100"]) for part in ("embedding", "classifier", "fused")}
        return {**parts, "train_cpu_seconds": cpu, "train_seconds": wall, "peak_mb": after.ru_maxrss / 1024,
                "predict_ms": evaluation["milliseconds"], "model_mb": size / 2**20}

    return kept(model.with_suffix(".json"), run)


def peer(args, data, kind, folder):
    predictions = folder / f"{data.name}-{args.text}-{kind}.txt"

    def run():
        # What the peer itself prints comes before its answer.
        answer = json.loads(call(PYTHON, BENCH / "accuracy_peer.py", data, args.text, kind, predictions).splitlines()[-1])
        metrics = json.loads(call(NGAME, "metrics", "--predictions", predictions, "--truth", data, "-k", 100, "--json"))
        return {"fused": named(metrics, metrics["recall"][99]), **answer}

    return kept(predictions.with_suffix(".json"), run)


def table(rows):
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "\n".join("  ".join(cell.ljust(width) if column == 0 else cell.rjust(width)
                               for column, (cell, width) in enumerate(zip(row, widths))).rstrip() for row in rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path, nargs="+", help="LF folders")
    parser.add_argument("--text", default="title", choices=["title", "content", "both"])
    parser.add_argument("--encoder", default="bag")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--options", nargs=argparse.REMAINDER, default=[], help="for ngame train")
    args = parser.parse_args()
    install_peers()
    folder = BENCH / "data" / "accuracy"
    folder.mkdir(parents=True, exist_ok=True)
    encoder = Path(args.encoder).name
    name = f"{datetime.date.today().isoformat()}-accuracy-{encoder}-{args.text}"
    record = BENCH / "results" / name
    record.mkdir(parents=True, exist_ok=True)
    report, raw = [], {}
    for data in args.data:
        runs = [ours(args, data, seed, folder) for seed in range(args.seeds)]
        peers = {kind: peer(args, data, kind, folder) for kind in ("parabel", "bonsai")}
        raw[data.name] = {"ngame": runs, **peers}
        rows = [("%", *METRICS, "train CPU s", "ms a text", "peak MB", "model MB")]

        def cost(run):
            return [f"{run['train_cpu_seconds']:.0f}", f"{run['predict_ms']:.2f}", f"{run['peak_mb']:.0f}",
                    f"{run['model_mb']:.0f}" if "model_mb" in run else "-"]

        for kind, run in peers.items():
            rows.append((f"omikuji {kind}", *(f"{run['fused'][metric]:.2f}" for metric in METRICS), *cost(run)))
        for part in ("embedding", "classifier", "fused"):
            means = [statistics.mean(run[part][metric] for run in runs) for metric in METRICS]
            rows.append((f"ngame, {part}", *(f"{mean:.2f}" for mean in means), *(cost(runs[0]) if part == "fused" else [""] * 4)))
        spreads = [max(run["fused"][metric] for run in runs) - min(run["fused"][metric] for run in runs) for metric in METRICS]
        rows.append((f"spread over {len(runs)} seeds", *(f"{spread:.2f}" for spread in spreads), "", "", "", ""))
        best = [max(run["fused"][metric] for run in peers.values()) for metric in METRICS]
        lead = [statistics.mean(run["fused"][metric] for run in runs) - most for metric, most in zip(METRICS, best)]
        rows.append(("ngame - best peer", *(f"{value:+.2f}" for value in lead), "", "", "", ""))
        report.append(f"{data.name}, {args.text}, {encoder}\n" + table(rows))
        commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, stdout=subprocess.PIPE, text=True).stdout.strip()
        text = "\n\n".join(report)
        (record / "README.md").write_text(
            f"# Accuracy, {encoder}, {args.text}\n\n- command: `make bench-accuracy`, seeds 0 to {args.seeds - 1} {' '.join(args.options)}\n"
            f"- commit: {commit}\n- machine: {os.cpu_count()} cores, {platform.machine()}, {platform.system()}\n"
            f"\n```\n{text}\n```\n")
        (record / "raw.json").write_text(json.dumps(raw, indent=1) + "\n")
    print("\n\n".join(report))


if __name__ == "__main__":
    main()
