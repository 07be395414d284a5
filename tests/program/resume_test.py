"""A run that is killed at any moment and resumed ends with the same bytes as one that was not."""

import sys

import pytest

from conftest import QKV, ROOT, SMALL, qkv

sys.path.insert(0, str(ROOT / "tests/faults"))
from kills import TRAININGS, kill  # noqa: E402

KILLS = 8  # of each training


def contents(run):
    """The files of a run except metrics.jsonl, which contains times."""
    return {str(path.relative_to(run)): path.read_bytes() for path in sorted(run.rglob("*"))
            if path.is_file() and path.name != "metrics.jsonl"}


@pytest.mark.parametrize("training", TRAININGS)
def test_kills_change_no_byte(training):
    """A sample of those of tests/faults/kills.py."""
    report, wrong = kill(QKV, training, KILLS)
    assert not wrong, wrong
    assert report.early < report.kills >= KILLS and report.runs > 0


def test_threads_change_no_byte(corpus, tmp_path):
    for threads in (1, 3):
        qkv("train", "translate", *corpus, *SMALL, "--max-steps", 12, "--eval-every", 6, "--dropout", "0.2",
            "--threads", threads, "--out", tmp_path / str(threads))
    assert contents(tmp_path / "1") == contents(tmp_path / "3")


def test_packed_moments_resume_with_the_same_bytes(corpus, tmp_path):
    for moments in ("bfloat16", "int8"):
        whole, parts = tmp_path / f"{moments}-whole", tmp_path / f"{moments}-parts"
        command = ["train", "translate", *corpus, *SMALL, "--moments", moments, "--eval-every", 6, "--dropout", "0.2"]
        qkv(*command, "--max-steps", 12, "--out", whole)
        qkv(*command, "--max-steps", 6, "--out", parts)
        qkv(*command, "--max-steps", 12, "--recompute", "--threads", 3, "--out", parts)  # neither changes a byte
        refused = qkv(*command, "--moments", "float32", "--out", parts, ok=False)[2]
        assert f"moments was {moments} when this run was started and is now float32" in refused
        (whole / "training.json").unlink()  # holds the first command's limits
        (parts / "training.json").unlink()
        assert contents(parts) == contents(whole)


def test_evaluations_keep_the_weights_that_an_average_needs(films, tmp_path):
    command = ["train", "recommend", "--data", films / "log.csv", "--d-model", 16, "--ffn", 16, "--max-length", 20,
               "--batch-tokens", 512, "--schedule", "constant", "--eval-every", 2, "--threads", 1]
    for average, steps in ((0, []), (1, []), (3, [8, 10, 12])):
        whole, parts = tmp_path / f"whole-{average}", tmp_path / f"parts-{average}"
        qkv(*command, "--average", average, "--max-steps", 12, "--out", whole)
        assert sorted(path.name for path in whole.glob("checkpoints/weights-*")) == [
            f"weights-{step:08}.safetensors" for step in steps]
        for end in (6, 12):
            qkv(*command, "--average", average, "--max-steps", end, "--out", parts)
        for run in (whole, parts):
            (run / "training.json").unlink()  # holds the first command's limits
        assert contents(parts) == contents(whole)


def test_another_recipe_or_text_is_refused(trained, corpus):
    command = ["train", "translate", *corpus, *SMALL, "--out", trained, "--max-steps", 50, "--eval-every", 20]
    status, _, error = qkv(*command, "--dropout", "0.5", ok=False)
    assert status == 1 and "dropout" in error and error.count("\n") == 1
    other = ["--train", corpus[2], corpus[1], *corpus[3:]]
    status, _, error = qkv("train", "translate", *other, *SMALL, "--out", trained, "--max-steps", 50, "--eval-every", 20,
                           ok=False)
    assert status == 1 and "different training data" in error
