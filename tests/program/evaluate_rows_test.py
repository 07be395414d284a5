"""qkv evaluate --rows: the measures that training reports for the same rows, tables of labels, and errors in one line."""

import json
import random

import pytest
from conftest import ROOT, qkv, train_letters

GOLDEN = ROOT / "tests/golden"

WORDS = "abcdefghijkl"
SMALL = ["--examples", 8, "--learning-rate", 0.01, "--warmup-steps", 5, "--max-steps", 40, "--eval-every", 40,
         "--ema-decay", 0, "--threads", 1]


def texts(count, seed):
    numbers = random.Random(seed)
    return [" ".join(numbers.choices(WORDS, k=numbers.randrange(2, 6))) for _ in range(count)]


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    return train_letters(tmp_path_factory.mktemp("encoder"), texts(300, 1))


def label(text):
    return "ab"[text.count("b") > text.count("a")] if "c" not in text else "c"


def labels(text):
    return "|".join(word for word in "abc" if word in text)


def pairs(count, seed):
    """Queries, each with three texts and the number of words that they share."""
    for query in dict.fromkeys(texts(count, seed)):
        for text in texts(3, query):
            yield query, text, len(set(query) & set(text) - {" "})


ROWS = {
    "labels": (lambda seed: [(text, label(text)) for text in texts(120, seed)], []),
    "sets of labels": (lambda seed: [(text, labels(text)) for text in texts(120, seed)], ["--label-separator", "|"]),
    "numbers": (lambda seed: [(text, text.count("a") + 0.5) for text in texts(120, seed)], []),
    "rankings": (lambda seed: list(pairs(40, seed)), ["--loss", "pairwise"]),
    "similarities": (lambda seed: list(pairs(40, seed)), []),
    "pairs": (lambda seed: [(text, text.upper()) for text in texts(60, seed)], []),
}


def write(path, rows):
    path.write_text("".join("\t".join(map(str, row)) + "\n" for row in rows))
    return path


@pytest.mark.parametrize("compared", ROWS)
def test_measures_are_those_of_training(compared, encoder, tmp_path):
    rows, options = ROWS[compared]
    train, dev = write(tmp_path / "train.tsv", rows(2)), write(tmp_path / "dev.tsv", rows(3))
    task = "embed" if compared in ("similarities", "pairs") else "classify"
    trained = json.loads(qkv("train", task, "--init", encoder, "--train", train, "--dev", dev, *SMALL, *options, "--out",
                             tmp_path / "run", "--json")[1])["dev"]
    found = json.loads(qkv("evaluate", tmp_path / "run", "--rows", dev, "--json")[1])
    assert found["compared"] == compared and found["rows"] == len(rows(3))
    measures = {name: value for name, value in trained.items() if name not in ("loss", "temperature")}
    assert measures and {name: found[name] for name in measures} == pytest.approx(measures, abs=1e-6)
    if task == "embed" or compared in ("numbers", "rankings"):
        assert "labels" not in found
        return
    text = qkv("evaluate", tmp_path / "run", "--rows", dev)[1]
    assert f"{found['rows']} rows, {compared} compared: " in text and f"f1_macro {found['f1_macro']:.4f}" in text
    truth = [set(str(row[-1]).split("|")) - {""} for row in rows(3)]
    assert {own["label"]: own["rows"] for own in found["labels"]} == {
        name: sum(name in own for own in truth) for name in "abc"}
    if compared == "labels":
        matrix = found["confusion"]
        assert [sum(line) for line in matrix] == [own["rows"] for own in found["labels"]]
        assert [sum(column) for column in zip(*matrix)] == [own["predicted"] for own in found["labels"]]
        assert sum(matrix[i][i] for i in range(3)) == round(found["accuracy"] * found["rows"])
        assert "rows of a label, by the label that is predicted\n" in text


def test_many_labels_have_a_list_of_confusions(encoder, tmp_path):
    rows = write(tmp_path / "rows.tsv", [(text, text[0]) for text in texts(300, 4)])
    qkv("train", "classify", "--init", encoder, "--train", rows, *SMALL, "--out", tmp_path / "run")
    text = qkv("evaluate", tmp_path / "run", "--rows", rows)[1]
    found = json.loads(qkv("evaluate", tmp_path / "run", "--rows", rows, "--json")[1])
    assert len(found["labels"]) == 12 and "\nlabel     taken for" in text
    most = max((found["confusion"][i][j], WORDS[i], WORDS[j]) for i in range(12) for j in range(12) if i != j)[0]
    first = text.split("taken for")[1].splitlines()[1].split()
    assert int(first[2]) == most == found["confusion"][WORDS.index(first[0])][WORDS.index(first[1])]


