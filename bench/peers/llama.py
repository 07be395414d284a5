"""Compares text generation and prompt reading with llama.cpp, on the same weights. Prints the table in
bench/RESULTS.md.

    python3 bench/peers/llama.py --llama VENV/bin/python --models DIR [--qkv build/release/qkv] [--size 100M 1B]
        [--threads 2] [--rounds 3] [--write]

`bench/peers/install.sh VENV llama` creates VENV, with llama.cpp compiled for this machine. A Llama with random weights
is created in DIR, imported and quantized on both sides unless it exists: 134 million parameters (100M), or 1,100
million with 4 heads of keys and values (1B). llama.cpp runs through its C functions, with its automatic choice of flash
attention, and keeps keys and values in float16; ours are float32. A round runs qkv, then llama.cpp. Figures are medians
over the rounds, ratios are medians of the ratios of consecutive runs. Generation follows a prompt of 64 tokens; a
prompt is read up to its first new token.
"""

import argparse
import statistics
from pathlib import Path

from common import Table, measure, run_command

# Our run, llama.cpp's type.
WEIGHTS = {"float32": ("", "F32"), "float32, F16": ("", "F16"), "int8, Q8_0": ("-int8", "Q8_0"),
           "int4, Q4_0": ("-int4", "Q4_0")}
# Column: options of both programs, the key of the result, and whether less is better.
CASES = {"generation, tokens/s": (["--prompt", "64", "--tokens", "48"], "tokens_per_s", False),
         "8 texts, tokens/s": (["--prompt", "64", "--tokens", "48", "--batch", "8"], "tokens_per_s", False),
         "prompt of 512 tokens, ms": (["--prompt", "512", "--tokens", "4"], "first_token_ms", True)}
PEER = str(Path(__file__).with_name("llama_cpp_models.py"))


def prepare(a, size):
    """Makes all forms of a model on both sides; returns the beginnings of their paths."""
    theirs, ours = Path(a.models, f"llama-{size}"), Path(a.models, f"qkv-llama-{size}")
    source = f"{theirs}-F32.gguf"
    if not Path(source).exists():
        run_command([a.llama, PEER, "make", size, source])
    for kind in ("F16", "Q8_0", "Q4_0"):
        if not Path(f"{theirs}-{kind}.gguf").exists():
            run_command([a.llama, PEER, "quantize", source, f"{theirs}-{kind}.gguf", kind])
    if not ours.exists():
        run_command([a.qkv, "import", source, str(ours)])
    for bits in ("int8", "int4"):
        if not Path(f"{ours}-{bits}").exists():
            run_command([a.qkv, "quantize", str(ours), "--" + bits])
    return str(ours), str(theirs)


def compare(size, weights, a):
    """Returns one row of the table."""
    ours, theirs = prepare(a, size)
    run, kind = WEIGHTS[weights]
    cells = []
    for options, key, less in CASES.values():
        rounds = []
        for _ in range(a.rounds):
            threads = ["--threads", str(a.threads)]
            our = measure([a.qkv, "bench", "generate", ours + run, *options, *threads, "--json"])[0][key]
            their = measure([a.llama, PEER, "speed", f"{theirs}-{kind}.gguf", *options, *threads])[0][key]
            rounds.append((our, their, their / our if less else our / their))
        x, y, ratio = (statistics.median(column) for column in zip(*rounds))
        cells += [f"{x:,.0f}" if x >= 100 else f"{x:.1f}", f"{y:,.0f}" if y >= 100 else f"{y:.1f}", f"{ratio:.2f}"]
    return f"| {size} | {weights} | {' | '.join(cells)} |"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--llama", required=True, help="Python interpreter with llama-cpp-python and gguf")
    parser.add_argument("--models", required=True, help="folder of the models")
    parser.add_argument("--qkv", default="build/release/qkv", help="qkv program (default: %(default)s)")
    parser.add_argument("--size", nargs="+", choices=["100M", "1B"], default=["100M", "1B"],
                        help="models to compare (default: all)")
    parser.add_argument("--weights", nargs="+", choices=list(WEIGHTS), default=list(WEIGHTS),
                        help="forms of the weights to compare (default: all)")
    parser.add_argument("--threads", type=int, default=2, help="threads of both (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="rounds; figures are medians (default: %(default)s)")
    parser.add_argument("--write", action="store_true", help="write the table to bench/RESULTS.md")
    a = parser.parse_args()

    Path(a.models).mkdir(parents=True, exist_ok=True)
    table = Table()
    version, _ = run_command([a.llama, "-c", "import llama_cpp; print(llama_cpp.__version__)"])
    table.show(f"llama-cpp-python {version}; {a.threads} threads; {a.rounds} rounds\n")
    table.show("| model | weights | " + " | ".join(f"{name} | llama.cpp | ratio" for name in CASES) + " |")
    table.show("|---" * (2 + 3 * len(CASES)) + "|")
    for size in a.size:
        for weights in a.weights:
            table.show(compare(size, weights, a))
    if a.write:
        table.write("llama")


main()
