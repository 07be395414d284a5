"""qkv train embed: an embedder from an imported encoder, by one process and several."""

import json
import random

import pytest
from conftest import qkv
from ranks import run_job
from resume_test import contents

WORDS = list("abcdefgh")


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    """Pairs of sentences, whose score is the share of equal words."""
    path, numbers = tmp_path_factory.mktemp("rows") / "rows.csv", random.Random(1)
    lines = ["sentence1,sentence2,score"]
    for _ in range(60):
        a = numbers.choices(WORDS, k=5)
        b = [word if numbers.random() < 0.5 else numbers.choice(WORDS) for word in a]
        lines.append(f"{' '.join(a)},{' '.join(b)},{sum(x == y for x, y in zip(a, b))}")
    path.write_text("\n".join(lines) + "\n")
    return path


OPTIONS = ["--learning-rate", 0.002, "--max-epochs", 2, "--examples", 8, "--batch-tokens", 40, "--threads", 1]


def test_an_imported_encoder_learns_scores_and_embeds(bert, rows, tmp_path):
    run = tmp_path / "run"
    _, out, err = qkv("train", "embed", "--init", bert, "--train", rows, "--dev-share", 0.2, "--out", run, "--json", *OPTIONS,
                      "--matryoshka", "8,4")
    assert f"starting from {bert}" in err
    assert 'rows.csv: columns "sentence1", "sentence2", "score"' in err
    assert "training data: 48 rows of 2 texts and a score, 6 batches per epoch, 12 dev rows; loss cosent" in err
    assert f"next:  qkv embed {run} < TEXT" in err
    assert set(json.loads(out)["dev"]) == {"loss", "spearman", "spearman (8)", "spearman (4)"}
    config = json.loads((run / "embedder.json").read_text())
    assert (config["loss"], config["matryoshka"], config["pooling"]) == ("cosent", [8, 4], "mean")
    assert json.loads((run / "training.json").read_text())["warmup_steps"] == 1  # a tenth of 12 steps
    before, after = (qkv("embed", of, text="a b c d\n")[1].split() for of in (bert, run))
    assert len(before) == len(after) and before != after
    assert "nothing left to do" in qkv("train", "embed", "--init", bert, "--train", rows, "--dev-share", 0.2, "--out", run, *OPTIONS,
                                  "--matryoshka", "8,4")[2]


def test_the_number_of_ranks_changes_no_byte(bert, rows, tmp_path):
    command = ["train", "embed", "--init", bert, "--train", rows, *OPTIONS, "--shards", 3, "--dropout", "0.1", "--dense", 6,
               "--learn-temperature", "--eval-every", 2]
    qkv(*command, "--out", tmp_path / "1")
    for size in (2, 3):
        ended = run_job(size, [*command, "--out", tmp_path / str(size)])
        assert [status for status, _ in ended] == [0] * size, ended
        assert contents(tmp_path / str(size)) == contents(tmp_path / "1")


def test_a_teacher_and_columns_by_name(bert, rows, tmp_path):
    command = ["train", "embed", "--init", bert, "--train", rows, "--columns", "sentence2,sentence1", "--teacher", bert,
               "--teacher-first", *OPTIONS]
    _, _, err = qkv(*command, "--out", tmp_path / "run")
    assert "rows of 2 texts, 7 batches per epoch, 6 dev rows; loss distill" in err and "MRR@10" in err


@pytest.mark.parametrize("options, message", [
    (["--loss", "cosent"], "rows.csv:3: column \"sentence2\" is empty"),
    (["--columns", "sentence1,score", "--loss", "cosine"],
     "rows.csv: loss cosine requires columns of two texts and a score (has 1 text and a score)"),
    (["--matryoshka", "8,x"], "recipe: matryoshka must be integers separated by commas (has \"x\")"),
    (["--preset", "tiny"], "--preset"),
    (["--d-model", "8"], "--d-model"),
])
def test_errors_are_one_line(bert, tmp_path, options, message):
    (tmp_path / "rows.csv").write_text("sentence1,sentence2,score\na,b,1\nc,,2\n")
    status, out, err = qkv("train", "embed", "--init", bert, "--train", tmp_path / "rows.csv", "--out", tmp_path / "run",
                           *options, ok=False)
    assert status != 0 and out == "" and message in err and not (tmp_path / "run").exists()
