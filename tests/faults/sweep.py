#!/usr/bin/env python3
"""Lets every call to the system that a command makes fail once, and checks how the command ends.

A disturbed command finishes with the output of an undisturbed one, or it ends with status 1 and one line of error that
names a file, the size of an allocation or a thread. Whatever it leaves behind, the same command then ends with the
bytes of an undisturbed one and leaves no temporary file. A run that has weights can be opened in between.
"""

import argparse
import collections
import concurrent.futures
import errno
import json
import os
import pathlib
import random
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass

ROOT = pathlib.Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "tests/golden"
BYTES = 16384  # size of the smallest allocation that fails
TIMEOUT = 3600  # seconds; the machine may be busy

TINY = ("--d-model 8 --heads 2 --ffn 16 --max-length 24 --learning-rate 0.02 --warmup-steps 4 --max-steps 4 "
        "--eval-every 1 --save-every 2 --average 1 ")
TEXTS = ("--train {in}/text/train.en {in}/text/train.de --dev {in}/text/dev.en {in}/text/dev.de --batch-tokens 200 "
         "--encoder-layers 1 --decoder-layers 1 ")
# {in}: the inputs, {out}: a path that does not exist.
COMMANDS = {
    "train translate": "train translate --source-tokenizer {in}/text/tokenizer.model " + TEXTS + TINY + "--out {out}",
    "train tokenizer": "train translate --vocab-size 80 " + TEXTS + TINY + "--max-steps 1 --out {out}",
    "train recommend": "train recommend --data {in}/log/log.csv --features {in}/log/titles.csv --feature-columns "
                       "item,genre --batch-tokens 64 --decoder-layers 1 " + TINY + "--out {out}",
    "train lm": "train lm --text {in}/text/train.en --batch-tokens 96 --decoder-layers 1 " + TINY + "--out {out}",
    "translate": "translate {in}/translator --input {in}/text/lines.en",
    "import": "import {in}/sentence {out}",
    "export": "export {in}/translator {out}",
    "quantize": "quantize {in}/translator --int8 --out {out}",
    "embed": "embed {in}/encoder --file {in}/text/lines.en --npy {out}",
    "generate": "generate {in}/language --prompts {in}/text/lines.en --max-tokens 8",
    "recommend": "recommend {in}/recommender --titles {in}/log/titles.csv --user u0005",
    "evaluate": "evaluate {out} --protocol sampled-5 --json",
    "serve": "serve {in}/translator --listen 127.0.0.1:0",
}
INPUTS = [*(GOLDEN / "runs" / name for name in ("translator", "language", "recommender", "encoder", "text", "log")),
          GOLDEN / "bert/sentence"]

# The errors of each kind of call, and whether all later calls fail too.
ONCE, ALL = False, True
FAULTS = {
    "write": [("ENOSPC", ONCE), ("ENOSPC", ALL), ("EDQUOT", ALL), ("EIO", ONCE), ("EINTR", ONCE), ("short", ONCE),
              ("short", ALL)],
    "read": [("EIO", ONCE), ("EIO", ALL), ("EINTR", ONCE), ("short", ONCE), ("short", ALL)],
    "fsync": [("EIO", ONCE), ("ENOSPC", ALL), ("EINTR", ONCE)],
    "rename": [("ENOSPC", ONCE), ("EACCES", ALL)],
    "open": [("EMFILE", ONCE), ("EMFILE", ALL), ("EACCES", ONCE), ("EINTR", ONCE)],
    "mkdir": [("ENOSPC", ONCE), ("EACCES", ALL)],
    "unlink": [("EIO", ONCE), ("EACCES", ALL)],
    "truncate": [("EIO", ONCE), ("ENOSPC", ALL), ("EINTR", ONCE)],
    "flock": [("EINTR", ONCE), ("ENOLCK", ALL)],
    "mmap": [("ENOMEM", ONCE), ("ENOMEM", ALL)],
    "mprotect": [("ENOMEM", ONCE), ("ENOMEM", ALL)],
    "alloc": [("ENOMEM", ONCE), ("ENOMEM", ALL)],
    "thread": [("EAGAIN", ONCE), ("EAGAIN", ALL)],
}


