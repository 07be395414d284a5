#!/usr/bin/env python3
"""Measures training speed and memory as a function of the size of the corpus, up to millions of pairs.

    python3 bench/large_corpus.py --folder FOLDER [--qkv build/release/qkv] [--pairs 1000000 10000000]

Writes the corpora to FOLDER (about 220 MB per million pairs) unless they exist, then trains the preset `tiny` on each
and prints one row per run: seconds of the first scan, tokens/s (median of the steps) and peak memory. A pair is two
random sentence pairs of examples/grammar, concatenated. All runs share one vocabulary, learned from examples/grammar.
"""

import argparse
import json
import os
import pathlib
import random
import shutil
import statistics
import subprocess
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
TEXT = ROOT / "examples/grammar"
CHUNK = 100_000  # pairs that are written at once


def read(name):
    return (TEXT / name).read_text(encoding="utf-8").splitlines()


def generate(pairs, sides):
    """Writes a corpus; its bytes depend only on the number of pairs."""
    sentences = list(zip(read("train.en"), read("train.de")))
    draw = random.Random(pairs)
    with open(sides[0], "w", encoding="utf-8") as source, open(sides[1], "w", encoding="utf-8") as target:
        for done in range(0, pairs, CHUNK):
            count = min(CHUNK, pairs - done)
            both = list(zip(draw.choices(sentences, k=count), draw.choices(sentences, k=count)))
            source.write("".join(f"{a[0]} {b[0]}\n" for a, b in both))
            target.write("".join(f"{a[1]} {b[1]}\n" for a, b in both))


def train(qkv, files, dev, run, *options):
    """Trains; returns the seconds until each message by its first word, the peak memory in MiB, and the metrics."""
    shutil.rmtree(run, ignore_errors=True)
    begin = time.monotonic()
    process = subprocess.Popen([qkv, "train", "translate", "--train", *files, "--dev", *dev, "--out", run,
                                *map(str, options)], stderr=subprocess.PIPE, text=True)
    seconds, lines = {}, []
    for line in process.stderr:
        lines.append(line)
        seconds.setdefault(line.split()[0], time.monotonic() - begin)
    _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        raise SystemExit("".join(lines))
    metrics = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    return seconds, usage.ru_maxrss / 1024, metrics


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=pathlib.Path, required=True, help="folder of the corpora")
    parser.add_argument("--qkv", default=str(ROOT / "build/release/qkv"), help="qkv program (default: %(default)s)")
    parser.add_argument("--pairs", type=int, nargs="+", default=[1_000_000, 10_000_000],
                        help="sizes of the corpora in pairs (default: 1000000 10000000)")
    parser.add_argument("--steps", type=int, default=50, help="training steps per run (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=1, help="runs per corpus (default: %(default)s)")
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    run, vocabulary = args.folder / "run", args.folder / "vocabulary.model"
    dev = [args.folder / "dev.en", args.folder / "dev.de"]
    for side in dev:  # small, because the final evaluation is not measured
        side.write_text("\n".join(read(side.name)[:20]) + "\n", encoding="utf-8")
    if not vocabulary.exists():
        train(args.qkv, [TEXT / "train.en", TEXT / "train.de"], dev, run, "--max-steps", 1)
        shutil.copy(run / "tokenizer.model", vocabulary)
    corpora = {pairs: [args.folder / f"{pairs}.en", args.folder / f"{pairs}.de"] for pairs in args.pairs}
    for pairs, sides in corpora.items():
        if not all(side.exists() for side in sides):
            generate(pairs, sides)
    print("| pairs | scan, s | first window, s | target tokens/s | peak memory, MiB |\n|---|---|---|---|---|")
    for _ in range(args.rounds):
        for pairs, sides in corpora.items():
            seconds, memory, metrics = train(args.qkv, sides, dev, run, "--source-tokenizer", vocabulary, "--max-steps",
                                             args.steps, "--eval-every", 0, "--save-every", 0, "--ema-decay", 0)
            speeds = [step["tokens_per_second"] for step in metrics if step.get("step", 0) > 3 and "loss" in step]
            scan, window = seconds["vocabulary:"], seconds["training"] - seconds["vocabulary:"]
            print(f"| {pairs:,} | {scan:.2f} | {window:.2f} | {statistics.median(speeds):,.0f} | "
                  f"{memory:.0f} |", flush=True)
    shutil.rmtree(run)


if __name__ == "__main__":
    main()
