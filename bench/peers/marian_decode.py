"""Compares translation speed with Marian's CPU back end (pymarian), on the same weights. Prints the table in
bench/RESULTS.md.

    python3 bench/peers/marian_decode.py --peers VENV/bin/python --text FILE... --models DIR
        [--qkv build/release/qkv] [--rounds 3] [--case NAME ...] [--write]

`bench/peers/install.sh VENV marian` creates VENV. Models in Marian's format with random weights and a joint vocabulary
of the texts are created in DIR and imported unless they exist. Both programs use two threads and translate the same
lines of 24 tokens, each to 24 tokens; tokenization is a part of Marian's time only. A round runs qkv, then Marian.
Figures are medians over the rounds, ratios are medians of the ratios of consecutive runs.
"""

import argparse
from pathlib import Path

from common import Table, add_comparison_options, measure, ratio_row, run_command

# name: model, beam, batch, lines
CASES = {
    "base, beam 4, batch 32": ("base", 4, 32, 256),
    "base, beam 4, batch 1": ("base", 4, 1, 32),
    "tiny, beam 5, batch 64": ("tiny", 5, 64, 256),
}

PEER = str(Path(__file__).with_name("marian_models.py"))


def prepare(a, model):
    """Makes the model for both sides; returns the folders of both."""
    theirs, ours = Path(a.models, f"marian-npz-{model}"), Path(a.models, f"qkv-npz-{model}")
    if not theirs.exists():
        run_command([a.peers, PEER, "make", str(theirs), "--size", model, "--text", *a.text])
    if not ours.exists():
        run_command([a.qkv, "import", str(theirs / "model.npz"), str(ours), "--source-vocabulary",
                     str(theirs / "vocab.spm")])
    return str(theirs), str(ours)


def compare(name, a):
    """Returns one row of the table."""
    model, beam, batch, lines = CASES[name]
    theirs, ours = prepare(a, model)
    shape = ["--beam", str(beam), "--batch", str(batch), "--lines", str(lines)]
    rounds = []
    for _ in range(a.rounds):
        our, _ = measure([a.qkv, "bench", "decode", ours, "--text", theirs + "/lines.txt", *shape, "--json"])
        their, _ = measure([a.peers, PEER, "speed", theirs, *shape])
        assert our["out_tokens"] == their["out_tokens"], "the translations differ in length"
        rounds.append((our["tokens_per_s"], their["tokens_per_s"]))
    return ratio_row(name, rounds)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peers", required=True, help="Python interpreter with pymarian")
    parser.add_argument("--text", required=True, nargs="+", metavar="FILE", help="texts of the vocabulary and lines")
    parser.add_argument("--models", required=True, help="folder of the models")
    add_comparison_options(parser, CASES)
    a = parser.parse_args()

    table = Table()
    table.show("| case | qkv, tokens/s | Marian, tokens/s | ratio |")
    table.show("|---|---|---|---|")
    for name in a.case:
        table.show(compare(name, a))
    if a.write:
        table.write("marian-decoding")


main()
