"""Training speed and memory against PyTorch, in turn, on the same machine: prints the table of bench/RESULTS.md.

    python3 bench/peers/train.py --torch VENV/bin/python --peer ../shared/peers/train_torch.py [--qkv build/release/qkv]
        [--threads 1 2] [--rounds 3] [--case tiny base] [--write]

--write puts the table into bench/RESULTS.md. Both run the same shapes, sentence lengths and optimiser; PyTorch with its
fastest layers (--lean) and tcmalloc. A round runs qkv, then PyTorch. Every figure is the median of the rounds; a ratio
is the median of the ratios of neighbours in time. Memory is the peak of the whole process, as the kernel counted it,
Python's libraries included; "libraries" is what `import torch` alone takes.
"""

import statistics

from common import compare_training, measure

CASES = {"tiny": (4096, 20), "base": (1024, 8)}  # tokens of a batch, steps


def compare(model, threads, a):
    """One row of the table."""
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
