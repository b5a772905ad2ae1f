"""Subject headings for library records, beside what was published for the same task.

    make bench-subjects DATA=/path/to/tibkat-gnd-dev [ENCODER=bag]

Trains a model on titles and contents, once, and scores its answers for the test records the way the systems of the
LLMs4Subjects task (SemEval-2025, task 5) were scored: F1@5, the mean over records of the harmonic mean of precision and recall of the first
five, and nDCG, of the first hundred; English and German apart. The gold is all there is (tst_gold_all.json.gz), with
headings that no training record has; records without a text count as answered wrongly. The published systems learnt
from more than these records, so omikuji's Bonsai learns from the very texts that ngame does as well. The table goes to
standard output and to bench/results/.
"""
import argparse
import csv
import gzip
import json
import math
import subprocess
from pathlib import Path

import accuracy
import record
from record import BENCH, NGAME, table

TOP = 100
LANGUAGES = {"en": "English", "de": "German"}
# F1@5 and nDCG in English and German. Bonsai and X-Transformer had synthetic records and translations to learn from.
PUBLISHED = {"Omikuji Bonsai": (0.340, 0.323, 0.599, 0.570), "X-Transformer": (0.312, 0.319, 0.552, 0.561),
             "MLLM": (0.230, 0.249, 0.418, 0.444)}
PEER = "omikuji Bonsai"


def trained(args, folder):
    """The model's folder and what training took: now, or before."""
    options = "".join(f"-{option.lstrip('-')}" for option in args.options).replace("/", "-")
    model = folder / f"{args.data.name}-{args.text}-{Path(args.encoder).name}{options}"
    asked = ["--text", args.text, "--encoder", args.encoder, "--seed", 0, *args.options]
    record.train(args.data, model, asked)
    return model, record.cost_of(model)


def uids(path):
    with gzip.open(path, "rt") as lines:
        return [json.loads(line)["uid"] for line in lines]


def answers_of_peer(args, folder):
    """The same of the peer, or nothing if it failed; and what its training took."""
    run = accuracy.peer(args, args.data, PEER, {}, folder)
    if run is None:
        return None, None
    names, headings = uids(args.data / "tst.json.gz"), uids(args.data / "lbl.json.gz")
    kind = accuracy.PEERS[PEER][1]
    with open(folder / f"{args.data.name}-{args.text}-{kind}.txt") as rows:
        next(rows)
        found = {name: [headings[int(pair.split(":")[0])] for pair in row.split()] for name, row in zip(names, rows)}
    return found, run


def answers(model, data):
    """The headings found for every test record, best first, by the record's name."""
    written = model.with_suffix(".tsv")
    if not written.exists():
        words = [NGAME, "predict", model, data, "--part", "test", "--top", TOP, "--format", "tsv", "--out", written]
        subprocess.run([str(word) for word in words], check=True)
    names = uids(data / "tst.json.gz")
    found = {name: [] for name in names}
    with open(written, newline="") as rows:
        for position, heading, *_ in csv.reader(rows, delimiter="\t", quoting=csv.QUOTE_NONE):
            if position.isdigit():
                found[names[int(position)]].append(heading)
    return found


def f1_at_5(ranking, gold):
    hits = sum(heading in gold for heading in ranking[:5])
    return 2 * hits / (min(5, len(ranking)) + len(gold)) if hits else 0.0


def ndcg(ranking, gold):
    gain = sum(1 / math.log2(rank + 2) for rank, heading in enumerate(ranking[:TOP]) if heading in gold)
    return gain / sum(1 / math.log2(rank + 2) for rank in range(min(TOP, len(gold))))


def scores(found, gold):
    """F1@5 and nDCG of every language, and how many records they are of."""
    reached = {}
    for language in LANGUAGES:
        some = {name: set(headings) for name, headings in gold.items() if f"/{language}/" in name and headings}
        reached[language] = {
            "records": len(some), "unanswered": sum(name not in found for name in some),
            "f1_at_5": sum(f1_at_5(found.get(name, []), headings) for name, headings in some.items()) / len(some),
            "ndcg": sum(ndcg(found.get(name, []), headings) for name, headings in some.items()) / len(some)}
    return reached


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--text", default="both", choices=["title", "content", "both"])
    parser.add_argument("--encoder", default="bag", help="bag, or a folder")
    parser.add_argument("--options", nargs=argparse.REMAINDER, default=[], help="for ngame train")
    args = parser.parse_args()
    folder = BENCH / "data" / "subjects"
    folder.mkdir(parents=True, exist_ok=True)
    model, cost = trained(args, folder)
    with gzip.open(args.data / "tst_gold_all.json.gz", "rt") as lines:
        gold = {one["uid"]: one["gold"] for one in map(json.loads, lines)}
    reached = scores(answers(model, args.data), gold)
    found, peer = answers_of_peer(args, folder)
    of_peer = scores(found, gold) if peer else None
    encoder = Path(args.encoder).name
    rows = [("", "F1@5 English", "German", "nDCG English", "German")]
    rows += [(f"{name}, published", *(f"{value:.3f}" for value in values)) for name, values in PUBLISHED.items()]
    told = [(f"{PEER}, {args.text}", of_peer), (f"ngame, {encoder}, {args.text}", reached)]
    rows += [(name, *(f"{some[language][key]:.3f}" for key in ("f1_at_5", "ndcg") for language in LANGUAGES))
             for name, some in told if some]
    counts = ", ".join(f"{reached[language]['records']:,} {name}" for language, name in LANGUAGES.items())
    unanswered = sum(one["unanswered"] for one in reached.values())
    n_headings = len(uids(args.data / "lbl.json.gz"))
    text = (f"{args.data.name}: {counts} records, {unanswered} of them without a text and scored as wrong; "
            f"{n_headings:,} headings\n{table(rows)}\n\n"
            "published: dev records of LLMs4Subjects (SemEval-2025, task 5); Bonsai and X-Transformer learnt from synthetic "
            "records\nand translations as well, ngame did not\n"
            f"training: {cost['seconds'] / 60:.0f} minutes, {cost['cpu_seconds']:,.0f} CPU seconds, {cost['peak_mb']:,.0f} MB at most")
    text += f"\n{PEER}: {peer['train_cpu_seconds']:,.0f} CPU seconds, {peer['peak_mb']:,.0f} MB at most" if peer else ""
    print(text)
    command = f"make bench-subjects DATA={args.data.name} ENCODER={encoder}"
    command += f' OPTIONS="{" ".join(args.options)}"' if args.options else ""
    record.write(f"subjects-{args.data.name}-{encoder}", "Subject headings", command, text,
                 {"reached": reached, "cost": cost, PEER: of_peer and {"reached": of_peer, **peer}}, peer and peer["versions"])


if __name__ == "__main__":
    main()
