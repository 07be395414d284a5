"""qkv evaluate: protocols, baselines and JSON, on a log whose next item follows from the last one."""

import hashlib
import json

import pytest
from conftest import qkv

USERS, ITEMS = 30, 40
METRICS = [f"{name}@{k}" for name in ("HR", "NDCG", "MRR") for k in (5, 10, 20)] + ["coverage@10"]


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    """A log of users who walk around a ring of items one step at a time, from different starts."""
    path = tmp_path_factory.mktemp("logs") / "ring.csv"
    lines = [f"user {u},\"item {(u * 7 + step) % ITEMS}\",{1000 * step + u}" for step in range(12) for u in range(USERS)]
    path.write_text("\n".join(["who,what,when", *lines]) + "\n")
    return path


COLUMNS = ["--columns", "who,what,when"]


@pytest.fixture(scope="module")
def run(log, tmp_path_factory):
    run = tmp_path_factory.mktemp("runs") / "ring"
    qkv("train", "recommend", "--data", log, *COLUMNS, "--out", run, "--preset", "sasrec", "--max-steps", 3, "--threads", 1)
    return run


def evaluate(*arguments):
    return json.loads(qkv("evaluate", *arguments, "--json")[1])


def test_a_log_is_evaluated_by_the_baselines(log):
    found = evaluate(log, *COLUMNS)
    assert found["protocol"] == "full"
    assert found["data"] == {"sha256": hashlib.sha256(log.read_bytes()).hexdigest(), "users": USERS, "items": ITEMS,
                             "events": 12 * USERS}
    assert found["users"] == USERS and found["users_without_target"] == 0
    assert list(found["baselines"]) == ["popularity", "markov"] and "HR@10" not in found
    for name in METRICS[:9]:
        assert found["baselines"]["markov"][name] == 1
    assert list(found["baselines"]["popularity"]) == METRICS


def test_the_table_names_protocol_and_data(log):
    _, output, error = qkv("evaluate", log, *COLUMNS, "--protocol", "temporal", "--test-share", 0.2, "--validation")
    assert "protocol: temporal: each user's first event of the last but one 20 % of the log, among all items" in output
    assert hashlib.sha256(log.read_bytes()).hexdigest() in output
    rows = [line.split() for line in output.strip().split("\n\n")[1].split("\n")]
    assert rows[0] == METRICS and rows[2][0] == "markov" and rows[2][1:10] == ["1.0000"] * 9
    assert "kept: 30 users, 40 items, 360 events" in error


def test_a_model_is_compared_with_the_baselines(log, run):
    found = evaluate(run)
    assert found["protocol"] == "full" and found["data"]["sha256"] == hashlib.sha256(log.read_bytes()).hexdigest()
    assert all(0 <= found[name] <= 1 for name in METRICS)
    assert found["HR@5"] <= found["HR@10"] <= found["HR@20"]
    assert found["baselines"] == evaluate(log, *COLUMNS)["baselines"]


def test_random_items_are_stored_and_reused(log, run):
    first = evaluate(run, "--protocol", "sampled-20", "--seed", 5)
    kept = run / "negatives-20-5.safetensors"
    content = kept.read_bytes()
    assert evaluate(run, "--protocol", "sampled-20", "--seed", 5) == first
    assert first["baselines"] == evaluate(log, *COLUMNS, "--protocol", "sampled-20", "--seed", 5)["baselines"]
    kept.write_bytes(content[:-4])
    status, output, error = qkv("evaluate", run, "--protocol", "sampled-20", "--seed", 5, ok=False)
    assert status == 1 and output == "" and error.startswith(f"qkv: {kept}: ") and error.count("\n") == 1
    kept.unlink()
    assert evaluate(run, "--protocol", "sampled-20", "--seed", 5) == first
    assert kept.read_bytes() == content


@pytest.mark.parametrize("arguments, status, part", [
    (["--protocol", "half"], 1, "protocol must be full, temporal or sampled-N with N between 1 and 10000 (is \"half\")"),
    (["--protocol", "sampled-0"], 1, "protocol must be full, temporal or sampled-N"),
    (["--protocol", "temporal"], 1, "its split is leave_one_out"),
    (["--min-events", "5"], 2, "--min-events: applies to logs only"),
])
def test_options_that_contradict_the_run_are_refused(run, arguments, status, part):
    found, output, error = qkv("evaluate", run, *arguments, ok=False)
    assert found == status and output == "" and part in error and error.count("\n") == 1


def test_errors_name_the_invalid_line(tmp_path):
    log = tmp_path / "log.csv"
    log.write_text("user,item,time\na,b,1\na,c\n")
    status, output, error = qkv("evaluate", log, ok=False)
    assert status == 1 and output == "" and error == f"qkv: {log}:3: expected 3 columns as in the first line (found 2)\n"


@pytest.mark.parametrize("name", ["interactions.safetensors", "users.json", "items.json", "recommendation.json"])
def test_a_run_with_a_truncated_file_is_refused(run, tmp_path, name):
    broken = tmp_path / "broken"
    broken.mkdir()
    for file in run.iterdir():
        if file.is_file():
            (broken / file.name).write_bytes(file.read_bytes())
    (broken / name).write_bytes((run / name).read_bytes()[:-4])
    status, output, error = qkv("evaluate", broken, ok=False)
    assert status == 1 and output == "" and error.startswith(f"qkv: {broken / name}: ") and error.count("\n") == 1
