"""qkv evaluate: protocols, baselines and JSON, on a log whose next item follows from the last one."""

import csv
import gzip
import hashlib
import json
import math
import random
import re
import shutil
import subprocess

import pytest
from conftest import QKV, qkv

USERS, ITEMS = 30, 40
RANKS = ["HR", "NDCG", "MRR"]
METRICS = [f"{name}@{k}" for name in RANKS for k in (5, 10, 20)] + ["coverage@10"]
ALL_METRICS = METRICS + [f"{name}@{k}" for name in ("Recall", "Precision", "MAP", "NDCG_full") for k in (5, 10, 20)] + [
    "coverage@5", "coverage@20"] + [f"{name}@{k}" for name in ("MIUF", "ARP") for k in (5, 10, 20)]


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
    assert list(found["baselines"]) == ["popularity", "markov", "transitions"] and "HR@10" not in found
    for name in METRICS[:9]:
        assert found["baselines"]["markov"][name] == found["baselines"]["transitions"][name] == 1
    assert list(found["baselines"]["popularity"]) == ALL_METRICS


def test_the_table_names_protocol_and_data(log):
    _, output, error = qkv("evaluate", log, *COLUMNS, "--protocol", "temporal", "--test-share", 0.2, "--validation")
    assert "protocol: temporal: each user's first event of the last but one 20 % of the log, among all items" in output
    assert hashlib.sha256(log.read_bytes()).hexdigest() in output
    rows = [line.split() for line in output.strip().split("\n\n")[1].split("\n")]
    assert rows[0] == [*METRICS, "MIUF@10", "ARP@10"] and rows[2][0] == "markov" and rows[2][1:10] == ["1.0000"] * 9
    assert "kept: 30 users, 40 items, 360 events" in error


def test_a_model_is_compared_with_the_baselines(log, run):
    found = evaluate(run)
    assert found["protocol"] == "full" and found["data"]["sha256"] == hashlib.sha256(log.read_bytes()).hexdigest()
    assert all(0 <= found[name] <= 1 for name in METRICS)
    assert found["HR@5"] <= found["HR@10"] <= found["HR@20"]
    alone = evaluate(log, *COLUMNS)["baselines"]
    del alone["transitions"]  # shown only for runs that have them
    assert found["baselines"] == alone


def test_transitions_are_fitted_and_compared_with_the_model_without_them(log, tmp_path):
    train = ["train", "recommend", "--data", log, *COLUMNS, "--preset", "sasrec", "--max-steps", 3, "--threads", 1,
             "--transitions", "true", "--out", tmp_path / "run"]
    report = qkv(*train)[2]
    fitted = json.loads((tmp_path / "run/transitions.json").read_text())
    scores = [float(value) for value in re.findall(r"(?<!best dev )NDCG@10 (\d\.\d+)", report)]
    best = report.split("best dev NDCG@10 ")[1].split()[0]
    assert float(best) == pytest.approx(max(scores), abs=5e-5)  # the model with transitions decides, as it is served
    assert fitted["weight"] > 0 and f" transitions {fitted['weight']:.2f} NDCG@10 without " in report
    found = evaluate(tmp_path / "run")
    assert list(found["baselines"]) == ["model without transitions", "popularity", "markov", "transitions"]
    assert found["NDCG@10"] > 0.9 > found["baselines"]["model without transitions"]["NDCG@10"]
    lines = qkv("evaluate", tmp_path / "run")[1].split("\n\n")[1].splitlines()
    assert [line.split("  ")[0] for line in lines[1:]] == ["model", "model without transitions", "popularity", "markov",
                                                          "transitions"] and len({len(line) for line in lines}) == 1
    (tmp_path / "run/transitions.json").unlink()
    without = evaluate(tmp_path / "run")
    assert {name: without[name] for name in ALL_METRICS} == found["baselines"]["model without transitions"]
    assert "resumed at step 3" in qkv(*train)[2]


