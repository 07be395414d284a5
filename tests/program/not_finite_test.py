"""Steps whose loss or gradient is not finite are skipped; too many in a row end training and name the cause."""

import json
import random as standard
import re
import shutil
import string
import struct

import pytest

from conftest import qkv
from ranks import run_job
from resume_test import contents

LINE = 137  # of the only line with a Z
SMALL = ["--d-model", 16, "--heads", 2, "--ffn", 16, "--decoder-layers", 2, "--max-length", 32, "--batch-tokens", 128,
         "--warmup-steps", 0, "--threads", 1, "--schedule", "constant", "--label-smoothing", 0, "--sample-tokens", 0,
         "--scale-embeddings", "true", "--tied-output", "false"]


def poison(path, row):
    """Sets a row of the embeddings to the largest numbers of float32, with which the model computes infinity."""
    content = bytearray(path.read_bytes())
    size, = struct.unpack("<Q", content[:8])
    table = json.loads(content[8:8 + size])["target_embedding.weight"]
    width = 4 * table["shape"][1]
    begin = 8 + size + table["data_offsets"][0] + row * width
    content[begin:begin + width] = struct.pack("<f", 3e38) * table["shape"][1]
    path.write_bytes(content)


@pytest.fixture(scope="module")
def poisoned(tmp_path_factory):
    """A text with a Z on one line, and a run in whose model the embedding of Z is huge."""
    folder = tmp_path_factory.mktemp("poisoned")
    lines = [f"{n * 7919 % 1000:03} is a number\n" for n in range(300)]
    lines[LINE - 1] = lines[LINE - 1].replace("is", "Z")
    (folder / "text.txt").write_text("".join(lines))
    qkv("train", "lm", "--text", folder / "text.txt", "--out", folder / "run", *SMALL, "--max-steps", 2)
    characters = json.loads((folder / "run/vocabulary.json").read_text())
    poison(folder / "run/model.safetensors", characters.index("Z"))
    return folder


def command(poisoned, out, *more):
    # a learning rate that leaves the huge numbers as they are
    return ["train", "lm", "--text", poisoned / "text.txt", "--init", poisoned / "run", "--out", out, "--threads", 1,
            "--batch-tokens", 128, "--learning-rate", "1e-3", "--weight-decay", 0, "--eval-every", 0, "--save-every", 5,
            "--max-epochs", 2, "--sample-tokens", 0, *more]


def records(run):
    return [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]


def test_a_poisoned_batch_is_skipped_and_counted(poisoned, tmp_path):
    _, _, report = qkv(*command(poisoned, tmp_path / "run"))
    assert report.count("skipped: its loss is not finite (1 in a row)") == 2  # once in each epoch
    steps = [record for record in records(tmp_path / "run") if "loss" in record]
    assert [record["step"] for record in steps] == list(range(1, len(steps) + 1))
    assert all(record["loss"] is not None for record in steps)
    assert {record.get("skipped_steps", 0) for record in steps} <= {0, 1, 2}
    assert steps[-1]["skipped_steps"] >= 1


def test_the_first_skipped_step_can_end_training(poisoned, tmp_path):
    run = tmp_path / "run"
    status, _, report = qkv(*command(poisoned, run, "--max-skipped-steps", 0), ok=False)
    errors = [line for line in report.splitlines() if line.startswith("qkv: ")]
    assert status == 1 and len(errors) == 1
    assert f"decoder embedding, lookup, forward is not finite for line {LINE} of {poisoned / 'text.txt'}" in errors[0]
    assert "learning rate" not in errors[0]
    assert "(the batch has lines " in errors[0] and "skipped steps in a row: 1 (max_skipped_steps is 0)" in errors[0]
    _, _, report = qkv(*command(poisoned, run, "--max-skipped-steps", 1))  # resumes from the last state
    assert "done after 2 epochs" in report


def test_detect_anomaly_names_the_op_and_changes_no_byte(poisoned, tmp_path):
    _, _, report = qkv(*command(poisoned, tmp_path / "run", "--detect-anomaly"), ok=False)
    error = report.splitlines()[-1]
    assert error.startswith("qkv: step ") and f"forward is not finite for line {LINE} of" in error
    assert "in a row" not in error and "learning rate" not in error  # it is small
    train = ["train", "lm", "--text", poisoned / "text.txt", *SMALL, "--max-steps", 6, "--dropout", "0.1"]
    qkv(*train, "--out", tmp_path / "checked", "--detect-anomaly")
    qkv(*train, "--out", tmp_path / "plain")
    for run in ("checked", "plain"):
        (tmp_path / run / "training.json").unlink()  # has the option
    assert contents(tmp_path / "checked") == contents(tmp_path / "plain")


