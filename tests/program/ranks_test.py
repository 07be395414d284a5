"""A run has the same bytes for any number of ranks, also if ranks are killed and it continues on another number."""

import json
import random
import re
import shutil
import signal
import time

import pytest

from conftest import SMALL, qkv
from ranks import LIMIT, job, run_job
from resume_test import contents

LAST = ["--max-steps", 30, "--eval-every", 10, "--save-every", 7, "--shards", 8]
WIDTH = ["--d-model", 32, "--heads", 2, "--ffn", 48, "--max-length", 24, "--batch-tokens", 64, "--dropout", "0.1",
         "--threads", 1]
SHAPE = [*WIDTH, "--decoder-layers", 1]


def commands(corpus, folder):
    """Commands: a translator of several blocks, a recommender with features, a language model, an encoder."""
    numbers = random.Random(3)
    log = "".join(f"{user} {numbers.randrange(40)}\n" for user in range(80) for _ in range(10))
    (folder / "log.txt").write_text(log)
    (folder / "items.csv").write_text("item,colour\n" + "".join(f"{item},{item % 8}\n" for item in range(40)))
    words = ["red", "green", "blue", "house", "tree", "runs", "sees", "big"]
    (folder / "text.txt").write_text("".join(" ".join(numbers.choices(words, k=6)) + "\n" for _ in range(300)))
    return {
        "translate": ["train", "translate", *corpus, *SMALL, "--d-model", 64, "--average", 2, "--dropout", "0.1",
                      "--attention-dropout", "0.1", "--accumulate", 2, "--clip-norm", 1],
        "recommend": ["train", "recommend", "--data", folder / "log.txt", "--features", folder / "items.csv",
                      "--preset", "films", "--max-epochs", 0, "--schedule", "constant", *SHAPE],
        "lm": ["train", "lm", "--text", folder / "text.txt", "--moments", "int8", "--precision", "int8",
               "--schedule", "constant", "--ema-decay", "0.9", *SHAPE],
        "encoder": ["train", "encoder", "--text", folder / "text.txt", "--lines", "--vocab-size", 40, "--whole-words",
                    "--schedule", "constant", "--encoder-layers", 1, *WIDTH],
    }


def scores(run):
    """The records of metrics.jsonl, without the times."""
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    return [{key: value for key, value in line.items() if key not in ("seconds", "tokens_per_second")}
            for line in lines]


def expect_same(run, expected):
    assert contents(run) == contents(expected), run
    assert scores(run) == scores(expected), run


def expect_success(ended):
    assert [status for status, _ in ended] == [0] * len(ended), ended
    assert all(error == "" for _, error in ended[1:]), ended


@pytest.mark.parametrize("kind", ["translate", "recommend", "lm"])
def test_the_number_of_ranks_changes_no_byte(kind, corpus, tmp_path):
    command = [*commands(corpus, tmp_path)[kind], *LAST]
    qkv(*command, "--out", tmp_path / "1")
    for size in (2, 3, 4, 8):
        ended = run_job(size, [*command, "--out", tmp_path / str(size)])
        expect_success(ended)
        assert f"ranks: {size} on 1 host, with 1 thread each; 8 shards per step, " in ended[0][1]
        expect_same(tmp_path / str(size), tmp_path / "1")


def test_masks_of_an_encoder_do_not_depend_on_the_number_of_ranks(corpus, tmp_path):
    command = [*commands(corpus, tmp_path)["encoder"], "--shards", 2, "--max-steps", 6, "--eval-every", 3]
    qkv(*command, "--out", tmp_path / "1")
    expect_success(run_job(2, [*command, "--out", tmp_path / "2"]))
    expect_same(tmp_path / "2", tmp_path / "1")


def test_a_classifier_does_not_depend_on_the_number_of_ranks(corpus, tmp_path):
    qkv(*commands(corpus, tmp_path)["encoder"], "--max-steps", 1, "--out", tmp_path / "encoder")
    words = (tmp_path / "text.txt").read_text().splitlines()
    for name, options, label in (
            ("labels", [], lambda i, line: str("red" in line)),
            ("several", ["--label-separator", ","], lambda i, line: ",".join(sorted(set(line.split()))[i % 3:])),
            ("queries", ["--loss", "listwise"], lambda i, line: f"{line}\t{i % 3}")):
        rows = [f"q{i // 5}\t{label(i, line)}" if name == "queries" else f"{line}\t{label(i, line)}"
                for i, line in enumerate(words)]
        (tmp_path / f"{name}.tsv").write_text("".join(row + "\n" for row in rows))
        command = ["train", "classify", "--init", tmp_path / "encoder", "--train", tmp_path / f"{name}.tsv", *options,
                   "--dev-share", "0.9", "--examples", 4, "--batch-tokens", 32, "--max-steps", 4, "--eval-every", 2,
                   "--shards", 4, "--threads", 1]
        qkv(*command, "--out", tmp_path / f"{name}-1")
        for size in (2, 3):
            expect_success(run_job(size, [*command, "--out", tmp_path / f"{name}-{size}"]))
            expect_same(tmp_path / f"{name}-{size}", tmp_path / f"{name}-1")
            head = (tmp_path / f"{name}-{size}/classifier.safetensors").read_bytes()
            assert head == (tmp_path / f"{name}-1/classifier.safetensors").read_bytes()


