"""Answers do not depend on batches, neighbours, threads and workers: a sample of bench/same_answers.py."""

import argparse
import pathlib
import random
import shutil
import sys

import pytest

from conftest import QKV, ROOT

sys.path.insert(0, str(ROOT / "bench"))
import same_answers  # noqa: E402

RUNS = ROOT / "tests/golden/runs"


@pytest.mark.parametrize("weights", ["float", "8 bits"])
@pytest.mark.parametrize("task", same_answers.TASKS)
def test_an_answer_has_the_same_bytes_in_all_ways(task, weights, tmp_path):
    name = same_answers.TASKS[task][0]
    shutil.copytree(RUNS / name, tmp_path / name)
    shutil.copy(RUNS / "log/titles.csv", tmp_path)
    same_answers.run(QKV, "quantize", tmp_path / name, "--int8")
    arguments = argparse.Namespace(qkv=pathlib.Path(QKV), folder=tmp_path, text=RUNS / "text/train.en", lines=40,
                                   ways=4)
    same_answers.compare_ways(arguments, task, weights, random.Random(1))
