"""Compares training with Marian's CPU back end (pymarian), on the same text, vocabulary and shapes. Prints the table in
bench/RESULTS.md.

    python3 bench/peers/marian.py --peers VENV/bin/python --data DIR --models DIR [--qkv build/release/qkv]
        [--rounds 3] [--case NAME ...] [--write]

`bench/peers/install.sh VENV marian` creates VENV; --data has train.en, train.de, val.en and val.de: parallel text that
is long enough for a joint vocabulary of 10,000 pieces. Both sides train with steps of 4,096 target pieces on two
threads, and report target pieces a second: the median of the steps after the first ones. A round runs qkv, then
Marian. Figures are medians over the rounds, ratios are medians of the ratios of consecutive runs.
"""

import argparse
import json
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from common import Table, add_comparison_options, ratio_row

CASES = {"tiny": 40, "base": 8}  # steps; Marian, which reports in eight parts, takes twice as many
SHAPES = {"tiny": "--enc-depth 4 --dec-depth 4 --dim-emb 128 --transformer-heads 4 --transformer-dim-ffn 256 "
                  "--transformer-dropout 0.3",
          "base": "--enc-depth 6 --dec-depth 6 --dim-emb 512 --transformer-heads 8 --transformer-dim-ffn 2048 "
                  "--transformer-dropout 0.1"}


def make_vocabulary(a):
    """Trains the vocabulary that both sides use; returns its path."""
    vocabulary = a.models / "marian-joint.spm"
    if not vocabulary.exists():
        train = ("import sentencepiece, sys; sentencepiece.SentencePieceTrainer.train(input=sys.argv[2:], "
                 "model_prefix=sys.argv[1], vocab_size=10000, bos_id=-1, eos_id=0, unk_id=1, minloglevel=2)")
        texts = [str(a.data / "train.en"), str(a.data / "train.de")]
        subprocess.run([a.peers, "-c", train, str(vocabulary.with_suffix("")), *texts], check=True)
        vocabulary.with_suffix(".model").rename(vocabulary)
    return vocabulary


def our_training(a, model, steps):
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "run"
        subprocess.run([a.qkv, "train", "translate", "--train", a.data / "train.en", a.data / "train.de", "--dev",
                        a.data / "val.en", a.data / "val.de", "--preset", model, "--vocab-size", "10000",
                        "--batch-tokens", "4096", "--max-steps", str(steps), "--eval-every", "0", "--save-every", "0",
                        "--threads", "2", "--out", run], check=True, capture_output=True)
        lines = map(json.loads, (run / "metrics.jsonl").read_text().splitlines())
        return statistics.median([line["tokens_per_second"] for line in lines if "tokens_per_second" in line][2:])


def their_training(a, model, steps):
    vocabulary = make_vocabulary(a)
    with tempfile.TemporaryDirectory() as folder:
        options = (f"--type transformer --model {folder}/model.npz --train-sets {a.data}/train.en {a.data}/train.de "
                   f"--vocabs {vocabulary} {vocabulary} --tied-embeddings-all {SHAPES[model]} --label-smoothing 0.1 "
                   "--mini-batch-words 4096 --maxi-batch 100 --sync-sgd --optimizer-params 0.9 0.98 1e-09 "
                   f"--learn-rate 0.0003 --disp-freq {max(1, steps // 4)}u --after {2 * steps}u --seed 1 "
                   "--cpu-threads 2 --workspace 3000")
        train = f"import pymarian; pymarian.Trainer({options!r}).train()"
        run = subprocess.run([a.peers, "-c", train], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    speeds = [float(speed) for speed in re.findall(r"([\d.]+) words/s", run.stdout)]
    if run.returncode != 0 or len(speeds) < 3:
        sys.exit(f"Marian: exit status {run.returncode}, {len(speeds)} reports of its speed\n{run.stdout[-3000:]}")
    return statistics.median(speeds[1:])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peers", required=True, help="Python interpreter with pymarian")
    parser.add_argument("--data", required=True, type=Path, help="folder of the texts")
    parser.add_argument("--models", required=True, type=Path, help="folder of the vocabulary")
    add_comparison_options(parser, CASES)
    a = parser.parse_args()
    table = Table()
    table.show("| model | qkv, target pieces/s | Marian, target pieces/s | ratio |")
    table.show("|---|---|---|---|")
    for name in a.case:
        steps = CASES[name]
        rounds = [(our_training(a, name, steps), their_training(a, name, steps)) for _ in range(a.rounds)]
        table.show(ratio_row(f"`{name}`", rounds))
    if a.write:
        table.write("marian")


if __name__ == "__main__":
    main()
