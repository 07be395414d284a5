"""qkv summarize: whole texts, with the defaults that a model was published with."""

import json
import shutil
import subprocess

import pytest

from conftest import QKV, ROOT, SMALL, TEXT, qkv

ENCODER_DECODERS = ROOT / "tests/golden/encoder_decoders"
TASKS = {"summarization": {"early_stopping": True, "length_penalty": 2.0, "max_length": 16, "min_length": 6,
                           "no_repeat_ngram_size": 2, "num_beams": 3, "prefix": "summarize: "},
         "translation_en_to_de": {"max_length": 9, "num_beams": 2, "prefix": "translate English to German: "}}
DEFAULTS = ["--beam", 3, "--length-penalty", 2, "--no-repeat-ngram", 2, "--early-stopping", "true"]
TEXTS = ["the dog runs in the park .\nthe cat sleeps .", "the cat sees a dog .", ""]


def imported(name, folder, members):
    shutil.copytree(ENCODER_DECODERS / name, folder / f"{name}.model")
    config = folder / f"{name}.model/config.json"
    config.write_text(json.dumps(json.loads(config.read_text()) | members))
    qkv("import", folder / f"{name}.model", folder / name)
    return folder / name


@pytest.fixture(scope="module")
def t5(tmp_path_factory):
    return imported("t5", tmp_path_factory.mktemp("t5"), {"task_specific_params": TASKS})


@pytest.fixture(scope="module")
def bart(tmp_path_factory):
    task = {name: value for name, value in TASKS["summarization"].items() if name != "prefix"}
    return imported("bart", tmp_path_factory.mktemp("bart"),
                    {"prefix": " ", "task_specific_params": {"summarization": task}})


@pytest.fixture
def files(tmp_path):
    for i, text in enumerate(TEXTS):
        (tmp_path / f"{i}.txt").write_text(text + "\n" * bool(text))
    return [tmp_path / f"{i}.txt" for i in range(len(TEXTS))]


def objects(*arguments, text=None):
    return [json.loads(line) for line in qkv(*arguments, "--json", text=text)[1].splitlines()]


def plain(translation):
    """A translation without the alignment, which summaries do not have."""
    for hypothesis in translation["hypotheses"]:
        hypothesis.pop("alignment", None)
    return translation


@pytest.mark.parametrize("name, prefix, lengths", [("t5", "summarize: ", (5, 15)), ("bart", " ", (4, 14))])
def test_the_defaults_are_those_of_the_model(name, prefix, lengths, request):
    run, line = request.getfixturevalue(name), TEXTS[1] + "\n"
    wanted = ["--source-prefix", prefix, "--min-length", lengths[0], "--max-length", lengths[1], *DEFAULTS]
    (summary,) = objects("summarize", run, text=line)
    (translation,) = objects("translate", run, *wanted, text=line)
    assert summary.pop("file") == "-" and summary == plain(translation)
    assert lengths[0] <= len(summary["hypotheses"][0]["tokens"]) <= lengths[1]
    (greedy,) = objects("summarize", run, "--beam", 1, "--max-length", 7, "--source-prefix", "the ", text=line)
    given = ["--source-prefix", "the ", "--min-length", lengths[0], *DEFAULTS[2:], "--beam", 1, "--max-length", 7]
    assert greedy["hypotheses"] == plain(objects("translate", run, *given, text=line)[0])["hypotheses"]


@pytest.mark.parametrize("name", ["t5", "bart"])
def test_translation_has_no_settings_of_summaries(name, request, tmp_path):
    run, line = request.getfixturevalue(name), TEXTS[1] + "\n"
    usual = imported(name, tmp_path, {})
    assert not (usual / "summary.json").exists()
    assert objects("translate", run, text=line) == objects("translate", usual, text=line)
    assert objects("translate", run, "--source-prefix", "the ", text=line)[0]["source_tokens"] == (
        objects("translate", run, text="the " + line)[0]["source_tokens"])


