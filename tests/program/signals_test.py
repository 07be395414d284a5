"""Signals and closed pipes: nothing is lost, and the exit status says what happened."""

import contextlib
import os
import re
import shutil
import signal
import subprocess
import time

import pytest

from conftest import QKV, ROOT, TEXT, qkv

RUNS = ROOT / "tests/golden/runs"
TINY = ["--d-model", "8", "--heads", "2", "--ffn", "16", "--max-length", "24", "--decoder-layers", "1", "--threads", "1",
        "--schedule", "constant"]
LANGUAGE = ["train", "lm", "--text", RUNS / "text/train.en", "--batch-tokens", "96", *TINY]
TRANSLATE = ["train", "translate", "--train", TEXT / "train.en", TEXT / "train.de", "--encoder-layers", "1", *TINY]
KNOWN = ["--source-tokenizer", RUNS / "text/tokenizer.model"]
STOPPED = "repeat the command to resume\n"


@contextlib.contextmanager
def started(*arguments, **settings):
    process = subprocess.Popen([QKV, *map(str, arguments)], stderr=subprocess.PIPE, text=True, **settings)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def wait_for_line(process, begin):
    for line in process.stderr:
        if line.startswith(begin):
            return
    raise AssertionError(f"{begin}: not printed")


def end_of(process):
    errors = process.stderr.read()
    return process.wait(300), errors


def dev_options(folder, times):
    """Options for dev text that is repeated, so that its evaluation takes a while."""
    for side in ("en", "de"):
        (folder / side).write_text((TEXT / f"dev.{side}").read_text() * times)
    return ["--dev", folder / "en", folder / "de", "--eval-every", "1"]


@pytest.fixture(scope="module")
def long_dev(tmp_path_factory):
    return dev_options(tmp_path_factory.mktemp("dev"), 4)


@pytest.fixture(scope="module")
def lines(tmp_path_factory):
    path = tmp_path_factory.mktemp("lines") / "lines.txt"
    path.write_text("The dog.\nHe sees.\n")
    return path


def contents(run):
    return {path.name: path.read_bytes() for path in sorted(run.rglob("*"))
            if path.is_file() and path.name not in ("metrics.jsonl", "training.json")}


def catches(process, number):
    """Whether a process has a handler for a signal."""
    with open(f"/proc/{process.pid}/status") as file:
        caught = int(re.search(r"SigCgt:\s*(\w+)", file.read())[1], 16)
    return caught >> (number - 1) & 1


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1])
def test_a_signal_ends_training_with_its_state_saved(number, tmp_path):
    run, whole = tmp_path / "run", tmp_path / "whole"
    with started(*LANGUAGE, "--eval-every", "0", "--max-steps", "1000000", "--out", run) as process:
        wait_for_line(process, "step ")
        process.send_signal(number)
        status, errors = end_of(process)
    assert status == 128 + number and errors.startswith("stopped at step ") and errors.endswith(STOPPED)
    assert errors.count("\n") == 1
    steps = str(int(errors.split()[3].rstrip(";")) + 2)
    assert "resumed at step" in qkv(*LANGUAGE, "--eval-every", "0", "--max-steps", steps, "--out", run)[2]
    qkv(*LANGUAGE, "--eval-every", "0", "--max-steps", steps, "--out", whole)
    assert contents(run) == contents(whole)


def test_a_signal_during_an_evaluation_lets_it_end(long_dev, tmp_path):
    with started(*TRANSLATE, *KNOWN, *long_dev, "--max-steps", "1000000", "--out", tmp_path / "run") as process:
        wait_for_line(process, "step 1 ")
        process.send_signal(signal.SIGTERM)
        status, errors = end_of(process)
    *_, dev, end = errors.splitlines()
    step = re.match(r"step (\d+)  dev:", dev)[1]  # 1, unless the machine was busy
    assert status == 128 + signal.SIGTERM and end == f"stopped at step {step}; " + STOPPED.strip(), errors


def test_a_second_signal_ends_it_at_once(tmp_path):
    with started(*TRANSLATE, *KNOWN, *dev_options(tmp_path, 40), "--max-steps", "1000000", "--out", tmp_path / "run") as process:
        wait_for_line(process, "step 1 ")
        process.send_signal(signal.SIGINT)
        time.sleep(0.05)  # while it evaluates
        process.send_signal(signal.SIGTERM)
        assert end_of(process) == (-signal.SIGTERM, "")


def test_a_closing_terminal_sends_two_signals_and_loses_nothing(tmp_path):
    with started(*LANGUAGE, "--eval-every", "0", "--max-steps", "1000000", "--out", tmp_path / "run") as process:
        wait_for_line(process, "step ")
        for _ in range(2):
            process.send_signal(signal.SIGHUP)
        status, errors = end_of(process)
    assert status == 128 + signal.SIGHUP and errors.endswith(STOPPED)


