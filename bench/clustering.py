"""Balanced clusters of a million vectors, side by side with the same algorithm in NumPy.

    make bench-clustering [VECTORS=folder for the vectors, 4 GB]

Vectors are made once: unit vectors around centres of uneven weight, as embeddings of texts are. Both
programs read the same files, on 2 threads, and take turns. Ratio = NumPy's time / ngame's. The cost of
ngame against the number and the length of vectors stands below, divided by N D log2(N / C): a constant
if the cost is what the paper says. The table goes to standard output and to bench/results/.
"""
import argparse
import math
import statistics
import sys
from pathlib import Path

import record
from record import BENCH, RELEASE

from turns import Side

try:
    import numpy as np
except ImportError:
    sys.exit("the peer is NumPy: pip install numpy")

OURS = RELEASE / "clustering"
CLUSTER = 32
SIZES = [(125_000, 384), (250_000, 384), (500_000, 384), (1_000_000, 384), (500_000, 128), (500_000, 768)]
COMPARED = (1_000_000, 384)


def make_vectors(folder, n, dim):
    """Writes `n` unit vectors of length `dim`, unless they are there."""
    path = folder / f"vectors-{n}-{dim}.npy"
    if path.exists():
        return path
    print(f"making {path.name}", file=sys.stderr)
    random = np.random.default_rng(1)
    n_centres = 4096
    centres = random.standard_normal((n_centres, dim), dtype=np.float32)
    # Centres have parents, so that halves of halves mean something.
    parents = random.standard_normal((64, dim), dtype=np.float32)
    centres += 1.5 * parents[random.integers(0, 64, n_centres)]
    weight = 1 / np.arange(1, n_centres + 1) ** 0.7
    out = np.lib.format.open_memmap(path.with_suffix(".part"), mode="w+", dtype=np.float32, shape=(n, dim))
    for begin in range(0, n, 50_000):
        rows = min(50_000, n - begin)
        chosen = random.choice(n_centres, rows, p=weight / weight.sum())
        block = centres[chosen] + 1.2 * random.standard_normal((rows, dim), dtype=np.float32)
        out[begin:begin + rows] = block / np.linalg.norm(block, axis=1, keepdims=True)
    out.flush()
    path.with_suffix(".part").rename(path)
    return path


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--vectors", type=Path, default=BENCH / "data" / "vectors", help="where vectors are kept")
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    args.vectors.mkdir(parents=True, exist_ok=True)
    files = {size: make_vectors(args.vectors, *size) for size in SIZES}
    raw = {"compared": [], "cost": {}}

    path = files[COMPARED]
    words = [path, "--cluster-size", CLUSTER, "--threads", 2]
    peer = Side("NumPy", [sys.executable, BENCH / "clustering_peer.py", *words], OPENBLAS_NUM_THREADS="2")
    for turn in range(args.rounds):
        # A process of its own every time, for its peak of memory; both have read the vectors before.
        ours = Side("ngame", [OURS, *words])
        raw["compared"].append({"ngame": ours.turn(turn), "peer": peer.turn(turn)})
        ours.close()
    peer.close()
    for size in SIZES:
        side = Side("ngame", [OURS, files[size], "--cluster-size", CLUSTER, "--threads", 2])
        side.turn(0)  # Brings the file into memory.
        raw["cost"][size] = [side.turn(seed) for seed in range(args.rounds)]
        side.close()

    ratio = statistics.median(turn["peer"]["seconds"] / turn["ngame"]["seconds"] for turn in raw["compared"])
    ours, theirs = (statistics.median(turn[side]["seconds"] for turn in raw["compared"]) for side in ("ngame", "peer"))
    memory = max(turn["ngame"]["peak_rss"] for turn in raw["compared"]) / (4 * COMPARED[0] * COMPARED[1])
    similar = [statistics.mean(turn[side]["similarity"] for turn in raw["compared"]) for side in ("ngame", "peer")]
    n, dim = COMPARED
    lines = [
        f"{n:,} x {dim} into clusters of {CLUSTER}, 2 threads, medians of {args.rounds} turns",
        f"  seconds             ngame {ours:.2f}   NumPy {theirs:.2f}   {ratio:.1f} x   at least 5 x   "
        + ("ok" if ratio >= 5 else "short"),
        f"  mean similarity     ngame {similar[0]:.5f}   NumPy {similar[1]:.5f}   not below, a seed a turn   "
        + ("ok" if similar[0] >= similar[1] else "short"),
        f"  peak memory         {memory:.3f} x the vectors   at most 1.2   " + ("ok" if memory <= 1.2 else "short"),
        "",
        "        N    D   seconds   ns / (N D log2(N / C))",
    ]
    for (n, dim), results in raw["cost"].items():
        seconds = statistics.median(result["seconds"] for result in results)
        lines.append(f"{n:9,} {dim:4} {seconds:9.2f}   {1e9 * seconds / (n * dim * math.log2(n / CLUSTER)):.4f}")
    print("\n".join(lines))

    raw["cost"] = {f"{n} x {dim}": results for (n, dim), results in raw["cost"].items()}
    record.write("clustering", "Clustering", "make bench-clustering", "\n".join(lines), raw, {"NumPy": np.__version__})


if __name__ == "__main__":
    main()
