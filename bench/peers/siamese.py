"""A plain siamese training in PyTorch, the way people write it: random batches of points and one of their labels,
in-batch softmax, AdamW with warm-up and linear decay; then the nearest label texts. The encoder, loss, batch size,
rate, steps, trained layers and length of texts are those of the run of ngame beside it, but for the steps that do not
fit into the CPU seconds it is given: how many do is timed first, and said. What it has is kept beside OUT as it goes, and
it goes on from there.

    siamese.py DATA TEXT siamese OUT ENCODER SETTINGS, which are JSON: see siamese_settings in accuracy.py
"""
import json
import os
import random
import sys

import torch
from sentence_transformers import SentenceTransformer

from common import TOP, Peer, cpu_seconds
from sentence_vectors import nearest

KEEP_EVERY = 20  # steps
TIMED = 3  # steps, after one that finds its memory


class Siamese:
    """The encoder, and what is learnt of it."""

    def __init__(self, encoder, data, settings):
        self.data, self.settings, self.random = data, settings, random.Random(0)
        self.model = SentenceTransformer(encoder, device="cpu")
        self.model.max_seq_length = settings["max_tokens"]
        bert = self.model[0].auto_model
        lower = bert.encoder.layer[:-settings["trained_layers"]]
        for frozen in [bert.embeddings, *lower] if len(lower) else []:
            frozen.requires_grad_(False)
        self.points = [point for point, labels in enumerate(data.labels_of) if labels]
        self.waiting = []

    def vectors(self, texts):
        return torch.nn.functional.normalize(self.model(self.model.tokenize(texts))["sentence_embedding"])

    def loss(self):
        """Of the next batch."""
        data, batch = self.data, self.settings["batch_size"]
        if len(self.waiting) < batch:
            self.waiting = self.random.sample(self.points, len(self.points))
        chosen, self.waiting = self.waiting[:batch], self.waiting[batch:]
        labels = [self.random.choice(data.labels_of[point]) for point in chosen]
        scores = self.vectors([data.train[point] for point in chosen]) @ self.vectors([data.label_texts[l] for l in labels]).T
        # Another label of the batch that is right for the point is no negative of it.
        right = torch.tensor([[label in own and at != row for at, label in enumerate(labels)]
                              for row, own in enumerate(set(data.labels_of[point]) for point in chosen)])
        scores = (scores / self.settings["temperature"]).masked_fill(right, float("-inf"))
        return torch.nn.functional.cross_entropy(scores, torch.arange(len(chosen)))

    def steps_that_fit(self):
        self.model.train()
        self.loss().backward()
        began = cpu_seconds()
        for _ in range(TIMED):
            self.loss().backward()
        seconds = (cpu_seconds() - began) / TIMED
        self.model.zero_grad()
        return max(1, min(self.settings["steps"], int(self.settings["cpu_seconds"] / seconds)))

    def train(self, kept):
        """Returns the steps that were taken, and the CPU seconds of earlier tries."""
        weights = [weight for weight in self.model.parameters() if weight.requires_grad]
        optimiser = torch.optim.AdamW(weights, lr=self.settings["learning_rate"], weight_decay=0.01)
        begin, steps, cpu_before, began = 0, None, 0.0, cpu_seconds()
        if kept.exists():
            begin, steps, cpu_before, self.waiting, drawn, dropped, *learnt = torch.load(kept, weights_only=False)
            self.random.setstate(drawn)
            torch.set_rng_state(dropped)
            for part, state in zip((self.model, optimiser), learnt):
                part.load_state_dict(state)
        steps = steps or self.steps_that_fit()
        warm = max(1, steps // 10)
        self.model.train()
        for step in range(begin, steps):
            if step % KEEP_EVERY == 0 and step > begin:
                spent = cpu_before + cpu_seconds() - began
                learnt = [part.state_dict() for part in (self.model, optimiser)]
                half = kept.with_suffix(".half")
                torch.save((step, steps, spent, self.waiting, self.random.getstate(), torch.get_rng_state(), *learnt), half)
                os.replace(half, kept)
            for group in optimiser.param_groups:
                group["lr"] = self.settings["learning_rate"] * min((step + 1) / warm, (steps - step) / max(1, steps - warm))
            loss = self.loss()
            optimiser.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(weights, 1.0)
            optimiser.step()
            if step % 20 == 0:
                print(f"step {step} of {steps}, loss {loss.item():.3f}", file=sys.stderr)
        self.model.eval()
        return steps, cpu_before

    def encode(self, texts):
        return self.model.encode(texts, batch_size=64, normalize_embeddings=True, show_progress_bar=False)


def main():
    torch.set_num_threads(2)
    torch.manual_seed(0)
    peer = Peer()
    siamese = Siamese(sys.argv[5], peer.data, json.loads(sys.argv[6]))
    kept = peer.out.with_suffix(".pt")
    steps, cpu_before = peer.train(lambda: siamese.train(kept))
    peer.facts["train_cpu_seconds"] += cpu_before
    peer.facts["steps"], peer.facts["steps_of_ngame"] = steps, siamese.settings["steps"]
    known = siamese.encode(peer.data.label_texts)

    def answers():  # Not before the clock runs: encoding is part of an answer.
        yield from nearest(siamese.encode(peer.data.test), known, TOP)

    peer.predict(answers())
    peer.done(known.nbytes + sum(weight.nbytes for weight in siamese.model.parameters()))
    kept.unlink(missing_ok=True)


if __name__ == "__main__":
    main()
