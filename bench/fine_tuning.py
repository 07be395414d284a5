#!/usr/bin/env python3
"""Measures a step of fine-tuning: all weights, without those of the encoder, and an adapter.

    python3 bench/fine_tuning.py --qkv build/release/qkv --preset base --rounds 3

Trains each kind in turn on examples/grammar. Prints the median of target tokens per second of all steps but the first,
the CPU time of a step (that of a run, less that of a run of one step), and the largest resident memory, which includes
the mapped base of an adapter. On a busy machine, rely on the CPU time of one thread.
"""

import argparse
import json
import math
import pathlib
import shutil
import statistics
import subprocess
import tempfile

TEXT = pathlib.Path(__file__).resolve().parent.parent / "examples/grammar"
KINDS = {"all weights": [], "without the encoder": ["--freeze", "encoder"], "adapter of rank 8": ["--lora-rank", "8"]}


def train(options, out, *more):
    """Trains one run; returns its tokens per second, seconds of CPU time, and largest resident memory in MiB."""
    files = ["--train", TEXT / "train.en", TEXT / "train.de", "--dev", out.parent / "dev.en", out.parent / "dev.de"]
    command = ["/usr/bin/time", "-f", "%U %S %M", options.qkv, "train", "translate", *files, "--out", out,
               "--batch-tokens", options.tokens, "--eval-every", "100000", "--threads", options.threads, *more]
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stderr)
    steps = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    speeds = [step["tokens_per_second"] for step in steps[1:] if "tokens_per_second" in step]
    user, system, memory = map(float, done.stderr.splitlines()[-1].split())
    return speeds, user + system, memory / 1024


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--qkv", default="build/release/qkv")
    parser.add_argument("--preset", default="base")
    parser.add_argument("--tokens", default="1024", help="tokens of a batch")
    parser.add_argument("--steps", default="12", help="steps of each kind in a round")
    parser.add_argument("--threads", default="2")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for side in ("en", "de"):  # a short dev text: evaluation is not measured
            (folder / f"dev.{side}").write_text("".join((TEXT / f"dev.{side}").open().readlines()[:4]))
        train(options, folder / "base", "--preset", options.preset, "--max-steps", "2")
        speeds, memory = {kind: [] for kind in KINDS}, {kind: 0 for kind in KINDS}
        cpu = {kind: math.inf for kind in KINDS}
        for _ in range(options.rounds):
            for kind, arguments in KINDS.items():
                init = ["--init", folder / "base", *arguments]
                _, start, _ = train(options, folder / "run", *init, "--max-steps", "1")
                shutil.rmtree(folder / "run")
                found, seconds, used = train(options, folder / "run", *init, "--max-steps", options.steps)
                speeds[kind] += found
                cpu[kind] = min(cpu[kind], (seconds - start) / (int(options.steps) - 1))
                memory[kind] = max(memory[kind], used)
                shutil.rmtree(folder / "run")
        for kind in KINDS:
            print(f"{kind}: {statistics.median(speeds[kind]):.0f} target tokens/s, {cpu[kind]:.2f} s of CPU time per step, "
                  f"{memory[kind]:.0f} MiB")


if __name__ == "__main__":
    main()
