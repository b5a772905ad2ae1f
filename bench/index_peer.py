"""The peers of index.py: vectors searched on one thread, once for every line read."""
import json
import sys
import time

import numpy as np


def hnswlib_index(vectors, connectivity, build_width):
    import hnswlib
    index = hnswlib.Index("ip", vectors.shape[1])
    index.init_index(len(vectors), M=connectivity, ef_construction=build_width)
    index.set_num_threads(1)
    index.add_items(vectors)
    return index.set_ef, lambda queries, k: index.knn_query(queries, k)[0]


def faiss_index(vectors, connectivity, build_width):
    import faiss
    faiss.omp_set_num_threads(1)
    index = faiss.IndexHNSWFlat(vectors.shape[1], connectivity, faiss.METRIC_INNER_PRODUCT)
    index.hnsw.efConstruction = build_width
    index.add(vectors)

    def widen(width):
        index.hnsw.efSearch = width
    return widen, lambda queries, k: index.search(queries, k)[1]


def faiss_flat(vectors, *_):
    """No graph: all vectors are compared."""
    import faiss
    faiss.omp_set_num_threads(1)
    index = faiss.IndexFlatIP(vectors.shape[1])
    index.add(vectors)
    return lambda width: None, lambda queries, k: index.search(queries, k)[1]


def usearch_index(vectors, connectivity, build_width, dtype="f32"):
    from usearch.index import Index
    index = Index(ndim=vectors.shape[1], metric="ip", dtype=dtype, connectivity=connectivity,
                  expansion_add=build_width)
    index.add(np.arange(len(vectors)), vectors, threads=1)

    def widen(width):
        index.expansion_search = width
    return widen, lambda queries, k: index.search(queries, k, threads=1).keys


PEERS = {"hnswlib": hnswlib_index, "faiss": faiss_index, "faiss-flat": faiss_flat, "usearch": usearch_index,
         "usearch-f16": lambda *words: usearch_index(*words, dtype="f16")}


def exact_best(vectors, queries, k):
    """The `k` best of every query, in no order."""
    # Copies, or each would hold on to a place for every vector.
    found = [np.argpartition(-(block @ vectors.T), k - 1, axis=1)[:, :k].copy()
             for block in np.array_split(queries, max(1, len(queries) // 100))]
    return np.concatenate(found)


def main():
    peer, vectors, queries, k, target, connectivity, build_width = sys.argv[1:]
    # Mapped, so that all programs share them, unless they are of another type.
    vectors, queries = (np.asarray(np.load(path, mmap_mode="r"), dtype=np.float32) for path in (vectors, queries))
    k = int(k)
    exact = [set(row) for row in exact_best(vectors, queries, k).tolist()]

    began = time.process_time()
    widen, search = PEERS[peer](vectors, int(connectivity), int(build_width))
    build_seconds = time.process_time() - began

    def recall(found):
        return sum(len(exact.intersection(row)) for exact, row in zip(exact, found.tolist())) / (k * len(queries))

    def reaches(width):
        widen(width)
        return recall(search(queries, k)) >= float(target)

    # As `tune` does: double, then halve the gap to a twentieth.
    too_narrow, width = k - 1, k
    while not reaches(width) and width < len(vectors):
        too_narrow, width = width, 2 * width
    while width - too_narrow > 1 + width // 20:
        between = (too_narrow + width) // 2
        too_narrow, width = (too_narrow, between) if reaches(between) else (between, width)
    widen(width)
    print(json.dumps({"build_seconds": build_seconds, "search_width": width}), flush=True)
    for _ in sys.stdin:
        began, began_running = time.perf_counter(), time.process_time()
        found = search(queries, k)
        seconds, running = time.perf_counter() - began, time.process_time() - began_running
        print(json.dumps({"queries_per_second": len(queries) / running,
                          "queries_per_second_of_the_clock": len(queries) / seconds,
                          "recall": recall(found)}), flush=True)


if __name__ == "__main__":
    main()
