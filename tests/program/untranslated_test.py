"""Sentences whose translations are too short are reported: notes, JSON, --report, the server."""

import json
import shutil

import pytest
from conftest import SMALL, TEXT, head, qkv
from serving import ServeProcess

@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A run of enough pairs for lengths.json, which has learned to end its translations."""
    run = tmp_path_factory.mktemp("runs") / "run"
    train, dev = ([head(TEXT / f"{name}.{side}", lines, run.parent / f"{name}.{side}") for side in ("en", "de")]
                  for name, lines in (("train", 3000), ("dev", 20)))
    qkv("train", "translate", "--train", *train, "--dev", *dev, *SMALL, "--out", run, "--max-steps", 1500, "--eval-every", 500, "--learning-rate", 0.01)
    return run


@pytest.fixture(scope="module")
def sentences(trained):
    """Three sentences whose translations end before max_length, which are those that can be too short."""
    lines = (TEXT / "test.en").read_text().splitlines()[:100]
    translations = map(json.loads, qkv("translate", trained, "--json", text="\n".join(lines))[1].splitlines())
    ended = [t["source"] for t in translations
             if len(t["hypotheses"][0]["token_scores"]) > len(t["hypotheses"][0]["tokens"])]
    return ended[:3]


@pytest.fixture
def text(sentences):
    first, second, third = sentences
    return f"{first} {second}\n\n{third}\n"


@pytest.fixture
def run(trained, tmp_path):
    """A translator whose training text was a thousand times as long as its source, as it says, so nothing is long enough."""
    shutil.copytree(trained, tmp_path / "run")
    write_lengths(tmp_path / "run", ratio=1000)
    return tmp_path / "run"


def write_lengths(run, **lengths):
    (run / "lengths.json").write_text(json.dumps({"longest": 100, "ratio": 1, "least_deviation": 0, **lengths}))


def test_the_lengths_of_the_training_text_are_kept(trained):
    lengths = json.loads((trained / "lengths.json").read_text())
    assert set(lengths) == {"longest", "ratio", "least_deviation"}
    assert 3 < lengths["longest"] <= 40 and 0.5 < lengths["ratio"] < 2 and -10 < lengths["least_deviation"] < 0


def test_notes_and_json_name_untranslated_sentences(run, text, sentences):
    _, out, error = qkv("translate", run, text=text)
    assert out.count("\n") == 3
    assert error.count(" looks incomplete: ") == 3
    assert f'line 3: the translation of "{sentences[2]}" looks incomplete: ' in error
    translations = [json.loads(line) for line in qkv("translate", run, "--json", text=text)[1].splitlines()]
    found = [pair for t in translations for pair in t["hypotheses"][0].get("untranslated", [])]
    assert [pair["source"] for pair in found] == sentences
    assert found[2]["text"] == translations[2]["hypotheses"][0]["text"]
    assert "untranslated" not in translations[1]["hypotheses"][0]


def test_a_report_has_an_object_for_each(run, text, sentences, tmp_path):
    report = tmp_path / "report.jsonl"
    qkv("translate", run, "--report", report, text=text)
    entries = [json.loads(line) for line in report.read_text().splitlines()]
    assert [(entry["line"], entry["source"]) for entry in entries] == list(zip([1, 1, 3], sentences))
    assert all(set(entry) == {"line", "source", "text"} for entry in entries)
    write_lengths(run, least_deviation=-1000)
    assert "untranslated" not in qkv("translate", run, "--report", report, text=text)[2]
    assert report.read_text() == ""


def test_a_report_names_documents(run, text, sentences, tmp_path):
    documents, report = tmp_path / "documents", tmp_path / "report.jsonl"
    documents.mkdir()
    (documents / "a.txt").write_text(text)
    (documents / "b.html").write_text(f"<p>{sentences[2]}</p>")
    qkv("translate", run, "--document", documents, "--out", tmp_path / "out", "--report", report)
    entries = [json.loads(line) for line in report.read_text().splitlines()]
    assert [entry["source"] for entry in entries] == [*sentences, sentences[2]]
    assert entries[-1]["document"] == str(documents / "b.html") and entries[-1]["text_number"] == 1


def test_a_report_that_cannot_be_written_is_an_error(run, text, tmp_path):
    status, out, error = qkv("translate", run, "--report", tmp_path / "missing/report", text=text, ok=False)
    assert (status, out) == (1, "") and str(tmp_path / "missing") in error and error.count("\n") == 1
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "a").write_text(text)
    status, _, error = qkv("translate", run, "--in", folder, "--out", tmp_path / "out", "--report", "x", ok=False)
    assert status == 2 and "--report" in error


def test_the_server_reports_the_same(run, text, sentences):
    with ServeProcess([f"mt={run}", "--log", "none"]) as server:
        reply = server.post("/v1/translate", {"text": text, "alignment": False}).json()
        found = reply["translations"][0]["hypotheses"][0]["untranslated"]
        assert [pair["source"] for pair in found] == sentences
