"""Compares the training speed of recommenders and language models with PyTorch on the same machine. Prints the table
in bench/RESULTS.md.

    python3 bench/peers/decoder.py --torch VENV/bin/python [--qkv build/release/qkv] [--threads 1 2] [--rounds 3]
        [--case sasrec sasrec-ce lm-small lm-med] [--write]

`bench/peers/install.sh VENV` creates VENV. --write writes the table to bench/RESULTS.md. Both train the same shapes
with the same loss on the same number of tokens: 128 histories of 200 items from a catalogue of 3,416, or sequences
over 65 characters, 12 of length 64 (lm-small) and 16 of length 256 (lm-med), PyTorch with torch_training.py. Figures
are medians over the rounds, ratios are medians of the ratios of consecutive runs.
"""

import json
import statistics
import tempfile

from common import compare_training, measure, train_with_torch

ITEMS = {"norm_position": "pre", "attention_dropout": 0, "ffn_dropout": 0, "dropout": 0.2, "decoder_layers": 2,
         "max_length": 200}
TEXT = {"norm": "layer", "attention_input_bias": True, "attention_output_bias": True, "ffn_bias": True,
        "activation": "gelu", "attention_dropout": 0, "positions": "learned"}
# Command of `qkv bench`, tokens per batch, steps, configuration.
CASES = {"sasrec": ("train-recommend", 25600, 10,
                    {**ITEMS, "d_model": 50, "heads": 1, "ffn": 50, "loss": "bce", "negatives": 1}),
         "sasrec-ce": ("train-recommend", 25600, 10,
                       {**ITEMS, "d_model": 128, "heads": 2, "ffn": 128, "loss": "softmax"}),
         "lm-small": ("train-lm", 12 * 64, 60, TEXT),
         "lm-med": ("train-lm", 16 * 256, 5, TEXT)}


def compare(case, threads, a):
    """Returns one row of the table."""
    command, tokens, steps, values = CASES[case]
    preset = ["--model", case] if command == "train-lm" else []
    rounds = []
    with tempfile.NamedTemporaryFile("w", suffix=".json") as config:
        json.dump(values, config)
        config.flush()
        for _ in range(a.rounds):
            ours, our_peak = measure([a.qkv, "bench", command, *preset, "--config", config.name, "--tokens",
                                      str(tokens), "--steps", str(steps), "--threads", str(threads), "--json"])
            theirs, their_peak = train_with_torch(a, case, steps, threads)
            assert ours["target_tokens_per_step"] == theirs["target_tokens_per_step"], "the batches differ"
            speeds = ours["target_tokens_per_s"], theirs["target_tokens_per_s"]
            rounds.append((*speeds, speeds[0] / speeds[1], our_peak, their_peak))
    x, y, ratio, our_peak, their_peak = (statistics.median(column) for column in zip(*rounds))
    return f"| {case} | {threads} | {x:,.0f} | {y:,.0f} | {ratio:.2f} | {our_peak:,.0f} | {their_peak:,.0f} |"


compare_training(__doc__, list(CASES), compare,
                 ["model", "threads", "qkv, tokens/s", "PyTorch, tokens/s", "ratio", "qkv, MiB", "PyTorch, MiB"], "decoders")