def test_runs_with_8_bit_weights_and_embedders_of_other_models_are_evaluated(tmp_path):
    qkv("import", GOLDEN / "bert/sentence", tmp_path / "run")
    rows = write(tmp_path / "rows.tsv", [("a b", "b c", 1), ("a b", "h g", 0), ("c d", "d c", 0.8)])
    whole = json.loads(qkv("evaluate", tmp_path / "run", "--rows", rows, "--json")[1])
    qkv("quantize", tmp_path / "run", "--int8", "--out", tmp_path / "small")
    small = json.loads(qkv("evaluate", tmp_path / "small", "--rows", rows, "--json")[1])
    assert -1 <= whole["spearman"] <= 1 and set(small) == set(whole) == {"compared", "rows", "truncated", "spearman"}


@pytest.mark.parametrize("rows, options, error", [
    ("a\tx\nb\n", [], "rows.tsv:2: "),
    ("a\tx\nb\tnone\n", [], 'rows.tsv:2: '),
    (" \tx\n", [], "rows.tsv:1: the text is empty"),
    ("", [], "rows.tsv: "),
    ("a\tb\tc\tx\n", [], "must have two columns, text and label, or three, text, text and label (has 4)"),
    ("a\tx\n", ["--columns", "1,1"], "columns must be different columns (names \"1\" twice)"),
    ("a\tx\n", ["--ranking"], "ranking requires a run that predicts one number (has 2 labels)"),
    ("a\tx\n", ["--label-separator", ","], "label_separator requires a run of several labels a text"),
    ("a\tx\n", ["--next", 2], "--next: applies to recommenders only, not with --rows"),
    ("a\tx\n", ["--min-events", 2], "--min-events: applies to recommenders only, not with --rows"),
])
def test_rows_that_do_not_fit_are_one_line(rows, options, error, encoder, classifier, tmp_path):
    (tmp_path / "rows.tsv").write_text(rows)
    status, out, message = qkv("evaluate", classifier, "--rows", tmp_path / "rows.tsv", *options, ok=False)
    assert status != 0 and out == "" and error in message and message.count("\n") == 1, message


@pytest.fixture(scope="module")
def classifier(encoder, tmp_path_factory):
    folder = tmp_path_factory.mktemp("classifier")
    rows = write(folder / "rows.tsv", [(text, "xy"["a" in text]) for text in texts(60, 5)])
    qkv("train", "classify", "--init", encoder, "--train", rows, *SMALL, "--out", folder / "run")
    return folder / "run"


def test_a_query_has_consecutive_rows(encoder, tmp_path):
    rows = write(tmp_path / "rows.tsv", pairs(40, 6))
    qkv("train", "classify", "--init", encoder, "--train", rows, *SMALL, "--out", tmp_path / "run")
    assert json.loads(qkv("evaluate", tmp_path / "run", "--rows", rows, "--json")[1])["compared"] == "labels"
    qkv("train", "classify", "--init", encoder, "--train", rows, *SMALL, "--loss", "squared", "--out", tmp_path / "numbers")
    ranked = json.loads(qkv("evaluate", tmp_path / "numbers", "--rows", rows, "--ranking", "--json")[1])
    assert ranked["compared"] == "rankings" and 0 < ranked["MRR@10"] <= 1
    mixed = write(tmp_path / "mixed.tsv", [("a", "b", 1), ("c", "b", 0), ("a", "d", 0)])
    status, _, message = qkv("evaluate", tmp_path / "numbers", "--rows", mixed, "--ranking", ok=False)
    assert status == 1 and 'mixed.tsv:3: the query "a" had rows before other queries' in message
    for name, equal in (("two.tsv", [("a", 1)]), ("equal.tsv", [("a", "b", 1), ("a", "c", 1)])):
        status, _, message = qkv("evaluate", tmp_path / "numbers", "--rows", write(tmp_path / name, equal), "--ranking", ok=False)
        assert status == 1 and f"{name}: must have" in message


def test_other_options_need_rows(classifier, tmp_path):
    status, _, message = qkv("evaluate", classifier, "--ranking", ok=False)
    assert status != 0 and "--ranking: requires --rows" in message
    status, _, message = qkv("evaluate", classifier, ok=False)
    assert status != 0 and message.count("\n") == 1 and "set --rows to a file of rows" in message
