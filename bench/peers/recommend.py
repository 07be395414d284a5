"""Training speed of recommenders against PyTorch, in turn, on the same machine: prints the table of bench/RESULTS.md.

    python3 bench/peers/recommend.py --torch VENV/bin/python --peer ../shared/peers/decoder_torch.py
        [--qkv build/release/qkv] [--threads 1 2] [--rounds 3] [--case sasrec sasrec-ce] [--write]

--write puts the table into bench/RESULTS.md. Both train the same shapes with the same loss on 128 histories of 200 items
of 3,416; PyTorch with tcmalloc, its fused attention and fused AdamW. Every figure is the median of the rounds; a ratio is
the median of the ratios of neighbours in time.
"""

import json
import statistics
import tempfile

from common import compare_training, measure

SAME = {"norm_position": "pre", "attention_dropout": 0, "ffn_dropout": 0, "dropout": 0.2, "decoder_layers": 2,
        "max_length": 200}
CASES = {"sasrec": {**SAME, "d_model": 50, "heads": 1, "ffn": 50, "loss": "bce", "negatives": 1},
         "sasrec-ce": {**SAME, "d_model": 128, "heads": 2, "ffn": 128, "loss": "softmax"}}


def compare(case, threads, a):
    """One row of the table."""
    rounds = []
    with tempfile.NamedTemporaryFile("w", suffix=".json") as config:
        json.dump(CASES[case], config)
        config.flush()
        for _ in range(a.rounds):
            ours, our_peak = measure([a.qkv, "bench", "train-recommend", "--config", config.name, "--tokens", "25600",
                                      "--steps", "10", "--threads", str(threads), "--json"])
            theirs, their_peak = measure([a.torch, a.peer, "--model", case, "--steps", "10", "--threads", str(threads)])
            assert ours["target_tokens_per_step"] == 25600, "the batches differ"
            speeds = ours["target_tokens_per_s"], theirs["tokens_per_s"]
            rounds.append((*speeds, speeds[0] / speeds[1], our_peak, their_peak))
    x, y, ratio, our_peak, their_peak = (statistics.median(column) for column in zip(*rounds))
    return f"| {case} | {threads} | {x:,.0f} | {y:,.0f} | {ratio:.2f} | {our_peak:,.0f} | {their_peak:,.0f} |"


compare_training(__doc__, "decoder_torch.py", list(CASES), compare,
                 ["model", "threads", "qkv, items/s", "PyTorch, items/s", "ratio", "qkv, MiB", "PyTorch, MiB"], "recommenders")
