"""Runs in older formats load, resume and serve with the same output. tests/golden/runs/README.md says what they are."""

import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess

import pytest

from conftest import QKV, ROOT, qkv

RUNS = ROOT / "tests/golden/runs"
TEXT = RUNS / "text/lines.en"
# The runs are so narrow that no product is left to oneDNN, so results depend on the instruction set alone.
PORTABLE = {**os.environ, "QKV_ISA": "portable"}
KINDS = {"translator": "translator", "imported-translator": "translator", "translator-int8": "translator",
         "language": "language_model", "recommender": "recommender", "encoder": "encoder"}


def portable(*arguments):
    done = subprocess.run([QKV, *map(str, arguments)], capture_output=True, text=True, timeout=300, env=PORTABLE, cwd=RUNS)
    assert done.returncode == 0, done.stderr
    return done.stdout


def expected(name):
    return (RUNS / "expected" / name).read_text()


def training_options(name):
    """The options of the command that made.sh trained the run with."""
    script = (RUNS / "make.sh").read_text()
    variables = {key: value for key, value in re.findall(r'^(\w+)="([^"]*)"', script, re.MULTILINE)}
    command, steps, options = re.search(rf"^train {name} (\S+) (\d+) (.*)$", script, re.MULTILINE).groups()
    for _ in variables:
        options = re.sub(r"\$(\w+)", lambda match: variables[match[1]], options)
    return ["train", command, *options.split()], int(steps)


@pytest.mark.parametrize("name", KINDS)
def test_inspect_shows_the_kind_of_a_run_that_states_none(name):
    info = json.loads(qkv("inspect", RUNS / name, "--json")[1])
    assert (info["kind"], info["format"], info["version"]) == (KINDS[name], 0, "")


@pytest.mark.parametrize("name", ["translator", "imported-translator", "translator-int8"])
def test_a_translator_translates_as_before(name):
    assert portable("translate", name, "--input", TEXT) == expected(f"{name}.txt")


def test_a_language_model_generates_as_before():
    assert portable("generate", "language", "--prompt", "There is", "--max-tokens", 40, "--seed", 4) == expected("language.txt")


def test_a_recommender_recommends_and_evaluates_as_before():
    assert portable("recommend", "recommender", "--user", "u0005") == expected("recommender.txt")
    now = json.loads(portable("evaluate", "recommender", "--json"))
    before = json.loads(expected("recommender.evaluation.json"))
    for name, measures in before.pop("baselines").items():
        assert {key: now["baselines"][name][key] for key in measures} == measures
    for key, value in before.items():
        assert key == "description" or now[key] == value, key


@pytest.mark.parametrize("name", ["encoder", "translator", "language"])
def test_vectors_are_as_before(name):
    assert portable("embed", name, "--file", TEXT) == expected(f"{name}.vectors.txt")


@pytest.mark.parametrize("name", ["translator", "language", "recommender"])
def test_training_resumes_to_the_same_bytes(name, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(RUNS / name, run)
    config = (run / "config.json").read_bytes()
    command, steps = training_options(name)
    portable(*command, "--out", run, "--max-steps", 2 * steps)
    for line in expected(f"{name}.resumed.sha256").splitlines():
        digest, file = line.split()
        assert hashlib.sha256((run / file).read_bytes()).hexdigest() == digest, file
    assert (run / "config.json").read_bytes() == config  # resuming does not convert a run


def test_quantizing_writes_the_present_format(tmp_path):
    qkv("quantize", RUNS / "translator", "--int8", "--out", tmp_path / "int8")
    info = json.loads(qkv("inspect", tmp_path / "int8", "--json")[1])
    assert (info["kind"], info["format"]) == ("translator", 1)
    weights = (tmp_path / "int8/model.safetensors").read_bytes()
    assert weights == (RUNS / "translator-int8/model.safetensors").read_bytes()


def test_a_newer_format_is_rejected_by_name(tmp_path):
    run = tmp_path / "run"
    shutil.copytree(RUNS / "translator", run)
    config = json.loads((run / "config.json").read_text())
    (run / "config.json").write_text(json.dumps({"format": 7, "kind": "translator", "version": "9.1.0", **config}))
    commands = [("translate",), ("inspect",), ("embed",), ("export", tmp_path / "out"), ("quantize", "--int8")]
    for command, *more in commands:
        status, output, error = qkv(command, run, *more, text="a\n", ok=False)
        assert (status, output) == (1, "") and "format 7 was written by qkv 9.1.0" in error, command


def test_every_command_names_the_kind_that_it_found():
    for command, name, message in (
            ("translate", "recommender", "is a recommender; expected a translator (try: qkv recommend)"),
            ("generate", "translator", "is a translator; expected a language model (try: qkv translate)"),
            ("recommend", "encoder", "is an encoder; expected a recommender (try: qkv embed)"),
            ("evaluate", "language", "is a language model; expected a recommender (try: qkv generate)"),
            ("embed", "recommender",
             "is a recommender; expected an encoder, a classifier, a translator or a language model (try: qkv "
                 "recommend)")):
        status, output, error = qkv(command, RUNS / name, text="", ok=False)
        assert (status, output, error) == (1, "", f"qkv: {RUNS / name} {message}\n")
