"""qkv import: models of other projects, from the command line and in Python."""

import json
import pathlib

import pytest
from conftest import ROOT, qkv

CASES = ROOT.parent / "shared/cases"
needs_shared = pytest.mark.skipif(not CASES.exists(), reason="../shared not present")


def test_a_source_that_holds_no_model_is_one_line(tmp_path):
    (tmp_path / "model").mkdir()
    status, out, err = qkv("import", tmp_path / "model", tmp_path / "run", ok=False)
    assert (status, out) == (1, "")
    accepted = "model.safetensors or pytorch_model.bin with config.json, model.bin, or metadata.json"
    assert err == f"qkv: {tmp_path}/model: expected {accepted}\n"
    assert not (tmp_path / "run").exists()


def test_names_of_choices_are_checked(tmp_path):
    status, _, err = qkv("import", tmp_path, tmp_path / "run", "--activation", "tanh", ok=False)
    assert (status, err) == (2, "qkv: --activation: must be one of relu, gelu, silu, gelu_tanh (is tanh)\n")


def test_the_help_lists_every_model_and_choice():
    text = " ".join(qkv("import", "--help-all")[1].split())
    for name in "GPT-2", "Llama", "MarianMT", "RoBERTa", "StarCoder2", "CTranslate2", ".argosmodel":
        assert name in text
    for values in "relu, gelu, silu, gelu_tanh", "post, pre, query", "learned, rotary, alibi, none":
        assert values in text


@needs_shared
def test_an_imported_model_translates_is_inspected_and_attended_to(tmp_path):
    run = tmp_path / "run"
    _, out, _ = qkv("import", CASES / "aren/aren-transliteration", run)
    assert out == f"{run}: CTranslate2 model, 6 + 6 layers of width 32, 182731 parameters\n"
    files = {path.name for path in run.iterdir()}
    assert files == {"config.json", "translation.json", "model.safetensors", "source_vocabulary.json",
                     "target_vocabulary.json"}
    for beam in 1, 5:
        _, out, _ = qkv("translate", run, "--beam", beam, text="آ ت ز م و ن\n\nآ ت ش ي س و ن\n")
        assert out == "a t z m o n\n\na c h i s o n\n"
    info = json.loads(qkv("inspect", run, "--json")[1])
    assert info["parameter_count"] == 182731 and info["training_bytes"] == 0
    assert info["config"]["positions"] == "closed_halves"
    _, out, _ = qkv("attend", run, "آ ت ز م و ن")
    assert out.startswith("a t z m o n\n")
    status, _, err = qkv("import", CASES / "aren/aren-transliteration", run, ok=False)
    assert status == 1 and err == f"qkv: {run}: already exists\n"


@needs_shared
def test_options_set_the_special_tokens(tmp_path):
    source = CASES / "aren/aren-transliteration-i8"
    qkv("import", source, tmp_path / "run", "--source-end", "</s>", "--source-start", "", "--start", "</s>")
    tokens = json.loads((tmp_path / "run/translation.json").read_text())
    assert (tokens["source_start"], tokens["source_end"], tokens["start"]) == ("", "</s>", "</s>")
    assert (tokens["end"], tokens["min_length"], tokens["never"]) == ("</s>", 1, [])


@needs_shared
def test_a_marian_model_translates(tmp_path):
    cases = json.loads(pathlib.Path(CASES / "marian/cases.json").read_text())["cases"]
    qkv("import", CASES / "marian", tmp_path / "run")
    _, out, _ = qkv("translate", tmp_path / "run", "--beam", 1, text="".join(case["source"] + "\n" for case in cases))
    assert len(out.splitlines()) == len(cases) and "<pad>" not in out
