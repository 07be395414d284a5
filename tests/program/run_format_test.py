"""Commands on a run in a format, or of a kind, that they cannot read."""

import json
import shutil

from conftest import ROOT, qkv

RUNS = ROOT / "tests/golden/runs"


def test_a_newer_format_is_rejected_by_name(tmp_path):
    run = tmp_path / "run"
    shutil.copytree(RUNS / "translator", run)
    config = json.loads((run / "config.json").read_text())
    (run / "config.json").write_text(json.dumps({**config, "format": 7, "version": "9.1.0"}))
    commands = [("translate",), ("inspect",), ("embed",), ("export", tmp_path / "out"), ("quantize", "--int8")]
    for command, *more in commands:
        status, output, error = qkv(command, run, *more, text="a\n", ok=False)
        assert (status, output) == (1, "") and "format 7 was written by qkv 9.1.0" in error, command


def test_every_command_names_the_kind_that_it_found():
    for command, name, message in (
            ("translate", "recommender", "is a recommender; expected a translator (try: qkv recommend)"),
            ("generate", "translator", "is a translator; expected a language model (try: qkv translate)"),
            ("recommend", "encoder", "is an encoder; expected a recommender (try: qkv embed)"),
            ("embed", "recommender",
             "is a recommender; expected an encoder, a classifier, a translator or a language model (try: qkv "
                 "recommend)")):
        status, output, error = qkv(command, RUNS / name, text="", ok=False)
        assert (status, output, error) == (1, "", f"qkv: {RUNS / name} {message}\n")
    status, output, error = qkv("evaluate", RUNS / "language", ok=False)
    hint = "is no recommender; set --rows to a file of rows to evaluate a model of texts"
    assert (status, output, error) == (1, "", f"qkv: {RUNS / 'language'}: {hint}\n")