@pytest.mark.parametrize("text, part", [
    ('{"weight": -1}', "weight must be between 0 and 1000000 (is -1)"),
    ('{"weight": 1, "decay": 0}', "decay must be above 0 and at most 1 (is 0)"),
    ('{"weight": 1, "distance": 256}', "distance must be between 1 and 255 (is 256)"),
    ('{"weight": 1, "events": 201}', "events must be at most 200, max_length in "),
    ('{"weight": 1, "kept": 0}', "kept must be between 1 and 1048576 (is 0)"),
    ('{"weights": 1}', "weights"),
    ('{', ""),
])
def test_invalid_transitions_are_refused(run, tmp_path, text, part):
    shutil.copytree(run, tmp_path / "run")
    (tmp_path / "run/transitions.json").write_text(text)
    for command in (["evaluate", tmp_path / "run"], ["recommend", tmp_path / "run", "--history", "item 1"]):
        status, output, error = qkv(*command, ok=False)
        assert status == 1 and output == "" and error.startswith(f"qkv: {tmp_path}/run/transitions.json: ")
        assert part in error and error.count("\n") == 1


def test_random_items_are_stored_and_reused(log, run):
    first = evaluate(run, "--protocol", "sampled-20", "--seed", 5)
    kept = run / "negatives-20-5.safetensors"
    content = kept.read_bytes()
    assert evaluate(run, "--protocol", "sampled-20", "--seed", 5) == first
    alone = evaluate(log, *COLUMNS, "--protocol", "sampled-20", "--seed", 5)["baselines"]
    assert first["baselines"] == {name: alone[name] for name in ("popularity", "markov")}
    kept.write_bytes(content[:-4])
    status, output, error = qkv("evaluate", run, "--protocol", "sampled-20", "--seed", 5, ok=False)
    assert status == 1 and output == "" and error.startswith(f"qkv: {kept}: ") and error.count("\n") == 1
    kept.unlink()
    assert evaluate(run, "--protocol", "sampled-20", "--seed", 5) == first
    assert kept.read_bytes() == content


@pytest.mark.parametrize("arguments, status, part", [
    (["--protocol", "half"], 1, "protocol must be full, temporal, users or sampled-N with N between 1 and 10000 (is \"half\")"),
    (["--protocol", "sampled-0"], 1, "protocol must be full, temporal, users or sampled-N"),
    (["--protocol", "temporal"], 1, "its split is leave_one_out"),
    (["--min-events", "5"], 2, "--min-events: applies to logs only"),
    (["--next", "2"], 1, "next must be at most 1, the events that the run holds out of each user (is 2); train with holdout 2"),
    (["--next", "1001"], 2, "--next: Value 1001 not in range 0 to 1000"),
    (["--segments", "/nonexistent"], 1, "/nonexistent: "),
    (["--lists", "/nonexistent/lists.csv"], 1, "/nonexistent/lists.csv"),
])
def test_options_that_contradict_the_run_are_refused(run, arguments, status, part):
    found, output, error = qkv("evaluate", run, *arguments, ok=False)
    assert found == status and output == "" and part in error and error.count("\n") == 1


@pytest.fixture(scope="module")
def random_log(tmp_path_factory):
    """Histories of random items, of which no user has one twice, in the order of the lines."""
    draw = random.Random(5)
    events = {f"u,{user}": draw.sample(range(60), draw.randint(6, 25)) for user in range(40)}
    path = tmp_path_factory.mktemp("logs") / "random.csv"
    path.write_text("".join(f'"{user}",{item}\n' for user, items in events.items() for item in items))
    return path, {user: [str(item) for item in items] for user, items in events.items()}


def measures_by_hand(lists, targets, k):
    """The measures of lists by their definitions, as means over the users."""
    sums = dict.fromkeys(["HR", "Recall", "Precision", "MRR", "MAP", "NDCG"], 0)
    for user, wanted in targets.items():
        hits = [rank for rank, item in enumerate(lists[user][:k], 1) if item in wanted]
        ideal = sum(1 / math.log2(1 + rank) for rank in range(1, min(len(wanted), k) + 1))
        sums["HR"] += bool(hits)
        sums["Recall"] += len(hits) / len(wanted)
        sums["Precision"] += len(hits) / k
        sums["MRR"] += 1 / hits[0] if hits else 0
        sums["MAP"] += sum(n / rank for n, rank in enumerate(hits, 1)) / len(wanted)
        sums["NDCG"] += sum(1 / math.log2(1 + rank) for rank in hits) / ideal
    return {f"{name}@{k}": value / len(targets) for name, value in sums.items()}