def test_a_dev_text_of_fewer_lines_than_ranks_is_evaluated(corpus, tmp_path):
    for side in ("en", "de"):
        (tmp_path / f"dev.{side}").write_text("Haus.\n")
    command = ["train", "translate", *corpus[:3], "--dev", tmp_path / "dev.en", tmp_path / "dev.de", *SMALL, "--shards",
               3, "--max-steps", 2, "--eval-every", 1]
    qkv(*command, "--out", tmp_path / "1")
    expect_success(run_job(3, [*command, "--out", tmp_path / "3"]))
    expect_same(tmp_path / "3", tmp_path / "1")


def test_users_of_a_recommender_with_transitions_are_dealt_out(corpus, tmp_path):
    command = [*commands(corpus, tmp_path)["recommend"], "--transitions", "true", "--shards", 4, "--max-steps", 6,
               "--eval-every", 3]
    qkv(*command, "--out", tmp_path / "1")
    for size in (2, 3, 4):
        expect_success(run_job(size, [*command, "--out", tmp_path / str(size)]))
        expect_same(tmp_path / str(size), tmp_path / "1")


def test_a_text_of_two_windows_is_tokenized_by_all_ranks(tmp_path):
    """Steps are shorter than a window, and then so long that some begin and end windows; most pairs are empty."""
    numbers = random.Random(4)
    words = ["red", "green", "blue", "house", "tree", "runs", "sees", "big"]
    pairs = [numbers.choices(words, k=max(0, numbers.randrange(8) - 5)) for _ in range(66_000)]
    for side, order in (("en", 1), ("de", -1)):
        (tmp_path / side).write_text("".join(" ".join(pair[::order]) + "\n" for pair in pairs))
        (tmp_path / f"dev.{side}").write_text("".join(" ".join(pair[::order]) + "\n" for pair in pairs[:90]))
    command = ["train", "translate", "--train", tmp_path / "en", tmp_path / "de", "--dev", tmp_path / "dev.en",
               tmp_path / "dev.de", *SMALL, "--vocab-size", 60, "--d-model", 8, "--heads", 1, "--ffn", 8,
               "--batch-tokens", 512, "--average", 1, "--save-every", 0, "--shards", 3]
    for name, options in {"windows": ["--max-epochs", 2, "--eval-every", 40],
                          "steps": ["--accumulate", 24, "--max-epochs", 4, "--eval-every", 2]}.items():
        qkv(*command, *options, "--out", tmp_path / name)
        for size in (2, 3):
            run = tmp_path / f"{name}-{size}"
            ended = run_job(size, [*command, *options, "--out", run])
            expect_success(ended)
            assert "in 2 windows" in ended[0][1]
            expect_same(run, tmp_path / name)


@pytest.mark.parametrize("options", [
    ["--lora-rank", 4], ["--freeze", "encoder.layers.0.feed_forward,decoder.layers.0.self_attention,embeddings"],
    ["--r-drop", 1, "--recompute", "true"]])
def test_fine_tuning_and_other_ways_to_train_change_no_byte(options, trained, corpus, tmp_path):
    steps = ["--shards", 4, "--eval-every", 3, "--max-steps", 6, "--threads", 1]
    command = ["train", "translate", *corpus, *steps, "--init", trained, *options, "--batch-tokens", 256]
    qkv(*command, "--out", tmp_path / "1")
    for size in (2, 3):
        expect_success(run_job(size, [*command, "--out", tmp_path / str(size)]))
        expect_same(tmp_path / str(size), tmp_path / "1")


def test_64_ranks_change_no_byte(corpus, tmp_path):
    command = [*commands(corpus, tmp_path)["lm"], "--shards", 64, "--max-steps", 3, "--eval-every", 2]
    qkv(*command, "--out", tmp_path / "1")
    expect_success(run_job(64, [*command, "--out", tmp_path / "64"]))
    assert contents(tmp_path / "64") == contents(tmp_path / "1")


