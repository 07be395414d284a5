"""Shared by the comparisons: times calls, runs a process and measures its peak memory, prints a table and writes it to
bench/RESULTS.md, reads the command line of the training comparisons, and holds the shapes of the translators."""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

# Translators: width, heads, width of the feed-forward layers, layers of the encoder and of the decoder.
TRANSLATORS = {"tiny": (128, 4, 256, 4), "base": (512, 8, 2048, 6)}
PIECES = 8000  # of their vocabulary, at most
LENGTH = 24  # tokens of a translation


def use_fast_malloc():
    """Starts this script again with tcmalloc or jemalloc, if one is installed and nothing is preloaded yet."""
    for library in ("libtcmalloc_minimal.so.4", "libjemalloc.so.2"):
        path = f"/usr/lib/{os.uname().machine}-linux-gnu/{library}"
        if os.path.exists(path) and "LD_PRELOAD" not in os.environ:
            os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, "LD_PRELOAD": path})


def times(f, least):
    """Returns the seconds of each call of f, over at least `least` seconds and three calls."""
    found, end = [], time.perf_counter() + least
    while len(found) < 3 or time.perf_counter() < end:
        start = time.perf_counter()
        f()
        found.append(time.perf_counter() - start)
    return found


def run_command(command):
    """Runs a command; returns the last line that it prints and its peak memory in MiB."""
    child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    lines = child.stdout.read().splitlines()
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0 or not lines:
        sys.exit(f"{' '.join(command)}: exit status {child.returncode}, {len(lines)} lines of output")
    return lines[-1], usage.ru_maxrss / 1024


def measure(command):
    """Runs a command; returns the JSON of its last line and its peak memory in MiB."""
    line, peak = run_command(command)
    return json.loads(line), peak


class Table:
    """A table that is printed line by line and can be written to bench/RESULTS.md at the end."""

    def __init__(self):
        self.lines = []

    def show(self, line):
        self.lines.append(line)
        print(line, flush=True)

    def write(self, name):
        """Replaces the text between the marks of `name` in bench/RESULTS.md."""
        file = Path(__file__).parent.parent / "RESULTS.md"
        begin, end = f"<!-- begin {name} -->\n", f"<!-- end {name} -->"
        before, rest = file.read_text().split(begin)
        file.write_text(before + begin + "\n".join(self.lines) + "\n" + end + rest.split(end)[1])


def train_vocabulary(path, texts):
    """Learns PIECES pieces from the texts and writes them to path; </s> has the id 0 and <unk> 1."""
    import sentencepiece

    with open(path, "wb") as file:
        sentencepiece.SentencePieceTrainer.train(
            input=texts, model_writer=file, vocab_size=PIECES, hard_vocab_limit=False, character_coverage=1.0, eos_id=0,
            unk_id=1, bos_id=-1, pad_id=-1, minloglevel=2)
    return sentencepiece.SentencePieceProcessor(model_file=str(path))


def run_model_command(doc, make, speed, options=None):
    """Reads the command line of a script that makes a translator or measures its speed, and calls make or speed."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    command = commands.add_parser("make")
    command.set_defaults(run=make)
    command.add_argument("folder")
    command.add_argument("--size", choices=TRANSLATORS, required=True)
    command.add_argument("--text", nargs="+", required=True)
    command = commands.add_parser("speed")
    command.set_defaults(run=speed)
    command.add_argument("folder")
    for name, value in (("--beam", 4), ("--batch", 32), ("--lines", 256)):
        command.add_argument(name, type=int, default=value)
    for name, properties in (options or {}).items():
        command.add_argument(name, **properties)
    a = parser.parse_args()
    a.run(a)


def ratio_row(name, rounds):
    """Returns the row of a table: the medians of our speed, of theirs and of their ratio, from a pair for each round."""
    x, y, ratio = (statistics.median(column) for column in zip(*((x, y, x / y) for x, y in rounds)))
    return f"| {name} | {x:,.0f} | {y:,.0f} | {ratio:.2f} |"


def add_comparison_options(parser, cases):
    """Adds the options that the comparisons share."""
    parser.add_argument("--qkv", default="build/release/qkv", help="qkv program (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="rounds; figures are medians (default: %(default)s)")
    parser.add_argument("--case", nargs="+", choices=list(cases), default=list(cases), help="cases (default: all)")
    parser.add_argument("--write", action="store_true", help="write the table to bench/RESULTS.md")


def recommender_parser(doc, epochs):
    """Returns a parser with the options that the scripts for recommenders share."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True, help="log of `user item` lines in the order of time")
    parser.add_argument("--threads", type=int, default=2, help="threads of PyTorch (default: %(default)s)")
    parser.add_argument("--epochs", type=int, default=epochs, help="epochs at most (default: %(default)s)")
    parser.add_argument("--users", type=int, default=0, help="only the first users; 0 is all (default)")
    return parser


def train_with_torch(a, case, steps, threads):
    """Trains a case of torch_training.py; returns what it measured and its peak memory in MiB."""
    script = Path(__file__).with_name("torch_training.py")
    return measure([a.torch, str(script), "--model", case, "--steps", str(steps), "--threads", str(threads)])


def compare_training(doc, cases, compare, columns, name):
    """Reads the command line and prints one row, compare(case, threads, arguments), per case and number of threads.
    With --write, writes the table to bench/RESULTS.md as `name`."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--torch", required=True, help="Python interpreter with PyTorch")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2],
                        help="numbers of threads to compare (default: 1 2)")
    add_comparison_options(parser, cases)
    a = parser.parse_args()

    table = Table()
    version, libraries = run_command([a.torch, "-c", "import torch; print(torch.__version__)"])
    table.show(f"PyTorch {version}, of whose memory {libraries:,.0f} MiB are libraries; {a.rounds} rounds\n")
    table.show(f"| {' | '.join(columns)} |")
    table.show("|---" * len(columns) + "|")
    for case in a.case:
        for threads in a.threads:
            table.show(compare(case, threads, a))
    if a.write:
        table.write(name)
