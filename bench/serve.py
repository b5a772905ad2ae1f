"""`ngame serve` side by side with FastAPI + sentence-transformers + hnswlib on the same model's vectors.

    make bench-serve MODEL=/path/to/a/model/with/a/MiniLM/encoder
    make soak-serve MODEL=/path/to/a/model SECONDS=600

Load comes from another process (bench/src/bin/http-load.rs). The services take turns: one is stopped by a
signal while the other is asked. The soak asks at full load, with a share of wrong requests, and has the model
loaded anew every ten seconds. The table goes to standard output and to bench/results/.
"""
import argparse
import atexit
import json
import os
import random
import signal
import socket
import statistics
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import record
from record import BENCH, RELEASE

PEER_PACKAGES = ["fastapi", "uvicorn", "sentence-transformers", "hnswlib", "torch", "numpy"]
WORDS = 7  # With the two tokens that every text gets, about ten.
CONNECTIONS = 32
OVERLOAD = 4


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Service:
    """A server process that can be put to sleep while another has its turn."""

    def __init__(self, name, command, **environment):
        self.name, self.port = name, free_port()
        command = [str(word).replace("PORT", str(self.port)) for word in command]
        self.process = subprocess.Popen(command, cwd=BENCH, env=dict(os.environ, **environment),
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        atexit.register(self.process.kill)
        self.address = f"127.0.0.1:{self.port}"
        for _ in range(1_200):
            try:
                self.get("/readyz")
                return
            except OSError:
                if self.process.poll() is not None:
                    sys.exit(f"{name} ended with {self.process.returncode}")
                time.sleep(0.25)
        sys.exit(f"{name} did not start")

    def get(self, path):
        with urllib.request.urlopen(f"http://{self.address}{path}", timeout=10) as answer:
            return answer.read().decode()

    def memory(self):
        """MiB that are this process's own: pages of files, which any program can share, left out."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        sizes = {line.split(":")[0]: line.split()[1] for line in status.splitlines() if line.startswith("Rss")
                 or line.startswith("VmRSS")}
        return {"all": int(sizes["VmRSS"]) / 1024, "own": int(sizes["RssAnon"]) / 1024}

    def sleep(self):
        self.process.send_signal(signal.SIGSTOP)

    def wake(self):
        self.process.send_signal(signal.SIGCONT)

    def close(self):
        self.wake()
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=60)


def load(service, texts, **options):
    words = [f"--{name}={value}" for name, value in options.items()]
    command = [RELEASE / "http-load", service.address, texts, *words]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)


def ours(model, *more):
    return Service("ngame", [RELEASE / "ngame", "serve", f"m={model.resolve()}", "--addr", "127.0.0.1:PORT", *more])


def peer(model, python):
    command = [python, "-m", "uvicorn", "serve_peer:app", "--port", "PORT", "--log-level", "warning"]
    return Service("FastAPI", command, NGAME_MODEL=str(model.resolve()), TOKENIZERS_PARALLELISM="false",
                   HF_HUB_OFFLINE="1")


def make_texts(service, folder):
    """Texts of seven words from the model's own label texts: plain ones, of a token or two."""
    found = []
    for letter in "abcdefghijklmnopqrstuvwxyz":
        answer = json.loads(service.get(f"/v1/models/m/labels?limit=100&q={letter}"))
        words = [word for label in answer["labels"] for word in label["text"].split()]
        found += [word for word in words if word.isalpha() and len(word) <= 8]
    generator = random.Random(1)
    lines = [" ".join(generator.choice(found) for _ in range(WORDS)) for _ in range(2_000)]
    path = folder / "texts.txt"
    path.write_text("\n".join(lines) + "\n")
    return path


def compare(model, python, texts, rounds, seconds):
    sides = [ours(model, "--max-queue", "1024"), peer(model, python)]
    for side in sides:
        load(side, texts, seconds=2)
        side.sleep()
    turns = []
    for _ in range(rounds):
        turn = {}
        for side in sides:
            side.wake()
            alone = load(side, texts, seconds=seconds)
            many = load(side, texts, seconds=seconds, connections=CONNECTIONS)
            turn[side.name] = {"alone": alone, "many": many, "memory": side.memory()}
            side.sleep()
        turns.append(turn)
    for side in sides:
        side.close()
    return turns


def overload(model, texts, capacity, seconds):
    service = ours(model, "--max-queue", "64")
    load(service, texts, seconds=2, connections=8)
    before = service.memory()
    result = load(service, texts, seconds=seconds, connections=8 * CONNECTIONS, rate=OVERLOAD * capacity)
    result["memory"] = [before, service.memory()]
    result["rate"] = OVERLOAD * capacity
    service.close()
    return result


def soak(model, texts_of, seconds):
    """Full load with wrong requests and reloads; memory every second."""
    service = ours(model, "--max-queue", "1024")
    texts = texts_of(service)
    command = [RELEASE / "http-load", service.address, texts, f"--seconds={seconds}",
               f"--connections={CONNECTIONS}", "--bad=0.05"]
    running = subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE, text=True)
    memory, began = [], time.monotonic()
    while running.poll() is None:
        time.sleep(1)
        memory.append(round(service.memory()["own"], 1))
        if len(memory) % 10 == 0:
            service.process.send_signal(signal.SIGHUP)
    result = json.loads(running.stdout.read())
    wanted = ("ngame_reloads_total", "ngame_failed_reloads_total", "ngame_panics_total")
    metrics = service.get("/metrics").splitlines()
    result["counted"] = {name: int(line.split()[1]) for line in metrics for name in wanted if line.startswith(name + " ")}
    result["statuses"] = [line for line in metrics if line.startswith("ngame_requests_total")]
    result["memory"], result["took"] = memory, time.monotonic() - began
    result["exit"] = service.close()
    return result


