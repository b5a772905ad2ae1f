"""A peer on the same texts: TF-IDF of words and pairs of words, omikuji's Parabel or Bonsai. Writes predictions as
sparse text and prints one JSON object.

    accuracy_peer.py DATA TEXT parabel|bonsai OUT
"""
import gzip
import json
import resource
import sys
import time
from pathlib import Path

import omikuji
from sklearn.feature_extraction.text import TfidfVectorizer

TOP = 110  # Filter pairs come off before 100 are counted.


def rows(path, text):
    with gzip.open(path, "rt") as lines:
        for line in lines:
            row = json.loads(line)
            title, content = row.get("title", ""), row.get("content", "")
            chosen = {"title": title or content, "content": content or title, "both": f"{title} {content}".strip()}
            yield chosen[text], row["target_ind"]


def cpu_seconds():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def main():
    data, text, kind, out = Path(sys.argv[1]), sys.argv[2], sys.argv[3], Path(sys.argv[4])
    train, test = list(rows(data / "trn.json.gz", text)), list(rows(data / "tst.json.gz", text))
    with gzip.open(data / "lbl.json.gz", "rt") as lines:
        n_labels = sum(1 for _ in lines)
    vectorizer = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, dtype="float32", min_df=1)
    features = vectorizer.fit_transform([row for row, _ in train])
    test_features = vectorizer.transform([row for row, _ in test])
    file = out.with_suffix(".xc")
    with file.open("w") as output:
        # A row without any feature is refused: it teaches nothing.
        kept = [i for i in range(len(train)) if features.indptr[i + 1] > features.indptr[i]]
        output.write(f"{len(kept)} {features.shape[1]} {n_labels}\n")
        for i in kept:
            span = slice(features.indptr[i], features.indptr[i + 1])
            pairs = " ".join(f"{j}:{v:.6g}" for j, v in zip(features.indices[span], features.data[span]))
            output.write(",".join(map(str, sorted(set(train[i][1])))) + f" {pairs}\n")
    settings = omikuji.Model.default_hyper_param()
    if kind == "bonsai":
        settings.cluster_k, settings.cluster_balanced, settings.max_depth = 100, False, 3
    began = cpu_seconds()
    model = omikuji.Model.train_on_data(str(file), settings, n_threads=2)
    train_seconds = cpu_seconds() - began
    began = time.perf_counter()
    with out.open("w") as output:
        output.write(f"{len(test)} {n_labels}\n")
        for i in range(len(test)):
            span = slice(test_features.indptr[i], test_features.indptr[i + 1])
            query = list(zip(test_features.indices[span].tolist(), test_features.data[span].tolist()))
            found = model.predict(query, top_k=TOP) if query else []
            output.write(" ".join(f"{label}:{score:.7g}" for label, score in found) + "\n")
    milliseconds = (time.perf_counter() - began) * 1e3 / max(1, len(test))
    file.unlink()
    print(json.dumps({"train_cpu_seconds": train_seconds, "predict_ms": milliseconds,
                      "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}))


if __name__ == "__main__":
    main()
