"""Training within a given amount of memory."""

import json
import re

from conftest import SMALL, qkv

STEPS = ["--max-steps", "2", "--eval-every", "0"]
WITHOUT_BATCH = [x for i, x in enumerate(SMALL) if x != "--batch-tokens" and SMALL[i - 1] != "--batch-tokens"]


def mebibytes(log):
    """Returns the total memory that training reports."""
    return float(re.search(r"^memory: ([0-9.]+) MiB", log, re.M)[1])


def test_the_largest_batch_that_fits_is_used_and_kept(corpus, tmp_path):
    command = ["train", "translate", *corpus, *WITHOUT_BATCH, "--memory", "5M", "--out", tmp_path / "run"]
    log = qkv(*command, *STEPS)[2]
    tokens = json.loads((tmp_path / "run/training.json").read_text())["batch_tokens"]
    assert f"batch_tokens: {tokens}, the largest that fits in 5 MiB" in log
    assert f"for {tokens} tokens per batch)" in log
    assert mebibytes(log) <= 5

    larger = qkv("train", "translate", *corpus, *WITHOUT_BATCH, *STEPS, "--batch-tokens", tokens + 64, "--out",
                 tmp_path / "larger")[2]
    assert mebibytes(larger) >= 4.95

    log = qkv(*command, *STEPS, "--max-steps", "3")[2]  # resumed, with the batch it had
    assert "resumed at step 2" in log and f"for {tokens} tokens per batch)" in log


def test_too_little_memory_is_refused_with_the_least_amount(corpus, tmp_path):
    command = ["train", "translate", *corpus, *WITHOUT_BATCH, *STEPS, "--out", tmp_path / "run"]
    status, _, log = qkv(*command, "--memory", "100K", ok=False)
    assert status == 1
    least = float(re.search(r"memory must be at least ([0-9.]+) MiB", log.splitlines()[-1])[1])
    assert not (tmp_path / "run").exists()
    qkv(*command, "--memory", f"{least * 1024 + 1:.0f}K")


def test_memory_and_batch_tokens_exclude_each_other(corpus, tmp_path):
    command = ["train", "translate", *corpus, *WITHOUT_BATCH, "--out", tmp_path / "run"]
    for given in (["--memory", "1G", "--batch-tokens", "512"], ["--memory", "1X"], ["--memory", "0"]):
        status, _, log = qkv(*command, *given, ok=False)
        assert status == 2 and "--memory" in log


def test_more_memory_than_the_machine_has_is_refused(corpus, tmp_path):
    status, _, error = qkv("train", "translate", *corpus, *WITHOUT_BATCH, "--memory", "900T", "--out",
                           tmp_path / "run", ok=False)
    assert status == 1 and "memory: " in error and "the machine has" in error and not (tmp_path / "run").exists()