def test_several_targets_have_the_measures_of_the_lists_that_are_written(random_log, tmp_path):
    log, events = random_log
    run, file = tmp_path / "run", tmp_path / "lists.csv"
    qkv("train", "recommend", "--data", log, "--out", run, "--preset", "sasrec", "--holdout", 3, "--max-steps", 3,
        "--threads", 1)
    found = evaluate(run, "--lists", file, "--threads", 3)
    assert found["next"] == 3 and found["description"].startswith("each user's last 3 events, among")
    targets = {user: items[-3:] for user, items in events.items() if len(items) >= 7}
    assert found["users"] == len(targets) and found["users_without_target"] == len(events) - len(targets)
    with file.open(newline="") as lines:
        rows = list(csv.DictReader(lines))
    assert list(rows[0]) == ["user", "item", "rank"]
    lists = {user: [row["item"] for row in rows if row["user"] == user] for user in targets}
    assert [int(row["rank"]) for row in rows] == [rank for user in targets for rank in range(1, len(lists[user]) + 1)]
    assert all(not set(lists[user]) & set(events[user][:-3]) for user in targets)
    for k in (5, 10, 20):
        for name, value in measures_by_hand(lists, targets, k).items():
            assert found[name] == pytest.approx(value, abs=1e-12), name
        listed = {item for items in lists.values() for item in items[:k]}
        assert found[f"coverage@{k}"] == pytest.approx(len(listed) / 60, abs=1e-12)
    assert found["HR@20"] > 0

    first = evaluate(run, "--next", 1)
    assert first["description"].startswith("the first of each user's last 3 events, among")
    assert evaluate(run, "--next", 3, "--validation")["description"].startswith(
        "the 3 events before each user's last 3, among")
    assert first["HR@10"] <= found["HR@10"] and first["Recall@10"] == first["HR@10"]
    alone = evaluate(log, "--next", 3)["baselines"]
    assert found["baselines"] == {name: alone[name] for name in ("popularity", "markov")}


def test_a_temporal_split_has_as_many_targets_as_its_period(log):
    one = evaluate(log, *COLUMNS, "--protocol", "temporal", "--test-share", 0.3)
    many = evaluate(log, *COLUMNS, "--protocol", "temporal", "--test-share", 0.3, "--next", 3)
    assert many["description"].startswith("each user's first 3 events of the last 30 % of the log")
    assert many["users"] == one["users"] == USERS
    markov = many["baselines"]["markov"]
    assert markov["HR@5"] == 1 and markov["Recall@5"] < 1  # the chain knows the next item, not the two after it


def test_segments_divide_the_users(random_log, tmp_path):
    log, events = random_log
    by_length = evaluate(log, "--segments", "length")["baselines"]["markov"]
    counts = {name: segment["users"] for name, segment in by_length["segments"].items()}
    lengths = [len(items) - 1 for items in events.values()]
    assert counts == {"1-4": 0, "5-9": sum(n < 10 for n in lengths), "10-19": sum(10 <= n < 20 for n in lengths),
                      "20-49": sum(n >= 20 for n in lengths), "50+": 0}
    mean = sum(segment["users"] * segment["MRR@20"] for segment in by_length["segments"].values()) / len(events)
    assert mean == pytest.approx(by_length["MRR@20"], abs=1e-12) and list(by_length["segments"]["5-9"]) == ["users", *ALL_METRICS]
    by_popularity = evaluate(log, "--segments", "popularity")["baselines"]["popularity"]["segments"]
    assert by_popularity["head"]["MRR@20"] > by_popularity["tail"]["MRR@20"]

    file = tmp_path / "segments.csv"
    file.write_text("user,segment\n" + "".join(f'"u,{user}",{"old" if user < 15 else "new"}\n' for user in range(25)))
    from_file = evaluate(log, "--segments", file)["baselines"]["popularity"]["segments"]
    assert {name: segment["users"] for name, segment in from_file.items()} == {"old": 15, "new": 10}
    table = qkv("evaluate", log, "--segments", file)[1]
    assert "segment old: 15 users\npopularity " in table and "segment new: 10 users\n" in table
    file.write_text("u,segment\nu,a,b\n")
    status, output, error = qkv("evaluate", log, "--segments", file, ok=False)
    assert status == 1 and output == "" and error.startswith(f"qkv: {file}:2: ") and error.count("\n") == 1


