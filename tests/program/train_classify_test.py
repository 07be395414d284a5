"""qkv train classify: runs that classify and rerank, what the program prints, and errors in one line."""

import json
import random

import pytest
from conftest import ROOT, qkv, train_letters

GOLDEN = ROOT / "tests/golden"
STEPS = ["--examples", 8, "--learning-rate", 0.01, "--warmup-steps", 5, "--max-steps", 60, "--eval-every", 30, "--threads", 1]


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    """An encoder of the words a … l."""
    return train_letters(tmp_path_factory.mktemp("encoder"), (" ".join(words) for words, _ in rows(300)))


def rows(count):
    """Words, one of which is a or b, and whether it is a."""
    numbers = random.Random(1)
    found = []
    for _ in range(count):
        words = numbers.choices("cdefghijkl", k=numbers.randrange(2, 6)) + [numbers.choice("ab")]
        numbers.shuffle(words)
        found.append((words, "a" in words))
    return found


@pytest.fixture(scope="module")
def labelled(tmp_path_factory):
    path = tmp_path_factory.mktemp("rows") / "labels.tsv"
    path.write_text("".join(f"{' '.join(words)}\t{'yes' if is_a else 'no'}\n" for words, is_a in rows(200)))
    return path


def tensor_bytes(path):
    """Returns the values of a file of weights, without its header, which names the head."""
    data = path.read_bytes()
    return data[8 + int.from_bytes(data[:8], "little"):]


def test_a_classifier_is_trained_and_classifies(encoder, labelled, tmp_path):
    train = ["train", "classify", "--init", encoder, "--train", labelled, *STEPS, "--out", tmp_path / "run"]
    _, out, report = qkv(*train, "--json")
    summary = json.loads(out)
    assert set(summary["dev"]) == {"loss", "accuracy", "f1_micro", "f1_macro"} and summary["dev"]["accuracy"] > 0.8
    assert f"{labelled}: 200 rows, 2 labels: \"no\" (" in report
    assert "180 rows, 23 batches per epoch; 20 rows for evaluation" in report
    assert f"next:  qkv classify {tmp_path / 'run'} < TEXT" in report
    _, out, _ = qkv("classify", tmp_path / "run", text="c d a\nb e f\n")
    assert [line.split("\t")[0] for line in out.splitlines()] == ["yes", "no"]
    assert "resumed at step 60" in qkv(*train)[2]
    assert "accuracy" in qkv("plot", tmp_path / "run", "--json")[1]

    _, _, report = qkv("train", "classify", "--init", tmp_path / "run", "--train", labelled, *STEPS[:-4], "--max-steps", 2,
                       "--freeze", "embeddings,encoder", "--threads", 1, "--out", tmp_path / "more")
    assert f"the head of {tmp_path / 'run'} is kept" in report
    assert tensor_bytes(tmp_path / "more/model.safetensors") == tensor_bytes(tmp_path / "run/model.safetensors")


def test_a_cross_encoder_is_trained_and_reranks(encoder, tmp_path):
    lines = [json.dumps({"query": "c d " + " ".join("cdefghijkl"[int(digit)] for digit in f"{i // 4:02}"), "text": " ".join(words), "relevance": int(is_a)}) + "\n"
             for i, (words, is_a) in enumerate(rows(300))]
    (tmp_path / "queries.jsonl").write_text("".join(lines))
    train = ["train", "classify", "--init", encoder, "--train", tmp_path / "queries.jsonl", *STEPS]
    for loss, measure in (("listwise", "NDCG@10"), ("sigmoid", "spearman")):
        _, out, report = qkv(*train, "--loss", loss, "--out", tmp_path / loss, "--json")
        assert json.loads(out)["dev"][measure] > 0.7
        assert f"next:  qkv {'rerank' if loss == 'listwise' else 'classify'} {tmp_path / loss} " in report
        _, out, _ = qkv("rerank", tmp_path / loss, "--query", "c d", text="b e f\ng a h\nc b\n")
        assert out.splitlines()[0].endswith("g a h"), out


def test_an_imported_encoder_is_trained_in_pairs(tmp_path):
    qkv("import", GOLDEN / "bert/sentence", tmp_path / "base")
    pairs = "".join(f"a b\tc\t{'x' if i % 2 else 'y'}\n" for i in range(20))
    (tmp_path / "pairs.tsv").write_text(pairs)
    qkv("train", "classify", "--init", tmp_path / "base", "--train", tmp_path / "pairs.tsv", "--dev", tmp_path / "pairs.tsv",
        "--max-steps", 2, "--class-weights", "x=2", "--precision", "int8", "--threads", 1, "--out", tmp_path / "run")
    config = json.loads((tmp_path / "run/classification.json").read_text())
    assert config["labels"] == ["x", "y"] and config["separators"] == 1
    _, out, _ = qkv("classify", tmp_path / "run", "--top", 0, text="a b\tc\n")
    assert sorted(out.split("\t")[::2]) == ["x", "y"]


@pytest.mark.parametrize("options, error", [
    (["--config", "{config}"], "qkv: training: r_drop must be 0 for a classifier (is 2)\n"),
    (["--lora-rank", 2, "--freeze", "encoder"], "qkv: training: freeze requires lora_rank = 0: only the adapter is trained\n"),
    (["--device", "cuda"], "qkv: training: device must be cpu for a classifier (is cuda)\n"),
    (["--freeze", "decoder"], "qkv: freeze: "),
    (["--head-dropout", 1], "qkv: training: head_dropout must be at least 0 and below 1 (is 1)\n"),
    (["--columns", "text,label"], "labels.tsv"),
])
def test_what_cannot_be_trained_is_refused_in_one_line(options, error, encoder, labelled, tmp_path):
    (tmp_path / "recipe.json").write_text('{"r_drop": 2}')
    options = [str(option).replace("{config}", str(tmp_path / "recipe.json")) for option in options]
    status, _, message = qkv("train", "classify", "--init", encoder, "--train", labelled, *options, "--out", tmp_path / "run",
                             ok=False)
    last = message.splitlines(keepends=True)[-1]
    assert status == 1 and last.startswith("qkv: ") and error in last
    assert not (tmp_path / "run").exists()


def test_options_that_are_always_refused_are_not_listed():
    listed = qkv("train", "classify", "--help-all")[1] + qkv("train", "classify", "--help")[1]
    assert "--label-smoothing" in listed and "--lora-rank" in listed and "--r-drop" not in listed


def test_init_is_needed(labelled, tmp_path):
    status, _, message = qkv("train", "classify", "--train", labelled, "--out", tmp_path / "run", ok=False)
    assert status != 0 and "--init" in message
