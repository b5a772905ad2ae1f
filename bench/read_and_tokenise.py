"""The peer of read-and-tokenise: Python `json` and Hugging Face `tokenizers`, both cores.

    python read_and_tokenise.py DATA TOKENIZER MAX_TOKENS

Texts are read as ngame reads them (title and content), encoded in batches without offsets, the
peer's fastest way, and kept as one array of ids. Prints one JSON line.
"""
import gzip
import json
import resource
import sys
import time
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer

BATCH = 10_000


def read(path):
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            row = json.loads(line)
            yield " ".join(part for part in (row["title"].strip(), row["content"].strip()) if part), row["target_ind"]


def main():
    data, tokenizer, max_tokens = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
    start = time.perf_counter()
    texts, targets = [], []
    for name in ("lbl.json.gz", "trn.json.gz", "tst.json.gz"):
        if name.startswith("lbl"):
            with gzip.open(data / name, "rt", encoding="utf-8") as lines:
                labels = [json.loads(line)["title"] for line in lines]
            continue
        for text, target in read(data / name):
            texts.append(text)
            targets.append(target)
    read_seconds = time.perf_counter() - start

    start = time.perf_counter()
    tokenizer = Tokenizer.from_file(str(tokenizer / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(max_tokens)
    ids, lengths = [], []
    for begin in range(0, len(texts), BATCH):
        encodings = tokenizer.encode_batch_fast(texts[begin : begin + BATCH])
        rows = [encoding.ids for encoding in encodings]
        lengths.append(np.fromiter(map(len, rows), dtype=np.int64, count=len(rows)))
        ids.append(np.fromiter((token for row in rows for token in row), dtype=np.uint16))
    ids, lengths = np.concatenate(ids), np.concatenate(lengths)
    tokenise_seconds = time.perf_counter() - start

    usage = resource.getrusage(resource.RUSAGE_SELF)
    print(json.dumps({
        "points": len(texts),
        "tokens": int(lengths.sum()),
        "labels": len(labels),
        "read_seconds": read_seconds,
        "tokenise_seconds": tokenise_seconds,
        "peak_bytes": usage.ru_maxrss * 1024,
    }))


if __name__ == "__main__":
    main()
