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
import json
import statistics
import subprocess
from pathlib import Path

import figure
import record
from record import BENCH, MINILM, RELEASE, kept, table

SAMPLERS = ["random", "static", "ann", "ngame"]
METRICS = ["P@1", "P@5", "PSP@1", "PSP@5", "R@100"]


def call(program, *words):
    command = [str(word) for word in (RELEASE / program, *words)]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)


def train(args, data, sampler, runs):
    """The folder of a finished run, trained now, or before."""
    model = runs / f"{data.name}-{Path(args.encoder).name}-{sampler}-{args.epochs}"
    record.train(data, model, ["--text", "title", "--only", "encoder", "--encoder", args.encoder, "--sampler", sampler,
                               "--epochs", args.epochs, "--seed", args.seed, "--set", f"validation.every={args.validate}",
                               *args.options])
    return model


def read_lines(model):
    lines = [json.loads(line) for line in (model / "metrics.jsonl").read_text().splitlines()]
    return [line for line in lines if line["kind"] == "step"], [line for line in lines if line["kind"] == "validation"]


def measure(args, data, sampler, runs):
    model = train(args, data, sampler, runs)
    steps, validations = read_lines(model)
    last = steps[-1]
    accuracy = kept(model / "retrieval.json", lambda: call(
        "retrieval", data, "--text", "title", "--encoder", model / "encoder"))
    # Medians of steps, so that a machine that was busy for a while does not decide.
    step_seconds = statistics.median(step["step_seconds"] for step in steps)
    return {
        "epoch_seconds": step_seconds * len(steps) / args.epochs,
        "mining_seconds": last["mining_seconds"] / args.epochs,
        "loop_share": statistics.median(step["step_seconds"] / step["encoder_seconds"] for step in steps) - 1,
        "hardness": statistics.mean(step["hardness"] for step in steps[-max(1, len(steps) // 10):]),
        "accuracy": accuracy,
        # By the same medians, with what mining had taken until then.
        "curve": [((line["step"] * step_seconds + steps[line["step"] - 1]["mining_seconds"]) / 60,
                   100 * line["precision_1"], 100 * line["precision_5"], 100 * line["recall_100"]) for line in validations],
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path, nargs="+", help="LF folders")
    parser.add_argument("--encoder", default=str(MINILM), help="a folder, or bag")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--validate", type=float, default=0.5, help="epochs between looks at the held-out points")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--samplers", nargs="+", default=SAMPLERS, choices=SAMPLERS)
    parser.add_argument("--options", nargs=argparse.REMAINDER, default=[], help="for ngame train, the same for all")
    args = parser.parse_args()
    runs = BENCH / "data" / "samplers"
    runs.mkdir(parents=True, exist_ok=True)
    encoder = Path(args.encoder).name
    for data in args.data:
        results = {sampler: measure(args, data, sampler, runs) for sampler in args.samplers}
        raw = dict(results)
        rows = [("sampler", "epoch s", "mining s", "total / random", "loop", *METRICS)]
        base = results.get("random", next(iter(results.values())))["epoch_seconds"]
        for sampler, one in results.items():
            total = one["epoch_seconds"] + one["mining_seconds"]
            rows.append((sampler, f"{one['epoch_seconds']:.1f}", f"{one['mining_seconds']:.2f}", f"{total / base:.3f}",
                         f"{100 * one['loop_share']:.1f} %", *(f"{one['accuracy'][metric]:.2f}" for metric in METRICS)))
        report = [f"{data.name}, titles, {encoder}, {args.epochs} epochs\n" + table(rows)]
        if encoder != "bag":
            for start, path in (("at the start", args.encoder), ("trained", train(args, data, args.samplers[-1], runs) / "encoder")):
                path_of = runs / f"hardness-{data.name}-{encoder}-{start.replace(' ', '-')}.json"
                found = kept(path_of, lambda: call("hard-negatives", data, "--text", "title", "--encoder", path))
                raw[f"hard negatives, encoder {start}"] = found
                rows = [("batches of 256", "labels", "of the 100 hardest")]
                rows += [(one, f"{values['labels_per_batch']:.0f}", f"{100 * values['share']:.2f} %")
                         for one, values in found.items()]
                report.append(f"{data.name}, encoder {start}\n" + table(rows))
        drawn = figure.lines(f"P@1 on held-out points, {data.name}, {encoder}", "minutes of training",
                             {sampler: [(minutes, precision) for minutes, precision, *_ in one["curve"]]
                              for sampler, one in results.items()})
        command = f"make bench-sampling DATA={data.name} ENCODER={encoder} EPOCHS={args.epochs}"
        command += f' OPTIONS="{" ".join(args.options)}"' if args.options else ""
        folder = record.write(f"samplers-{data.name}-{encoder}", f"Samplers on {data.name}, {encoder}", command,
                              "\n\n".join(report), raw, after="\n![P@1 on held-out points over time](figure.svg)\n")
        (folder / "figure.svg").write_text(drawn)
        print("\n\n".join(report) + "\n")


if __name__ == "__main__":
    main()
