"""A plain siamese training in PyTorch, the way people write it: random batches of points and one of their labels,
in-batch softmax, AdamW with warm-up and linear decay; then the nearest label texts. The same encoder, loss,
batch size, rate, steps and trained layers as the run of ngame beside it. It takes hours: what it has is kept beside
OUT as it goes, and it goes on from there.

    siamese.py DATA TEXT siamese OUT ENCODER STEPS BATCH RATE TEMPERATURE LAYERS
"""
import os
import random
import sys

import torch
from sentence_transformers import SentenceTransformer

from common import TOP, Peer, cpu_seconds
from sentence_vectors import nearest

KEEP_EVERY = 100  # steps


def main():
    torch.set_num_threads(2)
    torch.manual_seed(0)
    generator = random.Random(0)
    peer = Peer()
    data = peer.data
    encoder, steps, batch, rate, temperature = sys.argv[5], int(sys.argv[6]), int(sys.argv[7]), *map(float, sys.argv[8:10])
    n_layers = None if sys.argv[10] == "all" else int(sys.argv[10])
    model = SentenceTransformer(encoder, device="cpu")
    model.max_seq_length = 32 if peer.text == "title" else 128
    kept, half_kept = peer.out.with_suffix(".pt"), peer.out.with_suffix(".pt.half")
    bert = model[0].auto_model
    for frozen in [bert.embeddings, *bert.encoder.layer[:-n_layers]] if n_layers else []:
        frozen.requires_grad_(False)

    def vectors(texts):
        tokens = model.tokenize(texts)
        return torch.nn.functional.normalize(model(tokens)["sentence_embedding"])

    def train():
        optimiser = torch.optim.AdamW([weight for weight in model.parameters() if weight.requires_grad], lr=rate, weight_decay=0.01)
        warm = max(1, steps // 10)
        schedule = torch.optim.lr_scheduler.LambdaLR(
            optimiser, lambda step: min((step + 1) / warm, (steps - step) / max(1, steps - warm)))
        points = [point for point, labels in enumerate(data.labels_of) if labels]
        begin, waiting, cpu_before, began = 0, [], 0.0, cpu_seconds()
        if kept.exists():
            begin, waiting, cpu_before, drawn, dropped, *learnt = torch.load(kept, weights_only=False)
            generator.setstate(drawn)
            torch.set_rng_state(dropped)
            for part, state in zip((model, optimiser, schedule), learnt):
                part.load_state_dict(state)
        model.train()
        for step in range(begin, steps):
            if step % KEEP_EVERY == 0 and step > begin:
                spent = cpu_before + cpu_seconds() - began
                learnt = [part.state_dict() for part in (model, optimiser, schedule)]
                torch.save((step, waiting, spent, generator.getstate(), torch.get_rng_state(), *learnt), half_kept)
                os.replace(half_kept, kept)
            if len(waiting) < batch:
                waiting = generator.sample(points, len(points))
            chosen, waiting = waiting[:batch], waiting[batch:]
            labels = [generator.choice(data.labels_of[point]) for point in chosen]
            scores = vectors([data.train[point] for point in chosen]) @ vectors([data.label_texts[l] for l in labels]).T
            # Another label of the batch that is right for the point is no negative of it.
            right = torch.tensor([[label in own and at != row for at, label in enumerate(labels)]
                                  for row, own in enumerate(set(data.labels_of[point]) for point in chosen)])
            scores = (scores / temperature).masked_fill(right, float("-inf"))
            loss = torch.nn.functional.cross_entropy(scores, torch.arange(len(chosen)))
            optimiser.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimiser.step()
            schedule.step()
            if step % 20 == 0:
                print(f"step {step} of {steps}, loss {loss.item():.3f}", file=sys.stderr)
        model.eval()
        return cpu_before

    cpu_before = peer.train(train)
    peer.facts["train_cpu_seconds"] += cpu_before

    def encode(texts):
        return model.encode(texts, batch_size=64, normalize_embeddings=True, show_progress_bar=False)

    known = encode(data.label_texts)

    def answers():  # Not before the clock runs: encoding is part of an answer.
        yield from nearest(encode(data.test), known, TOP)

    peer.predict(answers())
    peer.done(known.nbytes + sum(weight.nbytes for weight in model.parameters()))
    kept.unlink(missing_ok=True)


if __name__ == "__main__":
    main()
