"""PECOS XR-Linear on TF-IDF of words and pairs of words, its own label tree and defaults.

    pecos_linear.py DATA TEXT xr-linear OUT
"""
import tempfile

from pecos.xmc import Indexer, LabelEmbeddingFactory
from pecos.xmc.xlinear.model import XLinearModel

from common import TOP, Peer, folder_bytes


def main():
    peer = Peer()
    features, test = peer.data.tfidf()
    labels = peer.data.label_matrix()

    def train():
        label_features = LabelEmbeddingFactory.create(labels, features, method="pifa")
        return XLinearModel.train(features, labels, C=Indexer.gen(label_features), threads=2)

    model = peer.train(train)
    with tempfile.TemporaryDirectory() as folder:
        model.save(folder)
        size = folder_bytes(folder)

    def answers():
        found = model.predict(test, only_topk=TOP, beam_size=20, threads=2).tocsr()
        for i in range(found.shape[0]):
            span = slice(found.indptr[i], found.indptr[i + 1])
            yield found.indices[span], found.data[span]

    peer.predict(answers())
    peer.done(size)


if __name__ == "__main__":
    main()
