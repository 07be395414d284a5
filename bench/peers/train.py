"""Compares training speed and memory with PyTorch on the same machine. Prints the table in bench/RESULTS.md.

    python3 bench/peers/train.py --torch VENV/bin/python --peer ../shared/peers/train_torch.py [--qkv build/release/qkv]
        [--threads 1 2] [--rounds 3] [--case tiny base] [--write]

--write writes the table to bench/RESULTS.md. Both run the same shapes, sentence lengths and optimizer; PyTorch uses its
fastest layers (--lean) and tcmalloc. A round runs qkv, then PyTorch. Figures are medians over the rounds, ratios are
medians of the ratios of consecutive runs. Memory is the peak of the whole process as counted by the kernel, including
Python's libraries; "libraries" is the memory of `import torch` alone.
"""

import statistics

from common import compare_training, measure

CASES = {"tiny": (4096, 20), "base": (1024, 8)}  # tokens per batch, steps


def compare(model, threads, a):
    """Returns one row of the table."""
    tokens, steps = CASES[model]
    shape = ["--model", model, "--tokens", str(tokens), "--threads", str(threads), "--steps", str(steps)]
    rounds = []
    for _ in range(a.rounds):
        ours, our_peak = measure([a.qkv, "bench", "train", *shape, "--json"])
        theirs, their_peak = measure([a.torch, a.peer, "--lean", *shape])
        assert ours["target_tokens_per_step"] == theirs["target_tokens_per_step"], "the batches differ"
        speeds = ours["target_tokens_per_s"], theirs["target_tokens_per_s"]
        rounds.append((*speeds, speeds[0] / speeds[1], our_peak, their_peak, our_peak / their_peak))
    x, y, ratio, our_peak, their_peak, share = (statistics.median(column) for column in zip(*rounds))
    return f"| {model} | {threads} | {x:,.0f} | {y:,.0f} | {ratio:.2f} | {our_peak:,.0f} | {their_peak:,.0f} | {share:.2f} |"


compare_training(__doc__, "train_torch.py", list(CASES), compare,
                 ["model", "threads", "qkv, target tokens/s", "PyTorch, target tokens/s",
                  "ratio", "qkv, MiB", "PyTorch, MiB", "share"], "training")
