#!/usr/bin/env python3
"""Trains a translator with steps of different sizes for the same number of batches, and prints the BLEU of each.

A step of `--shards` S consists of S batches, so a run with S = 16 has a sixteenth of the steps. The learning rate is
multiplied by S to the power given, and the moving average spans the same number of batches. The warm-up has the same
number of steps. With `--time-scale T` the warm-up and Adam's means span the same number of batches, too: as many as with
the defaults at S = T (the scaling rule of Malladi et al., 2022, "On the SDEs and scaling rules for adaptive gradient
algorithms"). A run that is there is not trained again, and one that was interrupted is resumed. Example:

  bench/larger_steps.py build/release/qkv --train train.en train.de --dev val.en val.de --out FOLDER --jobs 2
"""

import argparse
import concurrent.futures
import itertools
import json
import pathlib
import subprocess

EVALUATIONS = 8  # of each run


def name_of(a, setting):
    shards, power, seed = setting
    return a.out / f"shards-{shards}-power-{power}-seed-{seed}"


def train(a, setting):
    shards, power, seed = setting
    steps = a.batches // shards
    options = {"preset": "tiny-modern", "batch-tokens": a.batch_tokens, "shards": shards, "seed": seed,
               "learning-rate": a.rate * shards**power, "warmup-steps": a.warmup, "schedule": "cosine",
               "max-steps": steps, "eval-every": steps // EVALUATIONS, "ema-decay": 1 - a.average * shards,
               "average": 1, "threads": a.threads, "out": name_of(a, setting)}
    if a.time_scale:
        ratio = shards / a.time_scale
        options |= {"warmup-steps": round(a.warmup / ratio), "beta1": 1 - 0.1 * ratio, "beta2": 1 - 0.02 * ratio}
    command = [a.qkv, "train", "translate", "--lowercase", "--train", *a.train, "--dev", *a.dev]
    for name, value in options.items():
        command += [f"--{name}", str(value)]
    subprocess.run(command, check=True, capture_output=True)


def bleu(a, setting):
    """Returns the BLEU of beam search on the dev text."""
    command = [a.qkv, "translate", name_of(a, setting), "--beam", "5", "--threads", str(a.threads), "--input", a.dev[0]]
    translation = subprocess.run(command, check=True, capture_output=True).stdout
    score = [a.qkv, "score", "bleu", "--lowercase", "--json", "--ref", a.dev[1]]
    return json.loads(subprocess.run(score, input=translation, check=True, capture_output=True).stdout)["score"]


def row(a, setting):
    train(a, setting)
    shards, power, seed = setting
    lines = (name_of(a, setting) / "metrics.jsonl").read_text().splitlines()
    records = [json.loads(line) for line in lines]
    steps = [record for record in records if "target_tokens" in record]
    last = [record["dev"] for record in records if "dev" in record][-1]
    tokens = sum(step["target_tokens"] for step in steps) / len(steps)
    return (f"| {shards} | {len(steps):,} | {tokens:,.0f} | {a.rate * shards**power:.2g} | {seed} | "
            f"{last['last']['loss']:.3f} | {last['last']['bleu']:.2f} | {last['ema']['loss']:.3f} | "
            f"{last['ema']['bleu']:.2f} | {bleu(a, setting):.2f} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("qkv")
    parser.add_argument("--train", nargs=2, required=True)
    parser.add_argument("--dev", nargs=2, required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True, help="folder of the runs")
    parser.add_argument("--shards", type=int, nargs="+", default=[1, 4, 16])
    parser.add_argument("--powers", type=float, nargs="+", default=[0.5], help="of S, by which the rate is multiplied")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    parser.add_argument("--batches", type=int, default=12800, help="of each run")
    parser.add_argument("--batch-tokens", type=int, default=512)
    parser.add_argument("--rate", type=float, default=1.8e-3, help="learning rate of one shard")
    parser.add_argument("--warmup", type=int, default=200, help="steps")
    parser.add_argument("--time-scale", type=int, help="S at which the warm-up and Adam have their usual settings")
    parser.add_argument("--average", type=float, default=5e-4, help="share of a batch in the moving average")
    parser.add_argument("--jobs", type=int, default=1, help="runs at the same time")
    parser.add_argument("--threads", type=int, default=1, help="of each run")
    a = parser.parse_args()
    print("| S | steps | target tokens per step | learning rate | seed | loss, last weights | BLEU greedy | "
          "loss, moving average | BLEU greedy | BLEU beam 5 |\n|" + "---|" * 10, flush=True)
    settings = itertools.product(a.shards, a.powers, a.seeds)
    with concurrent.futures.ThreadPoolExecutor(a.jobs) as pool:
        for line in pool.map(lambda setting: row(a, setting), settings):
            print(line, flush=True)


if __name__ == "__main__":
    main()
