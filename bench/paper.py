"""The paper's experiments on your data: each prints its table and keeps it, with its figure, in bench/results/.

    make bench-paper DATA=/path/to/debian-related [EXPERIMENTS="ablation deciles ..."] [ENCODER=folder]

    ablation    the paper's setting: label embeddings alone, classifiers alone, fused (Table "Ablation study")
    deciles     who earns the score, from frequent labels to rare ones (Figure "deciles")
    curriculum  clusters that grow against clusters of one size: epochs to the same accuracy
    joint       encoder and classifiers at once against one after the other (the BERTXML row)
    views       every view alone, all but one, and all, on one trained encoder
    negatives   one point: its positives, random negatives, NGAME's, and hard ones missed, in the plane (Figure)
    parts       classifiers of all labels at once against parts of them trained apart: accuracy kept, time divided
    theory      what mining misses and what the theorem allows, over the epochs of training (`ngame theory`)

Costs and convergence of the samplers (Table "Breakdown of computation costs", Figure "Convergence") are
`make bench-sampling`. Published figures stand beside ours where the
paper has them, on its data sets: what can be compared is how the rows differ. Runs are kept in bench/data/paper:
what is finished is not run again, what was stopped goes on.
"""
import argparse
import json
from pathlib import Path

import figure
import record
from record import BENCH, RELEASE, kept, table
from turns import Side

METRICS = ["P@1", "P@5", "PSP@1", "PSP@5", "R@100"]
FIXED_SIZES = [1, 16, 256]
PARTS = [1, 2, 4, 8]
EPOCHS = [1, 2, 5, 10, 20]
RADII = ["0.5", "0.7", "1"]
VIEWS = ["embedding", "classifier", "frequency", "votes", "lexical"]


class Runs:
    """Trained models of one data set and encoder."""

    def __init__(self, args):
        self.args = args
        self.folder = BENCH / "data" / "paper"
        self.folder.mkdir(parents=True, exist_ok=True)
        self.encoder = Path(args.encoder).name
        self.about = f"{args.data.name}, {args.text}, {self.encoder}"

    def train(self, name, *options, encoder=None):
        """The model of these options: trained now, or before; with the encoder of all runs, or another."""
        model = self.folder / f"{self.args.data.name}-{self.args.text}-{self.encoder}-{name}"
        record.train(self.args.data, model, ["--text", self.args.text, "--encoder", encoder or self.args.encoder,
                                             *self.args.options, *options])
        return model

    def evaluation(self, model):
        words = [RELEASE / "ngame", "evaluate", model, self.args.data, "--json"]
        return kept(model.with_suffix(".json"), lambda: json.loads(record.output(*words)))

    def write(self, name, title, text, raw, drawn=None):
        print(f"{title}: {self.about}\n{text}\n")
        after = f"\n![{title}](figure.svg)\n" if drawn else ""
        command = f"make bench-paper DATA={self.args.data.name} EXPERIMENTS={name} ENCODER={self.encoder}"
        command += f' OPTIONS="{" ".join(self.args.options)}"' if self.args.options else ""
        folder = record.write(f"paper-{name}-{self.args.data.name}-{self.encoder}", f"{title}: {self.about}",
                              command, text, raw, after=after)
        if drawn:
            (folder / "figure.svg").write_text(drawn)


def percent(reached):
    precision, weighted = reached["precision"], reached["psprecision"]
    values = [precision[0], precision[4], weighted[0], weighted[4], reached["recall_100"]]
    return [100 * value for value in values]


def cells(values):
    return [f"{value:.2f}" for value in values]


def ablation(runs):
    model = runs.train("paper", "--views", "paper")
    found = runs.evaluation(model)
    published = {"embedding": ("42.61", "20.69"), "classifier": ("44.95", "21.20"), "fused": ("46.01", "21.47")}
    rows = [("%", *METRICS, "paper, 131K: P@1", "P@5")]
    rows += [(part, *cells(percent(found[part])), *published[part]) for part in published]
    best = max(found["embedding"]["precision"][0], found["classifier"]["precision"][0])
    verdict = "fused is not below the best of its parts" if found["fused"]["precision"][0] >= best else "fused is BELOW the best of its parts"
    runs.write("ablation", "Ablation of the fusion", f"{table(rows)}\n\n{verdict}", found)


