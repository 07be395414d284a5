"""qkv.evaluate, compared with the program."""

import json

import pytest

import qkv


def program(run_program, *arguments):
    return json.loads(run_program("evaluate", *arguments, "--json")[1])


def test_a_run_has_the_figures_of_the_program(films, run_program, tmp_path):
    expected = program(run_program, films / "run", "--segments", "length", "--lists", tmp_path / "program.csv")
    assert qkv.evaluate(films / "run", segments="length", lists=tmp_path / "python.csv") == expected
    assert (tmp_path / "python.csv").read_bytes() == (tmp_path / "program.csv").read_bytes()
    sampled = program(run_program, films / "run", "--validation", "--users", 20)
    assert qkv.evaluate(str(films / "run"), validation=True, users=20) == sampled
    assert qkv.evaluate(films / "run")["HR@10"] == expected["HR@10"]


def test_a_log_has_the_figures_of_the_program(films, run_program):
    log = films / "log.csv"
    expected = program(run_program, log, "--next", 2, "--min-events", 5, "--protocol", "sampled-20", "--seed", 3)
    assert qkv.evaluate(log, next=2, min_events=5, protocol="sampled-20", seed=3) == expected
    assert qkv.evaluate([log], next=2, min_events=5, protocol="sampled-20", seed=3) == expected


def test_errors_are_raised(films):
    with pytest.raises(qkv.Error, match="protocol must be full"):
        qkv.evaluate(films / "run", protocol="half")
    with pytest.raises(qkv.Error, match="next must be at most 1"):
        qkv.evaluate(films / "run", next=2)
    with pytest.raises(qkv.Error, match="columns must be a list"):
        qkv.evaluate(films / "log.csv", columns="user,item")


def test_files_are_read_by_a_separator_and_a_format_of_times(tmp_path):
    log = tmp_path / "orders.txt"
    lines = [f"u{user}|i{(user + step) % 9}|{10 + step}.05.2024" for user in range(9) for step in range(5)]
    log.write_text("\n".join([*lines, "u0|i1"]) + "\n")
    options = {"separator": "|", "time_format": "%d.%m.%Y"}
    found = qkv.evaluate(log, **options, skip_bad_lines=True)
    assert found["data"]["events"] == 45 and found["targets_in_history"] == 0
    with pytest.raises(qkv.Error, match="expected 3 columns as in the first line"):
        qkv.evaluate(log, **options)
    with pytest.raises(qkv.Error, match="time_format \"%Q\": unknown directive"):
        qkv.evaluate(log, separator="|", time_format="%Q")
    with pytest.raises(qkv.Error, match="separator must be a str"):
        qkv.evaluate(log, separator=1)
