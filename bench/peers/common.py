"""What the comparisons share: running a process with its peak memory, printing a table and writing it into
bench/RESULTS.md, and the command line of those of training."""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path


def run(command):
    """The last line that command prints, and the peak of its memory in MiB."""
    child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    lines = child.stdout.read().splitlines()
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0 or not lines:
        sys.exit(f"{' '.join(command)}: ended with {child.returncode} and {len(lines)} lines")
    return lines[-1], usage.ru_maxrss / 1024


def measure(command):
    line, peak = run(command)
    return json.loads(line), peak


class Table:
    """Lines that are printed as they come, and at the end may go into bench/RESULTS.md."""

    def __init__(self):
        self.lines = []

    def show(self, line):
        self.lines.append(line)
        print(line, flush=True)

    def write(self, name):
        """Replaces what stands between the marks of `name` in bench/RESULTS.md."""
        file = Path(__file__).parent.parent / "RESULTS.md"
        begin, end = f"<!-- begin {name} -->\n", f"<!-- end {name} -->"
        before, rest = file.read_text().split(begin)
        file.write_text(before + begin + "\n".join(self.lines) + "\n" + end + rest.split(end)[1])


def compare_training(doc, peer, cases, compare, columns, name):
    """The command that prints a row, compare(case, threads, arguments), for each case and number of threads, and puts
    the table into bench/RESULTS.md as `name` if it is asked to."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--torch", required=True, help="a Python that has PyTorch")
    parser.add_argument("--peer", default=f"../shared/peers/{peer}")
    parser.add_argument("--qkv", default="build/release/qkv")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--case", nargs="+", choices=cases, default=cases)
    parser.add_argument("--write", action="store_true", help="put the table into bench/RESULTS.md")
    a = parser.parse_args()

    table = Table()
    version, libraries = run([a.torch, "-c", "import torch; print(torch.__version__)"])
    table.show(f"PyTorch {version}, of whose memory {libraries:,.0f} MiB are libraries; {a.rounds} rounds\n")
    table.show(f"| {' | '.join(columns)} |")
    table.show("|---" * len(columns) + "|")
    for case in a.case:
        for threads in a.threads:
            table.show(compare(case, threads, a))
    if a.write:
        table.write(name)
