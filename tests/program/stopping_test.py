"""Whether a run is finished follows from its state and the options of the command, for every trainer and limit."""

import json
import re

import pytest
from conftest import SMALL, qkv
from ranks import run_job
from resume_test import contents

FIXED = ["--learning-rate", 0, "--ema-decay", 0, "--average", 0, "--eval-every", 2, "--threads", 1]  # never improves


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    path = tmp_path_factory.mktemp("text") / "text.txt"
    path.write_text("".join(f"{n * 7919 % 1000:03} is a number\n" for n in range(300)))
    return path


@pytest.fixture(scope="module")
def trainers(corpus, text, films):
    """Small trainings by kind. Their values of the schedule are given, so that no limit changes them."""
    small = ["--d-model", 16, "--heads", 2, "--ffn", 16, "--decoder-layers", 1, "--max-length", 32, "--warmup-steps", 0]
    return {"translate": ["train", "translate", *corpus, *SMALL],
            "lm": ["train", "lm", "--text", text, *small, "--batch-tokens", 128, "--schedule", "constant"],
            "recommend": ["train", "recommend", "--data", films / "log.csv", *small, "--batch-tokens", 512,
                          "--schedule", "constant", "--max-epochs", 0]}


def without_recipe(run):
    """The files of a run except the recipe, which holds the limits of the first command."""
    return {name: content for name, content in contents(run).items() if name != "training.json"}


@pytest.mark.parametrize("kind", ["translate", "lm", "recommend"])
def test_a_run_that_ran_out_of_patience_continues_with_more(trainers, tmp_path, kind):
    command = [*trainers[kind], *FIXED]
    ends = ["--max-steps", 10]
    qkv(*command, *ends, "--patience", 9, "--out", tmp_path / "whole")
    parts = tmp_path / "parts"
    first = qkv(*command, *ends, "--patience", 2, "--out", parts)[2]
    assert "done after no improvement in 2 evaluations" in first
    again = qkv(*command, *ends, "--patience", 2, "--out", parts)[2]
    assert ("nothing left to do after no improvement in 2 evaluations (patience is 2); to train further, raise patience; "
            "best dev ") in again
    fewer = qkv(*command, *ends, "--patience", 1, "--out", parts)[2]
    assert "nothing left to do after no improvement in 2 evaluations (patience is 1)" in fewer
    more = qkv(*command, *ends, "--patience", 9, "--out", parts)[2]
    assert "done after 10 steps" in more
    assert without_recipe(parts) == without_recipe(tmp_path / "whole")
    both = qkv(*command, *ends, "--patience", 3, "--out", parts)[2]
    assert "nothing left to do after no improvement in 4 evaluations (patience is 3), 10 steps (max_steps is 10); " in both
    assert "to train further, raise patience and max_steps" in both
    off = qkv(*command, "--max-steps", 12, "--patience", 0, "--out", parts)[2]
    assert "done after 12 steps" in off


@pytest.mark.parametrize("kind", ["translate", "lm", "recommend"])
def test_a_run_that_reached_a_limit_says_so_and_continues_with_a_higher_one(trainers, tmp_path, kind):
    command, run = [*trainers[kind], "--threads", 1, "--eval-every", 0], tmp_path / "run"
    qkv(*command, "--max-minutes", 1e-6, "--out", run)
    metrics = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    assert [m["step"] for m in metrics if "loss" in m] == [1]  # at least one step, whose model can be used
    assert (run / "model.safetensors").exists()
    qkv("inspect", run)
    again = qkv(*command, "--max-minutes", 1e-6, "--out", run)[2]
    assert re.search(r"nothing left to do after [\d.e-]+ minutes, the time of one step \(max_minutes is 1e-06\); "
                     "to train further, raise max_minutes", again)
    steps = qkv(*command, "--max-minutes", 60, "--max-steps", 3, "--out", run)[2]
    assert "resumed at step 1" in steps and "done after 3 steps" in steps
    assert "after 3 steps (max_steps is 3)" in qkv(*command, "--max-steps", 3, "--out", run)[2]
    assert "done after 4 steps" in qkv(*command, "--max-steps", 4, "--out", run)[2]
    epochs = command[:-2] if kind == "recommend" else command
    assert "done after 1 epochs" in qkv(*epochs, "--eval-every", 0, "--max-epochs", 1, "--out", run)[2]
    assert "after 1 epochs (max_epochs is 1); to train further, raise max_epochs" in qkv(
        *epochs, "--eval-every", 0, "--max-epochs", 1, "--out", run)[2]
    assert "done after 2 epochs" in qkv(*epochs, "--eval-every", 0, "--max-epochs", 2, "--out", run)[2]