def test_each_file_is_a_text(t5, files):
    summaries = objects("summarize", t5, *files)
    assert [s["file"] for s in summaries] == [str(file) for file in files]
    assert [s["source"] for s in summaries] == TEXTS
    for text, summary in zip(TEXTS, summaries):
        assert objects("summarize", t5, text=text)[0]["hypotheses"] == summary["hypotheses"]
    lines = qkv("summarize", t5, *files)[1].splitlines()
    assert len(lines) == 3 and lines[2] == "" and lines[1] == summaries[1]["hypotheses"][0]["text"]
    assert qkv("summarize", t5, "-", files[0], text=TEXTS[1])[1].splitlines() == [lines[1], lines[0]]


def test_lines_are_texts_if_asked(t5, files):
    summaries = objects("summarize", t5, "--lines", *files)
    assert [s["source"] for s in summaries] == [*TEXTS[0].split("\n"), TEXTS[1]]
    assert [s["file"] for s in summaries] == [str(files[0]), str(files[0]), str(files[1])]
    alone = [qkv("summarize", t5, text=s["source"])[1] for s in summaries]
    assert qkv("summarize", t5, "--lines", *files)[1] == "".join(alone)


def test_line_breaks_are_tokens_of_the_text(bart):
    (unix,) = objects("summarize", bart, text=TEXTS[0])
    assert unix["source_tokens"][0:2] == ["<s>", "Ġthe"] and unix["source_tokens"].count("Ċ") == 1  # the prefix is a space
    for same in (TEXTS[0] + "\n", TEXTS[0].replace("\n", "\r\n") + "\r\n", "\ufeff" + TEXTS[0]):
        done = subprocess.run([QKV, "summarize", bart, "--json"], input=same.encode(), capture_output=True, check=True)
        assert json.loads(done.stdout) == unix


def test_a_text_that_is_too_long_is_summarized_in_parts(tmp_path):
    run = imported("t5", tmp_path, {"task_specific_params": TASKS, "n_positions": 60})
    sentence = "the dog runs in the park . "
    (tmp_path / "long.txt").write_text(sentence * 6)
    _, out, err = qkv("summarize", run, tmp_path / "long.txt", "--json")
    assert err == f"qkv: {tmp_path}/long.txt: longer than the model's 60 tokens, split into 3 parts\n"
    summary = json.loads(out)
    (part,) = objects("summarize", run, text=sentence * 2)
    assert summary["source"] == sentence * 6
    assert summary["source_tokens"] == part["source_tokens"] * 3  # with the prefix and the end token
    assert summary["hypotheses"][0]["text"] == " ".join([part["hypotheses"][0]["text"].strip()] * 3)
    (tmp_path / "lines.txt").write_text("a\n" + sentence * 6 + "\n")
    assert f"qkv: {tmp_path}/lines.txt, line 2: longer than" in qkv("summarize", run, "--lines", tmp_path / "lines.txt")[2]
    (tmp_path / "lines.txt").write_text((sentence * 6 + "\n") * 12)
    notes = qkv("summarize", run, "--lines", tmp_path / "lines.txt")[2].splitlines()
    assert len(notes) == 11 and notes[-1] == "qkv: 2 further notes are not shown"


def test_files_that_cannot_be_read_are_named(t5, tmp_path):
    (tmp_path / "latin.txt").write_bytes(b"good\n caf\xe9")
    (tmp_path / "good.txt").write_text("good")
    status, _, err = qkv("summarize", t5, tmp_path / "good.txt", tmp_path / "latin.txt", ok=False)
    assert status == 1 and err.startswith(f"qkv: {tmp_path}/latin.txt: byte 10 is not valid UTF-8") and err.count("\n") == 1
    status, _, err = qkv("summarize", t5, "--lines", tmp_path / "latin.txt", ok=False)
    assert status == 1 and err.startswith(f"qkv: {tmp_path}/latin.txt, line 2: byte 5 is not valid UTF-8")
    assert qkv("summarize", t5, tmp_path / "none.txt", ok=False)[2].startswith(f"qkv: {tmp_path}/none.txt: cannot be opened")
    assert qkv("summarize", t5, tmp_path, ok=False)[2].startswith(f"qkv: {tmp_path}: cannot be read")
    (tmp_path / "huge.txt").write_bytes(b"a line\n" * (3 << 20))
    assert qkv("summarize", t5, tmp_path / "huge.txt", ok=False) == (
        1, "", f"qkv: {tmp_path}/huge.txt: is longer than 16777216 bytes\n")
    assert qkv("summarize", t5, "-", "-", ok=False)[0::2] == (1, "qkv: file: standard input (-) may be named once\n")


