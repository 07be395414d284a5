"""qkv train translate --placeholders --inline-terms, and translation with such a run."""

import json

import pytest
from conftest import qkv

STAND_INS = [chr(0x10FF01 + i) for i in range(8)]
LINES = ["The dog sees https://example.org/a?b=1 and {name}.", "He sleeps in the garden.", f"A {STAND_INS[2]} cat."]
PARTS = [["https://example.org/a?b=1", "{name}"], [], [STAND_INS[2]]]


@pytest.fixture(scope="module")
def run(corpus, tmp_path_factory):
    run = tmp_path_factory.mktemp("placeholders") / "run"
    qkv("train", "translate", *corpus, "--placeholders", "--inline-terms", "--out", run, "--encoder-layers", 1,
        "--decoder-layers", 1, "--d-model", 16, "--heads", 2, "--ffn", 16, "--vocab-size", 200, "--batch-tokens", 256,
        "--max-length", 40, "--max-steps", 4, "--threads", 1)
    return run


def test_the_run_says_so(run):
    assert json.loads((run / "translation.json").read_text())["stand_ins"] == STAND_INS
    text = json.loads((run / "text.json").read_text())
    assert text["placeholders"] and text["inline_terms"]


@pytest.mark.parametrize("options", [(), ("--n-best", 3), ("--sampling", "--seed", 3), ("--window", 1)])
def test_parts_are_in_the_translation_once(run, options):
    lines = qkv("translate", run, "--max-length", 12, *options, "--json", text="\n".join(LINES))[1].splitlines()
    for line, parts in zip(map(json.loads, lines), PARTS, strict=True):
        for text in (hypothesis["text"] for hypothesis in line["hypotheses"]):
            assert [text.count(part) for part in parts] == [1] * len(parts)
            assert not any(c in text for c in STAND_INS if c not in parts)
        assert all(part in line["source_tokens"] for part in parts)


def test_a_glossary_is_read_in_the_source(run, tmp_path):
    terms = tmp_path / "terms.tsv"
    terms.write_text("dog\tHund | Hunde\n")
    plain, found = (json.loads(qkv("translate", run, "--beam", 4, "--json", *options, text=LINES[0])[1])
                    for options in ((), ("--glossary", terms)))
    assert "Hund" in found["hypotheses"][0]["text"]
    assert found["source_tokens"] == plain["source_tokens"]
