"""Training speed against PyTorch, in turn, on the same machine: prints the table of bench/RESULTS.md.

    python3 bench/peers/train.py --torch VENV/bin/python --peer ../shared/peers/train_torch.py [--qkv build/release/qkv]

Both run the same shapes, sentence lengths and optimiser; PyTorch with its fastest layers (--lean) and tcmalloc. Every
figure is the median of the rounds; a ratio is the median of the ratios of neighbours in time.
"""

import argparse
import json
import statistics
import subprocess

CASES = [("tiny", 4096, 20), ("base", 1024, 8)]  # model, tokens of a batch, steps


def last_json(command):
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()[-1])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--torch", required=True, help="a Python that has PyTorch")
    parser.add_argument("--peer", default="../shared/peers/train_torch.py")
    parser.add_argument("--qkv", default="build/release/qkv")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    a = parser.parse_args()

    print("| model | threads | qkv, target tokens/s | PyTorch, target tokens/s | ratio |")
    print("|---|---|---|---|---|")
    for model, tokens, steps in CASES:
        shape = ["--model", model, "--tokens", str(tokens), "--threads", str(a.threads), "--steps", str(steps)]
        ours, theirs = [], []
        for _ in range(a.rounds):
            ours.append(last_json([a.qkv, "bench", "train", *shape, "--json"])["target_tokens_per_s"])
            theirs.append(last_json([a.torch, a.peer, "--lean", *shape])["target_tokens_per_s"])
        ratio = statistics.median(x / y for x, y in zip(ours, theirs))
        print(f"| {model} | {a.threads} | {statistics.median(ours):,.0f} | {statistics.median(theirs):,.0f} | {ratio:.2f} |")


main()
