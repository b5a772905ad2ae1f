"""omikuji's Parabel or Bonsai on TF-IDF of words and pairs of words.

    omikuji_trees.py DATA TEXT parabel|bonsai OUT
"""
import tempfile
from pathlib import Path

import omikuji

from common import TOP, Peer, folder_bytes


def write_features(file, features, data):
    with file.open("w") as output:
        # A row without any feature is refused: it teaches nothing.
        kept = [i for i in range(len(data.train)) if features.indptr[i + 1] > features.indptr[i]]
        output.write(f"{len(kept)} {features.shape[1]} {data.n_labels}\n")
        for i in kept:
            span = slice(features.indptr[i], features.indptr[i + 1])
            pairs = " ".join(f"{j}:{v:.6g}" for j, v in zip(features.indices[span], features.data[span]))
            output.write(",".join(map(str, data.labels_of[i])) + f" {pairs}\n")


def main():
    peer = Peer()
    features, test = peer.data.tfidf()
    settings = omikuji.Model.default_hyper_param()
    if peer.kind == "bonsai":
        settings.cluster_k, settings.cluster_balanced, settings.max_depth = 100, False, 3
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "train.txt"
        write_features(file, features, peer.data)
        model = peer.train(lambda: omikuji.Model.train_on_data(str(file), settings, n_threads=2))
        model.save(f"{folder}/model")
        size = folder_bytes(f"{folder}/model")

    def answers():
        for i in range(test.shape[0]):
            span = slice(test.indptr[i], test.indptr[i + 1])
            query = list(zip(test.indices[span].tolist(), test.data[span].tolist()))
            found = model.predict(query, top_k=TOP) if query else []
            yield [label for label, _ in found], [score for _, score in found]

    peer.predict(answers())
    peer.done(size)


if __name__ == "__main__":
    main()
