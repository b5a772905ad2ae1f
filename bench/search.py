"""Looks for better settings: trains with each and compares what held-out training points say. Test points are not used.

    make bench-search DATA="/path/to/debian-related ..." [TEXT=title] [ENCODER=bag] [STAGE=encoder|later|whole]

STAGE=encoder trains encoders alone and compares them by exact search of label embeddings; STAGE=later trains what
comes after one encoder, and STAGE=whole everything, and they compare the fused scores. Each trial changes one thing of
the default; others instead with TRIALS, and what all of them share, options of `ngame train`, with OPTIONS:

    TRIALS="loss.temperature=0.03 batching.label_points=false,loss.kind=triplet" OPTIONS="--epochs 1"

Runs are kept in bench/data/search: what is finished is not run again, what was stopped goes on. The table goes to
standard output and to bench/results/.
"""
import argparse
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import record
from record import BENCH, kept, table

# What the literature after NGAME and our own doubts suggest: one thing at a time.
TRIALS = {
    "encoder": [
        "loss.temperature=0.01", "loss.temperature=0.05", "loss.temperature=0.1", "loss.kind=triplet",
        "loss.kind=triplet,batching.label_points=false", "loss.kind=triplet,batching.label_points=false,batching.sampler=random",
        "loss.every_positive=false", "loss.log_q=0.5", "loss.log_q=1", "batching.label_points=false", "batching.sampler=random", "batching.sampler=ann",
        "batching.refresh=2", "batching.cluster_most=64", "batching.hardest=0.5", "batching.batch_size=256",
        "batching.batch_size=1024", "optimiser.learning_rate=0.001", "optimiser.learning_rate=0.004",
        "optimiser.decay=cosine", "encoder.dim=256", "encoder.dim=512", "encoder.dropout=0", "encoder.dropout=0.4",
    ],
    "later": [
        "classifier.objective=sampled-softmax", "classifier.objective=triplet", "classifier.epochs=5",
        "classifier.epochs=20", "classifier.dropout=0", "classifier.dropout=0.4", "classifier.n_sampled=8192",
        "fusion.shortlists.voters=60", "fusion.shortlists.lexical=120", "fusion.method=tree", "fusion.aim=precision",
        "fusion.aim=tail",
    ],
    # Where the label prior is put back: in the loss of the encoder, as a bias of the classifiers (which the triplet's
    # have not), in the fusion.
    "whole": [
        "loss.log_q=0.5", "loss.log_q=1", "classifier.objective=triplet",
        'fusion.views=["embedding","classifier","votes","lexical"]',
        'fusion.views=["embedding","classifier","votes","lexical"],classifier.objective=triplet',
    ],
}
STAGE_OPTIONS = {"encoder": ["--only", "encoder"], "later": ["--epochs", 0], "whole": []}
ENCODER_METRICS = {"P@1": "precision_1", "P@5": "precision_5", "R@100": "recall_100"}
FUSED_METRICS = {"P@1": "precision_1", "P@5": "precision_5", "PSP@1": "psprecision_1", "PSP@5": "psprecision_5"}


def last_validation(model):
    """What the encoder that was kept reached."""
    lines = [json.loads(line) for line in (model / "metrics.jsonl").read_text().splitlines()]
    best = [line for line in lines if line["kind"] == "validation" and line["is_best"]][-1]
    seconds = max(line["seconds"] for line in lines if line["kind"] == "validation")
    return {name: 100 * best[key] for name, key in ENCODER_METRICS.items()} | {"seconds": seconds}


def chosen_fusion(model):
    """What the fusion that was chosen reached, on points of folds it had not seen."""
    tried = json.loads((model / "fusion.json").read_text())["tried"]
    chosen = next(one for one in tried if one["chosen"])
    lines = [json.loads(line) for line in (model / "metrics.jsonl").read_text().splitlines()]
    seconds = sum(line["seconds"] for line in lines if line["kind"] == "stage" and line["stage"] != "evaluation")
    return {name: 100 * chosen[key] for name, key in FUSED_METRICS.items()} | {"seconds": seconds}


def title(args, data):
    """What was searched, as a name of files."""
    shared = re.sub(r"[^\w.]+", "-", " ".join(args.options)).rstrip("-")
    return f"{data.name}-{Path(args.encoder).name}-{args.text}-{args.stage}{shared}"


def trial(args, data, settings, encoder):
    """What a setting reaches; models are not kept, only their figures."""
    name = re.sub(r"[^\w.=]+", "-", settings) or "default"
    model = BENCH / "data" / "search" / f"{title(args, data)}-{name}"

    def run():
        asked = ["--text", args.text, "--encoder", encoder, *STAGE_OPTIONS[args.stage], *args.options]
        # At commas, but for those of a list.
        asked += [word for setting in filter(None, re.split(r",(?![^\[]*\])", settings)) for word in ("--set", setting)]
        record.train(data, model, asked, quiet=True)
        reached = last_validation(model) if args.stage == "encoder" else chosen_fusion(model)
        if settings:  # The default's encoder is what the other stage starts from.
            shutil.rmtree(model)
        return reached

    model.parent.mkdir(parents=True, exist_ok=True)
    return kept(Path(f"{model}.json"), run), model


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path, nargs="+")
    parser.add_argument("--text", default="title", choices=["title", "content", "both"])
    parser.add_argument("--encoder", default="bag", help="bag, or a folder")
    parser.add_argument("--stage", default="encoder", choices=TRIALS)
    parser.add_argument("--trials", nargs="+", help="settings, those of one trial joined by commas")
    parser.add_argument("--options", nargs=argparse.REMAINDER, default=[], help="for ngame train, the same for all")
    args = parser.parse_args()
    trials = ["", *(args.trials or TRIALS[args.stage])]
    for data in args.data:
        encoder = args.encoder
        if args.stage == "later":
            of_encoder = argparse.Namespace(**vars(args) | {"stage": "encoder"})
            encoder = trial(of_encoder, data, "", encoder)[1] / "encoder"
        reached = {}
        for settings in trials:
            try:
                reached[settings or "default"] = trial(args, data, settings, encoder)[0]
            except subprocess.CalledProcessError as failure:
                print(f"{settings} failed: {failure}", file=sys.stderr)
        names = [name for name in next(iter(reached.values())) if name != "seconds"]
        default = reached["default"]
        ordered = sorted(reached.items(), key=lambda item: -item[1]["P@5"])
        rows = [("held-out points, %", *names, "P@5 less the default's", "seconds")]
        rows += [(setting, *(f"{values[name]:.2f}" for name in names), f"{values['P@5'] - default['P@5']:+.2f}", f"{values['seconds']:.0f}")
                 for setting, values in ordered]
        name = title(args, data)
        command = f"make bench-search DATA={data.name} TEXT={args.text} ENCODER={Path(args.encoder).name} STAGE={args.stage}"
        command += f' TRIALS="{" ".join(args.trials)}"' if args.trials else ""
        command += f' OPTIONS="{" ".join(args.options)}"' if args.options else ""
        print(f"{name}\n{table(rows)}\n")
        record.write(f"search-{name}", f"Search of settings: {name}", command, table(rows), reached)


if __name__ == "__main__":
    main()