def test_ranks_skip_the_same_steps(poisoned, tmp_path):
    shards = ("--shards", 2, "--accumulate", 2)
    qkv(*command(poisoned, tmp_path / "one", *shards))
    ended = run_job(2, command(poisoned, tmp_path / "two", *shards))
    assert [status for status, _ in ended] == [0, 0], ended
    assert contents(tmp_path / "one") == contents(tmp_path / "two")
    assert "skipped: its loss is not finite" in ended[0][1]

    ended = run_job(2, command(poisoned, tmp_path / "ends", *shards, "--max-skipped-steps", 0))
    errors = [line for _, report in ended for line in report.splitlines() if line.startswith("qkv: ")]
    assert [status for status, _ in ended] == [1, 1] and len(errors) == 1, ended
    assert f"is not finite for line {LINE} of" in errors[0] and "skipped steps in a row: 1" in errors[0]


def test_the_error_of_any_rank_names_the_state_that_is_kept(poisoned, tmp_path):
    reporting = set()
    for seed in range(1, 9):
        run = tmp_path / str(seed)
        ended = run_job(2, command(poisoned, run, "--shards", 2, "--save-every", 1, "--max-skipped-steps", 0,
                                   "--seed", seed))
        error = next(line for line in ended[0][1].splitlines() if line.startswith("qkv: "))
        reporting.add(error.startswith("qkv: rank 1 ("))
        step = int(re.search(r"step (\d+): ", error)[1])
        assert error.split("; ")[2] == (f"the saved state of step {step - 1} is kept" if step > 1
                                        else "no state was saved"), error
    assert reporting == {False, True}


def test_an_absurd_learning_rate_ends_training(corpus, poisoned, films, tmp_path):
    absurd = ["--learning-rate", "1e30", "--warmup-steps", 0, "--max-skipped-steps", 3, "--threads", 1]
    for kind, data in (("translate", [*corpus, "--preset", "tiny", "--vocab-size", 300, "--batch-tokens", 256]),
                       ("lm", ["--text", poisoned / "text.txt", "--batch-tokens", 256, "--max-length", 32]),
                       ("recommend", ["--data", films / "log.csv", "--batch-tokens", 512, "--max-length", 20])):
        run = tmp_path / kind
        status, _, report = qkv("train", kind, *data, "--out", run, *absurd, ok=False)
        error = report.splitlines()[-1]
        assert status == 1 and "is not finite for " in error, report
        assert "skipped steps in a row: 4 (max_skipped_steps is 3); no state was saved" in error, error
        assert ("user" if kind == "recommend" else "line") in error
        assert "; the likely reason is the learning rate, 1e+30 in the last step and 1e+30 at its peak: try learning_rate 0.001" in error
        assert len(error) < 2000
        shutil.rmtree(run)


def test_weights_that_are_not_finite_are_refused(poisoned, tmp_path):
    shutil.copytree(poisoned / "run", tmp_path / "run")
    model = tmp_path / "run/model.safetensors"
    content = bytearray(model.read_bytes())
    content[-4:] = struct.pack("<f", float("nan"))
    model.write_bytes(content)
    status, _, report = qkv("train", "lm", "--text", poisoned / "text.txt", "--init", tmp_path / "run", "--out",
                            tmp_path / "out", ok=False)
    assert status == 1 and "contains a number that is not finite" in report and not (tmp_path / "out").exists()


def test_ranks_roll_back_together(tmp_path):
    text = tmp_path / "text.txt"
    numbers = standard.Random(3)
    text.write_text("0123456789\n" * 500 + "".join(numbers.choices(string.ascii_lowercase, k=200)) + "\n" +
                    "0123456789\n" * 200)
    train = ["train", "lm", "--text", text, *SMALL, "--shards", 2, "--rollback-on-spike", 60, "--save-every", 10,
             "--learning-rate", 0.01, "--eval-every", 0, "--max-epochs", 6, "--ema-decay", 0, "--average", 0,
             "--batch-tokens", 64]
    _, _, report = qkv(*train, "--out", tmp_path / "one")
    assert "; returned to the state of step " in report
    ended = run_job(2, [*train, "--out", tmp_path / "two"])
    assert [status for status, _ in ended] == [0, 0], ended
    assert contents(tmp_path / "one") == contents(tmp_path / "two")
