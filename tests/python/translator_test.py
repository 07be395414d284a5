"""qkv.Translator on the program's trained run: it says what the program says."""

import json
import threading
import warnings

import numpy as np
import pytest

import qkv

LINES = ["The dog sees the cat.", "", "   ", "He sleeps.", "The dog sees the cat."]


@pytest.fixture(scope="module")
def translator(trained):
    return qkv.Translator(trained)


@pytest.mark.parametrize("options", [{}, {"beam": 1}, {"beam": 3, "length_penalty": 0.5}, {"batch_tokens": 1}])
def test_translations_are_the_programs(translator, trained, run_program, options):
    arguments = [x for name, value in options.items() for x in (f"--{name.replace('_', '-')}", value)]
    wanted = run_program("translate", trained, *arguments, text="\n".join(LINES) + "\n")[1]
    assert translator.translate(LINES, **options) == wanted.split("\n")[:-1]
    assert translator.translate(iter(LINES), **options) == translator.translate(tuple(LINES), **options)


def test_no_lines_give_no_lines(translator):
    assert translator.translate([]) == []


def test_a_long_line_is_translated_in_parts_with_a_warning(translator):
    with pytest.warns(UserWarning, match="line 1: longer than the model's 40 tokens, translated in"):
        assert len(translator.translate(["The dog sees the cat in the garden. " * 20], beam=2)) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        translator.translate(LINES)


def test_the_attention_map_is_the_programs(translator, trained, run_program, tmp_path):
    run_program("attend", trained, LINES[0], "--json", tmp_path / "a.json", "--html", tmp_path / "a.html")
    found = translator.attend(LINES[0])
    wanted = json.loads((tmp_path / "a.json").read_text())
    assert json.loads(found.to_json()) == wanted and found.to_html() == (tmp_path / "a.html").read_text()
    assert (found.source, found.target) == (LINES[0], wanted["target"])
    assert list(found.kinds) == ["encoder", "decoder", "cross"]
    for kind, exact in zip(found.kinds.values(), wanted["attention"]):
        assert (kind.name, kind.rows, kind.columns) == (exact["kind"], exact["rows"], exact["columns"])
        assert kind.causal == (kind.name == "decoder") and kind.weights.dtype == np.float32
        np.testing.assert_allclose(kind.weights, exact["layers"], rtol=0, atol=1e-6)  # the text has six digits


def test_the_map_of_a_given_target(translator):
    found = translator.attend(LINES[0], "Der Hund sieht die Katze.")
    assert found.target == "Der Hund sieht die Katze." and found.kinds["encoder"].weights.ndim == 4
    words = found.merge_words().kinds["encoder"]
    assert words.weights.shape[-1] < found.kinds["encoder"].weights.shape[-1]
    np.testing.assert_allclose(words.weights.sum(-1), 1, atol=1e-5)


def test_threads_take_turns(translator):
    wanted, found = translator.translate(LINES), []

    def work():
        found.extend(translator.translate(LINES) for _ in range(5))

    calls = [threading.Thread(target=work) for _ in range(3)]
    for call in calls:
        call.start()
    for call in calls:
        call.join()
    assert found == [wanted] * 15


@pytest.mark.parametrize("lines, options, line", [
    ("one str", {}, "translate: line 1 of str is str, wanted a list of str"),
    (["a", 1], {}, "translate: line 2 of list is int, wanted"),
    (["a"], {"beam": 0}, "translate: beam is 0, wanted 1 to 64"),
    (["a"], {"beam": 65}, "translate: beam is 65, wanted 1 to 64"),
    (["a"], {"beam": 1.5}, "translate: beam is 1.5, wanted 1 to 64"),
    (["a"], {"batch_tokens": 0}, "translate: batch_tokens is 0, wanted 1 to 16777216"),
    (["a"], {"length_penalty": "x"}, "translate: length_penalty is 'x', wanted a number"),
    (["a", "\ud800"], {}, "translate: line 2 is not valid Unicode"),
])
def test_mistakes_are_one_line(translator, lines, options, line):
    with pytest.raises(qkv.Error) as raised:
        translator.translate(lines, **options)
    assert line in str(raised.value) and "\n" not in str(raised.value)


def test_sentences_that_have_no_map(translator):
    long = "The dog sees the cat. " * 40
    for source, line in (("", "the source sentence is empty"), (long, "the source sentence has")):
        with pytest.raises(qkv.Error, match=line):
            translator.attend(source)


def test_a_directory_that_is_no_run(tmp_path):
    with pytest.raises(qkv.Error, match=str(tmp_path)):
        qkv.Translator(tmp_path)


def test_the_version_and_instructions_are_the_programs(run_program):
    assert run_program("--version")[1].split() == ["qkv", qkv.__version__, f"({qkv.active_isa()})"]