@pytest.mark.parametrize("preset", ["lm", "auto", "films"])
def test_a_cosine_over_epochs_keeps_its_end(text, films, tmp_path, preset):
    small = ["--d-model", 16, "--heads", 2, "--ffn", 16, "--decoder-layers", 1, "--max-length", 20, "--threads", 1]
    command = (["train", "lm", "--text", text, *small, "--batch-tokens", 512] if preset == "lm" else
               ["train", "recommend", "--preset", preset, "--data", films / "log.csv", *small, "--batch-tokens", 512])
    command += ["--schedule", "cosine", "--out", tmp_path / "run"]
    qkv(*command, "--max-epochs", 2)
    for epochs in (4,) if preset == "films" else (4, 0):
        status, _, error = qkv(*command, "--max-epochs", epochs, ok=False)
        assert status == 1 and error.splitlines()[-1] == (
            f"qkv: {tmp_path / 'run'}: max_epochs was 2 when this run was started and is now {epochs}; its schedule cosine "
            "ends after 2 epochs: use the same value, or start another run from this one (init)")
    again = qkv(*command, "--max-epochs", 2)[2]
    assert "nothing left to do after " in again and "the schedule cosine ends there" in again
    assert "2 epochs (max_epochs is 1)" in qkv(*command, "--max-epochs", 1)[2]


def test_a_cosine_stops_before_its_end_and_continues(text, tmp_path):
    command = ["train", "lm", "--text", text, "--d-model", 16, "--heads", 2, "--ffn", 16, "--decoder-layers", 1,
               "--max-length", 20, "--batch-tokens", 256, "--threads", 1, "--eval-every", 0, "--max-steps", 60]
    qkv(*command, "--out", tmp_path / "whole")
    rates = {}
    for epochs in (1, 2, 100):
        report = qkv(*command, "--max-epochs", epochs, "--out", tmp_path / "parts", "--warmup-steps", 15)[2]
        assert f"done after {epochs} epochs" in report or "done after 60 steps" in report
    for run in ("whole", "parts"):
        lines = (tmp_path / run / "metrics.jsonl").read_text().splitlines()
        rates[run] = [m["learning_rate"] for m in map(json.loads, lines) if "loss" in m]
    assert rates["whole"] == rates["parts"] and len(rates["whole"]) == 60


def rates_of(run):
    lines = map(json.loads, (run / "metrics.jsonl").read_text().splitlines())
    return [m["learning_rate"] for m in lines if "loss" in m]


