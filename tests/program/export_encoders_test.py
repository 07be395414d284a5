"""qkv export of encoders, embedders and classifiers: what is imported again trains on, and transformers and
sentence-transformers give the same vectors and scores. Those tests are skipped without these libraries."""

import importlib.util
import json

import pytest
from conftest import ROOT, TEXT, head, qkv

needs_transformers = pytest.mark.skipif(importlib.util.find_spec("transformers") is None, reason="no transformers")
needs_sentences = pytest.mark.skipif(importlib.util.find_spec("sentence_transformers") is None, reason="no sentence-transformers")

CLASSIFIERS = ROOT / "tests/golden/classify"
BERT = ["--encoder-layers", 2, "--d-model", 32, "--heads", 4, "--ffn", 48, "--max-length", 32, "--positions", "learned",
        "--norm-position", "post", "--final-norm", "false", "--embedding-norm", "true"]
MODERN = ["--encoder-layers", 4, "--d-model", 32, "--heads", 4, "--ffn", 48, "--max-length", 32, "--embedding-norm", "true",
          "--gated-ffn", "true", "--first-norm", "false", "--norm", "layer_no_bias", "--ffn-bias", "false",
          "--attention-input-bias", "false", "--attention-output-bias", "false", "--window", 3, "--layer-pattern", "gll",
          "--rotary-local-base", 100]
TINY = ["--encoder-layers", 2, "--d-model", 32, "--heads", 4, "--ffn", 48, "--max-length", 32]
LINES = ["A dog runs across the street.", "Two  men\tsit on a bench", "\uff34wo \u2460 \ufb01sh \u2603\u2603 caf\u00e9!", "the WOMAN",
         "a man " * 40]
TOLERANCE = 1e-5  # of components, whose size is about 1


@pytest.fixture(scope="module")
def train(tmp_path_factory):
    """Trains an encoder on the example's sentences, once for each list of options."""
    runs = {}

    def train(*options):
        if options not in runs:
            folder = tmp_path_factory.mktemp("encoder")
            text = head(TEXT / "train.en", 400, folder / "train")
            runs[options] = folder / "run"
            qkv("train", "encoder", "--text", text, "--dev", head(TEXT / "dev.en", 40, folder / "dev"), "--lines", "--vocab-size", 300,
                "--batch-tokens", 256, "--max-steps", 60, "--warmup-steps", 10, "--eval-every", 30, "--learning-rate", 0.01,
                "--threads", 1, "--out", runs[options], *options)
        return runs[options]

    return train


def vectors(run, lines):
    _, out, _ = qkv("embed", run, "--json", text="".join(line.replace("\t", " ") + "\n" for line in lines))
    return [json.loads(line)["vector"] for line in out.splitlines()]


def dev_losses(run):
    records = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    return [min(scores["loss"] for scores in record["dev"].values()) for record in records if "dev" in record]


@pytest.mark.parametrize("model_type, options", [("bert", BERT), ("modernbert", MODERN), ("esm", TINY)])
def test_an_imported_export_trains_on_from_its_loss(train, tmp_path, model_type, options):
    run = train(*options)
    assert f"{model_type} model" in qkv("export", run, tmp_path / "out")[1]
    qkv("import", tmp_path / "out", tmp_path / "imported")
    assert (tmp_path / "imported/model.safetensors").read_bytes() == (run / "model.safetensors").read_bytes()
    assert vectors(tmp_path / "imported", LINES) == vectors(run, LINES)
    qkv("train", "encoder", "--init", tmp_path / "imported", "--text", run.parent / "train", "--dev", run.parent / "dev", "--lines",
        "--max-steps", 1, "--eval-every", 1, "--learning-rate", 1e-9, "--threads", 1, "--out", tmp_path / "more")
    assert dev_losses(tmp_path / "more") == pytest.approx([min(dev_losses(run))], abs=1e-4)


def classifier(encoder, folder, texts):
    """Trains a new head for one or two texts with one of two labels."""
    rows = ["a man runs", "two dogs", "a girl sings", "the street"] * 5
    (folder / "rows.tsv").write_text("".join("\t".join([row] * texts + [str(i % 2)]) + "\n" for i, row in enumerate(rows)))
    qkv("train", "classify", "--init", encoder, "--train", folder / "rows.tsv", "--max-steps", 1, "--threads", 1, "--out", folder / "run")
    return folder / "run"


@pytest.mark.parametrize("model_type, options", [("bert", BERT), ("modernbert", MODERN), ("esm", TINY)])
@pytest.mark.parametrize("texts", [1, 2])
def test_a_new_head_is_that_of_the_class(train, tmp_path, model_type, options, texts):
    run = classifier(train(*options), tmp_path, texts)
    assert f"{model_type} model" in qkv("export", run, tmp_path / "out")[1]
    qkv("import", tmp_path / "out", tmp_path / "again")
    line = "\t".join(["a man sings"] * texts) + "\n"
    assert qkv("classify", tmp_path / "again", "--json", text=line)[1] == qkv("classify", run, "--json", text=line)[1]


def test_a_head_that_no_class_has_is_one_line(tmp_path):
    qkv("import", CLASSIFIERS / "bert", tmp_path / "run")
    config = json.loads((tmp_path / "run/classification.json").read_text())
    (tmp_path / "run/classification.json").write_text(json.dumps(config | {"pooling": "max"}))
    status, _, error = qkv("export", tmp_path / "run", tmp_path / "out", ok=False)
    assert (status, error) == (1, f"qkv: {tmp_path}/run/classification.json: pooling must be first for the nearest class, bert "
                                  "(is max)\n")
    assert not (tmp_path / "out").exists()


