"""Translator.translate with protected parts and a glossary."""

import types

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


def test_a_glossary_may_be_a_dict_or_pairs(translator):
    def translated(glossary):
        return translator.translate(["He sleeps."], glossary=glossary, beam=4)[0]

    wanted = [translated("sleeps\tHund\n"), translated("sleeps\tHund|Katze\n")]
    proxy = types.MappingProxyType({"sleeps": "Hund"})
    for given in {"sleeps": "Hund"}, proxy, {"sleeps": ["Hund"]}, [("sleeps", "Hund")], iter([["sleeps", "Hund"]]):
        assert translated(given) == wanted[0]
    for given in {"sleeps": ("Hund", "Katze")}, [("sleeps", "Hund"), ("sleeps", "Katze")]:
        assert translated(given) == wanted[1]
    assert translated({}) == translated("")


@pytest.mark.parametrize("glossary, message", [
    (1, "glossary must be a str, a dict of terms and their translations, or a list of pairs of str"),
    ({"a": 1}, "glossary must be a str, a dict"), ({"a": [1]}, "glossary must be a str"), ([("a",)], "list of pairs"),
    (["ab"], "list of pairs"), ([("a", 1)], "glossary must be a str"),
    ({"a": ""}, "glossary: entry 1: the target is empty"),
    ({"a": "b", "dog": []}, "glossary must have a translation of 'dog' .has none."),
    (types.SimpleNamespace(items=1), "glossary must be a str, a dict"),
    ([("a", "b"), ("c\n", "d")], "glossary: entry 2: the source must have no tab and no line end")])
def test_a_glossary_that_is_none_is_named(translator, glossary, message):
    with pytest.raises(qkv.Error, match=message):
        translator.translate(["He sleeps."], glossary=glossary)


def test_the_prefix_of_a_source_is_in_the_result(translator):
    found = translator.translate(["He sleeps."], source_prefix="He sleeps: ")[0]
    assert (found.source, found.source_prefix) == ("He sleeps.", "He sleeps: ")
    assert translator.translate(["He sleeps."])[0].source_prefix == ""


def test_terms_that_are_missing_are_named(translator):
    with pytest.warns(UserWarning, match="lacks the glossary's term"):
        found = translator.translate(["He sleeps."], glossary="sleeps\t\u72ac\n")[0]
    assert found.hypotheses[0].missing_terms == ["sleeps"]


def test_errors_name_the_option(translator):
    with pytest.raises(qkv.Error, match="^glossary:1: "):
        translator.translate(["He sleeps."], glossary="sleeps")
    with pytest.raises(qkv.Error, match="^protect: "):
        translator.translate(["He sleeps."], protect="(")
