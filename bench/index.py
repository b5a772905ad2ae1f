"""Approximate search on one thread, side by side with hnswlib, faiss and usearch.

    make bench-index DATA=/path/to/msdocs-seealso [SYNTHETIC=200000]

Every side builds a graph of the same vectors with the same connectivity and build width, tunes its search
width until the recall of the exact 100 best is reached, and then answers all queries, in turns. Seconds are
those that a program ran, so that what else the machine does counts less. Ratio = ngame's queries per
second / the peer's, the median over turns. The vectors are the titles of a data set's
labels, with 2,000 test titles as queries, and synthetic unit vectors around centres (those of
clustering.py). Exact search of all queries at once stands beside that of faiss. The tables go to standard
output and to bench/results/.
"""
import argparse
import gzip
import json
import random
import statistics
import subprocess
import sys
from pathlib import Path

import record
from record import BENCH, MINILM, RELEASE
from turns import Side

PACKAGES = ["numpy", "hnswlib", "faiss-cpu", "usearch"]
PEERS = ["hnswlib", "faiss", "usearch", "usearch-f16"]
FLAT = "faiss-flat"
AT_ONCE = ["exact-many", "exact-many-f16", FLAT]
N_QUERIES = 2_000
K = 100
RECALL = 0.95
CONNECTIVITY = 16
BUILD_WIDTH = 128

def real_vectors(data, folder):
    """The vectors of all label titles and of some test titles, made once."""
    vectors, queries = folder / f"{data.name}-labels.npy", folder / f"{data.name}-queries.npy"
    embed = [RELEASE / "ngame", "embed", "--encoder", MINILM]
    if not vectors.exists():
        words = ["--input", data, "--part", "labels", "--text", "title", "--out", vectors]
        subprocess.run([*embed, *words], check=True, stdout=sys.stderr)
    if not queries.exists():
        with gzip.open(data / "tst.json.gz", "rt") as lines:
            titles = [" ".join(json.loads(line)["title"].split()) for line in lines]
        titles = random.Random(1).sample([title for title in titles if title], N_QUERIES)
        (folder / "queries.txt").write_text("\n".join(titles) + "\n")
        words = ["--input", folder / "queries.txt", "--out", queries]
        subprocess.run([*embed, *words], check=True, stdout=sys.stderr)
    return vectors, queries


def synthetic_vectors(python, n, folder):
    """Unit vectors around centres; the last of them are the queries."""
    vectors, queries = folder / f"synthetic-{n}.npy", folder / f"synthetic-{n}-queries.npy"
    if not (vectors.exists() and queries.exists()):
        program = (
            "import sys; from pathlib import Path; import numpy as np; from clustering import make_vectors\n"
            f"folder, n, n_queries = Path({str(folder)!r}), {n}, {N_QUERIES}\n"
            "made = make_vectors(folder, n + n_queries, 384)\n"
            "all = np.load(made, mmap_mode='r')\n"
            f"np.save({str(vectors)!r}, all[:n]); np.save({str(queries)!r}, all[n:]); made.unlink()\n")
        subprocess.run([python, "-c", program], check=True, cwd=BENCH)
    return vectors, queries


def compare(python, vectors, queries, rounds, peers):
    """What every side says when it is ready, and at each of its turns."""
    ours = {"ngame": "f32", "ngame-f16": "f16", "exact": "exact", "exact-f16": "exact-f16",
            "exact-many": "many", "exact-many-f16": "many-f16"}
    sides = {}
    for name, kind in ours.items():
        words = ["--kind", kind, "--k", K, "--recall", RECALL]
        words += ["--connectivity", CONNECTIVITY, "--build-width", BUILD_WIDTH]
        sides[name] = Side(name, [RELEASE / "index", vectors, queries, *words])
    for name in [*peers, FLAT]:
        words = [name, vectors, queries, K, RECALL, CONNECTIVITY, BUILD_WIDTH]
        sides[name] = Side(name, [python, BENCH / "index_peer.py", *words],
                           OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")
    ready = {name: json.loads(side.ready) for name, side in sides.items()}
    # Scans for one query after the other take long, and once is enough to see where the graph overtakes them.
    once = ["exact", "exact-f16"]
    turns = [{name: side.turn() for name, side in sides.items() if turn == 0 or name not in once} for turn in range(rounds)]
    for side in sides.values():
        side.close()
    return {"ready": ready, "turns": turns}


def table(title, result, peers):
    ready, turns = result["ready"], result["turns"]
    lines = [title, "               queries/s   recall   width   build s   ngame f32 / it   ngame f16 / it"]
    for name in [name for name in ready if name not in AT_ONCE]:
        mine = [turn[name] for turn in turns if name in turn]
        line = (f"  {name:12} {statistics.median(turn['queries_per_second'] for turn in mine):9,.0f}"
                f"   {mine[0]['recall']:6.4f}   {ready[name].get('search_width', '-'):>5}"
                f"   {ready[name].get('build_seconds', 0):7.1f}")
        for own in ("ngame", "ngame-f16"):
            shared = [turn for turn in turns if name in turn]
            ratio = statistics.median(turn[own]["queries_per_second"] / turn[name]["queries_per_second"]
                                      for turn in shared)
            line += f"   {ratio:12.2f} x"
        lines.append(line)
    lines += ["", "  exact, all queries at once   queries/s   recall   it / faiss-flat"]
    for name in AT_ONCE:
        mine = statistics.median(turn[name]["queries_per_second"] for turn in turns)
        ratio = statistics.median(turn[name]["queries_per_second"] / turn[FLAT]["queries_per_second"] for turn in turns)
        lines.append(f"  {name:26} {mine:11,.0f}   {turns[0][name]['recall']:6.4f}   {ratio:12.2f} x")
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path, nargs="?", help="a data set whose labels have titles")
    parser.add_argument("--synthetic", type=int, default=1_000_000, help="so many synthetic vectors; 0 for none")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--peers", nargs="*", default=PEERS)
    args = parser.parse_args()
    python = record.peer_python(".venv", PACKAGES)
    folder = BENCH / "data" / "index"
    folder.mkdir(parents=True, exist_ok=True)
    raw, lines = {}, []
    cases = []
    if args.data:
        cases.append((f"label titles of {args.data.name}, MiniLM", real_vectors(args.data, folder)))
    if args.synthetic:
        cases.append((f"{args.synthetic:,} synthetic unit vectors", synthetic_vectors(python, args.synthetic, folder)))
    for title, (vectors, queries) in cases:
        raw[title] = compare(python, vectors, queries, args.rounds, args.peers)
        shape = raw[title]["ready"]["ngame"]
        lines += table(f"{title}: {shape['n_vectors']:,} x {shape['dim']}, {N_QUERIES:,} queries, one thread, "
                       f"medians of {args.rounds} turns", raw[title], args.peers) + [""]
    print("\n".join(lines))

    record.write("index", "Index",
                 f"make bench-index DATA={args.data.name if args.data else ''} SYNTHETIC={args.synthetic}",
                 "\n".join(lines), raw, record.versions(python, PACKAGES),
                 [f"M = {CONNECTIVITY}, build width {BUILD_WIDTH}, the {K} best at a recall of at least {RECALL}"])


if __name__ == "__main__":
    main()
