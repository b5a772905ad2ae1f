"""The peer of serve.py: FastAPI, sentence-transformers and hnswlib over the vectors of a model folder.

    uvicorn serve_peer:app --port 8081   (with NGAME_MODEL=/path/to/a/model)

It does what such services do: the text's vector, the labels whose classifiers score highest and those of the
nearest training texts from two graphs, the sum of classifier and label text for each of them, the best five
with their ids and texts. It needs a model whose encoder sentence-transformers loads.
"""
import json
import os
from pathlib import Path

import hnswlib
import numpy as np
import torch
from fastapi import FastAPI
from pydantic import BaseModel
from sentence_transformers import SentenceTransformer

MODEL = Path(os.environ["NGAME_MODEL"])
CANDIDATES, VOTERS = 100, 30
torch.set_num_threads(os.cpu_count())


def array_file(path):
    """The arrays of a file of ngame's, by name (docs/FORMAT.md)."""
    content = path.read_bytes()
    length = int.from_bytes(content[8:16], "little")
    header, at, arrays = json.loads(content[16:16 + length]), 16 + length, {}
    for name, size in header["arrays"]:
        at = -(-at // 64) * 64
        arrays[name] = content[at:at + size]
        at += size
    return header["state"], arrays


def texts(arrays, name, ends):
    ends = np.frombuffer(arrays[ends], "<u8").tolist()
    return [arrays[name][begin:end].decode() for begin, end in zip([0, *ends], ends)]

BIAS_UNIT = 32  # docs/FORMAT.md: what stands behind every query


def graph(vectors):
    index = hnswlib.Index("ip", vectors.shape[1])
    index.init_index(len(vectors), M=16, ef_construction=128)
    index.add_items(vectors)
    index.set_ef(128)
    return index


named, label_arrays = array_file(MODEL / "labels.bin")
label_texts = texts(label_arrays, "texts", "text_ends")
label_ids = texts(label_arrays, "ids", "id_ends") if named == "id" else (
    label_texts if named == "text" else [str(n) for n in range(len(label_texts))])
embeddings = np.load(MODEL / "embeddings.npy").astype(np.float32)
classifiers = np.load(MODEL / "classifiers.npy").astype(np.float32)
label_graph = graph(classifiers)
has_points = (MODEL / "points.npy").exists()
if has_points:
    _, point_arrays = array_file(MODEL / "points.bin")
    offsets = np.frombuffer(point_arrays["label_offsets"], "<u8").tolist()
    point_labels = np.frombuffer(point_arrays["labels"], "<u4")
    point_graph = graph(np.load(MODEL / "points.npy").astype(np.float32))
encoder = SentenceTransformer(str(MODEL / "encoder"), device="cpu")
app = FastAPI()


class Request(BaseModel):
    texts: list[str]
    top: int = 5


@app.post("/v1/predict")
def predict(request: Request):
    with torch.inference_mode():
        vectors = encoder.encode(request.texts, normalize_embeddings=True, show_progress_bar=False)
    longer = np.concatenate([vectors, np.full((len(vectors), 1), BIAS_UNIT, np.float32)], axis=1)
    found, _ = label_graph.knn_query(longer, min(CANDIDATES, len(label_ids)))
    near = point_graph.knn_query(vectors, VOTERS)[0] if has_points else []
    predictions = []
    for row, vector in enumerate(vectors):
        candidates = set(found[row].tolist())
        for point in (near[row] if has_points else []):
            candidates.update(point_labels[offsets[point]:offsets[point + 1]].tolist())
        candidates = np.fromiter(candidates, dtype=np.int64)
        scores = classifiers[candidates] @ longer[row] + embeddings[candidates] @ vector
        best = np.argsort(-scores)[:request.top]
        predictions.append({"labels": [{"id": label_ids[label], "text": label_texts[label], "score": float(score)}
                                       for label, score in zip(candidates[best], scores[best])]})
    return {"predictions": predictions}


@app.get("/readyz")
def ready():
    return {"status": "ready"}
