"""What each stage of training costs as data grows, and what larger data will cost.

    make bench-scale [LARGE=1] [DATA="/path/to/debian-related ..."]

Trains on made-up data sets that differ from a base in one thing at a time: points, labels, the length of vectors, the
words of a text, held-out points. The seconds of each stage (metrics.jsonl) are fitted by what that stage's work is
proportional to, terms below, with factors that are not negative. With --large one of 1.3 million labels and 2.25
million points is among them. The model is then asked about data sets that it was not fitted on: one that is larger in
everything and, with --large, one of 600,000 labels and a million points; last, about the paper's. Made-up words say
little of how long it takes to learn real ones, so the sparse view is trained on the texts of data sets too, where some
are given. Runs are kept in bench/data/scale: what is finished is not run again. The tables go to standard output and to
bench/results/.
"""
import argparse
import json
import math
import os
import random
import shutil
import subprocess
import sys
import time
from pathlib import Path

import figure
import record
from record import BENCH, RELEASE, kept, table

BASE = {"points": 32_000, "labels": 16_000, "dim": 256, "words": 8, "held_out": 1_000}
AXES = {
    "points": [16_000, 32_000, 64_000, 128_000],
    "labels": [8_000, 16_000, 32_000, 64_000],
    "dim": [128, 256, 384, 512],
    "words": [4, 8, 12, 16],
    "held_out": [500, 1_000, 2_000, 4_000],
}
CHECK = {"points": 90_000, "labels": 50_000, "dim": 320, "words": 10, "held_out": 2_500}
# As many points and labels as LF-AmazonTitles-1.3M has; short vectors and texts and fewer epochs, to be done in half an hour.
LARGE = {"points": 2_250_000, "labels": 1_300_000, "dim": 64, "words": 4, "held_out": 5_000, "classifier_epochs": 2}
LARGE_CHECK = {"points": 1_000_000, "labels": 600_000, "dim": 128, "words": 6, "held_out": 3_000, "classifier_epochs": 2}
LABELS_A_POINT = 3
EPOCHS = 2
CLASSIFIER_EPOCHS = 10
CLASSIFIER_BATCH = 512
SAMPLED = 2_048
VOCABULARY = 100_000
# Labels of a block, where the lists of features have FULL of them in it on average (crates/ngame/src/lexical/postings.rs).
BLOCK = 1 << 15
FULL = 8
# Features of a point that hard negatives are looked for by (MOST_OF_POINT of crates/ngame/src/lexical/train.rs).
SEARCHED = 64
# Labels that take as long to compare with as going to a piece of a list, of those in a block: of 8, 15, 30, 60 and 100
# the number that the runs with a million labels fit best.
PIECE = 100

# The paper's data sets: points, labels, labels a point, words a text as we cut it (32 or 128 tokens); features (words,
# their beginnings, pairs of words) of a text, and the labels that it is compared with: 1,000 a feature, of 64 features.
PUBLISHED = {
    "LF-AmazonTitles-1.3M": {"points": 2_248_619, "labels": 1_305_265, "words": 10, "features": 40, "compared": 40_000,
                             "labels_a_point": 22.2},
    "LF-Wikipedia-500K": {"points": 1_813_391, "labels": 501_070, "words": 128, "features": 450, "compared": 64_000,
                          "labels_a_point": 4.7},
    "the paper's 85 M labels": {"points": 240_000_000, "labels": 85_000_000, "words": 6, "features": 24, "compared": 24_000,
                                "labels_a_point": 2.0},
}
MACHINES = [1, 8, 64]


def zipf(source, n):
    """A number below n, small ones far more often."""
    return min(int(n ** source.random()) - 1, n - 1)


