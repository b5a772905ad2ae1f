"""Classifiers in PyTorch, on what bench/classifier.py had ngame write: one JSON line for every line read.

A line is an objective, and how many steps of it are run and timed. Setting up is not timed.
"""
import argparse
import json
import resource
import sys
import time
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F

parser = argparse.ArgumentParser()
parser.add_argument("folder", type=Path)
parser.add_argument("--threads", type=int, default=2)
args = parser.parse_args()
torch.set_num_threads(args.threads)
torch.manual_seed(0)


def numbers(name, kind):
    return np.fromfile(args.folder / name, dtype=kind)


class Pairs:
    """A sparse matrix of points and labels."""

    def __init__(self, name):
        self.ends = np.cumsum(numbers(f"{name}-lengths.u32", np.uint32).astype(np.int64))
        self.columns = numbers(f"{name}-columns.u32", np.uint32).astype(np.int64)

    def of(self, points):
        """Rows within the batch, and labels."""
        begins = np.where(points > 0, self.ends[points - 1], 0)
        lengths = self.ends[points] - begins
        rows = np.repeat(np.arange(len(points)), lengths)
        within = np.arange(len(rows)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        return rows, self.columns[begins[rows] + within]


dim = int((args.folder / "dim").read_text())
points = torch.from_numpy(numbers("points.f32", np.float32).reshape(-1, dim))
labels = torch.from_numpy(numbers("labels.f32", np.float32).reshape(-1, dim))
truth, filtered = Pairs("truth"), Pairs("filter")
ends = np.cumsum(numbers("batch-lengths.u32", np.uint32).astype(np.int64))
batches = np.split(numbers("batch-points.u32", np.uint32).astype(np.int64), ends[:-1])


def triplet(steps, margin=0.2, n_positives=3, n_negatives=5, rate=1e-3, dropout=0.5):
    """The paper's objective, as its authors write it: a sparse embedding, top-k of masked cosines."""
    table = torch.nn.Embedding.from_pretrained(labels.clone(), freeze=False, sparse=True)
    optimiser = torch.optim.SparseAdam(table.parameters(), lr=rate)
    began = time.perf_counter()
    for step, chosen in enumerate(batches[:steps]):
        # Rates rise over a twentieth of 30 epochs, as in ngame.
        optimiser.param_groups[0]["lr"] = rate * min(1, (step + 1) / round(30 * len(batches) / 20))
        rows, found = truth.of(chosen)
        batch_labels, columns = np.unique(found, return_inverse=True)
        vectors = F.normalize(F.dropout(points[chosen], dropout))
        classifiers = F.normalize(table(torch.from_numpy(batch_labels)))
        scores = vectors @ classifiers.T
        positive = torch.zeros(scores.shape, dtype=torch.bool)
        positive[torch.from_numpy(rows), torch.from_numpy(columns)] = True
        spared = positive.clone()
        rows, found = filtered.of(chosen)
        columns = np.minimum(np.searchsorted(batch_labels, found), len(batch_labels) - 1)
        there = batch_labels[columns] == found
        spared[torch.from_numpy(rows[there]), torch.from_numpy(columns[there])] = True
        with torch.no_grad():
            hard_positives = scores.masked_fill(~positive, torch.inf).topk(n_positives, largest=False).indices
            hard_negatives = scores.masked_fill(spared, -torch.inf).topk(n_negatives).indices
        valid = positive.gather(1, hard_positives)
        positives, negatives = scores.gather(1, hard_positives), scores.gather(1, hard_negatives)
        lacks = F.relu(negatives[:, None, :] - positives[:, :, None] + margin) * valid[:, :, None]
        loss = (lacks.sum((1, 2)) / (valid.sum(1).clamp(min=1) * n_negatives)).mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return time.perf_counter() - began, table.weight.detach()


def one_vs_all(steps, batch_size, scale, offset, rate, bias_rate, dropout):
    """Binary cross-entropy of every point with every label that has points; Adam in one kernel."""
    counts = np.bincount(truth.columns, minlength=len(labels))
    trained = np.flatnonzero(counts)
    place = np.full(len(labels), -1)
    place[trained] = np.arange(len(trained))
    vectors = torch.nn.Parameter(labels[trained].clone())
    biases = torch.nn.Parameter(torch.from_numpy(
        np.log((counts[trained] + 0.1) / (len(points) + 1)) + offset).float())
    optimiser = torch.optim.Adam([{"params": [vectors], "lr": rate}, {"params": [biases], "lr": bias_rate}], fused=True)
    order = np.random.default_rng(0).permutation(len(points))
    began = time.perf_counter()
    for step in range(steps):
        chosen = order[step * batch_size:(step + 1) * batch_size]
        batch = F.dropout(points[chosen], dropout)
        logits = torch.addmm(biases, batch, vectors.T, alpha=scale)
        rows, found = truth.of(chosen)
        target = torch.zeros(logits.shape)
        target[torch.from_numpy(rows), torch.from_numpy(place[found])] = 1.0
        loss = F.binary_cross_entropy_with_logits(logits, target, reduction="sum") / len(chosen)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    moved = labels.clone()
    moved[trained] = vectors.detach()
    return time.perf_counter() - began, moved


print("ready", flush=True)
for line in sys.stdin:
    turn = json.loads(line)
    name = turn.pop("objective")
    seconds, vectors = {"triplet": triplet, "one-vs-all": one_vs_all}[name](**turn)
    print(json.dumps({
        "seconds": seconds,
        "steps": turn["steps"],
        "moved": float((1 - F.cosine_similarity(vectors, labels)).mean()),
        "peak_rss": 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss,
    }), flush=True)
