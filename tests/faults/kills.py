#!/usr/bin/env python3
"""Kills trainings at random moments, and compares what they become with a training that was not disturbed.

A training is started, killed (SIGKILL) at a random moment and started again, until it has ended; then all of its files
are compared with those of an undisturbed run, and the next one begins. Tokenizers are trained and models evaluated in
between.
"""

import argparse
import pathlib
import random
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass

from sweep import GOLDEN, ROOT, contents

MODEL = ("--d-model 16 --heads 2 --ffn 32 --max-length 24 --decoder-layers 1 --learning-rate 0.02 --warmup-steps 4 "
         "--dropout 0.2 --accumulate 2 --max-steps 24 --eval-every 3 --save-every 2 --average 2 --threads 2 ")
INPUTS = GOLDEN / "runs"
TRAININGS = {
    "translate": f"train translate --train {INPUTS}/text/train.en {INPUTS}/text/train.de --dev {INPUTS}/text/train.en "
                 f"{INPUTS}/text/train.de --vocab-size 100 --encoder-layers 1 --batch-tokens 200 " + MODEL,
    "recommend": f"train recommend --data {INPUTS}/log/log.csv --features {INPUTS}/log/titles.csv --feature-columns "
                 "item,genre --batch-tokens 64 " + MODEL,
    "lm": f"train lm --text {INPUTS}/text/train.en --unit pieces --vocab-size 320 --batch-tokens 96 " + MODEL,
}


@dataclass
class Report:
    """Numbers of processes that were killed, of those before a state was saved, and of runs that were compared."""
    kills: int = 0
    early: int = 0
    runs: int = 0


class Kills:
    def __init__(self, qkv, training, work):
        self.command, self.work = [str(qkv), *shlex.split(TRAININGS[training])], work
        begin = time.monotonic()
        self.start(work / "whole").wait()
        self.seconds = time.monotonic() - begin
        self.files = contents(work / "whole")
        if "model.safetensors" not in self.files:
            raise SystemExit(f"{training}: the undisturbed training failed")

    def start(self, run):
        return subprocess.Popen([*self.command, "--out", str(run)], stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def differing(self, run):
        """The names of files that are not those of the undisturbed run."""
        found = contents(run)
        left = [path.name for path in self.work.iterdir() if path.name not in ("whole", run.name)]
        return sorted(name for name in {*found, *self.files} if found.get(name) != self.files.get(name)) + left

    def kill(self, count, seed):
        """Kills at least `count` processes, of which one has saved a state, and compares at least one run.

        Returns a Report, and what is wrong; "" if nothing is.
        """
        moments, report, run = random.Random(seed), Report(), self.work / "run"
        while (killing := report.kills < count or report.early == report.kills) or report.runs == 0 or run.exists():
            process = self.start(run)
            try:
                status = process.wait(timeout=self.seconds * moments.random()**2 if killing else None)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
                report.kills += 1
                if not (run / "checkpoints/state.safetensors").exists():
                    report.early += 1
                    self.seconds *= 1.05  # the machine may be busier than it was for the undisturbed training
                continue
            report.runs += 1
            wrong = self.differing(run) if status == 0 else [f"status {status}"]
            if wrong:
                return report, f"after {report.kills} kills (seed {seed}): {wrong}"
            shutil.rmtree(run)
        return report, ""


def kill(qkv, training, count, seed=0):
    with tempfile.TemporaryDirectory() as folder:
        return Kills(qkv, training, pathlib.Path(folder)).kill(count, seed)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--qkv", default=ROOT / "build/ci/qkv", help="program to test [build/ci/qkv]")
    parser.add_argument("--trainings", nargs="*", default=[*TRAININGS], help="trainings to kill [all]")
    parser.add_argument("--kills", type=int, default=200, help="kills of each [200]")
    parser.add_argument("--seed", type=int, default=0, help="seed of the moments [0]")
    options = parser.parse_args()
    bad = 0
    for training in options.trainings:
        report, wrong = kill(options.qkv, training, options.kills, options.seed)
        print(f"{training}: {report.kills} kills, {report.early} of them before a state was saved, {report.runs} runs "
              f"compared, {wrong or 'none differs'}", flush=True)
        bad += wrong != ""
    sys.exit(bad > 0)


if __name__ == "__main__":
    main()
