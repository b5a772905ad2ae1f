"""The peer of target/release/encoder: PyTorch, sentence-transformers and onnxruntime on the CPU.

    python encoder_peer.py train-step --shape minilm --tokens 32 --threads 2
    python encoder_peer.py train-real --data DATA --threads 2
    python encoder_peer.py embed --data DATA --threads 2 --out vectors.npy
    python encoder_peer.py query --engine onnxruntime --ids 101,…,102
    python encoder_peer.py compare vectors.npy others.npy

Takes the same cases and flags as our program. After getting ready a case prints a line, then does its
work once for every line on standard input and answers with a line of JSON. Wherever there is a choice
of how to call a library, the way that measured faster is taken and said so.
"""
import argparse
import gzip
import json
import os
import resource
import statistics
import sys
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
MINILM = ROOT / "encoders" / "all-MiniLM-L6-v2"
EXPORTED = ROOT / "bench" / "data" / "minilm.onnx"
MARGIN = 0.3


def peak_rss():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def rows(path):
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)


def mean_unit(states, mask=None):
    """Mean pooling and L2; without a mask all tokens are real."""
    import torch

    if mask is None:
        pooled = states.mean(1)
    else:
        weights = mask.unsqueeze(-1).to(states.dtype)
        pooled = (states * weights).sum(1) / weights.sum(1)
    return torch.nn.functional.normalize(pooled, dim=-1)


def stepper(model, loss_of_batch):
    """One training step: forward, backward and the optimiser; returns its seconds and the loss."""
    import torch

    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)

    def step():
        start = time.perf_counter()
        loss = loss_of_batch()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)  # Some percent faster than zeroes.
        loss = loss.item()
        return time.perf_counter() - start, loss

    return step


def take_turns(work):
    """Says that all is ready, then does the work for every line that comes."""
    print("ready", flush=True)
    for _ in sys.stdin:
        print(json.dumps(work()), flush=True)