def make_data(folder, size):
    """An LF folder: a point has half of its words from one of its labels, so that there is something to learn."""
    source = random.Random(17)
    folder.mkdir(parents=True, exist_ok=True)
    n_labels, n_words = size["labels"], size["words"]
    titles = [[f"w{zipf(source, VOCABULARY)}" for _ in range(n_words)] for _ in range(n_labels)]
    with open(folder / "lbl.json", "w") as out:
        out.writelines(json.dumps({"uid": f"L{label}", "title": " ".join(title)}) + "\n" for label, title in enumerate(titles))
    with open(folder / "trn.json", "w") as out:
        for point in range(size["points"]):
            own = {point % n_labels} | {zipf(source, n_labels) for _ in range(LABELS_A_POINT - 1)}
            words = source.sample(titles[point % n_labels], n_words // 2)
            words += [f"w{zipf(source, VOCABULARY)}" for _ in range(n_words - len(words))]
            row = {"uid": f"P{point}", "title": " ".join(words), "target_ind": sorted(own), "target_rel": [1.0] * len(own)}
            out.write(json.dumps(row) + "\n")


def classifier_epochs(size):
    return size.get("classifier_epochs", CLASSIFIER_EPOCHS)


def measure(name, size):
    folder = BENCH / "data" / "scale"

    def run():
        data, model = folder / f"{name}-data", folder / f"{name}-model"
        shutil.rmtree(model, ignore_errors=True)
        make_data(data, size)
        overlap = json.loads(record.output(RELEASE / "lexical", data, "--only-overlap"))
        words = [RELEASE / "ngame", "train", data, "--out", model, "--epochs", EPOCHS, "--force", "--set", f"encoder.dim={size['dim']}",
                 "--set", f"validation.points={size['held_out']}", "--set", f"classifier.epochs={classifier_epochs(size)}",
                 "--set", "index.kind=hnsw"]  # Small vectors too, so that graphs of many sizes are fitted.
        print(f"training {name}", file=sys.stderr)
        began = time.perf_counter()
        child = subprocess.Popen([str(word) for word in words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        _, status, usage = os.wait4(child.pid, 0)
        if status != 0:
            sys.exit(f"{' '.join(str(word) for word in words)} failed")
        seconds = {"all": time.perf_counter() - began}
        for line in map(json.loads, (model / "metrics.jsonl").read_text().splitlines()):
            if line["kind"] == "stage":
                seconds[line["stage"]] = line["seconds"]
            elif line["kind"] == "validation":
                seconds["encoder"] = line["seconds"]  # Since the first step.
        disk = sum(file.stat().st_size for file in model.rglob("*") if file.is_file())
        shutil.rmtree(data)
        shutil.rmtree(model)
        return {"seconds": seconds, "memory": usage.ru_maxrss * 1024, "disk": disk, "overlap": overlap}

    folder.mkdir(parents=True, exist_ok=True)
    return kept(folder / f"{name}.json", run)


def words_of(data, text):
    """The sparse view of real texts, trained once: how large, and how long it took."""
    def run():
        print(f"training words of {data.name}, {text}", file=sys.stderr)
        return json.loads(record.output(RELEASE / "lexical", data.resolve(), "--text", text))

    found = kept(BENCH / "data" / "scale" / f"words-{data.name}-{text}.json", run)
    return {"points": found["points"], "labels": found["labels"], **found["overlap"]}, found["seconds"]


def terms_of_words(points, labels, size):
    """Weights are solved for feature by feature of a point and its hard negatives, which stand in memory in no order,
    the slower to reach the more there are; these are looked for in lists of labels, one a feature, a block of labels at
    a time; and a point is an example for all the clusters beside those that it lies in. Labels are halved again and
    again to grow the tree of clusters."""
    features, compared = size["features"], size["compared"]
    of_points = points * features
    searched = min(features, SEARCHED)
    blocks = min(math.ceil(size["labels"] / BLOCK), compared / (FULL * searched))
    return [of_points, points * math.log2(size["points"]), of_points * clusters_beside(size["labels"]),
            points * (compared + PIECE * searched * blocks), labels * features * math.log2(size["labels"])]


def clusters_beside(labels):
    """The children of all nodes between the root of a tree of labels and a leaf of 100 labels."""
    leaves = math.ceil(labels / 100)
    levels = 1
    while leaves > 32 ** levels:
        levels += 1
    return levels * math.ceil(leaves ** (1 / levels))


def terms(size):
    """What the work of each stage is proportional to, and the bytes on disk: named factors will be fitted."""
    points, labels, dim, words, held_out = (size[key] for key in BASE)
    a_point = size.get("labels_a_point", LABELS_A_POINT)
    texts = points + labels
    tokens = texts * words
    # Labels that meet in a batch of classifiers: those of its points, each once, and those drawn.
    met = labels * (1 - math.exp(-CLASSIFIER_BATCH * a_point / labels)) + SAMPLED
    # Classifiers and words are taught without the points held out, and once more by all.
    taught = 2 * points - held_out
    steps = classifier_epochs(size) * taught / CLASSIFIER_BATCH
    hops = sum(rows * math.log2(rows) for rows in (labels, points))
    return {
        # A text by itself is read, cut and put into a batch; held-out points are searched for after every epoch.
        "encoder": [EPOCHS * term for term in (tokens * dim, texts * dim * dim, texts, held_out * labels * dim)],
        "vectors": [tokens * dim, texts * dim * dim, texts],
        # A label's vector is waited for, however long it is.
        "classifiers": [steps * CLASSIFIER_BATCH * met * dim, steps * met],
        "words": terms_of_words(taught, 2 * labels, size),
        "fusion": [held_out, held_out * texts * dim, held_out * texts],
        # A hop in a graph compares vectors, and waits for memory however long they are.
        "index": [hops * dim, hops],
        "disk": [1, (2 * labels + points) * dim, points * a_point * words, labels * words],
    }


def terms_of_memory(size):
    """What the bytes of the two stages that need most are proportional to: all have vectors; words, the features of
    texts and the weights of labels; fusion, what it sees of its points' candidates."""
    vectors = [1, (size["points"] + size["labels"]) * size["dim"]]
    return [*vectors, size["points"] * size["features"], size["labels"] * size["features"], 0], [*vectors, 0, 0, size["held_out"]]


STAGES = {"encoder": ["encoder"], "vectors": ["vectors"], "classifiers": ["classifiers", "classifiers on all points"],
          "words": ["words", "words on all points"], "fusion": ["fusion"], "index": ["index"]}


def measured(run):
    values = {stage: sum(run["seconds"].get(part, 0.0) for part in parts) for stage, parts in STAGES.items()}
    return values | {"memory": run["memory"], "disk": run["disk"]}


def sized(name, size):
    """A run: how large it was, what was found in its texts included, and what each stage took."""
    run = measure(name, size)
    return size | run["overlap"], measured(run)


def fit(rows, values):
    """Factors, none negative, whose relative errors have the least squares: by coordinate descent, which is exact here."""
    rows = [[term / value for term in row] for row, value in zip(rows, values) if value > 0]
    factors = [0.0] * len(rows[0])
    lengths = [sum(row[at] ** 2 for row in rows) for at in range(len(factors))]
    for _ in range(20_000):
        for at, length in enumerate(lengths):
            if length > 0:
                rest = sum(row[at] * (1 - dot(factors, row)) for row in rows)
                factors[at] = max(0.0, factors[at] + rest / length)
    return factors


def fit_peaks(rows, values):
    """The same for values that are the larger of two sums: by turns, which it is, and the factors."""
    factors = fit([[max(pair) for pair in zip(*both)] for both in rows], values)
    for _ in range(10):
        factors = fit([max(both, key=lambda row: dot(factors, row)) for both in rows], values)
    return factors


def dot(factors, row):
    return sum(f * t for f, t in zip(factors, row))


def predicted(factors, size):
    memory = max(dot(factors["memory"], row) for row in terms_of_memory(size))
    return {name: dot(factors[name], row) for name, row in terms(size).items()} | {"memory": memory}


def spread(factors, size, machines):
    """What each of so many machines has to do for the paper's two views: the encoder sees its share of the points, all
    of whose vectors go to every machine, and there to the classifiers of a share of the labels."""
    points, labels, dim = size["points"], size["labels"], size["dim"]
    share = {"points": points / machines, "labels": labels / machines}
    found = {"encoder": predicted(factors, size | share)["encoder"], "vectors": predicted(factors, size | share)["vectors"],
             # Each draws its share of the labels that are compared with, and meets its share of the points' own.
             "classifiers": predicted(factors, size)["classifiers"] / machines,
             "index": predicted(factors, size | share | {"points": 1})["index"]}
    # Two bytes a number of a vector on disk; in memory four more for each of two moments, and four for the weight.
    own = share["labels"] * dim
    return found, 2 * points * dim + 12 * own, 2 * points * dim + 4 * own


def human(seconds):
    for unit, length in (("days", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:,.1f} {unit}"
    return f"{seconds:.1f} s"


def gib(size):
    return f"{size / 2**30:,.1f} GiB"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, nargs="*", help="LF folders, for the words of real texts")
    parser.add_argument("--large", action="store_true", help="40 minutes more: runs of a million labels and points")
    args = parser.parse_args()
    runs = {}
    for axis, sizes in AXES.items():
        for value in sizes:
            name = "base" if value == BASE[axis] else f"{axis}-{value}"
            runs[name] = sized(name, BASE | {axis: value})
    checks = {"check": sized("check", CHECK)}
    if args.large:
        # Without it nothing tells what leaves the near caches, or is done once for every text however short.
        runs["large"] = sized("large", LARGE)
        checks["large-check"] = sized("large-check", LARGE_CHECK)
    real = {f"{data.name}, {text}": words_of(data, text) for data in args.data for text in ("title", "both")}
    real_words = {name: terms_of_words(size["points"], size["labels"], size) for name, (size, _) in real.items()}
    names = list(terms(runs["base"][0]))
    rows_of = {name: [terms(size)[name] for size, _ in runs.values()] for name in names}
    seconds_of = {name: [found[name] for _, found in runs.values()] for name in names}
    rows_of["words"] += real_words.values()
    seconds_of["words"] += [seconds for _, seconds in real.values()]
    factors = {name: fit(rows_of[name], seconds_of[name]) for name in names}
    factors["memory"] = fit_peaks([terms_of_memory(size) for size, _ in runs.values()], [found["memory"] for _, found in runs.values()])

    def told_of(title, values):
        return title, *(human(values[stage]) for stage in STAGES), gib(values["memory"]), gib(values["disk"])

    rows = [("", *STAGES, "memory", "disk"), *(told_of(name, found) for name, (_, found) in runs.items())]
    totals = []
    for check, (size, found) in checks.items():
        guess = predicted(factors, size)
        rows += [told_of(f"{check}, measured", found), told_of(f"{check}, predicted", guess)]
        rows.append(("  predicted / measured", *(f"{guess[name] / found[name]:.2f}" if found[name] else "" for name in (*STAGES, "memory", "disk"))))
        total = sum(guess[stage] for stage in STAGES) / sum(found[stage] for stage in STAGES)
        totals.append(f"All stages of the {check} together: predicted / measured {total:.2f}")
    text = [table(rows), "\n".join(totals)]
    if real:
        rows = [("words of real texts, once", "points", "features", "seconds", "fitted / measured")]
        for name, (size, seconds) in real.items():
            guess = dot(factors["words"], real_words[name])
            rows.append((name, f"{size['points']:,}", f"{size['features']:.0f}", f"{seconds:.1f}", f"{guess / seconds:.2f}"))
        text.append(table(rows))
    rows = [("predicted, 2 cores", *STAGES, "all, 20 epochs", "memory", "disk")]
    for name, size in PUBLISHED.items():
        told = predicted(factors, size | {"dim": 384, "held_out": 10_000})
        told["encoder"] *= 20 / EPOCHS
        *seconds, memory, disk = told_of(name, told)
        rows.append((*seconds, human(sum(told[stage] for stage in STAGES)), memory, disk))
    text.append(table(rows))
    rows = [("the paper's views on n machines", "n", "encoder, 1/n of points", "vectors", "classifiers", "index", "all, 20 epochs",
             "memory of each", "disk of each")]
    for name, size in PUBLISHED.items():
        for machines in MACHINES:
            seconds, memory, disk = spread(factors, size | {"dim": 384, "held_out": 10_000}, machines)
            seconds["encoder"] *= 20 / EPOCHS
            rows.append((name, f"{machines}", *map(human, seconds.values()), human(sum(seconds.values())), gib(memory), gib(disk)))
    text.append(table(rows))
    text = "\n\n".join(text)
    print(text)
    raw = {what: {name: {"size": size, **found} for name, (size, found) in some.items()}
           for what, some in (("runs", runs), ("checks", checks))}
    raw["real"] = {name: {"size": size, "words": seconds} for name, (size, seconds) in real.items()}
    command = f"make bench-scale{' LARGE=1' if args.large else ''}"
    command += f' DATA="{" ".join(data.name for data in args.data)}"' if args.data else ""
    folder = record.write("scale", "Growth of every stage", command, text,
                          raw | {"factors": factors, "terms": "bench/scale.py"},
                          after="\n![Seconds by points](points.svg) ![Seconds by labels](labels.svg)\n")
    for axis in ("points", "labels"):
        series = {stage: [(size[axis], found[stage]) for size, found in
                          (runs["base" if value == BASE[axis] else f"{axis}-{value}"] for value in AXES[axis])]
                  for stage in STAGES}
        (folder / f"{axis}.svg").write_text(figure.lines(f"Seconds of a stage by {axis}", axis, series))


if __name__ == "__main__":
    main()
