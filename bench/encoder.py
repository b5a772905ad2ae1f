"""Training and using an encoder, measured side by side with PyTorch in one run.

    make bench-encoder DATA=/path/to/debian-related

Peers: PyTorch with transformers, sentence-transformers and onnxruntime, in a virtual environment of
their own (bench/.venv), called by bench/encoder_peer.py. Both sides do the same work on the same
number of threads and take turns: a step of one, a step of the other, and so on. Ratio = the peer's time
/ ngame's, the median over pairs of neighbouring turns, so that a machine that is now faster and now
slower does not decide. Where both make vectors or a loss of real texts, these have to agree. The table
goes to standard output and, with its command, commit, machine and versions, to bench/results/.

    train-step  one step on random ids, all texts of one length: nothing is gained by not padding
    train-real  one step on real pairs of titles, which the peer pads and ngame packs
    embed       vectors of all test titles, tokenising included
    query       the vector of one text of 10 tokens
    gemm-share  how much of ngame's step is matrix products
    memory      how much ngame takes for a step of train-real within a budget
"""
import argparse
import statistics
import sys
from pathlib import Path

import record
from record import BENCH, MINILM, RELEASE

from turns import Side

OURS = RELEASE / "encoder"
GIB = 1 << 30
PACKAGES = ["torch", "transformers", "sentence-transformers", "onnxruntime", "onnx", "onnxscript", "safetensors", "numpy"]
CASES = ["query", "gemm-share", "memory", "embed", "train-step", "train-real"]
SEQUENCES = 128
LENGTHS = [12, 32]
PAIRS = 1600
LEAST_COSINE = 0.99999
# "python library for reading and writing image files", with [CLS] and [SEP].
QUERY = [101, 18750, 3075, 2005, 3752, 1998, 3015, 3746, 6764, 102]


class Bench:
    """Runs cases, keeps every result, and collects the rows of the table."""

    def __init__(self, args, python):
        self.args = args
        self.ours = [OURS]
        self.peer = [python, BENCH / "encoder_peer.py"]
        self.raw = {}
        self.rows = [("what", "ngame", "peer", "ratio", "bar", "")]

    def turns(self, name, sides, turns):
        """Every side in turn, `turns` times; sides are (name, program, words)."""
        print(f"{name}, {turns} turns each", file=sys.stderr)
        running = [Side(name, [*program, *words]) for name, program, words in sides]
        results = {side.name: [] for side in running}
        for _ in range(turns):
            for side in running:
                results[side.name].append(side.turn())
        for side in running:
            side.close()
        self.raw[name] = results
        return results

    def both(self, name, words, turns):
        return self.turns(name, [("ngame", self.ours, words), ("peer", self.peer, words)], turns)

    def compared(self, what, results, key, bar, aim=None, sides=("ngame", "peer"), digits=3):
        """A row with the medians of two sides and of their ratio. Without a bar there is only something
        to aim at."""
        ours, peer = (statistics.median(one[key] for one in results[side]) for side in sides)
        pairs = zip(*(results[side] for side in sides))
        ratio = statistics.median(theirs[key] / own[key] for own, theirs in pairs)
        goal = f"at least {bar} x" if bar else ""
        goal += (", " if bar and aim else "") + (f"aim {aim} x" if aim else "")
        verdict = ("ok" if ratio >= bar else "short") if bar else ("" if ratio >= aim else "below the aim")
        self.rows.append((what, f"{ours:.{digits}f}", f"{peer:.{digits}f}", f"{ratio:.2f} x", goal, verdict))

    def train_step(self):
        for shape, bar in (("minilm", 1.15), ("distilbert", 1.0)):
            for tokens in LENGTHS:
                for threads in self.args.threads:
                    name = f"train-step {shape} {SEQUENCES} x {tokens}, {plural(threads)}"
                    results = self.both(name, [
                        "train-step", "--shape", shape, "--sequences", SEQUENCES, "--tokens", tokens,
                        "--threads", threads], 3 * self.args.rounds)
                    same(results, "tokens")
                    self.compared(name + ", s", results, "seconds", bar)

    def train_real(self):
        for threads in self.args.threads:
            name = f"train-real {PAIRS} pairs, {plural(threads)}"
            results = self.both(name, [
                "train-real", "--data", self.args.data, "--threads", threads, "--pairs", PAIRS, "--max-tokens", 32],
                self.args.rounds)
            same(results, "real_tokens")
            ours, peer = (results[side][0]["loss"] for side in ("ngame", "peer"))
            assert abs(ours - peer) <= 1e-4 * abs(peer), f"{name}: the losses are {ours} and {peer}"
            self.compared(name + ", s", results, "seconds", 2.0, 3.0, digits=2)

    def embed(self):
        folder = BENCH / "data"
        folder.mkdir(parents=True, exist_ok=True)
        files = {side: folder / f"embed-{side}.npy" for side in ("ngame", "peer")}
        for threads in self.args.threads:
            name = f"embed test titles, {plural(threads)}"
            words = ["embed", "--data", self.args.data, "--threads", threads, "--out"]
            sides = [("ngame", self.ours, [*words, files["ngame"]]), ("peer", self.peer, [*words, files["peer"]])]
            results = self.turns(name, sides, self.args.rounds)
            same(results, "texts")
            comparison = Side("comparison", [*self.peer, "compare", files["ngame"], files["peer"]])
            agreement = comparison.turn()
            comparison.close()
            self.raw[name]["agreement"] = agreement
            assert agreement["least_cosine"] >= LEAST_COSINE, f"{name}: vectors differ: {agreement}"
            self.compared(name + ", s", results, "seconds", 1.5, 2.5, digits=2)

    def query(self):
        name = f"query of {len(QUERY)} tokens, 1 thread"
        words = ["query", "--threads", 1, "--tokens", len(QUERY), "--ids", ",".join(map(str, QUERY))]
        results = self.turns(name, [
            ("f32", self.ours, [*words, "--precision", "f32"]),
            ("torch", self.peer, [*words, "--engine", "torch"]),
            ("f16", self.ours, [*words, "--precision", "f16"]),
            ("fastest", self.ours, [*words, "--precision", "fastest"]),
            ("onnxruntime", self.peer, [*words, "--engine", "onnxruntime"]),
        ], 5 * self.args.rounds)
        self.check_query_vectors(name, results)
        # What `ngame predict` and `serve` take; on some processors that is f16 again.
        fastest = results["fastest"][0]["precision"]
        for sides, bar, aim in ((("f32", "torch"), 1.5, None), (("f32", "onnxruntime"), 1.0, None),
                                (("f16", "onnxruntime"), None, 1.5), (("fastest", "onnxruntime"), None, 1.5)):
            ours = f"fastest ({fastest})" if sides[0] == "fastest" else sides[0]
            what = f"{name}, {ours} / {sides[1]}, ms"
            self.compared(what, results, "milliseconds", bar, aim, sides, digits=2)

    @staticmethod
    def check_query_vectors(name, results):
        """All that print a vector have to agree; only the cosine goes into the record."""
        reference = results["torch"][0]["vector"]
        for side, runs in results.items():
            for one in runs:
                vector = one.pop("vector", None)
                if vector is not None:
                    one["cosine"] = cosine(vector, reference)
                    least = LEAST_COSINE if one.get("precision", "f32") == "f32" else 0.9999
                    assert one["cosine"] >= least, f"{name}: {side} differs: cosine {one['cosine']}"

    def gemm_share(self):
        for tokens in LENGTHS:
            for threads in self.args.threads:
                name = f"gemm-share minilm {SEQUENCES} x {tokens}, {plural(threads)}"
                words = ["gemm-share", "--shape", "minilm", "--sequences", SEQUENCES, "--tokens", tokens,
                         "--threads", threads]
                results = self.turns(name, [("ngame", self.ours, words)], 3 * self.args.rounds)
                share = statistics.median(one["share"] for one in results["ngame"])
                self.rows.append((name, f"{share:.3f}", "", "", "at least 0.85", "ok" if share >= 0.85 else "short"))

    def memory(self):
        name = f"memory of a step on {PAIRS} pairs, budget 2 GiB"
        words = ["memory", "--data", self.args.data, "--pairs", PAIRS, "--budget", 2]
        results = self.turns(name, [("ngame", self.ours, words)], 1)
        # No median here: memory is what the machine must have.
        peak = max(one["peak_rss"] for one in results["ngame"]) / GIB
        peers = [one["peak_rss"] / GIB for case, sides in self.raw.items() if case.startswith("train-real")
                 for one in sides["peer"]]
        peer = f"{max(peers):.2f}" if peers else ""
        ratio = f"{max(peers) / peak:.2f} x" if peers else ""
        self.rows.append((name + ", GiB", f"{peak:.2f}", peer, ratio, "at most 2.5", "ok" if peak <= 2.5 else "short"))

    def table(self):
        widths = [max(len(row[column]) for row in self.rows) for column in range(6)]
        return "\n".join(
            "  ".join(cell.rjust(width) if column in (1, 2, 3) else cell.ljust(width)
                      for column, (cell, width) in enumerate(zip(row, widths))).rstrip()
            for row in self.rows)


