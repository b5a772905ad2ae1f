"""Reading, tokenising and scoring, measured side by side in one run.

    make bench-data DATA=/path/to/yso-finna-en

Peer: Python `json` and Hugging Face `tokenizers` batch encoding, in a virtual environment of its
own (bench/.venv). Both sides read the same files and encode the same texts with the same tokenizer
on the same cores; they take turns, and the medians are compared. Two more programs load a synthetic
data set of the size of LF-AmazonTitles-1.3M and score a million rows of a hundred predictions.
The table goes to standard output and, with its command, commit and machine, to bench/results/.
"""
import argparse
import json
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path

import record
from record import BENCH, MINILM, RELEASE

GIB = 1 << 30
MB = 1_000_000


def run(*command):
    """Runs a program that prints one JSON line; adds how many cores it kept busy."""
    def cpu_seconds():
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        return usage.ru_utime + usage.ru_stime

    cpu, start = cpu_seconds(), time.perf_counter()
    done = subprocess.run([str(part) for part in command], check=True, stdout=subprocess.PIPE)
    result = json.loads(done.stdout.splitlines()[-1])
    result["cores_used"] = (cpu_seconds() - cpu) / (time.perf_counter() - start)
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path, help="an LF folder, such as yso-finna-en")
    parser.add_argument("--tokenizer", type=Path, default=MINILM)
    parser.add_argument("--max-tokens", type=int, default=128)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    python = record.peer_python(".venv", ["tokenizers", "numpy"])

    ours, peers = [], []
    for number in range(args.rounds):
        print(f"round {number + 1} of {args.rounds}", file=sys.stderr)
        ours.append(run(RELEASE / "read-and-tokenise", args.data, args.tokenizer, args.max_tokens))
        peers.append(run(python, BENCH / "read_and_tokenise.py", args.data, args.tokenizer, args.max_tokens))
    assert ours[0]["points"] == peers[0]["points"], "both sides read the same points"
    assert ours[0]["tokens"] == peers[0]["tokens"], "both sides made the same tokens"

    synthetic = BENCH / "data" / "synthetic-1.3m"
    if not (synthetic / "trn.json").exists():
        print("writing a synthetic data set of 2.25 M points", file=sys.stderr)
        part = synthetic.with_suffix(".part")
        subprocess.run([RELEASE / "synthetic-lf", part, "2250000", "1300000", "50000000"], check=True)
        part.rename(synthetic)
    print("loading it", file=sys.stderr)
    loaded = run(RELEASE / "load", synthetic)
    print("scoring a million rows", file=sys.stderr)
    scored = run(RELEASE / "score-million", BENCH / "data" / "million-predictions")

    def median(runs, key):
        return statistics.median(one[key] for one in runs)

    def seconds(runs):
        return statistics.median(one["read_seconds"] + one["tokenise_seconds"] for one in runs)

    bound = 1.5 * ours[0]["result_bytes"] + 200 * MB
    rows = [
        ("what", "ngame", "Python", "ratio", "bar"),
        ("read, s", f"{median(ours, 'read_seconds'):.2f}", f"{median(peers, 'read_seconds'):.2f}",
         f"{median(peers, 'read_seconds') / median(ours, 'read_seconds'):.1f} x", ""),
        ("tokenise, s", f"{median(ours, 'tokenise_seconds'):.2f}", f"{median(peers, 'tokenise_seconds'):.2f}",
         f"{median(peers, 'tokenise_seconds') / median(ours, 'tokenise_seconds'):.1f} x", ""),
        ("read and tokenise, s", f"{seconds(ours):.2f}", f"{seconds(peers):.2f}",
         f"{seconds(peers) / seconds(ours):.1f} x", "at least 1 x, aim 3 x"),
        ("cores used", f"{median(ours, 'cores_used'):.2f}", f"{median(peers, 'cores_used'):.2f}", "", "both"),
        ("peak memory, MB", f"{median(ours, 'peak_bytes') / MB:.0f}", f"{median(peers, 'peak_bytes') / MB:.0f}",
         f"{median(peers, 'peak_bytes') / median(ours, 'peak_bytes'):.1f} x", f"ngame at most {bound / MB:.0f}"),
        (f"load {loaded['pairs'] / 1e6:.0f} M pairs, s", f"{loaded['read_seconds']:.1f}", "", "", ""),
        ("  peak memory, GiB", f"{loaded['peak_bytes'] / GIB:.2f}", "", "", "at most 12"),
        ("read 1 M x 100 predictions, s", f"{scored['read_seconds']:.1f}", "", "", "seconds"),
        ("  score them, s", f"{scored['evaluate_seconds']:.2f}", "", "", "seconds"),
        ("  with intervals, s", f"{scored['intervals_seconds']:.2f}", "", "", "seconds"),
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(5)]
    table = "\n".join(
        "  ".join(cell.ljust(width) if column in (0, 4) else cell.rjust(width)
                  for column, (cell, width) in enumerate(zip(row, widths))).rstrip()
        for row in rows)
    head = (f"{ours[0]['points']:,} points of {args.data.name}, {ours[0]['tokens']:,} tokens, "
            f"at most {args.max_tokens} a text; medians of {args.rounds}")
    print(head, table, sep="\n")
    record.write("data", "Data: reading, tokenising, scoring", f"make bench-data DATA={args.data.name}", f"{head}\n\n{table}",
                 {"ngame": ours, "python": peers, "load": loaded, "score": scored},
                 record.versions(python, ["tokenizers", "numpy"]))


if __name__ == "__main__":
    main()
