#!/usr/bin/env python3
"""Trains on several numbers of ranks, kills and stops ranks, and compares the files of the runs (docs/cluster.md).

For a translator, a recommender with features and a language model: the SHA-256 of every file of a run except
metrics.jsonl must be the same for every number of ranks and every transport; also after `--kills` times SIGKILL of a
rank drawn at random at a random moment, each followed by a start on another number of ranks. A rank that gets SIGSTOP
must be found within --rank-timeout. No process may be left when a job has ended, and every job must end. Example:

  bench/ranks_proof.py build/release/qkv --transports local openmpi mpich
"""

import argparse
import contextlib
import hashlib
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

EXAMPLES = pathlib.Path(__file__).resolve().parent.parent / "examples"
LAUNCHERS = {"openmpi": ["mpirun.openmpi", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none"],
             "mpich": ["mpiexec.mpich"]}
PLUGINS = {"local": "libqkv_local.so", "openmpi": "libqkv_mpi.so", "mpich": "libqkv_mpich.so"}
SHAPE = ["--decoder-layers", 2, "--d-model", 64, "--ffn", 128, "--dropout", 0.1, "--batch-tokens", 256, "--threads", 1,
         "--shards", 8, "--max-steps", 30, "--eval-every", 10, "--save-every", 4]
LIMIT = 900  # seconds until a job counts as one that never ends; the machine may be busy
STOP_TIMEOUT = 5  # --rank-timeout where a rank is stopped; seconds


def commands(folder):
    subprocess.run([sys.executable, EXAMPLES / "films/generate.py", "--out", folder], check=True, capture_output=True)
    for name, lines in (("train.en", 5000), ("train.de", 5000), ("dev.en", 50), ("dev.de", 50), ("log.csv", 20000)):
        source = EXAMPLES / "grammar" / name if "log" not in name else folder / name
        (folder / name).write_text("".join(source.read_text().splitlines(keepends=True)[:lines]))
    text = {name: [folder / f"{name}.en", folder / f"{name}.de"] for name in ("train", "dev")}
    return {
        "translate": ["translate", "--train", *text["train"], "--dev", *text["dev"], "--encoder-layers", 2,
                      "--vocab-size", 1000, "--accumulate", 2, *SHAPE],
        "recommend": ["recommend", "--data", folder / "log.csv", "--features", folder / "titles.csv",
                      "--preset", "films", "--max-length", 30, *SHAPE],
        "lm": ["lm", "--text", text["train"][0], "--moments", "int8", *SHAPE],
    }


def digests(run):
    """The SHA-256 of each file, except metrics.jsonl, which has times, and temporary files of killed processes."""
    return {str(path.relative_to(run)): hashlib.sha256(path.read_bytes()).hexdigest() for path in run.rglob("*")
            if path.is_file() and path.name != "metrics.jsonl" and ".tmp-" not in path.name}


def wait_until(holds, job, what):
    end = time.monotonic() + LIMIT
    while not holds():
        if time.monotonic() > end:
            raise SystemExit(f"{what}, not within {LIMIT} s; processes {job.ranks()}:\n{job.text()}")
        time.sleep(0.05)


class Job:
    def __init__(self, a, transport, ranks, command, run):
        self.run = str(run)
        self.folder = tempfile.TemporaryDirectory()
        self.errors = open(pathlib.Path(self.folder.name) / "errors", "w+")
        train = [*map(str, [a.qkv, "train", *command, "--out", run])]
        variables = {**os.environ, "QKV_TRANSPORT": str(a.qkv.parent / PLUGINS[transport]),
                     "OMPI_MCA_btl_vader_single_copy_mechanism": "none"}  # which containers lack
        if transport == "local":
            variables |= {"QKV_LOCAL_SIZE": str(ranks), "QKV_LOCAL_DIRECTORY": self.folder.name}
            started = [(train, variables | {"QKV_LOCAL_RANK": str(rank)}) for rank in range(ranks)]
        else:
            started = [(LAUNCHERS[transport] + ["-n", str(ranks)] + train, variables)]
        self.processes = [subprocess.Popen(line, env=environment, stdout=subprocess.DEVNULL, stderr=self.errors)
                          for line, environment in started]

    def ranks(self):
        """The processes that train."""
        found = []
        for entry in pathlib.Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                line = (entry / "cmdline").read_text().split("\0")
                if line[1:2] == ["train"] and self.run in line:
                    found.append(int(entry.name))
        return found

    def signal(self, number, draws):
        """Sends a signal to a rank drawn at random; returns its process, or None if there is none."""
        ranks = self.ranks()
        with contextlib.suppress(ProcessLookupError):
            if ranks:
                os.kill(process := draws.choice(ranks), number)
                return process
        return None

    def has_ended(self):
        return all(process.poll() is not None for process in self.processes) and not self.ranks()

    def wait(self):
        """Returns whether all processes succeeded."""
        wait_until(self.has_ended, self, "the end of a job")
        return all(process.returncode == 0 for process in self.processes)

    def text(self):
        return pathlib.Path(self.errors.name).read_text()


def expect_equal(run, expected, what):
    """Compares the digests of a run, and removes it."""
    found = digests(run)
    differing = sorted(name for name in found.keys() | expected.keys() if found.get(name) != expected.get(name))
    if differing:
        raise SystemExit(f"{what}: other bytes in {', '.join(differing)} of {run}")
    shutil.rmtree(run)


def compare_sizes(a, name, command, expected):
    for transport in a.transports:
        for ranks in a.ranks:
            job = Job(a, transport, ranks, command, a.folder / "run")
            if not job.wait():
                raise SystemExit(f"{name}, {transport}, {ranks} ranks:\n{job.text()}")
            expect_equal(a.folder / "run", expected, f"{name}, {transport}, {ranks} ranks")
    print(f"{name}: {len(expected)} files equal for 1 process and {len(a.ranks) * len(a.transports)} jobs of "
          f"{', '.join(map(str, a.ranks))} ranks", flush=True)


def kill_ranks(a, name, command, expected, seconds, draws):
    kills = starts = ends = 0
    run = a.folder / "run"
    while kills < a.kills or run.exists():
        job = Job(a, draws.choice(a.transports), draws.choice(a.ranks), command, run)
        starts += 1
        if kills < a.kills:
            time.sleep(draws.uniform(0, 1.5) * seconds)
            kills += job.signal(signal.SIGKILL, draws) is not None
        if job.wait():
            expect_equal(run, expected, f"{name}, after {kills} kills")
            ends += 1
    print(f"{name}: {kills} ranks killed in {starts} starts; files equal at {ends} of {ends} ends", flush=True)


def stop_rank(a, transport, command, draws):
    """Stops a rank of a job without an end; returns after how many seconds it was reported."""
    run = a.folder / "run"
    endless = [*command, "--max-steps", 100000, "--rank-timeout", STOP_TIMEOUT]
    job = Job(a, transport, draws.choice(a.ranks), endless, run)
    metrics = run / "metrics.jsonl"
    wait_until(lambda: metrics.exists() and metrics.stat().st_size, job, "a step")
    time.sleep(draws.uniform(0, 1))
    stopped, begin = job.signal(signal.SIGSTOP, draws), time.monotonic()
    wait_until(lambda: "not heard for" in job.text(), job, "the report of a stopped rank")
    seconds = time.monotonic() - begin
    wait_until(lambda: job.ranks() in ([], [stopped]), job, "the end of the others")
    with contextlib.suppress(ProcessLookupError):  # without a launcher, nothing kills a stopped rank 0
        os.kill(stopped, signal.SIGCONT)
    job.wait()
    shutil.rmtree(run)
    return seconds


def stop_ranks(a, command, draws):
    for transport in a.transports:
        seconds = [stop_rank(a, transport, command, draws) for _ in range(a.stops)]
        print(f"{transport}: {a.stops} stopped ranks found after {min(seconds):.1f} to {max(seconds):.1f} s "
              f"(--rank-timeout {STOP_TIMEOUT})", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("qkv", type=lambda path: pathlib.Path(path).resolve())
    parser.add_argument("--transports", nargs="+", choices=PLUGINS, default=["local"])
    parser.add_argument("--ranks", type=int, nargs="+", default=[2, 3, 4, 8])
    parser.add_argument("--kills", type=int, default=20, help="for each kind of model")
    parser.add_argument("--stops", type=int, default=5, help="for each transport")
    parser.add_argument("--kinds", nargs="+", default=["translate", "recommend", "lm"])
    parser.add_argument("--seed", type=int, default=1)
    a = parser.parse_args()
    draws = random.Random(a.seed)
    with tempfile.TemporaryDirectory() as name:
        a.folder = pathlib.Path(name)
        kinds = {kind: command for kind, command in commands(a.folder).items() if kind in a.kinds}
        for kind, command in kinds.items():
            begin = time.monotonic()
            job = Job(a, "local", 1, command, a.folder / "run")
            if not job.wait():
                raise SystemExit(job.text())
            seconds, expected = time.monotonic() - begin, digests(a.folder / "run")
            shutil.rmtree(a.folder / "run")
            compare_sizes(a, kind, command, expected)
            if a.kills > 0:
                kill_ranks(a, kind, command, expected, seconds, draws)
        if a.stops > 0:
            stop_ranks(a, kinds[a.kinds[-1]], draws)


if __name__ == "__main__":
    main()
