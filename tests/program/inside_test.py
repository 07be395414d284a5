"""qkv lens, qkv patch, qkv attend --method and qkv embed --layer."""

import json
import shutil

import pytest
from conftest import ROOT, qkv


def test_the_lens_ends_with_what_the_model_predicts(counting, tmp_path):
    status, shown, _ = qkv("lens", counting, "345", "--json", tmp_path / "lens.json")
    lines = shown.splitlines()
    assert status == 0 and lines[0] == "The most probable next token after each layer, with its probability"
    assert lines[2].split() == ["read", "<s>", "3", "4", "5"]
    assert lines[3].startswith("embeddings  ") and lines[4].split()[-5:] == ["4", lines[4].split()[-4], "5", lines[4].split()[-2], "6"]
    lens = json.loads((tmp_path / "lens.json").read_text())
    assert lens["answers"][1:] == ["4", "5", "6"] and len(lens["layers"]) == 2
    assert all(p["answer_rank"] == 1 for p in lens["layers"][-1])
    assert json.loads(qkv("lens", counting, "--text", "345", "--json", "-")[1]) == lens
    assert max(map(len, qkv("lens", counting, "3456789")[1].splitlines())) <= 100


def test_the_lens_reads_the_target_of_a_translator(trained):
    lens = json.loads(qkv("lens", trained, "He sleeps.", "--target", "Er schläft.", "--json", "-")[1])
    assert lens["target"] == "Er schläft." and lens["read"][0] == "<s>" and len(lens["read"]) == len(lens["answers"])
    assert json.loads(qkv("lens", trained, "He sleeps.", "--json", "-")[1])["target"] == qkv("translate", trained, text="He sleeps.\n")[1][:-1]


def test_a_translation_is_that_of_the_defaults_of_the_run(trained, tmp_path):
    shutil.copytree(trained, tmp_path / "run")
    (tmp_path / "run/decoding.json").write_text(json.dumps({"source_prefix": "The dog sees: ", "max_length": 3}))
    wanted = qkv("translate", tmp_path / "run", text="He sleeps.\n")[1][:-1]
    lens = json.loads(qkv("lens", tmp_path / "run", "He sleeps.", "--json", "-")[1])
    attention = json.loads(qkv("attend", tmp_path / "run", "He sleeps.", "--json", "-")[1])
    assert lens["target"] == attention["target"] == wanted and len(lens["read"]) <= 4
    prefixed = attention["attention"][0]["rows"]
    assert len(prefixed) > len(json.loads(qkv("attend", trained, "He sleeps.", "--json", "-")[1])["attention"][0]["rows"])


def test_patching_shows_where_the_answer_is(counting, tmp_path):
    shown = qkv("patch", counting, "--clean", "345", "--corrupted", "346", "--json", tmp_path / "patch.json")[1].splitlines()
    assert shown[0].startswith("logit(6) - logit(7): clean ")
    assert [line.split() for line in shown[3:]] == [
        ["clean", "<s>", "3", "4", "5"], ["corrupted", "<s>", "3", "4", "6"],
        ["embeddings", "0", "0", "0", "100"], ["layer", "1", "0", "0", "0", "100"]]
    written = json.loads((tmp_path / "patch.json").read_text())
    assert (written["answer"], written["wrong"]) == ("6", "7") and written["recovered"][1][3] == pytest.approx(1)
    heads = json.loads(qkv("patch", counting, "--clean", "345", "--corrupted", "346", "--part", "head", "--json", "-")[1])
    assert len(heads["recovered"]) == 1 and len(heads["recovered"][0]) == 2


def test_attributions_of_a_text(counting, tmp_path):
    shown = qkv("attend", counting, "345", "--method", "integrated", "--html", tmp_path / "a.html", "--json", tmp_path / "a.json")[1]
    assert shown == "" and "decoder-integrated" in (tmp_path / "a.html").read_text()
    written = json.loads((tmp_path / "a.json").read_text())
    assert [token["piece"] for token in written["tokens"]][-3:] == ["4", "5", "6"]
    shown = qkv("attend", counting, "345", "--method", "integrated")[1]
    assert shown.startswith("decoder integrated gradients: shares of columns in log p of rows\n")
    assert "\nsums of attributions differ from the changes of log p by at most " in shown
    assert qkv("attend", counting, "345", "--method", "gradient")[1].startswith("decoder gradient x input: ")
    assert qkv("attend", counting, "345", "--method", "rollout")[1].startswith("decoder attention rollout, layers 1 to 1 of 1: ")
    assert qkv("attend", counting, "345", "--method", "flow")[1].startswith("decoder attention flow, layers 1 to 1 of 1: ")


def test_attention_in_numbers_and_as_the_mean_of_the_heads(counting, trained):
    weights = json.loads(qkv("attend", counting, "345", "--json", "-")[1])["attention"][0]["layers"][-1]
    mean = [[sum(head[i][j] for head in weights) / len(weights) for j in range(i + 1)] for i in range(4)]
    shown = qkv("attend", counting, "345", "--head", "mean", "--numbers")[1].splitlines()
    assert shown[0] == "decoder attention, layer 1 of 1, mean of 2 heads: rows look at columns"
    rows = [[float(x) for x in line.split()[1:]] for line in shown if line.startswith(("<s> ", "  3 ", "  4 ", "  5 "))]
    assert [len(row) for row in rows] == [1, 2, 3, 4]
    assert all(abs(a - b) <= 0.005 + 1e-6 for row, expected in zip(rows, mean) for a, b in zip(row, expected))  # two digits
    shown = qkv("attend", trained, "He sleeps.", "--method", "gradient")[1].splitlines()
    assert "cross gradient x input: shares of columns in log p of rows; the rest of each row is in decoder" in shown


