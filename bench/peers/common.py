"""What the peers have in common: the texts of an LF folder, predictions as sparse text, and what a run cost."""
import gzip
import json
import resource
import sys
import time
from pathlib import Path

TOP = 110  # Filter pairs come off before 100 are counted.


class Data:
    """The texts and labels of an LF folder."""

    def __init__(self, folder, text):
        folder = Path(folder)
        self.train, self.labels_of = self.read(folder / "trn.json.gz", text)
        self.test, _ = self.read(folder / "tst.json.gz", text)
        with gzip.open(folder / "lbl.json.gz", "rt") as lines:
            self.label_texts = [choose(json.loads(line), text) for line in lines]
        self.n_labels = len(self.label_texts)

    @staticmethod
    def read(path, text):
        texts, labels = [], []
        with gzip.open(path, "rt") as lines:
            for line in lines:
                row = json.loads(line)
                texts.append(choose(row, text))
                labels.append(sorted(set(row["target_ind"])))
        return texts, labels

    def tfidf(self):
        """Words and pairs of words of the training and the test texts, as sparse matrices."""
        import numpy as np
        from sklearn.feature_extraction.text import TfidfVectorizer
        vectorizer = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, dtype=np.float32, min_df=1)
        return vectorizer.fit_transform(self.train).tocsr(), vectorizer.transform(self.test).tocsr()

    def label_matrix(self):
        """Which label each training point has."""
        import numpy as np
        from scipy.sparse import csr_matrix
        indptr = np.cumsum([0] + [len(labels) for labels in self.labels_of])
        indices = np.concatenate([np.asarray(labels, int) for labels in self.labels_of])
        return csr_matrix((np.ones(len(indices), "float32"), indices, indptr), (len(self.labels_of), self.n_labels))


def choose(row, text):
    title, content = row.get("title", ""), row.get("content", "")
    return {"title": title or content, "content": content or title, "both": f"{title} {content}".strip()}[text]


def cpu_seconds():
    both = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in both)


class Peer:
    """One run: trained and asked, with the clock beside it."""

    def __init__(self):
        self.folder, self.text, self.kind, self.out = sys.argv[1], sys.argv[2], sys.argv[3], Path(sys.argv[4])
        self.data = Data(self.folder, self.text)
        self.facts = {}

    def train(self, make):
        began = cpu_seconds()
        model = make()
        self.facts["train_cpu_seconds"] = cpu_seconds() - began
        return model

    def predict(self, rows):
        """Writes what `rows`, an iterator of (labels, scores) for every test text, gives."""
        began = time.perf_counter()
        with self.out.open("w") as output:
            output.write(f"{len(self.data.test)} {self.data.n_labels}\n")
            for labels, scores in rows:
                output.write(" ".join(f"{label}:{score:.7g}" for label, score in zip(labels, scores)) + "\n")
        self.facts["predict_ms"] = (time.perf_counter() - began) * 1e3 / max(1, len(self.data.test))

    def done(self, model_bytes=None):
        self.facts["peak_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        if model_bytes is not None:
            self.facts["model_mb"] = model_bytes / 2**20
        print(json.dumps(self.facts))


def folder_bytes(folder):
    return sum(file.stat().st_size for file in Path(folder).rglob("*") if file.is_file())
