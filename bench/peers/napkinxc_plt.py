"""napkinXC's probabilistic label tree on TF-IDF of words and pairs of words.

    napkinxc_plt.py DATA TEXT plt OUT
"""
import tempfile

from napkinxc.models import PLT

from common import TOP, Peer, folder_bytes


def main():
    peer = Peer()
    features, test = peer.data.tfidf()
    with tempfile.TemporaryDirectory() as folder:
        model = PLT(folder, threads=2, verbose=0)
        peer.train(lambda: model.fit(features, peer.data.labels_of))
        size = folder_bytes(folder)

        def answers():
            for row in model.predict_proba(test, top_k=TOP):
                yield [label for label, _ in row], [score for _, score in row]

        peer.predict(answers())
    peer.done(size)


if __name__ == "__main__":
    main()