def test_a_sample_of_users_is_stated(log):
    found = evaluate(log, *COLUMNS, "--users", 12)
    assert found["users"] == 12 and found["users_not_sampled"] == USERS - 12
    table = qkv("evaluate", log, *COLUMNS, "--users", 12)[1]
    assert "users: 12 evaluated, 0 without a target event, 0 without events before it, 18 not in the sample" in table
    assert evaluate(log, *COLUMNS, "--users", 0) == evaluate(log, *COLUMNS)


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


def test_targets_in_the_history_are_misses_as_in_the_lists(tmp_path):
    rng = random.Random(4)
    lines, targets, history = [], {}, {}
    for user in range(200):
        events = [rng.randrange(40) for _ in range(6)]
        events.append(rng.choice(events) if user % 3 == 0 else rng.randrange(40))
        lines += [f"u{user} i{item}" for item in events]
        targets[f"u{user}"], history[f"u{user}"] = f"i{events[-1]}", {f"i{item}" for item in events[:-1]}
    log = tmp_path / "log"
    log.write_text("\n".join(lines) + "\n")
    repeated = sum(targets[user] in history[user] for user in targets)
    qkv("train", "recommend", "--data", log, "--out", tmp_path / "run", "--repeats", "false", "--max-steps", 2,
        "--d-model", 8, "--threads", 1)
    for source in (log, tmp_path / "run"):
        found = evaluate(source, "--lists", tmp_path / "lists.csv")
        scores = found if source != log else found["baselines"]["popularity"]
        assert found["targets_in_history"] == repeated > 60
        ranks = {row["user"]: int(row["rank"]) for row in csv.DictReader((tmp_path / "lists.csv").open())
                 if row["item"] == targets[row["user"]]}
        assert not {user for user in ranks if targets[user] in history[user]}
        if source != log:  # popularity has ties, which count against it
            assert scores["HR@20"] == pytest.approx(len(ranks) / 200)
            assert scores["NDCG@20"] == pytest.approx(sum(1 / math.log2(1 + rank) for rank in ranks.values()) / 200)
        for baseline in [scores, *found["baselines"].values()]:
            assert baseline["HR@20"] <= 1 - repeated / 200
        assert f"targets: {repeated} are in the user's history" in qkv("evaluate", source)[1]
        sampled = evaluate(source, "--protocol", "sampled-1")
        assert all(scores["HR@20"] == pytest.approx(1 - repeated / 200) for scores in sampled["baselines"].values())
    assert "targets_in_history" in evaluate(log, "--repeats") and evaluate(log, "--repeats")["targets_in_history"] == 0


def test_a_rating_that_is_taken_as_the_time_is_reported(tmp_path):
    log = tmp_path / "ratings.csv"
    log.write_text("".join(f"u{user},i{(user * 7 + i * 5) % 30},{1 + (user + i) % 5}\n" for user in range(20) for i in range(8)))
    warning = ("column 3 is taken as the time because of its place, but has only 5 distinct values, from 1 to 5; if these are "
               "ratings or counts, set columns to 1,2 (or to USER,ITEM,TIME)")
    assert f"warning: {warning}" in qkv("evaluate", log)[2]
    assert warning not in qkv("evaluate", log, "--columns", "1,2")[2]
    training = ["train", "recommend", "--data", log, "--max-steps", 1, "--d-model", 8, "--threads", 1]
    assert f"warning: {warning}" in qkv(*training, "--out", tmp_path / "run")[2]
    assert f"- {warning}" in qkv("data", "check", "--data", log)[1]
    assert warning in json.loads(qkv("data", "check", "--data", log, "--json")[1])["advice"]