@dataclass(frozen=True)
class Fault:
    """One call that fails: the `at`-th of its kind, and all later ones if `repeat`."""
    kind: str
    error: str
    repeat: bool
    at: int

    def environment(self):
        number = self.error if self.error == "short" else str(getattr(errno, self.error))
        return {"QKV_FAULT_CALL": self.kind, "QKV_FAULT_ERROR": number, "QKV_FAULT_AT": str(self.at),
                **({"QKV_FAULT_REPEAT": "1"} if self.repeat else {})}

    def __str__(self):
        return f"{self.kind} {self.at} {self.error}{' all' if self.repeat else ''}"


@dataclass
class End:
    """How a process ended; status is None for one that hung."""
    status: int | None
    output: str
    errors: str


def run(command, environment):
    """Runs a command. A server is stopped as soon as it serves."""
    # Without a buffer, so that communicate() sees what follows the line of the loop.
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               bufsize=0, env={**os.environ, **environment})
    errors = b""
    if "serve" in command[1:2]:
        for line in process.stderr:
            errors += line
            if b"serving" in line:
                process.send_signal(signal.SIGTERM)
                break
    try:
        output, rest = process.communicate(timeout=TIMEOUT)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        return End(None, "", "")
    return End(process.returncode, output.decode(errors="replace"), (errors + rest).decode(errors="replace"))


def content(path):
    """The bytes of a file, without the times that metrics.jsonl contains and the owner that a lock may keep."""
    if path.name == "lock":
        return b""
    if path.name != "metrics.jsonl":
        return path.read_bytes()
    records = [json.loads(line) for line in path.read_text().splitlines()]
    return [{key: value for key, value in record.items() if "second" not in key} for record in records]


def contents(folder):
    """The files below a path, by their names."""
    files = [path for path in sorted([folder, *folder.rglob("*")]) if path.is_file()]
    return {str(path.relative_to(folder)): content(path) for path in files}


class Sweep:
    """The disturbed runs of one command, each in a folder of its own below `work`."""

    def __init__(self, name, qkv, library, work, smallest=BYTES):
        self.name, self.qkv, self.library, self.work = name, str(qkv), str(library), work / name.replace(" ", "-")
        self.smallest = smallest
        self.inputs = work / "in"
        self.work.mkdir()
        whole = self.work / "whole"
        end, self.counts = self.disturbed(whole, None)
        if end.status != 0:
            raise SystemExit(f"{self.name}: the undisturbed command failed: {end.errors}")
        self.output, self.files = self.without_folder(end.output, whole), contents(whole)
        self.warnings = self.without_folder(end.errors, whole).splitlines()
        shutil.rmtree(whole)

    @staticmethod
    def without_folder(text, folder):
        return text.replace(str(folder), "FOLDER")

    def command(self, folder):
        return [self.qkv, *shlex.split(COMMANDS[self.name].format(**{"in": self.inputs, "out": folder / "out"}))]

    def environment(self, folder, fault):
        return {"OMP_NUM_THREADS": "2", "LD_PRELOAD": self.library, "QKV_FAULT_PATH": str(self.work.parent),
                "QKV_FAULT_BYTES": str(self.smallest), "QKV_FAULT_REPORT": str(folder) + ".calls",
                **(fault.environment() if fault else {})}

    def disturbed(self, folder, fault):
        """Returns how the command ended, and the number of calls by kind."""
        folder.mkdir()
        if self.name == "evaluate":
            shutil.copytree(self.inputs / "recommender", folder / "out")
        end = run(self.command(folder), self.environment(folder, fault))
        report = pathlib.Path(str(folder) + ".calls")
        counts = dict(line.split() for line in report.read_text().splitlines()) if report.exists() else {}
        report.unlink(missing_ok=True)
        return end, {kind: int(count) for kind, count in counts.items()}

    def faults(self):
        return [Fault(kind, error, repeat, at + 1) for kind, errors in FAULTS.items() for error, repeat in errors
                for at in range(self.counts[kind])]

    def wrong(self, number, fault):
        """Returns what is wrong with the end of a disturbed command; "" if nothing is."""
        folder = self.work / str(number)
        end, _ = self.disturbed(folder, fault)
        found = self.wrong_end(end, fault, folder) or self.wrong_run(folder) or self.wrong_repetition(folder)
        shutil.rmtree(folder)
        return found and f"{found} (tests/faults/sweep.py --commands \"{self.name}\" --fault \"{fault}\")"

    def wrong_end(self, end, fault, folder):
        if end.status is None:
            return "hangs"
        if end.status == 0:
            same = self.without_folder(end.output, folder) == self.output
            return "" if same and (contents(folder) == self.files or "not stored: " in end.errors) else "another output"
        if fault.error in ("EINTR", "short"):
            return f"is not continued: {end.errors[-300:]!r}"
        lines = self.without_folder(end.errors, folder).splitlines()
        errors = [line for line in lines if line.startswith("qkv: ") and line not in self.warnings
                  and not line.startswith("qkv: serving ")]
        if end.status != 1 or len(errors) != 1 or errors != lines[-1:]:
            return f"status {end.status}, {end.errors[-300:]!r}"
        names = re.search(r"FOLDER|/in/|\d+ (bytes|MiB)|thread|memory for the pieces", errors[0])
        return "" if names else f"names nothing: {errors[0]}"

    def wrong_run(self, folder):
        out = folder / "out"
        if not (out / "model.safetensors").exists() or self.name == "export":
            return ""
        end = run([self.qkv, "inspect", str(out)], {})
        return "" if end.status == 0 else f"the run does not open: {end.errors}"

    def wrong_repetition(self, folder):
        finished = contents(folder) == self.files and self.name in ("import", "export", "quantize")
        if finished:  # they refuse what exists
            return ""
        end = run(self.command(folder), {"OMP_NUM_THREADS": "2"})
        if end.status != 0:
            return f"the repeated command fails: {end.errors[-300:]!r}"
        found = contents(folder)
        differing = sorted(name for name in {*found, *self.files} if found.get(name) != self.files.get(name))
        if differing:
            return f"after the repeated command these differ: {differing}"
        same = self.without_folder(end.output, folder) == self.output
        return "" if same else "another output of the repeated command"


