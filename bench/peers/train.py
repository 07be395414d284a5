"""Compares training speed and memory with PyTorch on the same machine. Prints the table in bench/RESULTS.md.

    python3 bench/peers/train.py --torch VENV/bin/python [--qkv build/release/qkv] [--threads 1 2] [--rounds 3]
        [--case tiny base] [--write]

`bench/peers/install.sh VENV` creates VENV. --write writes the table to bench/RESULTS.md. Both run the same shapes,
sentence lengths and optimizer, PyTorch with torch_training.py. A round runs qkv, then PyTorch. Figures are medians
over the rounds, ratios are medians of the ratios of consecutive runs. Memory is the peak of the whole process as
counted by the kernel, including Python's libraries; "libraries" is the memory of `import torch` alone. "int8" is the
same with --precision int8.
"""

import statistics

from common import compare_training, measure, train_with_torch

CASES = {"tiny": (4096, 20), "base": (1024, 8)}  # tokens per batch, steps


def compare(model, threads, a):
    """Returns one row of the table."""
    tokens, steps = CASES[model]
    shape = ["--model", model, "--tokens", str(tokens), "--threads", str(threads), "--steps", str(steps)]
    rounds = []
    for _ in range(a.rounds):
        ours, our_peak = measure([a.qkv, "bench", "train", *shape, "--json"])
        int8, _ = measure([a.qkv, "bench", "train", *shape, "--precision", "int8", "--json"])
        theirs, their_peak = train_with_torch(a, model, steps, threads)
        assert ours["target_tokens_per_step"] == theirs["target_tokens_per_step"], "the batches differ"
        x, x8, y = (figures["target_tokens_per_s"] for figures in (ours, int8, theirs))
        rounds.append((x, x8, y, x / y, x8 / y, x8 / x, our_peak, their_peak, our_peak / their_peak))
    x, x8, y, ratio, ratio8, gain, our_peak, their_peak, share = (statistics.median(column) for column in zip(*rounds))
    return (f"| {model} | {threads} | {x:,.0f} | {x8:,.0f} | {y:,.0f} | {ratio:.2f} | {ratio8:.2f} | {gain:.2f} | "
            f"{our_peak:,.0f} | {their_peak:,.0f} | {share:.2f} |")


compare_training(__doc__, list(CASES), compare,
                 ["model", "threads", "qkv, target tokens/s", "qkv int8", "PyTorch", "ratio", "ratio int8",
                  "int8 / float32", "qkv, MiB", "PyTorch, MiB", "share"], "training")
