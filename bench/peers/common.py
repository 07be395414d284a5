"""What the comparisons share: running a process with its peak memory, printing a table and writing it into
bench/RESULTS.md."""

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