def test_logs_are_read_by_the_separator_and_the_format_of_times(tmp_path):
    log = tmp_path / "orders.txt"
    lines = [f"u{user}|i{(user + step) % 9}|{28 - step:02}.{1 + step % 3:02}.2024 10:00" for user in range(9) for step in range(5)]
    log.write_text("\n".join([*lines, "u0|i1", "u0|i1|yesterday"]) + "\n")
    options = ["--separator", "|", "--time-format", "%d.%m.%Y %H:%M", "--skip-bad-lines"]
    found = evaluate(log, *options)
    assert found["data"]["events"] == 45 and found["users"] == 9
    checked = json.loads(qkv("data", "check", "--data", log, *options, "--json")[1])
    assert checked["bad_lines"] == 2 and checked["has_times"] and "2 lines cannot be read, and are dropped" in checked["advice"]
    training = ["train", "recommend", "--data", log, "--max-steps", 1, "--d-model", 8, "--threads", 1]
    note = f"2 bad lines skipped, the first: {log}:46: expected 3 columns as in the first line (found 2)"
    assert note in qkv(*training, "--out", tmp_path / "run", *options)[2]
    assert evaluate(tmp_path / "run")["baselines"]["markov"] == found["baselines"]["markov"]
    status, _, error = qkv("evaluate", log, *options[:-1], ok=False)
    assert status == 1 and error.startswith(f"qkv: {log}:46: expected 3 columns")
    status, _, error = qkv("evaluate", tmp_path / "run", "--separator", "|", ok=False)
    assert status == 2 and "--separator" in error


def raw_zstd(text):
    """A frame of raw blocks (RFC 8878, 3.1.1): magic, descriptor, window of 128 KiB, blocks."""
    size = 1 << 17
    parts = [text[i:i + size] for i in range(0, len(text), size)]
    heads = [(len(part) << 3 | (part is parts[-1])).to_bytes(3, "little") for part in parts]
    return b"\x28\xb5\x2f\xfd\x00\x38" + b"".join(head + part for head, part in zip(heads, parts))


def test_compressed_logs_are_read_and_parquet_is_refused_with_a_remedy(log, tmp_path):
    packed, zstd = tmp_path / "ring.csv.gz", tmp_path / "ring.csv.zst"
    packed.write_bytes(gzip.compress(log.read_bytes()))
    zstd.write_bytes(raw_zstd(log.read_bytes()))
    assert evaluate(packed, *COLUMNS) == evaluate(zstd, *COLUMNS) == evaluate(log, *COLUMNS)
    zstd.write_bytes(zstd.read_bytes()[:-5])
    assert f"qkv: {zstd}: the zstd data ends too early" in qkv("evaluate", zstd, *COLUMNS, ok=False)[2]
    zstd.write_bytes(raw_zstd(log.read_bytes()))
    for source in (log, packed, zstd):  # standard input
        with source.open("rb") as file:
            done = subprocess.run([QKV, "evaluate", "-", *COLUMNS, "--json"], stdin=file, capture_output=True, timeout=60)
        assert json.loads(done.stdout) == evaluate(log, *COLUMNS)
    packed.write_bytes(packed.read_bytes()[:-5])
    assert f"qkv: {packed}: the gzip data ends too early" in qkv("evaluate", packed, *COLUMNS, ok=False)[2]
    (tmp_path / "log.parquet").write_bytes(b"PAR1\x15\x04\x15\x80\x90\xff" * 5)
    error = qkv("evaluate", tmp_path / "log.parquet", ok=False)[2]
    assert "import pandas; pandas.read_parquet('FILE').to_csv('log.csv', index=False)" in error and error.count("\n") == 1