def test_warmup_and_cooldown_fit_the_limits(corpus, text, tmp_path):
    translate = ["train", "translate", *corpus, "--encoder-layers", 1, "--decoder-layers", 1, "--d-model", 32, "--ffn", 32,
                 "--vocab-size", 300, "--batch-tokens", 256, "--max-length", 40, "--threads", 1, "--eval-every", 0]
    report = qkv(*translate, "--max-steps", 40, "--out", tmp_path / "steps")[2]
    assert "chosen for max_steps 40 (about 40 steps): warmup_steps 10, learning_rate 0.00085, cooldown 0.3" in report
    rates = rates_of(tmp_path / "steps")
    assert max(rates) == rates[9] == pytest.approx(8.5e-4)
    assert rates[27] == pytest.approx(8.5e-4 * (10 / 28) ** 0.5)  # the last step before the cooldown
    assert rates[39] == pytest.approx(8.5e-4 * (10 / 40) ** 0.5 / 12)
    more = qkv(*translate, "--max-steps", 80, "--out", tmp_path / "steps")[2]
    assert "chosen for" not in more and "resumed at step 40" in more
    assert rates_of(tmp_path / "steps")[40] == pytest.approx(8.5e-4 * (10 / 41) ** 0.5)  # the warm-up of the run is kept
    report = qkv(*translate, "--max-epochs", 1, "--out", tmp_path / "epochs")[2]
    assert re.search(r"chosen for max_epochs 1 \(about \d+ steps\): warmup_steps \d+, learning_rate [\d.e-]+, cooldown 0.3", report)
    rates = rates_of(tmp_path / "epochs")
    assert rates[-1] < 0.2 * max(rates)
    report = qkv(*translate, "--max-minutes", 0.03, "--out", tmp_path / "minutes")[2]
    assert re.search(r"chosen for max_minutes 0.03 \(about \d+ steps\): warmup_steps \d+, learning_rate [\d.e-]+, cooldown 0.3", report)
    assert "warmup_steps 10, cooldown 0.3" in qkv(*translate, "--max-steps", 40, "--learning-rate", 2e-4, "--out", tmp_path / "rate")[2]
    for option in (["--warmup-steps", 7], ["--schedule", "inverse_sqrt"], ["--cooldown", 0]):
        run = tmp_path / option[0]
        assert "chosen for" not in qkv(*translate, "--max-steps", 2, *option, "--out", run)[2]
        recipe = json.loads((run / "training.json").read_text())
        assert (recipe["warmup_steps"], recipe["cooldown"]) == (7 if "--warmup-steps" in option else 2000, 0)


def test_a_language_model_fits_its_cosine(text, tmp_path):
    lm = ["train", "lm", "--text", text, "--d-model", 16, "--heads", 2, "--ffn", 16, "--decoder-layers", 1, "--max-length", 20,
          "--batch-tokens", 256, "--threads", 1, "--eval-every", 0]
    report = qkv(*lm, "--max-epochs", 2, "--out", tmp_path / "epochs")[2]
    steps = len(rates_of(tmp_path / "epochs"))
    assert f"chosen for max_epochs 2 (about {steps} steps): max_steps {steps}, warmup_steps {int(steps / 4 + 0.5)}" in report
    assert rates_of(tmp_path / "epochs")[-1] == 0
    assert "chosen for max_steps 50 (about 50 steps): warmup_steps 13" in qkv(*lm, "--max-steps", 50, "--out", tmp_path / "a")[2]
    report = qkv("train", "lm", "--text", text, "--threads", 1, "--max-minutes", 0.02, "--out", tmp_path / "c")[2]
    assert re.search(r"chosen for max_steps 2000, max_minutes 0.02 \(about \d+ steps\): warmup_steps \d+, cooldown 0.3", report)


def test_ranks_cool_down_together(text, tmp_path):
    command = ["train", "lm", "--text", text, "--d-model", 16, "--heads", 2, "--ffn", 16, "--decoder-layers", 1,
               "--max-length", 20, "--batch-tokens", 128, "--threads", 1, "--schedule", "constant", "--cooldown", 0.5,
               "--warmup-steps", 2, "--max-steps", 12, "--eval-every", 6, "--shards", 2]
    qkv(*command, "--out", tmp_path / "one")
    ended = run_job(2, [*command, "--out", tmp_path / "two"])
    assert [status for status, _ in ended] == [0, 0], ended
    assert contents(tmp_path / "one") == contents(tmp_path / "two")
    assert rates_of(tmp_path / "one")[-1] == pytest.approx(3e-3 / 6)
