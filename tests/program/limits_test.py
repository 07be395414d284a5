"""Limits of a process, a user and a control group: a command works within them, or ends with a line that names them."""

import os
import pathlib
import re
import resource

import pytest

from conftest import qkv
from surroundings import LANGUAGE, ROOT_ONLY, RUNS, as_nobody, contents, error_of, open_folder, run, succeeds

MIB = 1 << 20
TRANSLATE = ["translate", RUNS / "translator", "--input", RUNS / "text/dev.en"]


def limited(kind, value):
    """Settings of a process with a limit (ulimit)."""
    return {"preexec_fn": lambda: resource.setrlimit(kind, (value, value))}


@pytest.mark.parametrize("command", [LANGUAGE, TRANSLATE], ids=["train", "translate"])
def test_a_limit_of_addresses_names_the_size_or_the_thread(command, tmp_path):
    """ulimit -v"""
    failed = 0
    for mebibytes in (150, 200, 300, 500, 1000, 4000, 16000, 64000):
        options = ["--out", tmp_path / str(mebibytes)] if command is LANGUAGE else []
        status, errors = run(*command, *options, "--threads", "2", **limited(resource.RLIMIT_AS, mebibytes * MIB))
        lines = [line for line in errors.decode().splitlines() if line.startswith("qkv: ") and ": longer than" not in line]
        if status == 0:
            assert not lines
        elif status != 127:  # of the dynamic loader
            failed += 1
            assert status == 1 and len(lines) == 1 and re.search(r"\d+ (bytes|MiB)|thread", lines[0]), (mebibytes, errors)
    assert failed > 0


def test_sixteen_descriptors_suffice(tmp_path):
    """ulimit -n"""
    few = limited(resource.RLIMIT_NOFILE, 16)
    succeeds(*LANGUAGE, "--out", tmp_path / "run", **few)
    succeeds(*TRANSLATE, "--threads", "4", **few)
    succeeds("quantize", RUNS / "translator", "--int8", "--out", tmp_path / "int8", **few)
    succeeds("recommend", RUNS / "recommender", "--titles", RUNS / "log/titles.csv", "--user", "u0005", **few)


def test_a_limit_of_file_sizes_is_an_error_that_names_the_file(tmp_path):
    """ulimit -f"""
    for size, name in ((100, "config.json"), (8192, "checkpoints/state.safetensors")):
        line = error_of(*LANGUAGE, "--out", tmp_path / str(size), **limited(resource.RLIMIT_FSIZE, size))
        assert "File too large" in line and name in line, line
        succeeds(*LANGUAGE, "--out", tmp_path / str(size))
    assert contents(tmp_path / "100") == contents(tmp_path / "8192")


def test_a_user_without_threads_gets_one_line_or_the_same_result(open_folder):
    """ulimit -u"""
    open_folder.chmod(0o777)
    none = as_nobody(**limited(resource.RLIMIT_NPROC, 1))
    succeeds(*LANGUAGE, "--threads", "1", "--out", open_folder / "whole")
    status, errors = run(*LANGUAGE, "--out", open_folder / "run", **none)
    if status == 0:
        assert contents(open_folder / "run") == contents(open_folder / "whole")
    else:
        assert status == 1 and b"thread" in errors.splitlines()[-1], errors
    for command in (["train", "lm", "--text", RUNS / "text/train.en", "--unit", "pieces", "--vocab-size", "320",
                     *LANGUAGE[4:], "--out", open_folder / "tokenizer"], TRANSLATE,
                    ["serve", RUNS / "translator", "--listen", "127.0.0.1:0"]):
        status, errors = run(*command, **none)
        lines = [line for line in errors.splitlines() if b": longer than" not in line]
        assert status == 0 or (status == 1 and b"thread" in lines[-1] and lines[-1].startswith(b"qkv: ")), errors


GROUPS = ((pathlib.Path("/sys/fs/cgroup"), "memory.max"), (pathlib.Path("/sys/fs/cgroup/memory"), "memory.limit_in_bytes"))


@pytest.fixture
def group():
    """A control group of 200 MiB: the file that takes the numbers of its processes."""
    for root, name in GROUPS:
        folder = root / f"qkv-test-{os.getpid()}"
        if (root / "cgroup.procs").exists() and os.access(root, os.W_OK):
            folder.mkdir()
            try:
                if (folder / name).exists():  # the controller manages memory
                    (folder / name).write_text(str(200 * MIB))
                    yield folder / "cgroup.procs"
                    return
            finally:
                folder.rmdir()
    pytest.skip("no control group with a memory controller can be made")


@ROOT_ONLY
def test_a_step_that_does_not_fit_into_a_control_group_is_refused_before_the_first_one(group, tmp_path):
    inside = {"preexec_fn": lambda: group.write_text(str(os.getpid()))}
    text = tmp_path / "text"
    text.write_text("The dog sees the cat in the garden.\n" * 20000)
    wide = ["train", "lm", "--text", text, "--decoder-layers", "2", "--d-model", "256", "--heads", "4", "--ffn", "1024",
            "--max-length", "128", "--max-steps", "1", "--threads", "1"]
    line = error_of(*wide, "--batch-tokens", "16384", "--out", tmp_path / "a", **inside)
    assert "the control group (cgroup) allows 200.0 MiB" in line and "16384 tokens (batch_tokens)" in line, line
    line = error_of(*wide, "--batch-tokens", "128", "--d-model", "768", "--ffn", "3072", "--out", tmp_path / "b",
                    **inside)
    assert "training needs" in line and "the control group (cgroup) allows 200.0 MiB" in line, line
    assert [path.name for path in tmp_path.iterdir()] == ["text"]  # neither run is left, which would fix its options
    assert "done after 1 steps" in succeeds(*wide, "--batch-tokens", "128", "--out", tmp_path / "a", **inside)


def test_a_memory_of_more_than_the_machine_has_is_refused(corpus, tmp_path):
    line = qkv("train", "translate", *corpus, "--memory", "1000T", "--out", tmp_path / "run", ok=False)[2].splitlines()[-1]
    assert re.search(r"memory: [\d.]+ MiB requested, the (machine has|control group \(cgroup\) allows) [\d.]+ MiB", line)
