"""Progress: a bar of `qkv train` on a terminal, lines elsewhere, a summary at the end; a line of `qkv translate`."""

import json
import os
import pty
import re
import subprocess

import pytest
from conftest import QKV, SMALL, qkv

LIMITS = ["--max-steps", "30", "--eval-every", "15"]


def train(corpus, run, *more):
    return ["train", "translate", *map(str, corpus), *SMALL, *LIMITS, "--out", str(run), *more]


def on_terminal(arguments, **environment):
    """Runs the program with standard error on a terminal; returns what it shows."""
    ours, theirs = pty.openpty()
    with subprocess.Popen([QKV, *arguments], stdout=subprocess.PIPE, stderr=theirs,
                          env={**{k: v for k, v in os.environ.items() if k != "NO_COLOR"}, "TERM": "xterm", **environment}) as process:
        os.close(theirs)
        shown = b""
        while True:
            try:
                part = os.read(ours, 4096)
            except OSError:  # the terminal is closed
                break
            if not part:
                break
            shown += part
        process.wait()
    os.close(ours)
    assert process.returncode == 0, shown
    return shown.decode()


def test_a_terminal_shows_a_bar(corpus, tmp_path):
    shown = on_terminal(train(corpus, tmp_path / "run"))
    assert "\r[" in shown and "%  step " in shown
    bars = [line for line in shown.split("\r") if line.startswith("[")]
    assert all(len(line.split("\033")[0]) < 80 for line in bars)
    assert f"model: {tmp_path / 'run'} (best at step " in shown


def drawn_lines(text, *arguments):
    """Translates as many lines, written to the file `text`, as it takes to draw the line, which begins after 0.2 s."""
    for lines in 800, 8000, 80000:
        text.write_text("The dog sees the cat.\n" * lines)
        shown = on_terminal([*map(str, ["translate", *arguments, "--beam", "16", "--threads", "1"])])
        drawn = re.findall(r"\r([^\r\n]*)\033\[K", shown)
        if drawn:
            return drawn
    raise AssertionError(shown)


def test_the_progress_of_translations_is_a_line_with_a_rate(trained, tmp_path):
    text = tmp_path / "text.txt"
    for more, begins in ([["--input", text], ""], [["--document", text, "--out", tmp_path / "out.txt"], f"{text}: "]):
        drawn = drawn_lines(text, trained, *more)
        assert len(drawn) > 1 and drawn[-1] == "", drawn
        counts = [line.removeprefix(begins) for line in drawn[:-1] if line.startswith(begins)]
        assert len(counts) == len(drawn) - 1, drawn
        assert all(re.fullmatch(r"\d+ (lines|texts), \d+\.\d per second", count) for count in counts), drawn


def test_an_experiment_shows_how_many_models_have_been_trained():
    drawn = on_terminal(["experiment", "depth"]).split("\r")
    lines = [line.removesuffix("\033[K") for line in drawn if line]
    assert lines[0] == "[--------------------]   0%  depth: 0 of 10 models trained"
    assert lines[-2:] == ["[####################] 100%  depth: 10 of 10 models trained", ""]
    assert qkv("experiment", "depth")[2].startswith("depth: 0 of 10 models trained\n")
    assert qkv("experiment", "softmax")[2] == ""


@pytest.mark.parametrize("environment", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_plain_terminals_show_lines(environment, corpus, tmp_path):
    shown = on_terminal(train(corpus, tmp_path / "run"), **environment)
    assert "\033" not in shown and "[#" not in shown and "[-" not in shown and "step 1  epoch 1  loss" in shown


def test_the_summary_names_the_run_and_the_next_command(corpus, tmp_path):
    run = tmp_path / "run"
    _, output, error = qkv(*train(corpus, run, "--json"))
    assert error.splitlines()[-3].startswith(f"model: {run} (best at step ") and "bleu" in error.splitlines()[-3]
    assert error.splitlines()[-2:] == [f"next:  qkv translate {run} < TEXT", f"       qkv plot {run}"]
    assert "\033" not in error and "\r" not in error
    best = json.loads(output)
    assert best["run"] == str(run) and best["best_step"] in (15, 30) and "bleu" in best["dev"]
    _, output, error = qkv(*train(corpus, run, "--json"))  # nothing is left to train
    assert json.loads(output)["best_step"] is None and f"\nmodel: {run}\n" in error
