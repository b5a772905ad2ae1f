"""What ngame reaches beside the systems people use, on the same texts, filters and metrics.

    make bench-accuracy DATA="/path/to/debian-related /path/to/msdocs-seealso" [TEXT=title] [SEEDS=3] [ENCODER=bag]
    make bench-peers DATA="..." [TEXT=title|both]

The first compares with strong linear systems over several seeds; the second takes every peer, and ngame with both
encoders. Peers come from PyPI, each into a virtual environment of its own kind, and have their defaults or what
their authors recommend (bench/peers/, one file each). All predictions are scored by `ngame metrics` or `ngame
evaluate`, whose numbers agree with pyxclib's. Runs are kept in bench/data/accuracy: what is finished is not run
again, what was stopped goes on; `--reuse` takes the rows that a record has from it, and says so. A peer that fails is
told and left out. The table goes to standard output and to bench/results/.
"""
import argparse
import json
import shlex
import statistics
import subprocess
import sys
import tomllib
from pathlib import Path

import record
from record import BENCH, MINILM, NGAME, kept, table

METRICS = ["P@1", "P@5", "PSP@1", "PSP@5", "R@100"]

# What it is called: its program, its kind, its virtual environment, packages, and which versions of others it needs.
PEERS = {
    "omikuji Parabel": ("omikuji_trees", "parabel", ".venv-accuracy", ["omikuji", "scikit-learn"], []),
    "omikuji Bonsai": ("omikuji_trees", "bonsai", ".venv-accuracy", ["omikuji", "scikit-learn"], []),
    "PECOS XR-Linear": ("pecos_linear", "xr-linear", ".venv-pecos", ["libpecos", "scikit-learn", "numpy", "scipy"],
                        ["numpy<2", "scipy<1.11"]),
    "napkinXC PLT": ("napkinxc_plt", "plt", ".venv-napkinxc", ["napkinxc", "scikit-learn"], []),
    "fastText": ("fasttext_bag", "fasttext", ".venv-fasttext", ["fasttext"], []),
    "MiniLM, nearest labels": ("sentence_vectors", "zero-shot", ".venv", ["sentence-transformers", "torch"], []),
    "MiniLM, votes of points": ("sentence_vectors", "votes", ".venv", ["sentence-transformers", "torch"], []),
    "MiniLM, siamese PyTorch": ("siamese", "siamese", ".venv", ["sentence-transformers", "torch"], []),
}
LINEAR = ["omikuji Parabel", "omikuji Bonsai", "PECOS XR-Linear"]


def call(*words):
    command = [str(word) for word in words]
    print(" ".join(Path(word).name if "/" in word else word for word in command), file=sys.stderr)
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def named(metrics, recall_100):
    values = [metrics["precision"][0], metrics["precision"][4], metrics["psprecision"][0], metrics["psprecision"][4], recall_100]
    return dict(zip(METRICS, (100 * value for value in values)))


def ours(args, data, encoder, seed, folder):
    options = "".join(f"-{option.lstrip('-')}" for option in args.options).replace("/", "-")
    model = folder / f"{data.name}-{args.text}-{Path(encoder).name}{options}-{seed}"

    def run():
        asked = ["--text", args.text, "--encoder", encoder, "--seed", seed, *args.options]
        record.train(data, model, asked)
        cost = record.cost_of(model)
        evaluation = json.loads(call(NGAME, "evaluate", model, data, "--json"))
        size = sum(file.stat().st_size for file in model.rglob("*") if file.is_file())
        parts = {part: named(evaluation[part], evaluation[part]["recall_100"]) for part in ("embedding", "classifier", "fused")}
        return {**parts, "train_cpu_seconds": cost["cpu_seconds"], "train_seconds": cost["seconds"], "peak_mb": cost["peak_mb"],
                "predict_ms": evaluation["milliseconds"], "model_mb": size / 2**20}

    return kept(model.with_suffix(".json"), run)


def siamese_settings(args, data, beside):
    """What the siamese peer has to do: as ngame does with the same encoder, in at most the CPU time all of that took."""
    plan = tomllib.loads(call(NGAME, "train", data, "--text", args.text, "--encoder", MINILM, *args.options, "--dry-run",
                              "--out", BENCH / "data" / "none"))
    config = plan["config"]
    return json.dumps({
        "steps": plan["n_steps"], "cpu_seconds": beside["train_cpu_seconds"], "batch_size": config["batching"]["batch_size"],
        "learning_rate": config["optimiser"]["learning_rate"], "temperature": config["loss"]["temperature"],
        "trained_layers": config["encoder"]["trained_layers"], "max_tokens": config["encoder"]["max_tokens"]})


def peer(args, data, name, runs, folder):
    program, kind, venv, packages, limits = PEERS[name]
    predictions = folder / f"{data.name}-{args.text}-{kind}.txt"

    def run():
        python = record.peer_python(venv, packages, *limits)
        more = [MINILM] if venv == ".venv" else []
        more += [siamese_settings(args, data, runs[MINILM.name][0])] if kind == "siamese" else []
        # What the peer itself prints comes before its answer.
        said = call(python, BENCH / "peers" / f"{program}.py", data, args.text, kind, predictions, *more)
        metrics = json.loads(call(NGAME, "metrics", "--predictions", predictions, "--truth", data, "-k", 100, "--json"))
        return {"fused": named(metrics, metrics["recall"][99]), **json.loads(said.splitlines()[-1]),
                "versions": record.versions(python, packages)}

    try:
        return kept(predictions.with_suffix(".json"), run)
    except (subprocess.CalledProcessError, OSError) as failure:
        print(f"{name} failed: {failure}", file=sys.stderr)
        return None


