"""Approximate search on one thread, side by side with hnswlib, faiss and usearch.

    make bench-index DATA=/path/to/msdocs-seealso [SYNTHETIC=200000]

Every side builds a graph of the same vectors with the same connectivity and build width, two of them at a
time on one thread each, tunes its search width until the recall of the exact 100 best is reached, and then
answers all queries, in turns and alone. Seconds are those that a program ran, so that what else the machine
does counts less. Ratio = ngame's queries per second / the peer's, the median over turns. The vectors are the
titles of a data set's labels, with 2,000 test titles as queries, and synthetic unit vectors around centres
(those of clustering.py). Exact search of all queries at once stands beside that of faiss. What was measured is
kept in bench/data/index and not measured again. The tables go to standard output and to bench/results/.
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
from record import BENCH, MINILM, RELEASE, kept
from turns import Side

PACKAGES = ["numpy", "hnswlib", "faiss-cpu", "usearch"]
PEERS = ["hnswlib", "faiss", "usearch", "usearch-f16"]
FLAT = "faiss-flat"
AT_ONCE = ["exact-many", "exact-many-f16", FLAT]
SCANS = ["exact", "exact-f16"]
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


def take_turns(python, vectors, queries, names, rounds):
    """What every side says when it is ready, and at each of its turns."""
    ours = {"ngame": "f32", "ngame-f16": "f16", "exact": "exact", "exact-f16": "exact-f16",
            "exact-many": "many", "exact-many-f16": "many-f16"}

    def begin(name):
        if name in ours:
            words = ["--kind", ours[name], "--k", K, "--recall", RECALL]
            words += ["--connectivity", CONNECTIVITY, "--build-width", BUILD_WIDTH]
            return Side(name, [RELEASE / "index", vectors, queries, *words], wait=False)
        words = [name, vectors, queries, K, RECALL, CONNECTIVITY, BUILD_WIDTH]
        return Side(name, [python, BENCH / "index_peer.py", *words], wait=False,
                    OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")

    sides, ready = {}, {}
    for first in range(0, len(names), 2):
        pair = {name: begin(name) for name in names[first:first + 2]}
        ready |= {name: json.loads(side.get_ready()) for name, side in pair.items()}
        sides |= pair
    turns = [{name: side.turn() for name, side in sides.items()} for _ in range(rounds)]
    for side in sides.values():
        side.close()
    return {"ready": ready, "turns": turns}


def compare(python, vectors, queries, rounds, peers, folder):
    """Graphs, scans for one query after the other, and exact search of all queries at once."""
    # Scans take long, and once is enough to see where the graph overtakes them.
    groups = {"graphs": (["ngame", "ngame-f16", *peers], rounds), "scans": (SCANS, 1), "at once": (AT_ONCE, rounds)}
    return {group: kept(folder / f"{vectors.stem}-{'-'.join(names)}-{turns}.json",
                        lambda: take_turns(python, vectors, queries, names, turns))
            for group, (names, turns) in groups.items()}


def rate(turns, name):
    return statistics.median(turn[name]["queries_per_second"] for turn in turns)


def table(title, result):
    lines = [title, "               queries/s   recall   width   build s   ngame f32 / it   ngame f16 / it"]
    graphs = result["graphs"]["turns"]
    for group in ("graphs", "scans"):
        ready, turns = result[group]["ready"], result[group]["turns"]
        for name in ready:
            line = (f"  {name:12} {rate(turns, name):9,.0f}   {turns[0][name]['recall']:6.4f}"
                    f"   {ready[name].get('search_width', '-'):>5}   {ready[name].get('build_seconds', 0):7.1f}")
            for own in ("ngame", "ngame-f16"):
                if group == "graphs":
                    ratio = statistics.median(turn[own]["queries_per_second"] / turn[name]["queries_per_second"]
                                              for turn in turns)
                else:
                    ratio = rate(graphs, own) / rate(turns, name)
                line += f"   {ratio:12.2f} x"
            lines.append(line)
    lines += ["", "  exact, all queries at once   queries/s   recall   it / faiss-flat"]
    turns = result["at once"]["turns"]
    for name in AT_ONCE:
        ratio = statistics.median(turn[name]["queries_per_second"] / turn[FLAT]["queries_per_second"] for turn in turns)
        lines.append(f"  {name:26} {rate(turns, name):11,.0f}   {turns[0][name]['recall']:6.4f}   {ratio:12.2f} x")
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
        raw[title] = compare(python, vectors, queries, args.rounds, args.peers, folder)
        shape = raw[title]["graphs"]["ready"]["ngame"]
        lines += table(f"{title}: {shape['n_vectors']:,} x {shape['dim']}, {N_QUERIES:,} queries, one thread, "
                       f"medians of {args.rounds} turns", raw[title]) + [""]
    print("\n".join(lines))

    record.write("index", "Index",
                 f"make bench-index DATA={args.data.name if args.data else ''} SYNTHETIC={args.synthetic}",
                 "\n".join(lines), raw, record.versions(python, PACKAGES),
                 [f"M = {CONNECTIVITY}, build width {BUILD_WIDTH}, the {K} best at a recall of at least {RECALL}"])


if __name__ == "__main__":
    main()