def test_the_benchmark_predicts_steps_and_measures_the_network_between_ranks():
    shape = ["bench", "cluster", "--tokens", 64, "--steps", 2, "--shards", 12, "--ranks", 1, 4, 12, "--threads", 1]
    alone = json.loads(qkv(*shape, "--line", "100M", "10G", "--json")[1])
    assert [(p["ranks"], p["line_bits_per_second"]) for p in alone["predictions"]] == [
        (ranks, line) for line in (1e8, 1e10) for ranks in (1, 4, 12)]
    assert all(p["efficiency"] == pytest.approx(1) for p in alone["predictions"] if p["ranks"] == 1)
    for slow, fast in zip(alone["predictions"][1:3], alone["predictions"][4:6]):
        assert slow["synchronous_seconds"] > slow["step_seconds"] > fast["step_seconds"]
    with job(3, shape) as ranks:
        printed = [rank.communicate(timeout=LIMIT)[0] for rank in ranks.ranks]
        assert [rank.returncode for rank in ranks.ranks] == [0, 0, 0] and printed[1:] == ["", ""]
    assert re.search(r"^network between 3 ranks: [0-9.e+]+ MB/s each way, [0-9.]+ µs per message$", printed[0], re.M)
    status, _, error = qkv(*shape[:-6], "--ranks", 13, ok=False)
    assert status == 1 and error == "qkv: benchmark: shards must be at least ranks, 13 (is 12)\n"


def test_slow_links_change_no_byte_and_take_their_time(corpus, tmp_path):
    command = [*commands(corpus, tmp_path)["lm"], "--shards", 8, "--eval-every", 0, "--save-every", 0, "--max-steps", 5]
    qkv(*command, "--out", tmp_path / "1")
    for settings in ({"QKV_LOCAL_DELAY": "20"}, {"QKV_LOCAL_BANDWIDTH": "2"}):
        ended = run_job(3, [*command, "--out", tmp_path / "3"], **settings)
        expect_success(ended)
        assert contents(tmp_path / "3") == contents(tmp_path / "1"), settings
        lines = (tmp_path / "3/metrics.jsonl").read_text().splitlines()
        steps = [step for step in map(json.loads, lines) if "tokens_per_second" in step]
        sent = float(re.search(r"per rank; ([0-9.]+) MB each way per step", ended[0][1])[1])
        # A step is four exchanges, one after the other: losses, gradients, squares, weights. A rank that begins a step
        # late finds the others one exchange ahead, so the steps are timed together.
        least = 4 * 0.020 if "QKV_LOCAL_DELAY" in settings else 0.9 * 8 * sent / 2
        seconds = [step["target_tokens"] / step["tokens_per_second"] for step in steps[1:]]
        assert sum(seconds) > (len(seconds) - 1 / 4) * least, (settings, seconds)
        shutil.rmtree(tmp_path / "3")


def test_a_run_continues_on_another_number_of_ranks(corpus, tmp_path):
    command = [*commands(corpus, tmp_path)["lm"], "--shards", 8, "--eval-every", 0, "--save-every", 0]
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    qkv(*command, "--max-steps", 20, "--out", whole)
    for size, end in ((3, 6), (1, 10), (2, 20)):
        arguments = [*command, "--max-steps", end, "--out", parts]
        expect_success(run_job(size, arguments) if size > 1 else [(0, qkv(*arguments)[2])])
    for run in (whole, parts):
        (run / "training.json").unlink()  # holds the first command's limits
        (run / "model.safetensors").unlink()  # the parts have more evaluations
        state = run / "checkpoints/state.safetensors"
        data = state.read_bytes()
        header = 8 + int.from_bytes(data[:8], "little")
        state.write_bytes(data[header:])  # without the record of evaluations
    assert contents(parts) == contents(whole)


@pytest.mark.release
def test_twenty_kills_of_a_rank_change_no_byte(corpus, tmp_path):
    command = [*commands(corpus, tmp_path)["translate"], "--shards", 4, "--max-steps", 40, "--eval-every", 10,
               "--save-every", 3]
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    qkv(*command, "--out", whole)
    begin = time.monotonic()
    expect_success(run_job(2, [*command, "--out", tmp_path / "timed"]))
    duration = time.monotonic() - begin
    draws = random.Random(5)
    kills = 0
    for _ in range(200):
        size = draws.choice((2, 3, 4))
        with job(size, [*command, "--out", broken]) as started:
            killed = started.ranks[draws.randrange(size)]
            time.sleep(draws.uniform(0.02, 0.6) * duration)
            if killed.poll() is None:
                killed.send_signal(signal.SIGKILL)
                kills += 1
            ended = started.wait()
        for status, error in ended:  # rank 0 kills a rank that waits for the connection of one that was killed
            assert status in (-signal.SIGKILL, 0, 1), ended
            assert sum(line.startswith("qkv: ") for line in error.splitlines()) <= 1, ended
        if all(status == 0 for status, _ in ended) and broken.exists() and kills < 20:
            assert contents(broken) == contents(whole)
            broken.rename(tmp_path / f"done-{kills}-{time.monotonic()}")
        if kills == 20:
            break
    assert kills == 20
    expect_success(run_job(2, [*command, "--out", broken]))
    assert contents(broken) == contents(whole)
