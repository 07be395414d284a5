"""qkv classify and qkv rerank: labels and orders of lines and JSON requests."""

import json
import shutil

import pytest
from conftest import ROOT, qkv

GOLDEN = ROOT / "tests/golden/classify"


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("classifiers")
    for name in ("bert", "cross"):
        _, out, _ = qkv("import", GOLDEN / name, folder / name)
        assert out == f"{folder / name}: BERT model, 2 + 0 layers of width 12, 2764 parameters\n"
    return folder


def labels(out):
    """The labels and scores of each line."""
    lines = [line.split("\t") for line in out.splitlines()]
    return [list(zip(line[::2], map(float, line[1::2]))) for line in lines]


def test_lines_have_the_labels_of_transformers(runs):
    expected = json.loads((GOLDEN / "bert/expected.json").read_text())
    texts = ["\t".join(filter(lambda text: text is not None, (i["text"], i["pair"]))) for i in expected["inputs"]]
    _, out, err = qkv("classify", runs / "bert", "--top", "0", text="".join(text + "\n" for text in texts))
    assert err == "qkv: 5 of 13 lines were truncated to 14 tokens\n"
    for found, wanted in zip(labels(out), expected["inputs"], strict=True):
        assert dict(found) == pytest.approx(dict(zip(expected["labels"], wanted["scores"])), rel=1e-5)
        assert [score for _, score in found] == sorted((score for _, score in found), reverse=True)
    assert labels(qkv("classify", runs / "bert", text=texts[0] + "\n")[1]) == [labels(out)[0][:1]]


def test_json_requests_have_json_answers(runs):
    requests = [{"text": "a b", "pair": "c"}, {"txt": "a"}, {"text": "é"}, {"text": 3}, [], {"te\nxt": ""}]
    _, out, _ = qkv("classify", runs / "bert", "--input", "-", text="".join(json.dumps(r) + "\n" for r in requests))
    pair, unknown, text, number, array, escaped = map(json.loads, out.splitlines())
    (wanted,), = labels(qkv("classify", runs / "bert", text="a b\tc\n")[1])
    assert pair == {"text": "a b", "pair": "c", "labels": [{"label": wanted[0], "score": wanted[1]}]}
    assert text["text"] == "é" and len(text["labels"]) == 1
    assert unknown == {"error": 'line 2: unknown name "txt" (choose from text, pair)'}
    assert number == {"error": 'line 4: "text" must be a string'}
    assert array == {"error": "line 5: not a JSON object"}
    assert escaped == {"error": 'line 6: unknown name "te\\nxt" (choose from text, pair)'}
    _, again, _ = qkv("classify", runs / "bert", "--json", text="a b\tc\n")
    assert json.loads(again) == pair


def test_every_text_has_one_line(runs, tmp_path):
    for name in ("bert", "cross"):
        shutil.copytree(runs / name, tmp_path / name)
    labels_file = tmp_path / "bert/classification.json"
    settings = json.loads(labels_file.read_text())
    settings["labels"][0] = "very\tbad,\nreally\u2028"
    labels_file.write_text(json.dumps(settings))
    out = qkv("classify", tmp_path / "bert", "--top", "0", text="a b\n")[1]
    assert {label for label, _ in labels(out)[0]} == {"very bad, really ", *settings["labels"][1:]}
    answer = json.loads(qkv("classify", tmp_path / "bert", "--top", "0", "--json", text="a b\n")[1])
    assert {entry["label"] for entry in answer["labels"]} == set(settings["labels"])
    (tmp_path / "texts").write_bytes("a\rb\nc\u2028d\n".encode())
    out = qkv("rerank", tmp_path / "cross", "--query", "e d", "--file", tmp_path / "texts")[1]
    assert {line.split("\t")[1] for line in out.splitlines()} == {"a b", "c d"}


def test_texts_are_sorted_by_their_score(runs, tmp_path):
    texts = ["a", "b c", "a", "h g f"]
    (tmp_path / "texts").write_text("".join(text + "\n" for text in texts))
    pairs = "".join(f"e d\t{text}\n" for text in texts)
    scores = [found[0][1] for found in labels(qkv("classify", runs / "cross", text=pairs)[1])]
    order = sorted(range(4), key=lambda i: -scores[i])
    _, out, _ = qkv("rerank", runs / "cross", "--query", "e d", "--file", tmp_path / "texts")
    assert [line.split("\t")[1] for line in out.splitlines()] == [texts[i] for i in order]
    assert [float(line.split("\t")[0]) for line in out.splitlines()] == [scores[i] for i in order]

    request = {"query": "e d", "texts": texts}
    lines = [json.dumps(request), json.dumps(request | {"top": 2}), "{}", json.dumps(request | {"top": -1})]
    _, out, _ = qkv("rerank", runs / "cross", text="\n".join(lines) + "\n")
    whole, best, missing, negative = map(json.loads, out.splitlines())
    assert whole == {"query": "e d", "texts": [{"index": i, "score": scores[i], "text": texts[i]} for i in order]}
    assert best["texts"] == whole["texts"][:2]
    assert missing == {"error": 'line 3: must have "query"'}
    assert negative == {"error": 'line 4: "top" must be an integer from 0'}


def test_errors_are_one_line(runs):
    def error(*arguments, text=""):
        status, out, err = qkv(*arguments, text=text, ok=False)
        assert status != 0 and out == ""
        return err

    assert error("classify", runs / "bert", text="a\tb\tc\n") == (
        "qkv: line 1: has 2 tabs, expected at most 1, between the texts of a pair\n")
    assert error("rerank", runs / "bert", "--query", "a") == (
        "qkv: label must be one of negative, neutral, positive: the model has several\n")
    assert error("embed", runs / "cross", "--max-length", "1", text="a\n") == (
        "qkv: max_length must be between 3 and 16 (is 1)\n")
    assert "--query" in error("rerank", runs / "cross", "--file", "texts")