@needs_transformers
@pytest.mark.parametrize("model_class, options", [
    ("BertModel", BERT), ("BertModel", [*BERT, "--tokenizer", "bpe"]), ("BertModel", [*BERT, "--lowercase"]),
    ("BertModel", [*BERT, "--positions", "halves", "--scale-embeddings", "true"]), ("ModernBertModel", MODERN), ("EsmModel", TINY)])
def test_transformers_computes_the_same_vectors(train, tmp_path, model_class, options):
    import torch
    import transformers

    run = train(*options)
    qkv("export", run, tmp_path / "out")
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "out")
    model = transformers.AutoModel.from_pretrained(tmp_path / "out", attn_implementation="eager").eval()
    assert type(model).__name__ == model_class
    lines = [line.replace("\t", " ") for line in LINES]
    with torch.no_grad():
        batch = tokenizer(lines, padding=True, truncation=True, return_tensors="pt")
        hidden, mask = model(**batch).last_hidden_state, batch["attention_mask"][..., None]
        theirs = (hidden * mask).sum(1) / mask.sum(1)
    for ours, vector in zip(vectors(run, lines), theirs.tolist(), strict=True):
        assert ours == pytest.approx(vector, abs=TOLERANCE)
    _, keys = transformers.AutoModelForMaskedLM.from_pretrained(tmp_path / "out", output_loading_info=True)
    missing = {key for key in keys["missing_keys"] if "contact_head" not in key and "inv_freq" not in key}
    assert not missing and not keys["unexpected_keys"] and not keys["mismatched_keys"]
    assert tokenizer.mask_token == "<mask>" and tokenizer(tokenizer.mask_token)["input_ids"][1] == tokenizer.mask_token_id


@needs_sentences
@pytest.mark.parametrize("options", [BERT, MODERN, TINY])
def test_sentence_transformers_computes_the_same_vectors(train, tmp_path, options):
    import sentence_transformers

    run = tmp_path / "run"
    qkv("export", train(*options), tmp_path / "first")
    config = json.loads((tmp_path / "first/config_sentence_transformers.json").read_text())
    config |= {"prompts": {"query": "a man "}, "default_prompt_name": "query"}
    (tmp_path / "first/config_sentence_transformers.json").write_text(json.dumps(config))
    modules = json.loads((tmp_path / "first/modules.json").read_text())
    modules.append({"idx": 2, "name": "2", "path": "2_Normalize", "type": "sentence_transformers.models.Normalize"})
    (tmp_path / "first/modules.json").write_text(json.dumps(modules))
    qkv("import", tmp_path / "first", run)
    qkv("export", run, tmp_path / "out")
    model = sentence_transformers.SentenceTransformer(str(tmp_path / "out"), device="cpu")
    lines = [line.replace("\t", " ") for line in LINES]
    for ours, theirs in zip(vectors(run, lines), model.encode(lines), strict=True):
        assert ours == pytest.approx(theirs.tolist(), abs=TOLERANCE)


PAIRS = [("a b c", None), ("the end", None), ("a b", "b c d e"), ("a zzz", "c " * 40)]


def scores(run):
    """The scores of all labels for PAIRS."""
    found = []
    for text, pair in PAIRS:
        line = text if pair is None else f"{text}\t{pair}"
        _, out, _ = qkv("classify", run, "--json", "--top", 0, text=line + "\n")
        found.append({label["label"]: label["score"] for label in json.loads(out)["labels"]})
    return found


def expect_scores_of_transformers(run, out):
    """Exports a run and expects its scores of PAIRS."""
    import torch
    import transformers

    qkv("export", run, out)
    tokenizer = transformers.AutoTokenizer.from_pretrained(out)
    model = transformers.AutoModelForSequenceClassification.from_pretrained(out, attn_implementation="eager").eval()
    functions = {"single_label_classification": lambda z: z.softmax(-1), "multi_label_classification": torch.sigmoid,
                 "regression": lambda z: z}
    for (text, pair), ours in zip(PAIRS, scores(run), strict=True):
        with torch.no_grad():
            z = model(**tokenizer(text, pair, truncation=True, return_tensors="pt")).logits[0]
        theirs = functions[model.config.problem_type](z).tolist()
        assert ours == pytest.approx({model.config.id2label[i]: score for i, score in enumerate(theirs)}, abs=TOLERANCE)


@needs_transformers
@pytest.mark.parametrize("name", ["albert", "bert", "cross", "distilbert", "electra", "modernbert", "mpnet", "roberta"])
def test_transformers_computes_the_same_scores(tmp_path, name):
    qkv("import", CLASSIFIERS / name, tmp_path / "run")
    expect_scores_of_transformers(tmp_path / "run", tmp_path / "out")


@needs_transformers
@pytest.mark.parametrize("options", [BERT, MODERN, TINY])
def test_transformers_computes_the_same_scores_with_a_new_head(train, tmp_path, options):
    expect_scores_of_transformers(classifier(train(*options), tmp_path, 1), tmp_path / "out")


@needs_sentences
def test_cross_encoders_give_the_same_scores(tmp_path):
    import sentence_transformers

    qkv("import", CLASSIFIERS / "cross", tmp_path / "run")
    qkv("export", tmp_path / "run", tmp_path / "out")
    model = sentence_transformers.CrossEncoder(str(tmp_path / "out"), device="cpu")
    pairs = [("a b", "b c d e"), ("c", "a"), ("d d", "e")]
    theirs = model.predict(pairs).tolist()
    for (query, text), score in zip(pairs, theirs, strict=True):
        out = qkv("classify", tmp_path / "run", "--json", "--top", 0, text=f"{query}\t{text}\n")[1]
        assert json.loads(out)["labels"][0]["score"] == pytest.approx(score, abs=TOLERANCE)