def drawn(faults, most, seed):
    """Returns at most `most` of them, spread over the kinds."""
    if most == 0 or len(faults) <= most:
        return faults
    kinds = collections.defaultdict(list)
    for fault in random.Random(seed).sample(faults, len(faults)):
        kinds[fault.kind, fault.error, fault.repeat].append(fault)
    kept = []
    while len(kept) < most:
        kept += [kind.pop() for kind in kinds.values() if kind]
    return random.Random(seed).sample(kept, most)


def sweep(qkv, library, names, most=0, seed=0, jobs=2, only=None, calls=tuple(FAULTS), smallest=BYTES):
    """Yields each command with the number of its points by kind and what was wrong. `only`: a single point."""
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        work = pathlib.Path(folder)
        for source in INPUTS:
            shutil.copytree(source, work / "in" / source.name)
        for name in names:
            disturbed = Sweep(name, qkv, library, work, smallest)
            faults = [only] if only else drawn([f for f in disturbed.faults() if f.kind in calls], most, seed)
            wrong = [line for line in pool.map(disturbed.wrong, range(len(faults)), faults) if line]
            yield name, collections.Counter(fault.kind for fault in faults), wrong


def parse_fault(text):
    kind, at, error, *repeat = text.split()
    return Fault(kind, error, repeat == ["all"], int(at))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--qkv", default=ROOT / "build/ci/qkv", help="program to test [build/ci/qkv]")
    parser.add_argument("--commands", nargs="*", default=[*COMMANDS], help="commands to test [all]")
    parser.add_argument("--calls", nargs="*", default=[*FAULTS], choices=[*FAULTS], help="calls that fail [all]")
    parser.add_argument("--smallest", type=int, default=BYTES,
                        help="bytes of the smallest allocation that fails [%(default)s]")
    parser.add_argument("--most", type=int, default=0, help="points per command; 0 is all [0]")
    parser.add_argument("--seed", type=int, default=0, help="seed of the choice of points [0]")
    parser.add_argument("--jobs", type=int, default=2, help="commands that run at once [2]")
    parser.add_argument("--fault", type=parse_fault, help='one point: "KIND AT ERROR" or "KIND AT ERROR all"')
    options = parser.parse_args()
    qkv = pathlib.Path(options.qkv).resolve()
    bad = total = 0
    for name, counts, wrong in sweep(qkv, qkv.parent / "tests/libqkv_faults.so", options.commands, options.most,
                                     options.seed, options.jobs, options.fault, options.calls, options.smallest):
        kinds = ", ".join(f"{kind} {count}" for kind, count in counts.items())
        print(f"{name}: {sum(counts.values())} points ({kinds}), {len(wrong)} wrong", *wrong, sep="\n  ", flush=True)
        bad, total = bad + len(wrong), total + sum(counts.values())
    print(f"{total} points, {bad} wrong")
    sys.exit(bad > 0)


if __name__ == "__main__":
    main()
