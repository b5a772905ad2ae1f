"""The clustering of ngame in NumPy: the same algorithm, written the way NumPy is fast.

Balanced hierarchical k-means of unit vectors: sets are halved until clusters have the size wanted. Two
centroids start at random points; points are ordered by how much closer they are to one, the order is
cut where both sides get the points that their clusters need, centroids move to the unit means of their
sides, until the mean similarity gains less than 5e-5 or 16 rounds are over. Sets of more than 2 MiB of
vectors find their centroids on a sample of that size. Answers a JSON line for every line read.
"""
import argparse
import json
import resource
import sys
import time

import numpy as np

CACHED = 2 << 20
ROUNDS = 16
TOLERANCE = 5e-5


def begin(cluster, n_points, n_clusters):
    return cluster * n_points // n_clusters


def unit(vector):
    return vector / max(np.linalg.norm(vector), 1e-30)


def settle(vectors, left, random):
    """Two centroids move until they gain nothing; the keys of the last round and the centroids' difference."""
    one, other = random.choice(len(vectors), 2, replace=False)
    direction = vectors[one] - vectors[other]
    total = vectors.sum(axis=0, dtype=np.float64)
    best = -np.inf
    for round_ in range(ROUNDS):
        keys = vectors @ direction
        if round_ + 1 == ROUNDS:
            break
        order = np.argpartition(-keys, left - 1)
        ours = vectors[order[:left]].sum(axis=0, dtype=np.float64)
        theirs = total - ours
        similarity = (np.linalg.norm(ours) + np.linalg.norm(theirs)) / len(vectors)
        if similarity < best + TOLERANCE:
            break
        best = similarity
        direction = (unit(ours) - unit(theirs)).astype(np.float32)
    return keys, direction


def cluster(all_vectors, cluster_size, random):
    n_points = len(all_vectors)
    n_clusters = -(-n_points // cluster_size)
    sample_size = max(CACHED // (4 * all_vectors.shape[1]), 256)
    done = []
    todo = [(np.arange(n_points), 0, n_clusters)]
    while todo:
        points, first, last = todo.pop()
        if last - first == 1:
            done.append(points)
            continue
        middle = first + (last - first) // 2
        left = begin(middle, n_points, n_clusters) - begin(first, n_points, n_clusters)
        vectors = all_vectors[points]
        if len(points) > sample_size:
            sample = vectors[np.sort(random.choice(len(points), sample_size, replace=False))]
            _, direction = settle(sample, round(sample_size * left / len(points)), random)
            keys = vectors @ direction
        else:
            keys, _ = settle(vectors, left, random)
        order = np.argpartition(-keys, left - 1)
        todo.append((np.sort(points[order[left:]]), middle, last))
        todo.append((np.sort(points[order[:left]]), first, middle))
    return done


def mean_similarity(vectors, clusters):
    return sum(np.linalg.norm(vectors[points].sum(axis=0, dtype=np.float64)) for points in clusters) / len(vectors)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("vectors")
    parser.add_argument("--cluster-size", type=int, default=32)
    parser.add_argument("--threads", type=int, default=2)  # As OPENBLAS_NUM_THREADS; kept for the record.
    args = parser.parse_args()
    vectors = np.load(args.vectors)
    print("ready", flush=True)
    for line in sys.stdin:  # The seed of the turn.
        began = time.perf_counter()
        clusters = cluster(vectors, args.cluster_size, np.random.default_rng(int(line)))
        seconds = time.perf_counter() - began
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        print(json.dumps({"seconds": seconds, "n_clusters": len(clusters),
                          "similarity": float(mean_similarity(vectors, clusters)), "peak_rss": peak}), flush=True)


if __name__ == "__main__":
    main()
