"""Jobs over 200 parts whose workers are killed and that are interrupted: the command line, Ray and Spark (docs/jobs.md).

usage: python bench/jobs.py --qkv build/release/qkv --folder FOLDER [--engines program,ray,spark]

Trains a small translator on examples/grammar, once. Then for each engine: starts a job, kills a worker while it writes
an output, kills all processes of the job when half of the parts are done, starts the job again until it ends, and once
more. Then every part must have one output, with the bytes that `qkv translate` prints for it, and nothing else may be in
the folder. Prints a row of a table in Markdown. Ray and Spark also add a column to a table of lines.

Ray and Spark need the module qkv and the packages ray, or pyspark, pandas, pyarrow and Java 17.
"""

import argparse
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

from jobs_engines import ENGINES

ROOT = pathlib.Path(__file__).resolve().parent.parent
TEXT = ROOT / "examples/grammar"
PARTS, LINES = 200, 20
MODEL = ["--preset", "tiny", "--encoder-layers", "1", "--decoder-layers", "1", "--d-model", "64", "--ffn", "64",
         "--vocab-size", "400", "--batch-tokens", "1024", "--warmup-steps", "40", "--max-steps", "400"]


def prepare(program, folder):
    """Makes FOLDER/run, FOLDER/parts, and FOLDER/expected, each file of which one process has written by itself."""
    files = {split: [str(TEXT / f"{split}.{side}") for side in ("en", "de")] for split in ("train", "dev")}
    if not (folder / "run").exists():
        subprocess.run([program, "train", "translate", "--train", *files["train"], "--dev", *files["dev"], *MODEL, "--out",
                        folder / "run"], check=True)
    for name in ("parts", "expected"):
        (folder / name).mkdir(exist_ok=True)
    lines = pathlib.Path(files["train"][0]).read_text().splitlines(keepends=True)
    for i in range(PARTS):
        part = folder / f"parts/{i:05}.txt"
        part.write_text("".join(lines[LINES * i:LINES * (i + 1)]))
        with open(folder / "expected" / part.name, "wb") as file:
            subprocess.run([program, "translate", folder / "run", "--input", part], stdout=file, check=True,
                           stderr=subprocess.DEVNULL)


def outputs(done):
    return [name for name in os.listdir(done) if not name.startswith(".")] if done.exists() else []


def parent(pid):
    try:
        return int(pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0


def descendants(root):
    """The processes that `root` has started, directly or not, and itself."""
    parents = {int(name): parent(name) for name in os.listdir("/proc") if name.isdecimal()}
    found = [root]
    for pid in found:
        found += [child for child, of in parents.items() if of == pid]
    return found


def writer(job, done):
    """Returns a process of the job that has a temporary file open, or None."""
    for pid in descendants(job.pid):
        try:
            links = [os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")]
        except OSError:
            continue
        if any(link.startswith(f"{done}/.") for link in links):
            return pid
    return None


def kill(pids):
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass


def disturbed(start, done):
    """Starts the job, kills a worker at a quarter and everything at half of the parts; returns the outputs then."""
    job = start()
    while len(outputs(done)) < PARTS // 4 or (worker := writer(job, done)) is None:
        if job.poll() is not None:
            raise SystemExit("the job ended before a worker was killed")
    kill([worker])
    while len(outputs(done)) < PARTS // 2:
        if job.poll() is not None:  # the job of the command line ends with its worker
            job = start()
        time.sleep(0.01)
    kill(descendants(job.pid))
    job.wait()
    return len(outputs(done))


def measure(engine, program, folder):
    done = folder / f"done-{engine}"
    shutil.rmtree(done, ignore_errors=True)

    def start():
        command = [sys.executable, __file__, "--qkv", program, "--folder", folder, "--job", engine]
        with open(folder / f"{engine}.log", "ab") as log:
            return subprocess.Popen(command, stdout=log, stderr=log)

    before = disturbed(start, done)
    left = [name for name in os.listdir(done) if name.startswith(".")]
    seconds = []
    for _ in range(2):
        begin = time.monotonic()
        if start().wait() != 0:
            raise SystemExit(f"{engine}: the job failed; see {folder}/{engine}.log")
        seconds.append(time.monotonic() - begin)
    expected = {path.name: path.read_bytes() for path in (folder / "expected").iterdir()}
    equal = {path.name: path.read_bytes() for path in done.iterdir()} == expected
    print(f"| {engine} | {before} | {len(left)} | {seconds[0]:.1f} | {seconds[1]:.1f} | "
          f"{'all equal' if equal else 'DIFFERENT'} |", flush=True)
    return equal


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--qkv", required=True, help="the program")
    parser.add_argument("--folder", required=True, type=pathlib.Path, help="for the run, parts and outputs")
    parser.add_argument("--engines", default=",".join(ENGINES))
    parser.add_argument("--job", help=argparse.SUPPRESS)  # runs one engine in this process
    options = parser.parse_args()
    folder = options.folder.resolve()
    if options.job:
        return ENGINES[options.job](os.path.abspath(options.qkv), folder)
    prepare(options.qkv, folder)
    print("| engine | parts done when the job was killed | temporary files then | second run, s | third run, s | outputs |\n"
          "|---|---|---|---|---|---|", flush=True)
    return 0 if all([measure(engine, options.qkv, folder) for engine in options.engines.split(",")]) else 1


if __name__ == "__main__":
    sys.exit(main())
