"""Compares the training speed of encoders by masked language modelling with PyTorch on the same machine. Prints the table
in bench/RESULTS.md.

    python3 bench/peers/encoder.py --torch VENV/bin/python [--qkv build/release/qkv] [--threads 1 2] [--rounds 3]
        [--case CASE ...] [--write]

`bench/peers/install.sh VENV` creates VENV. --write writes the table to bench/RESULTS.md. Both train the same shapes on
random texts of 128 tokens, of which 15 % are predicted: 32 texts and 8,000 pieces (encoder-tiny), or 16 texts and 30,000
pieces (bert-base), PyTorch with torch_training.py, which computes logits of the masked tokens only. The words after the
name of a model are options of qkv. Figures are medians
over the rounds, ratios are medians of the ratios of consecutive runs.
"""

import json
import statistics
import tempfile

from common import compare_training, measure, train_with_torch

CASES = {  # tokens per batch, pieces, steps
    "encoder-tiny": (32 * 128, 8000, 20),
    "bert-base": (16 * 128, 30000, 4),
    "bert-base --recompute": (16 * 128, 30000, 4),
}


def compare(case, threads, a):
    """Returns one row of the table."""
    (tokens, vocabulary, steps), (model, *options) = CASES[case], case.split()
    rounds = []
    with tempfile.NamedTemporaryFile("w", suffix=".json") as config:
        json.dump({"max_length": 128, "attention_dropout": 0}, config)
        config.flush()
        for _ in range(a.rounds):
            ours, our_peak = measure([a.qkv, "bench", "train-encoder", "--model", model, "--config", config.name, "--vocab",
                                      str(vocabulary), "--tokens", str(tokens), "--steps", str(steps), "--threads",
                                      str(threads), "--json", *options])
            theirs, their_peak = train_with_torch(a, model, steps, threads)
            assert ours["target_tokens_per_step"] == theirs["target_tokens_per_step"], "the batches differ"
            speeds = ours["target_tokens_per_s"], theirs["target_tokens_per_s"]
            rounds.append((*speeds, speeds[0] / speeds[1], our_peak, their_peak, our_peak / their_peak))
    x, y, ratio, our_peak, their_peak, share = (statistics.median(column) for column in zip(*rounds))
    return (f"| {case} | {threads} | {x:,.0f} | {y:,.0f} | {ratio:.2f} | {our_peak:,.0f} | {their_peak:,.0f} | "
            f"{share:.2f} |")


compare_training(__doc__, list(CASES), compare,
                 ["model", "threads", "qkv, tokens/s", "PyTorch, tokens/s", "ratio", "qkv, MiB", "PyTorch, MiB", "share"],
                 "encoders")