def test_runs_that_were_not_trained_on_texts_are_refused(trained, counting, films, tmp_path):
    qkv("import", ENCODER_DECODERS / "opus", tmp_path / "opus")
    qkv("import", ROOT / "tests/golden/bert/sentence", tmp_path / "encoder")
    whole = ("translates sentences (sentences is auto); expected a model of whole texts: an imported BART, Pegasus or T5, or a "
             "translator trained on texts and their summaries")
    for run, reason in [(trained, whole), (tmp_path / "opus", whole),
                        (counting, "is a language model; expected a translator (try: qkv generate)"),
                        (films / "run", "is a recommender; expected a translator (try: qkv recommend)"),
                        (tmp_path / "encoder", "is an encoder; expected a translator (try: qkv embed)")]:
        assert qkv("summarize", run, text="a text", ok=False) == (1, "", f"qkv: {run} {reason}\n")
    assert qkv("summarize", tmp_path, text="a", ok=False)[2].startswith(f"qkv: {tmp_path}/config.json: ")


def test_a_translator_trained_on_texts_summarizes(tmp_path):
    for part, lines in (("train", 120), ("dev", 12)):
        sentences = (TEXT / f"{part}.en").read_text().splitlines()[:lines]
        texts = [sentences[i:i + 2] for i in range(0, lines, 2)]
        (tmp_path / f"{part}.text").write_text("".join(" ".join(text) + "\n" for text in texts))
        (tmp_path / f"{part}.summary").write_text("".join(text[0] + "\n" for text in texts))
    names = {part: [tmp_path / f"{part}.text", tmp_path / f"{part}.summary"] for part in ("train", "dev")}
    qkv("train", "translate", "--train", *names["train"], "--dev", *names["dev"], *SMALL, "--max-length", 80, "--out",
        tmp_path / "run", "--max-steps", 2)
    for options in [[], ["--beam", 2, "--max-length", 5]]:
        (summary,) = objects("summarize", tmp_path / "run", *options, text="A dog runs.\nThe cat sleeps.\n")
        (translation,) = objects("translate", tmp_path / "run", *options, text="A dog runs. The cat sleeps.\n")
        assert summary["source_tokens"] == translation["source_tokens"]  # a line break is a space
        assert summary["hypotheses"][0]["tokens"] == translation["hypotheses"][0]["tokens"]


def test_wrong_defaults_of_a_run_are_named(t5, tmp_path):
    shutil.copytree(t5, tmp_path / "run")
    for text, reason in [('{"beam": 0}', "beam must be between 1 and 1024 (is 0)"), ("[]", ""), ('{"prefix": "a"}', "")]:
        (tmp_path / "run/summary.json").write_text(text)
        status, out, err = qkv("summarize", tmp_path / "run", text="a", ok=False)
        assert (status, out) == (1, "") and err.startswith(f"qkv: {tmp_path}/run/summary.json: {reason}")
        qkv("translate", tmp_path / "run", text="a\n")
    (tmp_path / "run/summary.json").write_text(json.dumps({"source_prefix": "a" * 1025}))
    assert qkv("summarize", tmp_path / "run", text="a", ok=False)[2] == (
        f"qkv: {tmp_path}/run/summary.json: source_prefix must have at most 1024 bytes (has 1025)\n")
