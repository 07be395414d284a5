#!/usr/bin/env python3
"""Shows that processes that run for long do not grow (docs/reliability.md).

Training takes --steps steps of a tiny language model and saves its state every ten steps. It is stopped by SIGTERM in
the middle and continued. Translation reads --lines lines from a pipe. Both print resident memory, open descriptors and
the bytes of the files, metrics.jsonl excepted, ten times. From the second time on these must not grow. Example:

  bench/long_runs.py build/release/qkv
"""

import argparse
import json
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
SHAPE = ("--decoder-layers 1 --d-model 8 --heads 2 --ffn 16 --max-length 16 --batch-tokens 64 --threads 1 "
         "--eval-every 10000 --save-every 10").split()
GROWTH = (1.0, 1, 100)  # MiB of memory, descriptors (that of a state that is being written), bytes (digits of counters)


def mebibytes(process):
    status = pathlib.Path(f"/proc/{process.pid}/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) / 1024


def state_of(process, folder):
    """Resident memory in MiB, descriptors, and the bytes of the files of a folder."""
    files = [path for path in folder.rglob("*") if path.is_file() and path.name != "metrics.jsonl"] if folder else []
    sizes = sum(path.stat().st_size for path in files if ".tmp-" not in path.name)
    return mebibytes(process), len(list(pathlib.Path(f"/proc/{process.pid}/fd").iterdir())), sizes


def watch(process, done, first, last, folder=None):
    """Prints the state of a process at ten values of done() between the two; ends the program if it grows."""
    samples = []
    for part in range(1, 11):
        wanted = first + (last - first) * part * 0.09
        while process.poll() is None and done() < wanted:
            time.sleep(0.02)
        if process.poll() is not None:
            raise SystemExit(f"the process ended with status {process.returncode} after {done()}")
        samples.append(state_of(process, folder))
        memory, descriptors, size = samples[-1]
        print(f"{done():>10,}  {memory:.1f} MiB, {descriptors} descriptors, {size:,} bytes of files", flush=True)
    for sample in samples[2:]:
        if any(now - before > growth for now, before, growth in zip(sample, samples[1], GROWTH)):
            raise SystemExit("the process has grown")


def last_step(metrics):
    """The last step of the file, without reading all of it."""
    if not metrics.exists():
        return 0
    with open(metrics, "rb") as file:
        file.seek(max(0, metrics.stat().st_size - 4096))
        steps = [line for line in file.read().split(b"\n")[1:-1] if line.startswith(b'{"step"')]
    return json.loads(steps[-1])["step"] if steps else 0


def train(a, folder):
    text = folder / "text"
    text.write_text("".join((ROOT / "examples/grammar/train.en").read_text().splitlines(keepends=True)[:500]))
    run = folder / "run"
    command = [a.qkv, "train", "lm", "--text", text, "--out", run, *SHAPE, "--max-steps", str(a.steps)]
    for first, last in ((0, a.steps // 2), (a.steps // 2, a.steps)):
        process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        watch(process, lambda: last_step(run / "metrics.jsonl"), first, last, run)
        if last < a.steps:
            process.send_signal(signal.SIGTERM)
        process.wait()
    size = (run / "metrics.jsonl").stat().st_size
    print(f"trained {last_step(run / 'metrics.jsonl'):,} steps; metrics.jsonl has {size / 2**20:.0f} MiB", flush=True)


def translate(a):
    lines = (ROOT / "tests/golden/runs/text/train.en").read_text().splitlines()
    text = "".join(line.split(" ")[0] + "\n" for line in lines)
    command = [a.qkv, "translate", ROOT / "tests/golden/runs/translator", "--beam", "1", "--max-length", "8", "--threads", "1"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1 << 20)

    def write():
        for _ in range(-(-a.lines // len(lines))):
            process.stdin.write(text)
        process.stdin.close()

    count = 0

    def read():
        nonlocal count
        for _ in process.stdout:
            count += 1

    threads = [threading.Thread(target=write), threading.Thread(target=read)]
    for thread in threads:
        thread.start()
    watch(process, lambda: count, 0, a.lines)
    for thread in threads:
        thread.join()
    if process.wait() != 0 or count < a.lines:
        raise SystemExit(f"translation ended with status {process.returncode} after {count} lines")
    print(f"translated {count:,} lines", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("qkv", type=lambda path: pathlib.Path(path).resolve())
    parser.add_argument("--steps", type=int, default=1_000_000, help="0: no training")
    parser.add_argument("--lines", type=int, default=10_000_000, help="0: no translation")
    a = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        if a.steps:
            train(a, pathlib.Path(name))
    if a.lines:
        translate(a)


if __name__ == "__main__":
    sys.exit(main())