def reused(args, data):
    """The rows of ngame and of peers that records of this data set and text have, and which records they are from."""
    runs, peers, facts = {}, {}, []
    for folder in args.reuse:
        found = json.loads((folder / "raw.json").read_text())
        about = next((line for line in (folder / "README.md").read_text().splitlines() if line.startswith("# ")), "")
        if f"on {data.name}, " not in about or not about.endswith(f", {args.text}"):
            continue
        runs |= found.pop("ngame")
        peers |= {name: run for name, run in found.items() if run}
        facts.append(f"rows of [{folder.name}](../{folder.name}/README.md) were taken from there")
    return runs, peers, facts


def cost(run):
    return [f"{run['train_cpu_seconds']:,.0f}", f"{run['predict_ms']:.2f}", f"{run['peak_mb']:,.0f}",
            f"{run['model_mb']:,.0f}" if "model_mb" in run else "-"]


def rows_of(peers, runs):
    """One row a peer, the parts of ngame for each encoder, their spread over seeds, the lead over the best peer."""
    rows = [("%", *METRICS, "train CPU s", "ms a text", "peak MB", "model MB")]
    for name, run in peers.items():
        name += f", {run['steps']} of {run['steps_of_ngame']} steps" if run and "steps" in run else ""
        figures = (f"{run['fused'][metric]:.2f}" for metric in METRICS) if run else ["failed"] + ["-"] * (len(METRICS) - 1)
        rows.append((name, *figures, *(cost(run) if run else [""] * 4)))
    best = {metric: max((run["fused"][metric] for run in peers.values() if run), default=0.0) for metric in METRICS}
    for encoder, seeds in runs.items():
        for part in ("embedding", "classifier", "fused"):
            means = [statistics.mean(run[part][metric] for run in seeds) for metric in METRICS]
            rows.append((f"ngame {encoder}, {part}", *(f"{mean:.2f}" for mean in means),
                         *(cost(seeds[0]) if part == "fused" else [""] * 4)))
        if len(seeds) > 1:
            spreads = [max(run["fused"][metric] for run in seeds) - min(run["fused"][metric] for run in seeds)
                       for metric in METRICS]
            rows.append((f"  spread over {len(seeds)} seeds", *(f"{spread:.2f}" for spread in spreads), *[""] * 4))
        lead = [mean - best[metric] for metric, mean in zip(METRICS, means)]
        rows.append(("  lead over the best peer", *(f"{value:+.2f}" for value in lead), *[""] * 4))
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path, nargs="+", help="LF folders")
    parser.add_argument("--text", default="title", choices=["title", "content", "both"])
    parser.add_argument("--encoder", nargs="+", default=["bag"], help="bag, or folders")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--peers", nargs="+", default=LINEAR, choices=[*PEERS, "all"], metavar="PEER", help=", ".join(PEERS))
    parser.add_argument("--reuse", type=Path, nargs="+", default=[], metavar="RECORD", help="folders of bench/results")
    parser.add_argument("--options", nargs=argparse.REMAINDER, default=[], help="for ngame train")
    args = parser.parse_args()
    wanted = list(PEERS) if "all" in args.peers else args.peers
    folder = BENCH / "data" / "accuracy"
    folder.mkdir(parents=True, exist_ok=True)
    encoders = [Path(encoder).name for encoder in args.encoder]
    if "MiniLM, siamese PyTorch" in wanted and MINILM.name not in encoders:
        parser.error(f"the siamese peer does what ngame does with {MINILM.name}: add --encoder {MINILM}")
    command = (f"bench/accuracy.py {' '.join(data.name for data in args.data)} --text {args.text} --encoder "
               f"{' '.join(encoders)} --seeds {args.seeds}")
    command += f" --peers {shlex.join(args.peers)}" if args.peers != LINEAR else ""
    command += f" --reuse {' '.join(folder.name for folder in args.reuse)}" if args.reuse else ""
    command += f" --options {' '.join(args.options)}" if args.options else ""
    for data in args.data:
        known_runs, known_peers, facts = reused(args, data)
        runs = {name: known_runs.get(name) or [ours(args, data, encoder, seed, folder) for seed in range(args.seeds)]
                for name, encoder in zip(encoders, args.encoder)}
        peers = {name: known_peers.get(name) or peer(args, data, name, runs, folder) for name in wanted}
        versions = {}
        for run in filter(None, peers.values()):
            versions |= run.get("versions", {})
        text = f"{data.name}, {args.text}\n" + table(rows_of(peers, runs))
        # A record for each data set: what was measured stays, whatever happens to the rest.
        name = f"{'peers' if len(wanted) > len(LINEAR) else 'accuracy'}-{data.name}-{'-'.join(encoders)}-{args.text}"
        record.write(name, f"Accuracy on {data.name}, {', '.join(encoders)}, {args.text}", command, text,
                     {"ngame": runs, **peers}, versions, facts)
        print(text + "\n")


if __name__ == "__main__":
    main()