def train_step(args):
    """Sequences of one length: nothing to pad and nothing to mask."""
    import torch
    from transformers import BertConfig, BertModel, DistilBertConfig, DistilBertModel

    torch.manual_seed(1)
    if args.shape == "minilm":
        config = BertConfig(hidden_size=384, num_hidden_layers=6, num_attention_heads=12, intermediate_size=1536,
                            hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
        config._attn_implementation = "sdpa"
        model = BertModel(config, add_pooling_layer=False)
    else:
        config = DistilBertConfig(dropout=0.0, attention_dropout=0.0)
        config._attn_implementation = "sdpa"
        model = DistilBertModel(config)
    model.train()
    ids = torch.randint(0, config.vocab_size, (args.sequences, args.tokens))
    weights = torch.randn(args.sequences, config.hidden_size)
    step = stepper(model, lambda: (mean_unit(model(input_ids=ids).last_hidden_state) * weights).sum())
    step()
    step()
    take_turns(lambda: {"seconds": step()[0], "tokens": ids.numel(), "peak_rss": peak_rss()})


def first_pairs(data, count):
    """The titles of the first points that have a label, and of the first label of each."""
    titles = [row["title"] for row in rows(data / "lbl.json.gz")]
    points, labels = [], []
    for row in rows(data / "trn.json.gz"):
        if row["target_ind"]:
            points.append(row["title"])
            labels.append(row["target_ind"][0])
            if len(points) == count:
                break
    return points, [titles[label] for label in labels], labels


def train_real(args):
    """One batch of real pairs. With unit vectors P of the points and L of their labels, S = P L^T:

        loss = 1 / n^2 * sum over i and j of mask[i][j] * max(0, S[i][j] - S[i][i] + 0.3)
        mask[i][j] = 1 if label_id[i] != label_id[j], otherwise 0

    so the mean is over all n^2 pairs, those that the mask takes out included.
    """
    import torch
    from tokenizers import Tokenizer
    from transformers import BertModel

    tokenizer = Tokenizer.from_file(str(MINILM / "tokenizer.json"))
    tokenizer.enable_truncation(args.max_tokens)
    tokenizer.enable_padding(pad_id=0, pad_token="[PAD]")  # To the longest of the batch.

    def padded(texts):
        encodings = tokenizer.encode_batch(texts)
        ids = torch.tensor([encoding.ids for encoding in encodings])
        return ids, torch.tensor([encoding.attention_mask for encoding in encodings])

    points, positives, labels = first_pairs(args.data, args.pairs)
    points, positives = padded(points), padded(positives)
    labels = torch.tensor(labels)
    negative = labels.unsqueeze(1) != labels.unsqueeze(0)
    # The model stays in evaluation mode, which does no more than switch dropout off.
    model = BertModel.from_pretrained(MINILM, add_pooling_layer=False, attn_implementation="sdpa").eval()

    def loss():
        p, l = (mean_unit(model(input_ids=ids, attention_mask=mask).last_hidden_state, mask)
                for ids, mask in (points, positives))
        scores = p @ l.T
        excess = torch.relu(scores - scores.diagonal().unsqueeze(1) + MARGIN)
        return (excess * negative).mean()

    step = stepper(model, loss)
    _, first_loss = step()
    take_turns(lambda: {
        "seconds": step()[0],
        "padded_tokens": points[0].numel() + positives[0].numel(),
        "real_tokens": int(points[1].sum() + positives[1].sum()),
        "loss": first_loss,
        "peak_rss": peak_rss(),
    })


def embed(args):
    """All titles of the test points; "seconds" is the better of two batch sizes, 32 is the default."""
    from sentence_transformers import SentenceTransformer

    texts = [row["title"] for row in rows(args.data / "tst.json.gz")]
    model = SentenceTransformer(str(MINILM), device="cpu")
    model.max_seq_length = 128
    model.encode(texts[:64], show_progress_bar=False)

    def work():
        seconds = {}
        for batch in args.batch_sizes:
            start = time.perf_counter()
            vectors = model.encode(texts, batch_size=batch, normalize_embeddings=True, show_progress_bar=False)
            seconds[str(batch)] = time.perf_counter() - start
        if args.out:
            np.save(args.out, vectors.astype(np.float32))
        best = min(seconds.values())
        return {"seconds": best, "by_batch_size": seconds, "texts": len(texts), "peak_rss": peak_rss()}

    take_turns(work)


def query(args):
    """One short text, as a search box sends it."""
    import torch
    from transformers import BertModel

    ids = [int(token) for token in args.ids.split(",")]
    if args.tokens is not None and len(ids) != args.tokens:
        sys.exit(f"--ids has {len(ids)} tokens, not {args.tokens}")
    if args.engine == "torch":
        model = BertModel.from_pretrained(MINILM, add_pooling_layer=False, attn_implementation="sdpa").eval()
        tensor = torch.tensor([ids])

        def call():
            return mean_unit(model(input_ids=tensor).last_hidden_state)[0].numpy()
    else:
        import onnxruntime

        if not EXPORTED.exists():
            export()
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = args.threads
        options.inter_op_num_threads = 1
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
        session = onnxruntime.InferenceSession(str(EXPORTED), options, providers=["CPUExecutionProvider"])
        array = np.array([ids], dtype=np.int64)

        def call():
            return session.run(None, {"input_ids": array})[0][0]

    def work():
        seconds = []
        with torch.inference_mode():
            for _ in range(10 + args.calls):
                start = time.perf_counter()
                vector = call()
                seconds.append(time.perf_counter() - start)
        # The whole vector, so that whoever asked can see that all engines agree.
        vector = [round(float(x), 7) for x in vector]
        return {"milliseconds": 1000 * statistics.median(seconds[10:]), "vector": vector}

    take_turns(work)


def export():
    """Writes the encoder with pooling and L2 as ONNX, for any number of texts of one length."""
    import torch
    from transformers import BertModel

    class Pooled(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = BertModel.from_pretrained(MINILM, add_pooling_layer=False, attn_implementation="sdpa").eval()

        def forward(self, input_ids):
            return mean_unit(self.model(input_ids=input_ids).last_hidden_state)

    EXPORTED.parent.mkdir(parents=True, exist_ok=True)
    part = EXPORTED.with_suffix(".part.onnx")
    # Of the two exporters, the older one's graph ran a little faster; with the pooling inside it
    # is no slower than without. The offline optimiser of onnxruntime gains nothing on top.
    torch.onnx.export(
        Pooled(), (torch.randint(1000, 2000, (2, 10)),), str(part), input_names=["input_ids"], output_names=["vectors"],
        dynamic_axes={"input_ids": {0: "texts", 1: "tokens"}, "vectors": {0: "texts"}}, dynamo=False, opset_version=17,
    )
    part.rename(EXPORTED)


def compare(args):
    ours, theirs = (np.load(path).astype(np.float64) for path in args.files)
    assert ours.shape == theirs.shape, f"{ours.shape} and {theirs.shape}"
    cosines = (ours * theirs).sum(1) / np.linalg.norm(ours, axis=1) / np.linalg.norm(theirs, axis=1)
    answer = {"least_cosine": float(cosines.min()), "at": int(cosines.argmin()), "texts": len(ours)}
    take_turns(lambda: answer)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    cases = parser.add_subparsers(dest="case", required=True)

    def case(name, run):
        added = cases.add_parser(name)
        added.set_defaults(run=run)
        added.add_argument("--threads", type=int, default=1)
        return added

    added = case("train-step", train_step)
    added.add_argument("--shape", choices=["minilm", "distilbert"], default="minilm")
    added.add_argument("--sequences", type=int, default=128)
    added.add_argument("--tokens", type=int, default=32)
    added = case("train-real", train_real)
    added.add_argument("--data", type=Path, required=True)
    added.add_argument("--pairs", type=int, default=1600)
    added.add_argument("--max-tokens", type=int, default=32)
    added = case("embed", embed)
    added.add_argument("--data", type=Path, required=True)
    added.add_argument("--batch-sizes", type=int, nargs="+", default=[32, 128])
    added.add_argument("--out")
    added = case("query", query)
    added.add_argument("--engine", choices=["torch", "onnxruntime"], default="torch")
    added.add_argument("--ids", required=True)
    added.add_argument("--tokens", type=int)
    added.add_argument("--calls", type=int, default=50)
    added = case("compare", compare)
    added.add_argument("files", nargs=2)
    args = parser.parse_args()

    # Threads are to be bounded before the libraries start any.
    os.environ["OMP_NUM_THREADS"] = os.environ["RAYON_NUM_THREADS"] = str(args.threads)
    if args.case != "compare":
        import torch
        import transformers

        torch.set_num_threads(args.threads)
        transformers.utils.logging.disable_progress_bar()
        transformers.utils.logging.set_verbosity_error()  # It is meant that the pooler is not loaded.
    args.run(args)


if __name__ == "__main__":
    main()
