"""Compares training with Marian's CPU back end (pymarian), on the same text, vocabulary and shapes. Prints the table in
bench/RESULTS.md.

    python3 bench/peers/marian.py --peers VENV/bin/python --data DIR --models DIR [--qkv build/release/qkv]
        [--scripts ../shared/peers] [--rounds 3] [--case NAME ...] [--write]

VENV has pymarian and sentencepiece; --data has train.en, train.de, val.en and val.de. Both sides train with steps of
4,096 target pieces of a joint vocabulary of 10,000 on two threads, and report target pieces a second: the median of the
steps after the first ones. A round runs qkv, then Marian. Figures are medians over the rounds, ratios are medians of the
ratios of consecutive runs.
"""

import argparse
import json
import statistics
import subprocess
import tempfile
from pathlib import Path

from common import Table, measure

CASES = {"tiny": 40, "base": 8}  # steps; Marian, which reports in eight parts, takes twice as many


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
    found, _ = measure([a.peers, f"{a.scripts}/marian_cpu.py", "train", "--model", model, "--run",
                        str(a.models / f"marian-run-{model}"), "--vocab", str(make_vocabulary(a)), "--text",
                        str(a.data / "train.en"), str(a.data / "train.de"), "--updates", str(2 * steps), "--words",
                        "4096"])
    return found["target_words_per_s"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peers", required=True, help="Python interpreter with pymarian")
    parser.add_argument("--data", required=True, type=Path, help="folder of the texts")
    parser.add_argument("--models", required=True, type=Path, help="folder of Marian's models and the vocabulary")
    parser.add_argument("--scripts", default="../shared/peers", help="folder of Marian's script (default: %(default)s)")
    parser.add_argument("--qkv", default="build/release/qkv", help="qkv program (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="rounds; figures are medians (default: %(default)s)")
    parser.add_argument("--case", nargs="+", choices=list(CASES), default=list(CASES), help="cases (default: all)")
    parser.add_argument("--write", action="store_true", help="write the table to bench/RESULTS.md")
    a = parser.parse_args()
    table = Table()
    table.show("| model | qkv, target pieces/s | Marian, target pieces/s | ratio |")
    table.show("|---|---|---|---|")
    for name in a.case:
        steps = CASES[name]
        rounds = [(our_training(a, name, steps), their_training(a, name, steps)) for _ in range(a.rounds)]
        x, y, ratio = (statistics.median(column) for column in zip(*((x, y, x / y) for x, y in rounds)))
        table.show(f"| `{name}` | {x:,.0f} | {y:,.0f} | {ratio:.2f} |")
    if a.write:
        table.write("marian")


if __name__ == "__main__":
    main()
