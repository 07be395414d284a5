"""Translator.translate with protected parts and a glossary."""

import pytest

import qkv


@pytest.fixture(scope="module")
def translator(trained):
    return qkv.Translator(trained)


def test_protected_parts_stay(translator):
    found = translator.translate(["The dog sees {name}.", "The dog sees https://example.org/a?b=1 here."])
    assert found[0].text.count("{name}") == found[1].text.count("https://example.org/a?b=1") == 1
    assert "{name}" in found[0].source_tokens and "{name}" in found[0].hypotheses[0].tokens
    assert "{name}" not in translator.translate(["The dog sees {name}."], protected_parts="none")[0].text
    assert "QKV" in translator.translate(["The dog sees QKV."], protect="QK.")[0].text


def test_terms_of_a_glossary_are_in_the_translation(translator):
    with_term = translator.translate(["He sleeps."], glossary="sleeps\tschl\u00e4ft | Hund\n", beam=4)[0]
    assert "schl\u00e4ft" in with_term.text or "Hund" in with_term.text
    assert with_term.hypotheses[0].missing_terms == []


def test_terms_that_are_missing_are_named(translator):
    with pytest.warns(UserWarning, match="lacks the glossary's term"):
        found = translator.translate(["He sleeps."], glossary="sleeps\t\u72ac\n")[0]
    assert found.hypotheses[0].missing_terms == ["sleeps"]


def test_errors_name_the_option(translator):
    with pytest.raises(qkv.Error, match="^glossary:1: "):
        translator.translate(["He sleeps."], glossary="sleeps")
    with pytest.raises(qkv.Error, match="^protect: "):
        translator.translate(["He sleeps."], protect="(")