def table(turns, over):
    ours_, peers = [[turn[name] for turn in turns] for name in ("ngame", "FastAPI")]
    median = statistics.median

    def row(title, of, better, unit):
        a, b = median(of(turn) for turn in ours_), median(of(turn) for turn in peers)
        ratio = median((of(y) / of(x) if better == "lower" else of(x) / of(y)) for x, y in zip(ours_, peers))
        return f"  {title:46} {a:10.1f} {b:10.1f} {unit:4} {ratio:7.2f} x {better}"

    lines = ["                                                      ngame    FastAPI",
             row("p50 of a single client", lambda t: t["alone"]["answered_ms"]["p50"], "lower", "ms"),
             row("p99 of a single client", lambda t: t["alone"]["answered_ms"]["p99"], "lower", "ms"),
             row(f"answers a second at {CONNECTIONS} connections", lambda t: t["many"]["per_second"], "higher", "/s"),
             row(f"p99 at {CONNECTIONS} connections", lambda t: t["many"]["answered_ms"]["p99"], "lower", "ms"),
             row("memory, pages of files included", lambda t: t["memory"]["all"], "lower", "MiB"),
             row("memory of its own", lambda t: t["memory"]["own"], "lower", "MiB")]
    answered, refused = over["answered_ms"], over["refused_ms"]
    lines += ["", f"  ngame alone, asked {over['rate']:.0f} times a second, {OVERLOAD} x what it holds, a queue of 64:",
              f"    answered {over['answered']:,}, p50 {answered['p50']:.1f} ms, p99 {answered['p99']:.1f} ms",
              f"    refused  {over['refused']:,} with 503, p50 {refused['p50'] or 0:.1f} ms, p99 {refused['p99'] or 0:.1f} ms",
              f"    lost {over['lost']}, other statuses {len(over['other'])}, memory of its own "
              f"{over['memory'][0]['own']:.0f} -> {over['memory'][1]['own']:.0f} MiB"]
    return lines


def soak_lines(result):
    memory = result["memory"]
    third = max(len(memory) // 3, 1)
    return [f"  {result['took']:.0f} s at {CONNECTIONS} connections: {result['answered']:,} answered, "
            f"{result['refused']:,} refused, {result['bad']:,} wrong requests told, {result['lost']} lost, "
            f"other statuses: {sorted(set(result['other'])) or 'none'}",
            f"  {result['counted']}, exit code {result['exit']}",
            f"  memory of its own, MiB: first third {statistics.median(memory[:third]):.0f}, "
            f"last third {statistics.median(memory[-third:]):.0f}, most {max(memory):.0f}"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=8.0)
    parser.add_argument("--soak", type=float, default=0.0, help="so many seconds at full load, and nothing else")
    args = parser.parse_args()
    folder = BENCH / "data" / "serve"
    folder.mkdir(parents=True, exist_ok=True)
    if args.soak:
        name, raw = "serve-soak", soak(args.model, lambda service: make_texts(service, folder), args.soak)
        lines, command, peers = soak_lines(raw), f"make soak-serve MODEL={args.model.name} SECONDS={args.soak:.0f}", None
    else:
        python = record.peer_python(".venv", PEER_PACKAGES)
        peers = record.versions(python, PEER_PACKAGES)
        service = ours(args.model)
        texts = make_texts(service, folder)
        facts = json.loads(service.get("/v1/models"))["models"][0]
        service.close()
        turns = compare(args.model, python, texts, args.rounds, args.seconds)
        capacity = statistics.median(turn["ngame"]["many"]["per_second"] for turn in turns)
        over = overload(args.model, texts, capacity, args.seconds)
        name, raw = "serve", {"model": facts, "turns": turns, "overload": over}
        lines = [f"{facts['n_labels']:,} labels, vectors of {facts['dim']}, texts of {WORDS} words, medians of "
                 f"{args.rounds} turns"] + table(turns, over)
        command = f"make bench-serve MODEL={args.model.name}"
    print("\n".join(lines))
    record.write(name, "Serve", command, "\n".join(lines), raw, peers)


if __name__ == "__main__":
    main()