def test_an_ignored_signal_stays_ignored(tmp_path):
    """nohup ignores SIGHUP; a shell script ignores SIGINT for commands in the background."""
    with started(*LANGUAGE, "--eval-every", "0", "--max-steps", "200", "--out", tmp_path / "run",
                 preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN)) as process:
        wait_for_line(process, "step ")
        process.send_signal(signal.SIGHUP)
        status, errors = end_of(process)
    assert status == 0 and "done after 200 steps" in errors


def test_a_signal_before_the_first_step_ends_at_once(long_dev, tmp_path):
    """While a tokenizer is trained, there is nothing to save."""
    with started(*TRANSLATE, *long_dev, "--vocab-size", "2000", "--out", tmp_path / "run") as process:
        while not catches(process, signal.SIGTERM):
            assert process.poll() is None
            time.sleep(0.005)
        process.send_signal(signal.SIGTERM)
        status, errors = end_of(process)
    assert (status, errors) == (128 + signal.SIGTERM, "qkv: stopped before the first step, with nothing to save; "
                                "repeat the command\n")
    assert not (tmp_path / "run").exists()


def test_a_stopped_and_continued_training_writes_the_same_bytes(tmp_path):
    options = ["--eval-every", "100", "--max-steps", "400"]
    qkv(*LANGUAGE, *options, "--out", tmp_path / "whole")
    with started(*LANGUAGE, *options, "--out", tmp_path / "run") as process:
        while process.poll() is None:
            for number in (signal.SIGSTOP, signal.SIGCONT):
                process.send_signal(number)
                time.sleep(0.02)
        status, errors = end_of(process)
    assert status == 0, errors
    assert contents(tmp_path / "run") == contents(tmp_path / "whole")


@pytest.mark.parametrize("ignored", [False, True])
def test_a_closed_standard_error_ends_training_with_its_state_saved(ignored, tmp_path):
    """Unless SIGPIPE is ignored: then nobody wants to know."""
    steps = 60 if ignored else 1000000
    with started(*LANGUAGE, "--eval-every", "10", "--max-steps", steps, "--out", tmp_path / "run",
                 restore_signals=not ignored) as process:  # Python ignores it
        wait_for_line(process, "step ")
        process.stderr.close()
        assert process.wait(300) == (0 if ignored else 128 + signal.SIGPIPE)
    assert (tmp_path / "run/checkpoints/state.safetensors").exists()


PRINTING = {
    "help": ["--help"],
    "version": ["--version"],
    "inspect": ["inspect", RUNS / "translator"],
    "translate": ["translate", RUNS / "translator", "--input", "{lines}"],
    "translate scores": ["translate", RUNS / "translator", "--input", "{lines}", "--score", "{lines}"],
    "generate": ["generate", RUNS / "language", "--prompts", "{lines}", "--max-tokens", "4"],
    "generate stream": ["generate", RUNS / "language", "--prompts", "{lines}", "--stream"],
    "recommend": ["recommend", RUNS / "recommender", "--user", "u0005"],
    "evaluate": ["evaluate", RUNS / "recommender"],
    "embed": ["embed", RUNS / "encoder", "--file", "{lines}"],
    "attend": ["attend", RUNS / "translator", "the dog", "--target", "der"],
    "score": ["score", "bleu", "--hyp", "{lines}", "--ref", "{lines}"],
    "explain": ["explain"],
    "import": ["import", ROOT / "tests/golden/bert/sentence", "{out}"],
    "export": ["export", RUNS / "translator", "{out}"],
    "quantize": ["quantize", RUNS / "translator", "--int8", "--out", "{out}"],
}


@pytest.mark.parametrize("ignored", [False, True])
@pytest.mark.parametrize("command", PRINTING)
def test_a_closed_pipe_is_a_quiet_end(command, ignored, lines, tmp_path):
    arguments = [str(part).format(out=tmp_path / "out", lines=lines) for part in PRINTING[command]]
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run([QKV, *arguments], stdin=subprocess.DEVNULL, stdout=writer, stderr=subprocess.PIPE,
                          restore_signals=not ignored, timeout=300)
    os.close(writer)
    assert done.stderr == b"" and done.returncode == (128 + signal.SIGPIPE if ignored else -signal.SIGPIPE)


def test_closed_standard_streams_are_not_taken_for_files(lines, tmp_path):
    """A file that is opened gets the lowest free number, which may be that of standard output."""
    run = tmp_path / "run"
    shutil.copytree(RUNS / "translator", run)
    for closed in ("0<&-", "1>&-", "2>&-", "0<&- 1>&- 2>&-"):
        text = "" if "0" in closed else f"< {lines}"
        done = subprocess.run(f"{QKV} translate {run} {text} {closed}", shell=True, capture_output=True, text=True,
                              timeout=300)
        errors = done.stderr.splitlines()
        assert done.returncode == (0 if closed == "2>&-" else 1) and len(errors) == ("2>" not in closed), done
        out = tmp_path / "quantized"
        subprocess.run(f"{QKV} quantize {run} --int8 --out {out} {closed}", shell=True, capture_output=True, timeout=300)
        assert "translator" in qkv("inspect", out)[1]
        shutil.rmtree(out)
    assert contents(run) == contents(RUNS / "translator")