def deciles(runs):
    """The paper's setting and all views, part of P@5 by decile of label frequency."""
    models = {"paper's views": ["--views", "paper"], "all views": []}
    found = {name: runs.evaluation(runs.train("paper" if options else "all", *options)) for name, options in models.items()}
    groups = {name: one["deciles"] for name, one in found.items()}
    names = [group["name"].removeprefix("decile ") for group in next(iter(groups.values()))]
    series = {name: [100 * group["precision"][4] for group in all_] for name, all_ in groups.items()}
    rows = [("part of P@5, %", *names, "sum")]
    rows += [(name, *cells(values), f"{sum(values):.2f}") for name, values in series.items()]
    drawn = figure.bars(f"Part of P@5 by decile, {runs.about}", "decile: 1 has few frequent labels, 10 many rare ones",
                        names, series)
    runs.write("deciles", "Who earns the score", table(rows), {name: one["deciles"] for name, one in found.items()}, drawn)


def validations(model):
    lines = [json.loads(line) for line in (model / "metrics.jsonl").read_text().splitlines()]
    return [line for line in lines if line["kind"] == "validation"]


def curriculum(runs):
    """Growing clusters against fixed ones, on the encoder alone: when each reaches what the worst ends with."""
    options = {"growing": []} | {f"always {size}": ["--cluster", size] for size in FIXED_SIZES}
    seen = {name: validations(runs.train(f"curriculum-{name.replace(' ', '-')}", "--only", "encoder", *more))
            for name, more in options.items()}
    target = min(max(one["precision_5"] for one in all_) for all_ in seen.values())
    rows = [("clusters", "best P@1", "best P@5", "best R@100", "epochs to the worst one's best P@5", "seconds")]
    for name, all_ in seen.items():
        first = next(one for one in all_ if one["precision_5"] >= target)
        rows.append((name, *cells(100 * max(one[key] for one in all_) for key in ("precision_1", "precision_5", "recall_100")),
                     str(first["epoch"]), f"{first['seconds']:.0f}"))
    series = {name: [(one["epoch"], 100 * one["precision_5"]) for one in all_] for name, all_ in seen.items()}
    drawn = figure.lines(f"P@5 on held-out points, {runs.about}", "epoch", series)
    runs.write("curriculum", "Curriculum", table(rows) + "\n\nThe paper says that growing clusters converge 25 to 40 % faster.", seen, drawn)


def joint(runs):
    options = {"modular": ["--views", "paper"], "joint": ["--views", "paper", "--mode", "joint"]}
    found = {name: runs.evaluation(runs.train("paper" if name == "modular" else "joint", *more)) for name, more in options.items()}
    published = {"modular": ("46.01", "21.47"), "joint": ("38.89", "18.72")}
    rows = [("%", *METRICS, "paper, 131K: P@1", "P@5")]
    for name, one in found.items():
        rows.append((f"{name}, classifiers", *cells(percent(one["classifier"])), "", ""))
        rows.append((f"{name}, fused", *cells(percent(one["fused"])), *published[name]))
    runs.write("joint", "Joint and modular training", table(rows), found)


def views(runs):
    """What each view brings: alone, and what is lost without it. Embeddings alone are an exact search of them;
    frequency alone knows no text and finds nothing."""
    encoder = runs.train("views-encoder", "--only", "encoder") / "encoder"
    settings = {"all": VIEWS, "the paper's": ["embedding", "classifier", "frequency"]}
    settings |= {f"without {view}": [other for other in VIEWS if other != view] for view in VIEWS}
    settings |= {f"{view} alone": [view] for view in ("classifier", "votes", "lexical")}
    found = {name: runs.evaluation(runs.train(f"views-{'-'.join(chosen)}", "--epochs", 0, "--views", ",".join(chosen), encoder=encoder))
             for name, chosen in settings.items()}
    reached = {name: percent(one["fused"]) for name, one in found.items()}
    reached["embedding alone"] = percent(found["all"]["embedding"])
    rows = [("%", *METRICS, "P@1 less all's", "ms a text")]
    rows += [(name, *cells(values), f"{values[0] - reached['all'][0]:+.2f}", f"{found[name]['milliseconds']:.2f}" if name in found else "")
             for name, values in reached.items()]
    runs.write("views", "What each view brings", table(rows), {name: one["fused"] for name, one in found.items()})


