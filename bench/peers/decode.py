"""Compares translation speed, memory and start-up time with CTranslate2, on the same weights. Prints the table in
bench/RESULTS.md.

    python3 bench/peers/decode.py --peers VENV/bin/python --text FILE --models DIR [--qkv build/release/qkv]
        [--scripts ../shared/peers] [--rounds 3] [--case NAME ...] [--write]

VENV is the environment that install.sh in SCRIPTS creates. MarianMT models with random weights are created in DIR and
imported unless they exist. Both programs translate the same lines, each to 24 tokens; tokenization is not timed. Ours
runs with its defaults; CTranslate2 runs with one worker of two threads and with two workers of one thread, and the
faster setting counts. A round runs qkv, then CTranslate2. Figures are medians over the rounds, ratios are medians of the
ratios of consecutive runs. Memory is
the peak of the whole process in its faster setting; for CTranslate2 it excludes the Python libraries. Start-up is the
time to open the model.
"""

import argparse
import statistics
from pathlib import Path

from common import Table, measure, run_command

# name: model, beam, batch, lines, CTranslate2's compute type
CASES = {
    "base, beam 4, batch 32": ("base", 4, 32, 256, "float32"),
    "base, beam 4, batch 32, int8": ("base", 4, 32, 256, "int8"),
    "base, greedy, batch 1, int8": ("base", 1, 1, 32, "int8"),
    "base, beam 4, batch 1, int8": ("base", 4, 1, 32, "int8"),
    "tiny, beam 5, batch 64": ("tiny", 5, 64, 256, "float32"),
}

OPEN = """
import sys, time, ctranslate2
start = time.perf_counter()
ctranslate2.Translator(sys.argv[1], device="cpu", compute_type=sys.argv[2], inter_threads=1, intra_threads=2)
print(1e3 * (time.perf_counter() - start))
"""


def prepare(a, model):
    """Makes the model, its int8 form, and CTranslate2's; returns the folders of both sides."""
    marian, ours = Path(a.models, f"marian-{model}"), Path(a.models, f"qkv-{model}")
    if not marian.exists():
        text = [str(Path(a.text).with_name(name)) for name in ("train.en", "train.de")]
        run_command([a.peers, f"{a.scripts}/make_marian.py", str(marian), "--text", *text, "--size", model])
    if not ours.exists():
        run_command([a.qkv, "import", str(marian), str(ours)])
        run_command([a.qkv, "quantize", str(ours), "--int8"])
    return str(marian), str(ours)


def compare(name, a, libraries):
    """Returns one row of the table."""
    model, beam, batch, lines, compute = CASES[name]
    marian, ours = prepare(a, model)
    shape = ["--text", a.text, "--beam", str(beam), "--batch", str(batch), "--lines", str(lines)]
    rounds = []
    for _ in range(a.rounds):
        run_directory = ours + ("-int8" if compute == "int8" else "")
        our, our_peak = measure([a.qkv, "bench", "decode", run_directory, *shape, "--json"])
        their, their_peak = measure([a.peers, f"{a.scripts}/decode_ct2.py", marian, *shape, "--compute", compute])
        opened = float(run_command([a.peers, "-c", OPEN, f"{marian}/ct2", compute])[0])
        assert our["out_tokens"] == their["out_tokens"], "the translations differ in length"
        speeds = our["tokens_per_s"], their["tokens_per_s"]
        rounds.append((*speeds, speeds[0] / speeds[1], our_peak, their_peak - libraries, our["load_ms"], opened))
    x, y, ratio, our_peak, their_peak, our_load, their_load = (statistics.median(column) for column in zip(*rounds))
    return (f"| {name} | {x:,.0f} | {y:,.0f} | {ratio:.2f} | {our_peak:,.0f} | {their_peak:,.0f} | {our_load:.0f} | "
            f"{their_load:.0f} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peers", required=True, help="Python interpreter with CTranslate2 and transformers")
    parser.add_argument("--text", required=True, help="file of lines to translate, next to train.en and train.de")
    parser.add_argument("--models", required=True, help="folder of the models")
    parser.add_argument("--scripts", default="../shared/peers",
                        help="folder of the CTranslate2 scripts (default: %(default)s)")
    parser.add_argument("--qkv", default="build/release/qkv", help="qkv program (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="rounds; figures are medians (default: %(default)s)")
    parser.add_argument("--case", nargs="+", choices=list(CASES), default=list(CASES),
                        help="cases to run (default: all)")
    parser.add_argument("--write", action="store_true", help="write the table to bench/RESULTS.md")
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
