"""Training classifiers, side by side with PyTorch, and over more than a million labels.

    make bench-classifier DATA=/path/to/debian-related ENCODER=/path/to/a/trained/encoder

Vectors of the data set's training points are made once, by ngame, and written for PyTorch; both programs
run on 2 threads and take turns of so many steps, of the same batches where batches are clusters. Ratio =
PyTorch's time / ngame's. The run over made-up points and labels is a process of its own, for its peak of
memory. The table goes to standard output and to bench/results/.
"""
import argparse
import json
import statistics
from pathlib import Path

import record
from record import BENCH, RELEASE

from turns import Side

OURS = RELEASE / "classifiers"
BATCH = 512  # Of one-vs-all.
ALL = dict(scale=20.0, offset=-5.0, rate=2e-3, bias_rate=2e-2, dropout=0.2)
TRIPLET_BATCH = 2048
N_POINTS, N_LABELS, DIM = 2_250_000, 1_300_000, 384


def compare(args, python, raw):
    """Turns of both programs on a real data set; returns lines of the table."""
    folder = BENCH / "data" / "classifier"
    words = [args.data, "--encoder", args.encoder, "--export", folder, "--held-out", 0, "--threads", 2]
    ours = Side("ngame", [OURS, *words])
    peer = Side("PyTorch", [python, BENCH / "classifier_peer.py", folder, "--threads", 2])
    n_points = (folder / "truth-lengths.u32").stat().st_size // 4
    n_batches = (folder / "batch-lengths.u32").stat().st_size // 4
    options = " ".join(f"--{name.replace('_', '-')} {value}" for name, value in ALL.items())
    sides = {
        "triplet": (f"triplet --steps {n_batches}", {"objective": "triplet", "steps": n_batches}),
        "one-vs-all": (
            f"one-vs-all --steps {args.steps} --batch {BATCH} {options}",
            {"objective": "one-vs-all", "steps": args.steps, "batch_size": BATCH, **ALL},
        ),
    }
    for turn in range(args.rounds):
        for name, (our_line, their_line) in sides.items():
            raw[name].append({"ngame": ours.turn(our_line), "peer": peer.turn(json.dumps(their_line))})
    ours.close()
    peer.close()
    lines = [f"{args.data.name}, {n_points:,} points, {DIM} numbers a vector, 2 threads, medians of {args.rounds} turns",
             "  seconds of an epoch     ngame   PyTorch   ratio"]
    epochs = {"triplet": n_batches, "one-vs-all": n_points / BATCH}
    for name, bar in (("triplet", 3), ("one-vs-all", None)):
        ratio = statistics.median(turn["peer"]["seconds"] / turn["ngame"]["seconds"] for turn in raw[name])
        ours, theirs = (statistics.median(turn[side]["seconds"] / turn[side]["steps"] for turn in raw[name])
                        * epochs[name] for side in ("ngame", "peer"))
        verdict = "" if bar is None else f"   at least {bar} x   " + ("ok" if ratio >= bar else "short")
        steps = raw[name][0]["ngame"]["steps"]
        lines.append(f"  {name:20} {ours:8.2f} {theirs:9.2f}   {ratio:.1f} x{verdict}   (turns of {steps} steps)")
    return lines


def large(args, raw):
    """The sparse objectives over very many labels; returns lines of the table."""
    lines = ["", f"{N_LABELS:,} labels, {N_POINTS:,} points of f16, {DIM} numbers a vector, made up; 2 threads",
             "  objective and moments      ms a step   steps an epoch   minutes an epoch   peak GiB, at most 16"]
    for words, batch in (("triplet", TRIPLET_BATCH), ("triplet --half", TRIPLET_BATCH), ("cross-entropy", BATCH),
                         ("cross-entropy --half", BATCH)):
        side = Side("ngame", [OURS, "--points", N_POINTS, "--labels", N_LABELS, "--dim", DIM, "--threads", 2])
        answer = side.turn(f"{words} --epochs 2 --batch {batch} --steps {args.large_steps}")
        side.close()
        raw["large"].append({"words": words, **answer})
        step = answer["seconds"] / answer["steps"]
        n_steps = -(-N_POINTS // batch)
        peak = answer["peak_rss"] / 2**30
        lines.append(f"  {words:22} {1000 * step:13.0f} {n_steps:16,} {step * n_steps / 60:18.1f} {peak:12.1f}   "
                     + ("ok" if peak <= 16 else "short"))
    lines += [f"  An epoch is {args.large_steps} steps, timed, times how many there are.",
              f"  Clusters of {N_POINTS:,} points, once a run of triplets: {raw['large'][0]['before_steps']:.0f} s."]
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--encoder", type=Path, required=True)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=6, help="the steps of a turn of one-vs-all")
    parser.add_argument("--large-steps", type=int, default=20)
    parser.add_argument("--skip-large", action="store_true")
    args = parser.parse_args()
    python = record.peer_python(".venv", ["torch", "numpy"])
    raw = {"triplet": [], "one-vs-all": [], "large": []}
    lines = compare(args, python, raw)
    if not args.skip_large:
        lines += large(args, raw)
    print("\n".join(lines))

    record.write("classifier", "Classifiers", f"make bench-classifier DATA={args.data.name} ENCODER={args.encoder.name}",
                 "\n".join(lines), raw, record.versions(python, ["torch", "numpy"]))


if __name__ == "__main__":
    main()
