"""Translator.summarize, compared with the program."""

import json
import pathlib
import shutil

import pytest

import qkv

MODEL = pathlib.Path(__file__).resolve().parent.parent / "golden/encoder_decoders/t5"
TASK = {"max_length": 12, "min_length": 4, "num_beams": 3, "prefix": "summarize: "}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("t5")
    shutil.copytree(MODEL, folder / "model")
    config = folder / "model/config.json"
    config.write_text(json.dumps(json.loads(config.read_text()) | {"task_specific_params": {"summarization": TASK}}))
    qkv.import_model(folder / "model", folder / "run")
    return folder / "run"


def test_summaries_match_the_program(run, run_program):
    texts = ["the dog runs\nin the park .", "", "the cat sees a dog ."]
    summarizer = qkv.Translator(run)
    for options, given in [({}, []), ({"beam": 1, "max_length": 6}, ["--beam", 1, "--max-length", 6])]:
        results = summarizer.summarize(iter(texts), **options)
        for text, result in zip(texts, results, strict=True):
            assert result.source == text
            assert result.text + "\n" == run_program("summarize", run, *given, text=text)[1]
    assert summarizer.summarize(texts) != summarizer.translate(texts)


def test_texts_that_are_too_long_are_reported(run):
    with pytest.warns(UserWarning, match="longer than the model's .* tokens, split into"):
        qkv.Translator(run).summarize(["the dog runs . " * 200], beam=1, min_length=0, max_length=2)


def test_runs_of_sentences_and_wrong_values_are_refused(trained, run):
    with pytest.raises(qkv.Error, match="translates sentences .*; expected a model of whole texts"):
        qkv.Translator(trained).summarize(["a"])
    with pytest.raises(qkv.Error, match="beam must be between 1 and 1024"):
        qkv.Translator(run).summarize(["a"], beam=0)
    with pytest.raises(qkv.Error, match="texts must be a list of str"):
        qkv.Translator(run).summarize("a")


def test_the_defaults_are_read_once(run, tmp_path):
    shutil.copytree(run, tmp_path / "run")
    summarizer = qkv.Translator(tmp_path / "run")
    wanted = summarizer.summarize(["the dog runs ."])
    (tmp_path / "run").rename(tmp_path / "moved")
    assert summarizer.summarize(["the dog runs ."]) == wanted


def test_runs_with_wrong_defaults_of_summaries_still_translate(run, tmp_path):
    shutil.copytree(run, tmp_path / "run")
    (tmp_path / "run/summary.json").write_text('{"beam": 0}')
    translator = qkv.Translator(tmp_path / "run")
    assert translator.translate(["the dog runs ."])[0].source == "the dog runs ."
    with pytest.raises(qkv.Error, match=r"summary\.json: beam must be between 1 and 1024 \(is 0\)"):
        translator.summarize(["the dog runs ."])


@pytest.mark.parametrize("option, value", [("n_best", 2), ("glossary", [("a", "b")]), ("alignment", True), ("beams", 3)])
def test_options_that_summaries_do_not_have_are_refused(run, run_program, option, value):
    with pytest.raises(TypeError, match=rf"^summarize\(\) got an unexpected keyword argument '{option}'$"):
        qkv.Translator(run).summarize(["a"], **{option: value})
    assert "--" + option.replace("_", "-") not in run_program("summarize", "--help-all")[1]