def test_the_steps_of_beam_search(trained, tmp_path):
    sentence = "The dog sees the cat."
    shown = qkv("beam", trained, sentence, "--beam", 3, "--json", tmp_path / "beam.json")[1]
    assert shown.startswith("Beam search with 3 hypotheses. ") and "\nstep 1      log p  from  tokens\n  1 " in shown
    trace = json.loads((tmp_path / "beam.json").read_text())
    translation = qkv("translate", trained, "--beam", 3, "--sentences", "line", text=sentence + "\n")[1].strip()
    assert shown.splitlines()[-1] == f"translation: {translation}" and trace["translation"] == translation
    assert max(map(len, shown.splitlines()[:-1])) <= 100 and shown.count("\nstep ") == len(trace["steps"])


def test_pages_go_to_standard_output(counting, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = qkv("attend", counting, "345", "--html", "-")[1]
    qkv("attend", counting, "345", "--html", "page.html")
    assert page == (tmp_path / "page.html").read_text() and [path.name for path in tmp_path.iterdir()] == ["page.html"]


def test_wrong_options_are_one_line(counting, trained, tmp_path):
    qkv("import", ROOT / "tests/golden/bert/sentence", tmp_path / "bert", "--tokens")
    qkv("quantize", counting, "--out", tmp_path / "int8", "--int8")
    assert qkv("lens", tmp_path / "int8", "345")[0] == qkv("patch", tmp_path / "int8", "--clean", "345", "--corrupted", "346")[0] == 0
    for arguments, message in (
        (["attend", tmp_path / "int8", "345", "--method", "gradient"], "the run has weights of 8 or 4 bits, which have no gradients"),
        (["lens", tmp_path / "bert", "a"], "is a run of the kind encoder; expected a language model or a translator"),
        (["attend", tmp_path / "bert", "a", "--method", "gradient"], "method must be weights, rollout or flow for an encoder (is gradient)"),
        (["lens", counting], "TEXT is required: qkv lens RUN TEXT, or --text TEXT"),
        (["attend", counting], "SENTENCE is required: qkv attend RUN SENTENCE, or --text SENTENCE, or --prompt SENTENCE"),
        (["lens"], "run is required"),
        (["attend", counting, "1", "--head", "3"], "--head 3: must be between 1 and 2"),
        (["attend", counting, "1", "--head", "0"], "--head: must be a number from 1 to 1000, or mean (is 0)"),
        (["attend", counting, "1", "--html", "-", "--json", "-"], "--html and --json: both are -, expected different files"),
        (["lens", counting, "1", "--target", "2"], f"--target: {counting} is a language model; give it one text"),
        (["lens", counting, "1", "--to", "de"], f"--from and --to: {counting} is a language model"),
        (["patch", counting, "--clean", "1", "--corrupted", "12"], "clean and corrupted must have the same number of tokens, at least 1 (have 2: \"<s> 1\" and 3: \"<s> 1 2\")"),
        (["patch", trained, "--clean", "a", "--corrupted", "a b c d"], "clean and corrupted must have the same number of tokens"),
        (["beam", trained, " "], "source is empty"),
        (["beam", counting, "a"], "language model"),
        (["beam", trained, "a", "--beam", 0], "--beam: "),
        (["patch", trained, "--clean", " ", "--corrupted", "a"], "clean is empty"),
        (["patch", trained, "--clean", "a", "--corrupted", "b", "--part", "cross-head", "--stack", "encoder"],
         "part must not be cross-head: the encoder has no cross-attention"),
        (["patch", counting, "--clean", "1", "--corrupted", "2", "--part", "cross-attention"],
         "part must not be cross-attention: the model has no cross-attention"),
        (["patch", counting, "--clean", "1", "--corrupted", "2", "--stack", "encoder"], "stack must be decoder: the model has no encoder"),
        (["patch", counting, "--clean", "1", "--corrupted", "2", "--wrong", "2"],
         "wrong must not be the model's answer to the clean text"),
        (["patch", counting, "--clean", "1", "--corrupted", "2", "--prefix", "3"], "prefix must not be set for a language model"),
        (["patch", counting, "--clean", "1", "--corrupted", "2", "--from", "en"], "--from and --to: "),
        (["patch", tmp_path / "bert", "--clean", "a", "--corrupted", "b"], "expected a language model or a translator"),
        (["attend", trained, "a", "--method", "gradient", "--kind", "encoder"], "--kind encoder: this method has only decoder and cross attention"),
        (["attend", counting, "1", "--method", "paths"], "--method: must be one of weights, rollout, flow, gradient, integrated (is paths)"),
        (["attend", counting, "1", "--steps", 7], "steps must not be set if method is weights; only integrated has steps (is 7)"),
        (["attend", trained, "a", "--method", "rollout", "--baseline", "b"], "baseline must not be set if method is rollout"),
        (["patch", counting, "--clean", "1", "--corrupted", "2", "--answer", "34", "--wrong", "35"],
         'answer and wrong begin with the same token, "3"'),
        (["embed", trained, "--layer", "7"], "layer must be between -2 and 1 (is 7)"),
    ):
        status, _, error = qkv(*arguments, text="a\n", ok=False)
        assert status in (1, 2) and message in error and error.count("\n") == 1


def test_embeddings_of_a_layer(trained):
    last, first = (qkv("embed", trained, "--layer", layer, text="a dog\n")[1] for layer in (-1, 0))
    assert last == qkv("embed", trained, text="a dog\n")[1] == qkv("embed", trained, "--layer", 1, text="a dog\n")[1]
    assert first == qkv("embed", trained, "--layer", -2, text="a dog\n")[1] != last