def cosine(left, right):
    def dot(a, b):
        return sum(x * y for x, y in zip(a, b, strict=True))

    return dot(left, right) / (dot(left, left) * dot(right, right)) ** 0.5


def plural(threads):
    return "1 thread" if threads == 1 else f"{threads} threads"


def same(results, key):
    values = {one[key] for side in results.values() for one in side}
    assert len(values) == 1, f"both sides have the same {key}: {values}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path, help="an LF folder, such as debian-related")
    parser.add_argument("--only", nargs="+", choices=CASES, default=CASES, metavar="CASE", help=", ".join(CASES))
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--rounds", type=int, default=3, help="turns of the slowest cases; fast ones take more")
    args = parser.parse_args()
    if not OURS.exists():
        sys.exit(f"{OURS} is missing: cargo build --release -p ngame-bench")
    if not (MINILM / "model.safetensors").exists():
        sys.exit(f"{MINILM} is missing: scripts/get-minilm")
    missing = [name for name in ("trn", "tst", "lbl") if not (args.data / f"{name}.json.gz").exists()]
    if missing:
        sys.exit(f"{args.data} has no " + ", ".join(f"{name}.json.gz" for name in missing))

    python = record.peer_python(".venv", PACKAGES)
    versions = record.versions(python, PACKAGES)
    bench = Bench(args, python)
    head = f"{args.data.name}; medians; ratio = the peer's time / ngame's"
    for case in CASES:
        if case in args.only:
            getattr(bench, case.replace("-", "_"))()
            # What was measured stays, whatever happens to the rest.
            write_record(args, head, bench.table(), versions, bench.raw)
    print(head, bench.table(), sep="\n")


def write_record(args, head, table, versions, raw):
    # A run of some cases does not overwrite the record of all.
    some = "" if args.only == CASES else "-" + "-".join(case for case in CASES if case in args.only)
    flags = f" (bench/encoder.py --only {' '.join(args.only)})" if some else ""
    record.write(f"encoder{some}", "Encoder: training, embedding, answering",
                 f"make bench-encoder DATA={args.data.name} ROUNDS={args.rounds}{flags}", f"{head}\n\n{table}", raw, versions)


if __name__ == "__main__":
    main()
