#!/usr/bin/env python3
"""Training speed and memory against the size of the text: what a corpus of millions of pairs costs.

    python3 bench/large_corpus.py --folder FOLDER [--qkv build/release/qkv] [--pairs 1000000 10000000]

Writes the corpora into FOLDER (about 220 MB for a million pairs), unless they are there, then trains the preset `tiny`
on each in turn and prints a row a run: seconds of the first scan, tokens/s (median of the steps), peak memory. A pair
is two sentences of examples/grammar drawn by chance. The vocabulary is the same for all, learned from examples/grammar.
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
AT_ONCE = 100_000  # pairs


def read(name):
    return (TEXT / name).read_text(encoding="utf-8").splitlines()


def generate(pairs, sides):
    """Files of so many pairs, the same bytes for the same number."""
    sentences = list(zip(read("train.en"), read("train.de")))
    draw = random.Random(pairs)
    with open(sides[0], "w", encoding="utf-8") as source, open(sides[1], "w", encoding="utf-8") as target:
        for done in range(0, pairs, AT_ONCE):
            count = min(AT_ONCE, pairs - done)
            both = list(zip(draw.choices(sentences, k=count), draw.choices(sentences, k=count)))
            source.write("".join(f"{a[0]} {b[0]}\n" for a, b in both))
            target.write("".join(f"{a[1]} {b[1]}\n" for a, b in both))


def train(qkv, files, dev, run, *options):
    """(seconds to each message by its first word, peak memory in MiB, lines of metrics.jsonl)"""
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
    parser.add_argument("--folder", type=pathlib.Path, required=True)
    parser.add_argument("--qkv", default=str(ROOT / "build/release/qkv"))
    parser.add_argument("--pairs", type=int, nargs="+", default=[1_000_000, 10_000_000])
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--rounds", type=int, default=1)
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    run, vocabulary = args.folder / "run", args.folder / "vocabulary.model"
    dev = [args.folder / "dev.en", args.folder / "dev.de"]
    for side in dev:  # the evaluation at the end is not what is measured
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
