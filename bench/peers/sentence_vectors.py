"""sentence-transformers without training: the nearest label texts, or the labels of the nearest training points.

    sentence_vectors.py DATA TEXT zero-shot|votes OUT ENCODER
"""
import sys

import numpy as np
import torch
from sentence_transformers import SentenceTransformer

from common import TOP, Peer

NEIGHBOURS = 20
BLOCK = 512


def nearest(queries, vectors, n):
    """Positions and scores of the n best for every query, block by block."""
    for begin in range(0, len(queries), BLOCK):
        scores = queries[begin:begin + BLOCK] @ vectors.T
        best = np.argpartition(-scores, n, axis=1)[:, :n]
        values = np.take_along_axis(scores, best, axis=1)
        order = np.argsort(-values, axis=1)
        yield from zip(np.take_along_axis(best, order, axis=1), np.take_along_axis(values, order, axis=1))


def main():
    torch.set_num_threads(2)
    peer = Peer()
    data = peer.data
    model = SentenceTransformer(sys.argv[5], device="cpu")
    model.max_seq_length = 32 if peer.text == "title" else 128

    def encode(texts):
        return model.encode(texts, batch_size=64, normalize_embeddings=True, show_progress_bar=False)

    known = data.label_texts if peer.kind == "zero-shot" else data.train
    vectors = peer.train(lambda: encode(known))

    def answers():
        queries = encode(data.test)
        if peer.kind == "zero-shot":
            yield from nearest(queries, vectors, TOP)
            return
        for points, scores in nearest(queries, vectors, NEIGHBOURS):
            votes = {}
            for point, score in zip(points, scores):
                for label in data.labels_of[point]:
                    votes[label] = votes.get(label, 0.0) + float(score)
            best = sorted(votes.items(), key=lambda vote: -vote[1])[:TOP]
            yield [label for label, _ in best], [score for _, score in best]

    peer.predict(answers())
    peer.done(vectors.nbytes)


if __name__ == "__main__":
    main()
