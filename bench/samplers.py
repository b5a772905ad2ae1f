"""Samplers side by side: what each costs and what encoder it trains, on the same steps.

    make bench-sampling DATA="debian-related msdocs-seealso" [ENCODER=folder or bag] [EPOCHS=2]

For every data set and sampler one `ngame train --only encoder` on titles, with the same start, loss,
batch size, steps and seed; then exact retrieval by label embedding on the test points. Runs are kept in
bench/data/samplers: what is finished is not run again, what was stopped goes on. Prints, and keeps in
bench/results/:

    cost      seconds of an epoch, mining apart, as in the paper's table of sampling overheads
    accuracy  P@1, P@5, PSP@1, R@100 on the test points
    hardness  the share of a point's 100 hardest negatives (by exact search) that its batch holds
    curves    precision on held-out points over time, as a figure
"""
import argparse
import datetime
import json
import os
import platform
import statistics
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BENCH = ROOT / "bench"
RELEASE = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release"
SAMPLERS = ["random", "static", "ann", "ngame"]
COLOURS = {"random": "#888888", "static": "#c77c11", "ann": "#2a7fb8", "ngame": "#b3261e"}
METRICS = ["P@1", "P@5", "PSP@1", "PSP@5", "R@100"]


def call(program, *words):
    command = [str(word) for word in (RELEASE / program, *words)]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)


def train(args, data, sampler, runs):
    """The folder of a finished run, trained now, or before."""
    model = runs / f"{data.name}-{Path(args.encoder).name}-{sampler}-{args.epochs}"
    if not (model / "plan.toml").exists():
        command = [RELEASE / "ngame", "train", data, "--text", "title", "--out", model, "--only", "encoder"]
        if Path(f"{model}.run/plan.toml").exists():
            command += ["--resume"]
        else:
            command += ["--encoder", args.encoder, "--sampler", sampler, "--epochs", args.epochs, "--seed", args.seed,
                        "--set", f"validation.every={args.validate}", *args.options]
        print(" ".join(str(word) for word in command), file=sys.stderr)
        subprocess.run([str(word) for word in command], check=True)
    return model


def read_lines(model):
    lines = [json.loads(line) for line in (model / "metrics.jsonl").read_text().splitlines()]
    return [line for line in lines if line["kind"] == "step"], [line for line in lines if line["kind"] == "validation"]


def cached(path, make):
    """A result that is made once."""
    if not path.exists():
        path.write_text(json.dumps(make()))
    return json.loads(path.read_text())


