"""qkv train recommend: values that fit the log, baselines during training, users with two events."""

import json
import subprocess

from conftest import ROOT, qkv


def write_log(path, *options):
    """Writes a generated log; the same options give the same bytes."""
    subprocess.run(["python3", ROOT / "bench/large_log.py", "--out", path, *map(str, options)], check=True, timeout=60)
    return path


def train(log, run, *options):
    """Returns the lines that training prints."""
    return qkv("train", "recommend", "--data", log, "--out", run, "--threads", 1, *options)[2].splitlines()


def line_of(lines, beginning):
    (line,) = [line for line in lines if line.startswith(beginning)]
    return line


def test_training_states_the_log_its_choices_and_the_baselines(tmp_path):
    log = write_log(tmp_path / "log", "--users", 300, "--items", 100)
    lines = train(log, tmp_path / "run", "--d-model", 16, "--max-steps", 2, "--transitions", "false")
    assert line_of(lines, "log: ").startswith("log: ") and " repetitions" in line_of(lines, "log: ")
    chosen = line_of(lines, "chosen for it: ")
    assert "ffn 64, max_length 50, batch_tokens 1024, loss softmax" in chosen and "d_model" not in chosen
    baselines = line_of(lines, "baselines on dev:  popularity NDCG@10 ")
    markov = baselines.split("  markov NDCG@10 ")[1].split()[0]
    assert f" markov {markov}" in line_of(lines, "step 2  dev:")
    assert line_of(lines, "the model is below the baseline markov").endswith(
        "try more steps (max_steps is 2), or what the preset auto chooses (d_model 64, ffn 256, transitions true)")
    metrics = [json.loads(line) for line in (tmp_path / "run/metrics.jsonl").read_text().splitlines()]
    assert [record["step"] for record in metrics] == [0, 1, 2, 2]
    assert f"{metrics[0]['baselines']['markov']['NDCG@10']:.4f}" == markov
    lines = train(log, tmp_path / "run", "--d-model", 16, "--max-steps", 3, "--transitions", "false")
    assert line_of(lines, "resumed at step 2") and not [line for line in lines if line.startswith("chosen")]


def test_what_is_given_stays_and_a_preset_fixes_the_recipe(tmp_path):
    log = write_log(tmp_path / "log", "--users", 300, "--items", 100)
    (tmp_path / "config.json").write_text('{"dropout": 0.45, "max_steps": 1, "d_model": 8}')
    lines = train(log, tmp_path / "run", "--config", tmp_path / "config.json", "--batch-tokens", 300)
    assert " batch_tokens" not in line_of(lines, "chosen for it: ")
    recipe = json.loads((tmp_path / "run/training.json").read_text())
    model = json.loads((tmp_path / "run/config.json").read_text())
    assert recipe["batch_tokens"] == 300 and recipe["schedule"] == "constant"
    assert model["dropout"] == 0.45 and model["attention_dropout"] == 0.3
    lines = train(log, tmp_path / "films", "--preset", "films", "--d-model", 8, "--max-steps", 1)
    assert not [line for line in lines if line.startswith("chosen")]
    assert json.loads((tmp_path / "films/training.json").read_text())["batch_tokens"] == 16384


def test_users_with_two_events_are_held_out(tmp_path):
    log = write_log(tmp_path / "log", "--users", 300, "--items", 100, "--events", 2)
    run = tmp_path / "run"
    lines = train(log, run, "--d-model", 8, "--max-steps", 1)
    assert "most users have two events: chosen min_events 2, split users" in lines
    found = json.loads(qkv("evaluate", run, "--json")[1])
    assert found["protocol"] == "users" and found["users"] == 15 and found["users_without_target"] == 285
    alone = json.loads(qkv("evaluate", log, "--protocol", "users", "--min-events", 2, "--json")[1])
    assert alone["baselines"] == {name: found["baselines"][name] for name in alone["baselines"]}
    status, _, error = qkv("evaluate", run, "--protocol", "full", ok=False)
    assert status == 1 and "its split is users" in error


def test_the_generated_log_is_what_its_options_say(tmp_path):
    options = ["--users", 2000, "--items", 500, "--events", 8, "--repeat", 0.3]
    text = write_log(tmp_path / "a", *options).read_bytes()
    assert write_log(tmp_path / "b", *options).read_bytes() == text
    assert write_log(tmp_path / "c", *options, "--seed", 2).read_bytes() != text
    events = [line.split() for line in text.decode().splitlines()]
    users = {}
    for user, item in events:
        users.setdefault(user, []).append(int(item))
    assert len(users) == 2000 and 7.5 < len(events) / 2000 < 8.5
    assert min(map(len, users.values())) == 2 and max(item for items in users.values() for item in items) < 500
    repeated = sum(len(items) - len(set(items)) for items in users.values()) / len(events)
    assert 0.2 < repeated < 0.45


def test_one_user_with_very_many_events_does_not_move_the_values(tmp_path):
    log = write_log(tmp_path / "log", "--users", 300, "--items", 3000)
    options = ["--d-model", 8, "--max-steps", 1, "--transitions", "false"]
    before = train(log, tmp_path / "before", *options)
    text = log.read_text()
    log.write_text(text + "machine 7\n" * 100_000)
    after = train(log, tmp_path / "after", *options)
    assert line_of(after, "chosen for it: ") == line_of(before, "chosen for it: ")
    assert json.loads((tmp_path / "after/recommendation.json").read_text())["repeats"] is False


def test_items_repeat_if_users_take_them_again_next(tmp_path):
    for place, repeats in ((0, False), (4, True)):  # whether early events repeat, or those that come next
        log, run = tmp_path / f"log{place}", tmp_path / f"run{place}"
        lines = []
        for user in range(100):
            items = [(user * 7 + step) % 50 for step in range(7)]
            items[1 if place == 0 else 5] = items[0]
            lines += [f"u{user} i{item}" for item in items]
        log.write_text("\n".join(lines) + "\n")
        train(log, run, "--d-model", 8, "--max-steps", 1)
        assert json.loads((run / "recommendation.json").read_text())["repeats"] is repeats
