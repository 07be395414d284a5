"""Protected parts and glossaries, on the command line and in the server."""

import gzip
import json

import pytest
from conftest import qkv
from serving import RUNS, ServeProcess

RUN = RUNS / "translator"
PARTS = ["https://example.org/a?b=1&c=2", "{name}", "%(count)d", "{{ user }}", "`make test`", "me@example.org", "12.5 km"]


def translate(text, *options, ok=True):
    return qkv("translate", RUN, *options, text=text, ok=ok)


def test_protected_parts_are_in_the_translation_once():
    lines = [f"A dog sees {part} the cat.\n" for part in PARTS]
    found = translate("".join(lines))[1].splitlines()
    assert [line.count(part) for line, part in zip(found, PARTS)] == [1] * len(PARTS)
    rest = translate("A dog sees the cat.\n")[1].split()
    assert [line.replace(part, " ").split() for line, part in zip(found, PARTS)] == [rest] * len(PARTS)


def test_protection_is_an_option():
    assert "{name}" not in translate("A {name} runs.\n", "--protected-parts", "none")[1]
    assert "Q12" in translate("A dog Q12 runs.\n", "--protect", r"\bQ\d+\b", "--protected-parts", "none")[1]
    status, _, message = translate("", "--protect", "a(", ok=False)
    assert status == 1 and message.count("\n") == 1 and 'protect: the regular expression "a("' in message


def test_terms_of_a_glossary_are_in_the_translation(tmp_path):
    file = tmp_path / "terms.tsv"
    file.write_text("# animals\ndog | dogs\tKatze | Katzen\tnot a dog\n")
    other = tmp_path / "terms.tsv.gz"
    other.write_bytes(gzip.compress(file.read_bytes()))
    for path in file, other:
        first, second = translate("The dog runs.\nThe guest sleeps.\n", "--glossary", path)[1].splitlines()
        assert "Katze" in first
        assert second == translate("The guest sleeps.\n")[1].strip()


def test_a_term_that_cannot_be_spelled_is_named(tmp_path):
    (tmp_path / "terms.tsv").write_text("dog\t犬\n")
    _, found, notes = translate("The dog runs.\nA guest.\n", "--json", "--glossary", tmp_path / "terms.tsv")
    first, second = (json.loads(line)["hypotheses"][0] for line in found.splitlines())
    assert first["missing_terms"] == ["dog"] and "missing_terms" not in second
    assert notes == 'qkv: line 1: the translation lacks the glossary\'s term for "dog"\n'


@pytest.mark.parametrize("text, message", [
    ("dog,Hund\n", "terms.tsv:1: "), ("a\tb\n\tHund\n", "terms.tsv:2: "), ("dog\t\n", "terms.tsv:1: "),
    (None, "cannot be opened")])
def test_a_glossary_that_is_none_is_one_line(tmp_path, text, message):
    path = tmp_path / "terms.tsv"
    if text is not None:
        path.write_text(text)
    status, found, errors = translate("A dog.\n", "--glossary", path, ok=False)
    assert (status, found, errors.count("\n")) == (1, "", 1) and message in errors


def test_the_server_has_glossaries_of_its_own_and_of_requests(tmp_path):
    (tmp_path / "terms.tsv").write_text("dog\tKatze | Katzen\n")
    with ServeProcess([f"mt={RUN}", "--languages", "mt=en-de", "--glossary", f"mt={tmp_path / 'terms.tsv'}"]) as server:
        libre = server.post("/translate", {"q": "The dog runs. See {name}.", "source": "en", "target": "de"}).json()
        assert "Katze" in libre["translatedText"] and "{name}" in libre["translatedText"]

        def best(**fields):
            answer = server.post("/v1/translate", {"text": "The dog runs.", **fields}).json()
            return answer["translations"][0]["hypotheses"][0], answer["notes"]

        assert "Katze" in best()[0]["text"]
        assert best(glossary="")[0]["text"] == translate("The dog runs.\n")[1].strip()
        missing, notes = best(glossary="dog\t犬\n")
        assert missing["missing_terms"] == ["dog"] and len(notes) == 1
        pair = ["dog", "guest"]
        for entries in {"dog": "guest"}, {"dog": ["guest"]}, [pair], [["a", "b"], pair]:
            assert "guest" in best(glossary=entries)[0]["text"], entries
        assert best(glossary={})[0]["text"] == best(glossary=[])[0]["text"] == best(glossary="")[0]["text"]
        assert best(glossary=None)[0]["text"] == best()[0]["text"]
        for field, value, message in [
                ("glossary", "dog", "glossary:1: "), ("protect", "(", "protect: "),
                ("glossary", 1, '"glossary" must be a string'),
                ("glossary", [["a"]], "(entry 1 is none)"), ("glossary", ["a"], "(entry 1 is none)"),
                ("glossary", {"a": 1}, "(has number)"), ("glossary", {"a": [[]]}, "(has array)"),
                ("glossary", {"z": "a", "": "b"}, 'text without tabs and line ends as terms and translations (has "": '),
                ("glossary", {"z": "a", "c": ["b", " "]}, '(has "c": " ")'),
                ("glossary", {"a": "b", "dog": []}, '"glossary" must have a translation of "dog" (has none)'),
                ("glossary", [["a", "b"], ["", "b"]], "glossary: entry 2: the source is empty"),
                ("glossary", {"a": "b" * 300000}, '"glossary" must have at most 262144 bytes')]:
            refused = server.post("/v1/translate", {"text": "A dog.", field: value})
            assert refused.status == 400 and message in refused.json()["error"]["message"]
        stream = server.post("/v1/translate", {"text": "The dog runs.", "beam": 1, "stream": True}).body.decode()
        assert "Katze" in stream and '"translation":' in stream
        tokens = server.post("/v1/translate", {"text": "The {x} runs.", "beam": 1, "stream": True, "glossary": ""})
        assert '"token":' in tokens.body.decode() and "[DONE]" in tokens.body.decode()