def measure(args, data, sampler, runs):
    model = train(args, data, sampler, runs)
    steps, validations = read_lines(model)
    last = steps[-1]
    accuracy = cached(model / "retrieval.json", lambda: call(
        "retrieval", data, "--text", "title", "--encoder", model / "encoder"))
    # Medians of steps, so that a machine that was busy for a while does not decide.
    step_seconds = statistics.median(step["step_seconds"] for step in steps)
    return {
        "epoch_seconds": step_seconds * len(steps) / args.epochs,
        "mining_seconds": last["mining_seconds"] / args.epochs,
        "loop_share": statistics.median(step["step_seconds"] / step["encoder_seconds"] for step in steps) - 1,
        "hardness": statistics.mean(step["hardness"] for step in steps[-max(1, len(steps) // 10):]),
        "accuracy": accuracy,
        "curve": [(line["seconds"] / 60, 100 * line["precision_1"], 100 * line["precision_5"], 100 * line["recall_100"])
                  for line in validations],
    }


def table(rows):
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "\n".join("  ".join(cell.ljust(width) if column == 0 else cell.rjust(width)
                               for column, (cell, width) in enumerate(zip(row, widths))).rstrip() for row in rows)


def figure(title, results):
    """P@1 on held-out points over minutes of training, as SVG."""
    width, height, left, bottom = 640, 360, 56, 44
    points = [point for result in results.values() for point in result["curve"]]
    most_x, most_y = max(point[0] for point in points), max(point[1] for point in points)
    least_y = min(point[1] for point in points) * 0.95

    def place(point):
        x = left + (width - left - 90) * point[0] / most_x
        y = height - bottom - (height - bottom - 36) * (point[1] - least_y) / max(most_y - least_y, 1e-9)
        return f"{x:.1f},{y:.1f}"

    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12">',
             f'<rect width="{width}" height="{height}" fill="white"/><text x="{left}" y="22" font-size="14">{title}</text>']
    for share in (0, 0.25, 0.5, 0.75, 1):
        y = height - bottom - (height - bottom - 36) * share
        parts.append(f'<line x1="{left}" x2="{width - 90}" y1="{y:.1f}" y2="{y:.1f}" stroke="#e4e4e4"/>'
                     f'<text x="{left - 8}" y="{y + 4:.1f}" text-anchor="end">{least_y + share * (most_y - least_y):.1f}</text>')
        x = left + (width - left - 90) * share
        parts.append(f'<text x="{x:.1f}" y="{height - bottom + 18}" text-anchor="middle">{share * most_x:.1f}</text>')
    parts.append(f'<text x="{(left + width - 90) / 2}" y="{height - 8}" text-anchor="middle">minutes of training</text>')
    for sampler, result in results.items():
        line = " ".join(place(point) for point in result["curve"])
        x, y = place(result["curve"][-1]).split(",")
        parts.append(f'<polyline points="{line}" fill="none" stroke="{COLOURS[sampler]}" stroke-width="2"/>'
                     f'<text x="{float(x) + 6}" y="{float(y) + 4}" fill="{COLOURS[sampler]}">{sampler}</text>')
    return "\n".join([*parts, "</svg>", ""])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path, nargs="+", help="LF folders")
    parser.add_argument("--encoder", default=str(ROOT / "encoders" / "all-MiniLM-L6-v2"), help="a folder, or bag")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--validate", type=float, default=0.5, help="epochs between looks at the held-out points")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--samplers", nargs="+", default=SAMPLERS, choices=SAMPLERS)
    parser.add_argument("--options", nargs=argparse.REMAINDER, default=[], help="for ngame train, the same for all")
    args = parser.parse_args()
    runs = BENCH / "data" / "samplers"
    runs.mkdir(parents=True, exist_ok=True)
    encoder = Path(args.encoder).name
    name = f"{datetime.date.today().isoformat()}-samplers-{encoder}"
    folder = BENCH / "results" / name
    folder.mkdir(parents=True, exist_ok=True)
    report, raw = [], {}
    for data in args.data:
        results = {sampler: measure(args, data, sampler, runs) for sampler in args.samplers}
        raw[data.name] = results
        rows = [("sampler", "epoch s", "mining s", "total / random", "loop", *METRICS)]
        base = results.get("random", next(iter(results.values())))["epoch_seconds"]
        for sampler, one in results.items():
            total = one["epoch_seconds"] + one["mining_seconds"]
            rows.append((sampler, f"{one['epoch_seconds']:.1f}", f"{one['mining_seconds']:.2f}", f"{total / base:.3f}",
                         f"{100 * one['loop_share']:.1f} %", *(f"{one['accuracy'][metric]:.2f}" for metric in METRICS)))
        report.append(f"{data.name}, titles, {encoder}, {args.epochs} epochs\n" + table(rows))
        if encoder != "bag":
            for start, path in (("at the start", args.encoder), ("trained", train(args, data, args.samplers[-1], runs) / "encoder")):
                kept = runs / f"hardness-{data.name}-{encoder}-{start.replace(' ', '-')}.json"
                found = cached(kept, lambda: call("hard-negatives", data, "--text", "title", "--encoder", path))
                raw[data.name][f"hard negatives, encoder {start}"] = found
                rows = [("batches of 256", "labels", "of the 100 hardest")]
                rows += [(one, f"{values['labels_per_batch']:.0f}", f"{100 * values['share']:.2f} %")
                         for one, values in found.items()]
                report.append(f"{data.name}, encoder {start}\n" + table(rows))
        (folder / f"{data.name}.svg").write_text(figure(f"P@1 on held-out points, {data.name}, {encoder}", results))
        text = "\n\n".join(report)

        def git(*words):
            return subprocess.run(["git", *words], cwd=ROOT, stdout=subprocess.PIPE, text=True).stdout.strip()

        figures = "\n".join(f"![{data.name}]({data.name}.svg)" for data in args.data)
        (folder / "README.md").write_text(
            f"# Samplers, {encoder}\n\n- command: `make bench-sampling`, epochs {args.epochs}, seed {args.seed} "
            f"{' '.join(args.options)}\n- commit: {git('rev-parse', '--short', 'HEAD')}\n"
            f"- machine: {os.cpu_count()} cores, {platform.machine()}, {platform.system()}\n\n```\n{text}\n```\n\n{figures}\n")
        (folder / "raw.json").write_text(json.dumps(raw, indent=1) + "\n")
    print("\n\n".join(report))


if __name__ == "__main__":
    main()
