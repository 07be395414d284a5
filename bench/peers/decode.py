"""Compares translation speed, memory and start-up time with CTranslate2, on the same weights. Prints the table in
bench/RESULTS.md.

    python3 bench/peers/decode.py --peers VENV/bin/python --text FILE --models DIR [--vocabulary FILE ...]
        [--qkv build/release/qkv] [--rounds 3] [--case NAME ...] [--write]

`bench/peers/install.sh VENV` creates VENV. MarianMT models with random weights and a vocabulary of the text, or of the
files of --vocabulary, are created in DIR and imported unless they exist. Both programs translate the first lines of the
text, each to 24 tokens; tokenization is not timed. Ours runs with its defaults; CTranslate2 runs with one worker of two
threads and, in another process, with two workers of one thread, and the faster setting counts. A round runs qkv, then
CTranslate2. Figures are medians over the rounds, ratios are medians of the ratios of consecutive runs. Memory is the
peak of the whole process; for CTranslate2 it excludes the Python libraries. Start-up is the time to open the model.
"""

import argparse
import statistics
from pathlib import Path

from common import Table, add_comparison_options, measure, run_command

# name: model, beam, batch, lines, CTranslate2's compute type
CASES = {
    "base, beam 4, batch 32": ("base", 4, 32, 256, "float32"),
    "base, beam 4, batch 32, int8": ("base", 4, 32, 256, "int8"),
    "base, greedy, batch 1, int8": ("base", 1, 1, 32, "int8"),
    "base, beam 4, batch 1, int8": ("base", 4, 1, 32, "int8"),
    "tiny, beam 5, batch 64": ("tiny", 5, 64, 256, "float32"),
}

PEER = str(Path(__file__).with_name("ctranslate2_models.py"))


def prepare(a, model):
    """Makes the model for both sides, for ours also in int8; returns the folders of both."""
    theirs, ours = Path(a.models, f"marian-{model}"), Path(a.models, f"qkv-{model}")
    if not theirs.exists():
        run_command([a.peers, PEER, "make", str(theirs), "--size", model, "--text", *(a.vocabulary or [a.text])])
    if not ours.exists():
        run_command([a.qkv, "import", str(theirs), str(ours)])
        run_command([a.qkv, "quantize", str(ours), "--int8"])
    return str(theirs), str(ours)


def compare(name, a, libraries):
    """Returns one row of the table."""
    model, beam, batch, lines, compute = CASES[name]
    theirs, ours = prepare(a, model)
    shape = ["--text", a.text, "--beam", str(beam), "--batch", str(batch), "--lines", str(lines)]
    rounds = []
    for _ in range(a.rounds):
        run_directory = ours + ("-int8" if compute == "int8" else "")
        our, our_peak = measure([a.qkv, "bench", "decode", run_directory, *shape, "--json"])
        settings = [measure([a.peers, PEER, "speed", theirs, *shape, "--compute", compute, "--workers", workers])
                    for workers in "12"]
        their, their_peak = max(settings, key=lambda setting: setting[0]["tokens_per_s"])
        assert our["out_tokens"] == their["out_tokens"], "the translations differ in length"
        speeds = our["tokens_per_s"], their["tokens_per_s"]
        rounds.append((*speeds, speeds[0] / speeds[1], our_peak, their_peak - libraries, our["load_ms"],
                       their["load_ms"]))
    x, y, ratio, our_peak, their_peak, our_load, their_load = (statistics.median(column) for column in zip(*rounds))
    return (f"| {name} | {x:,.0f} | {y:,.0f} | {ratio:.2f} | {our_peak:,.0f} | {their_peak:,.0f} | {our_load:.0f} | "
            f"{their_load:.0f} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peers", required=True, help="Python interpreter with CTranslate2 and transformers")
    parser.add_argument("--text", required=True, help="file of lines to translate, one sentence each")
    parser.add_argument("--vocabulary", nargs="+", metavar="FILE",
                        help="texts that the vocabulary is learned from (default: that of --text)")
    parser.add_argument("--models", required=True, help="folder of the models")
    add_comparison_options(parser, CASES)
    a = parser.parse_args()

    table = Table()
    version, libraries = run_command([a.peers, "-c", "import ctranslate2, transformers; transformers.MarianTokenizer; "
                                                     "print(ctranslate2.__version__)"])
    table.show(f"CTranslate2 {version}; two threads; {a.rounds} rounds\n")
    table.show("| case | qkv, tokens/s | CTranslate2, tokens/s | ratio | qkv, MiB | CTranslate2, MiB | "
               "qkv opens in, ms | CTranslate2, ms |")
    table.show("|---|---|---|---|---|---|---|---|")
    for name in a.case:
        table.show(compare(name, a, libraries))
    if a.write:
        table.write("decoding")


main()