def negatives(runs):
    """One point's neighbourhood under the trained encoder."""
    model = runs.train("paper", "--views", "paper")
    words = [RELEASE / "hard-negatives", runs.args.data, "--text", runs.args.text, "--encoder", model / "encoder", "--draw"]
    found = kept(runs.folder / f"{model.name}-negatives.json", lambda: json.loads(record.output(*words)))
    series = {kind: [(x, y, text) for x, y, text in found["labels"].get(kind, [])]
              for kind in ("positives", "random negatives", "NGAME's negatives", "hard, missed")}
    rows = [("kind", "labels", "mean score")]
    rows += [(kind, str(len(points)), f"{found['scores'][kind]:.3f}" if points else "-") for kind, points in series.items()]
    drawn = figure.scatter(f"Labels around: {found['text'][:60]}", series)
    runs.write("negatives", "Negatives of one point", f"{found['text']}\n\n{table(rows)}", found, drawn)


def parts(runs):
    """Classifiers on the vectors of one encoder, their labels in 1, 2, 4 and 8 parts; every part would have a machine
    of its own, so the slowest is the time."""
    encoder = runs.train("views-encoder", "--only", "encoder") / "encoder"

    def run():
        side = Side("classifiers", [RELEASE / "classifiers", runs.args.data, "--text", runs.args.text, "--encoder", encoder])
        found = {}
        for count in PARTS:
            # As many labels are drawn for a batch as without parts, all parts together.
            lines = {"one-vs-all": f"one-vs-all --epochs 2 --parts {count}",
                     "sampled": f"cross-entropy --epochs 5 --sampled {2048 // count} --parts {count}",
                     "triplet": f"triplet --epochs 5 --parts {count}"}
            for objective, line in lines.items():
                found.setdefault(objective, {})[count] = side.turn(f"{line} --test")
        side.close()
        return found

    found = kept(runs.folder / f"{encoder.parent.name}-parts.json", run)
    rows = [("objective", "parts", "slowest part, s", "all parts, s", *METRICS)]
    for objective, counts in found.items():
        for count, one in counts.items():
            seconds = one["seconds_of_parts"]
            rows.append((objective, str(count), f"{max(seconds):.1f}", f"{sum(seconds):.1f}",
                         *(f"{one['test'][metric]:.2f}" for metric in METRICS)))
    runs.write("parts", "Classifiers in parts", table(rows), found)


def theory(runs):
    """The guarantee after more and more epochs, on encoders trained for just so many."""
    found = {}
    for epochs in EPOCHS:
        model = runs.train(f"theory-{epochs}", "--only", "encoder", "--epochs", epochs)
        words = [RELEASE / "ngame", "theory", model, runs.args.data, "--text", runs.args.text, "--sample", 1000,
                 "--cluster", 32, "--radius", ",".join(RADII), "--json"]
        found[epochs] = kept(Path(f"{model}-theory.json"), lambda: json.loads(record.output(*words)))["radii"]
    rows = [("epochs", "radius", "far true pairs", "parted close points", "bound", "sharp bound", "missed", "of the hard ones")]
    for epochs, radii in found.items():
        for one in radii:
            rows.append((str(epochs), f"{one['radius']:.2g}", f"{one['epsilon_1']:.3f}", *(
                f"{one[key]['value']:.3g}" for key in ("epsilon_2", "bound", "sharp", "missed")), f"{100 * one['missed_of_hard']:.1f} %"))
    series = {f"r = {radius}": [(epochs, 100 * radii[number]["missed_of_hard"]) for epochs, radii in found.items()]
              for number, radius in enumerate(RADII)}
    drawn = figure.lines(f"Hard negatives missed, %, {runs.about}", "epochs of training", series)
    runs.write("theory", "The guarantee over epochs", table(rows), found, drawn)


EXPERIMENTS = {"ablation": ablation, "deciles": deciles, "curriculum": curriculum, "joint": joint, "views": views, "negatives": negatives,
               "parts": parts, "theory": theory}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path, help="an LF folder")
    parser.add_argument("--experiments", nargs="+", default=list(EXPERIMENTS), choices=EXPERIMENTS)
    parser.add_argument("--encoder", default="bag", help="bag, or a folder")
    parser.add_argument("--text", default="title", choices=["title", "content", "both"])
    parser.add_argument("--options", nargs=argparse.REMAINDER, default=[], help="for ngame train")
    args = parser.parse_args()
    runs = Runs(args)
    for name in args.experiments:
        EXPERIMENTS[name](runs)


if __name__ == "__main__":
    main()
