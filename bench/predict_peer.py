"""The peer of predict.py: sentence-transformers encodes, hnswlib searches the same classifiers, names come from a list.

    predict_peer.py MODEL TEXTS THREADS TOP RECALL
"""
import json
import os
import resource
import sys
import time
from pathlib import Path

THREADS = sys.argv[3]
os.environ.update(OMP_NUM_THREADS=THREADS, MKL_NUM_THREADS=THREADS, TOKENIZERS_PARALLELISM="true")

import hnswlib  # noqa: E402
import numpy as np  # noqa: E402
import torch  # noqa: E402
from sentence_transformers import SentenceTransformer  # noqa: E402

SHORTLIST = 100
BIAS_UNIT = 32  # docs/FORMAT.md: what stands behind every query


def build(vectors, queries, target):
    """A graph of the vectors, as wide as it takes to reach a recall of the exact best."""
    index = hnswlib.Index("ip", vectors.shape[1])
    index.init_index(len(vectors), M=16, ef_construction=128)
    index.add_items(vectors)
    index.set_num_threads(int(THREADS))
    exact = [set(row) for row in np.argpartition(-(queries @ vectors.T), SHORTLIST, axis=1)[:, :SHORTLIST].tolist()]
    width = SHORTLIST
    while True:
        index.set_ef(width)
        found = index.knn_query(queries, SHORTLIST)[0].tolist()
        if sum(len(a.intersection(b)) for a, b in zip(exact, found)) >= target * SHORTLIST * len(queries):
            return index, width
        width = width * 5 // 4


def main():
    model, texts, top, target = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[4]), float(sys.argv[5])
    torch.set_num_threads(int(THREADS))
    texts = texts.read_text().splitlines()
    encoder = SentenceTransformer(str(model / "encoder"), device="cpu")
    classifiers = np.load(model / "classifiers.npy").astype(np.float32)
    names = [f"label {number}" for number in range(len(classifiers))]

    def encode(some):
        vectors = encoder.encode(some, batch_size=64, convert_to_numpy=True, show_progress_bar=False)
        # The classifiers' last number is their bias.
        return np.hstack([vectors, np.full((len(vectors), 1), BIAS_UNIT, np.float32)])

    index, width = build(classifiers, encode(texts[:500]), target)

    def answer(some):
        labels, distances = index.knn_query(encode(some), SHORTLIST)
        return [[(names[label], 1 - distance) for label, distance in zip(*row)][:top]
                for row in zip(labels.tolist(), distances.tolist())]

    print(json.dumps({"search_width": width}), flush=True)
    for line in sys.stdin:
        began, began_computing, milliseconds, n_labels = time.perf_counter(), time.process_time(), [], 0
        if line.strip() == "one":
            for text in texts:
                start = time.perf_counter()
                n_labels += len(answer([text])[0])
                milliseconds.append((time.perf_counter() - start) * 1e3)
        else:
            n_labels = sum(map(len, answer(texts)))
        print(json.dumps({
            "seconds": time.perf_counter() - began, "cpu_seconds": time.process_time() - began_computing,
            "milliseconds": milliseconds, "n_labels": n_labels,
            "peak_rss": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024}), flush=True)


if __name__ == "__main__":
    main()
