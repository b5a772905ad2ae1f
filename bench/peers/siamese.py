"""A plain siamese training in PyTorch, the way people write it: random batches of points and one of their labels,
in-batch softmax, AdamW with warm-up and linear decay; then the nearest label texts. The same encoder, loss,
batch size, rate, steps and trained layers as the run of ngame beside it.

    siamese.py DATA TEXT siamese OUT ENCODER STEPS BATCH RATE TEMPERATURE LAYERS
"""
import random
import sys

import torch
from sentence_transformers import SentenceTransformer

from common import TOP, Peer
from sentence_vectors import nearest


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
        waiting = []
        model.train()
        for step in range(steps):
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

    peer.train(train)

    def encode(texts):
        return model.encode(texts, batch_size=64, normalize_embeddings=True, show_progress_bar=False)

    known = encode(data.label_texts)
    peer.predict(nearest(encode(data.test), known, TOP))
    peer.done(known.nbytes + sum(weight.nbytes for weight in model.parameters()))


if __name__ == "__main__":
    main()
