"""Text to labels, side by side with sentence-transformers and hnswlib in Python on the same encoder and classifiers.

    make bench-predict DATA=/path/to/msdocs-seealso

Trains, once, a model whose encoder is MiniLM as it is, all views on, and the paper's views alone beside it. One
text: 300 test titles of ten tokens, one after the other, on one thread; the middle of their times. Many texts: all
test titles, on two threads. Sides take turns; ratio = the peer's time / ngame's, the median over turns. The peer
only encodes and searches; ngame also counts votes, scores words and fuses. The table goes to standard output and
to bench/results/.
"""
import argparse
import gzip
import json
import statistics
import subprocess
from pathlib import Path

import record
from record import BENCH, MINILM, RELEASE
from turns import Side

PACKAGES = ["torch", "sentence-transformers", "hnswlib", "numpy", "tokenizers"]
N_ONE, N_TOKENS = 300, 10
TOP = 5
RECALL = 0.98  # Of the peer's graph, where ngame's index reaches more.


def trained(data, views, folder):
    """A model of the encoder as it is, made once; a run that was stopped goes on."""
    model = folder / f"{data.name}-{views}"
    record.train(data, model, ["--text", "title", "--encoder", MINILM, "--epochs", 0, "--views", views])
    return model


def write_texts(data, folder, python):
    """All test titles, and some of ten tokens, one a line."""
    with gzip.open(data / "tst.json.gz", "rt") as lines:
        titles = [" ".join(json.loads(line)["title"].split()) for line in lines]
    titles = [title for title in titles if title]
    (folder / "all.txt").write_text("\n".join(titles) + "\n")
    program = (
        "import json, sys; from tokenizers import Tokenizer\n"
        f"tokenizer = Tokenizer.from_file({str(MINILM / 'tokenizer.json')!r}); tokenizer.no_padding()\n"
        f"titles = open({str(folder / 'all.txt')!r}).read().splitlines()\n"
        f"chosen = [t for t, e in zip(titles, tokenizer.encode_batch(titles)) if len(e.ids) == {N_TOKENS}][:{N_ONE}]\n"
        f"open({str(folder / 'one.txt')!r}, 'w').write('\\n'.join(chosen) + '\\n')\n")
    subprocess.run([python, "-c", program], check=True)
    return folder / "one.txt", folder / "all.txt"


def compare(python, models, texts, threads, turn, rounds, recall):
    sides = {f"ngame, {views}": Side(views, [RELEASE / "predict", model, texts, "--threads", threads, "--top", TOP])
             for views, model in models.items()}
    # All models have the same encoder and classifiers.
    words = [python, BENCH / "predict_peer.py", next(iter(models.values())), texts, threads, TOP, recall]
    sides["Python"] = Side("Python", words)
    turns = [{name: side.turn(turn) for name, side in sides.items()} for _ in range(rounds)]
    for side in sides.values():
        side.close()
    return turns


def row(name, turns, measure, texts_per_second):
    mine = [measure(turn[name]) for turn in turns]
    ratio = statistics.median(measure(turn["Python"]) / measure(turn[name]) for turn in turns)
    memory = max(turn[name]["peak_rss"] for turn in turns) / 2**20
    speed = f"{statistics.median(map(texts_per_second, mine)):10,.0f}"
    return f"  {name:14} {statistics.median(mine):10.2f} {speed} {ratio:8.2f} x {memory:9,.0f}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--views", nargs="+", default=["all", "paper"], help="a model of each is trained and timed")
    args = parser.parse_args()
    python = record.peer_python(".venv", PACKAGES)
    folder = BENCH / "data" / "predict"
    folder.mkdir(parents=True, exist_ok=True)
    models = {views: trained(args.data, views, folder) for views in args.views}
    one, many = write_texts(args.data, folder, python)
    found = json.loads((models[args.views[0]] / "manifest.json").read_text())["index"]["recall"]
    recall = min(found, RECALL)
    n_many = len(many.read_text().splitlines())
    raw = {"one": compare(python, models, one, 1, "one", args.rounds, recall),
           "many": compare(python, models, many, 2, "all", max(1, args.rounds // 2), recall)}
    lines = [f"one text of {N_TOKENS} tokens, one thread, the middle of {N_ONE} texts",
             "                       p50 ms  texts/s     ratio   peak MB"]
    lines += [row(name, raw["one"], lambda said: statistics.median(said["milliseconds"]), lambda ms: 1e3 / ms)
              for name in raw["one"][0]]
    lines += ["", f"{n_many:,} test titles, two threads", "                      seconds  texts/s     ratio   peak MB"]
    lines += [row(name, raw["many"], lambda said: said["seconds"], lambda seconds: n_many / seconds)
              for name in raw["many"][0]]
    print("\n".join(lines))

    for turns in raw.values():
        for turn in turns:
            for said in turn.values():
                said["milliseconds"] = statistics.median(said["milliseconds"]) if said["milliseconds"] else None
    record.write("predict", "Prediction", f"make bench-predict DATA={args.data.name}", "\n".join(lines), raw,
                 record.versions(python, PACKAGES), [f"recall of the exact 100 best classifiers: ngame {found:.3f}, Python at least {recall:.3f}"])


if __name__ == "__main__":
    main()
