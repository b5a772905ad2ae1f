"""fastText's classifier, one-vs-all where the labels are few enough for it and hierarchical softmax elsewhere.

    fasttext_bag.py DATA TEXT fasttext OUT
"""
import tempfile
from pathlib import Path

import fasttext

from common import TOP, Peer

MOST_ONE_VS_ALL = 2_000


def main():
    peer = Peer()
    data = peer.data
    loss = "ova" if data.n_labels <= MOST_ONE_VS_ALL else "hs"
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "train.txt"
        with file.open("w") as output:
            for text, labels in zip(data.train, data.labels_of):
                names = " ".join(f"__label__{label}" for label in labels)
                output.write(f"{names} {' '.join(text.lower().split())}\n")
        model = peer.train(lambda: fasttext.train_supervised(
            str(file), loss=loss, dim=100, epoch=50, lr=0.5, wordNgrams=2, minCount=1, thread=2, verbose=0))
        path = Path(folder) / "model.bin"
        model.save_model(str(path))
        size = path.stat().st_size

    def answers():
        for text in data.test:
            # The Python of fasttext does not know NumPy 2; what it wraps does its work alone.
            found = model.f.predict(" ".join(text.lower().split()) + "\n", TOP, 0.0, "strict")
            yield [int(name.removeprefix("__label__")) for _, name in found], [score for score, _ in found]

    peer.predict(answers())
    peer.done(size)


if __name__ == "__main__":
    main()
