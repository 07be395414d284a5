"""The output and errors of the commands."""

import json
import subprocess

import page_browser
import pytest
from conftest import QKV, SMALL, TEXT, qkv


def test_version_names_the_instruction_set():
    assert any(isa in qkv("--version")[1] for isa in ("avx512", "avx2", "neon", "portable"))


def test_help_groups_the_commands():
    page = qkv("--help")[1]
    groups = [line[:-1] for line in page.splitlines() if line.endswith(":") and not line.startswith(" ")]
    assert groups == ["Train and evaluate", "Use", "Models", "Tools", "Options"]
    assert "\n  translate  " in page[page.index("Use:"):page.index("Models:")]


@pytest.mark.parametrize("command", ["translate", "recommend", "lm"])
def test_help_of_training_shows_common_options_and_names_the_groups_of_others(command):
    page, whole = qkv("train", command, "--help")[1], qkv("train", command, "--help-all")[1]
    common, rest = page.split("More options, which --help-all describes:")
    options = [line for line in common.splitlines() if line.startswith("  -")]
    assert len(options) <= 15 and any(line.startswith("  --learning-rate VALUE") for line in options)
    for group in ("Model", "Optimizer", "Data", "Checkpoints"):
        assert f"\n  {group} " in rest and f"\n{group}:\n" in whole and f"\n{group}:\n" not in page
    assert "--patience" not in common and "\n  --patience VALUE " in whole
    assert "[at least 0; default " in whole and max(map(len, whole.splitlines())) <= 110


@pytest.mark.parametrize("arguments, message", [
    (["trian"], 'unknown command "trian"; did you mean "train"?'),
    (["train", "tranlsate"], 'unknown command "train tranlsate"; did you mean "train translate"?'),
    (["fly"], 'unknown command "fly"'),
    ([], "missing command (see qkv --help)"),
    (["train"], "missing command (see qkv train --help)"),
    (["translate", "run", "--bem", "4"], 'unknown option "--bem"; did you mean "--beam"?'),
    (["train", "translate", "--lerning-rate=4"], 'unknown option "--lerning-rate"; did you mean "--learning-rate"?'),
    (["translate", "run", "--zzzzzz"], 'unknown option "--zzzzzz"'),
    (["inspect", "run", "other"], 'unexpected argument "other"')])
def test_a_mistyped_command_or_option_is_named_with_the_nearest_one(arguments, message):
    assert qkv(*arguments, ok=False) == (2, "", f"qkv: {message}\n")


@pytest.mark.parametrize("arguments", [[], ["fly"], ["train"], ["translate"], ["score", "bleu"], ["score", "wer"],
                                       ["translate", "run", "--beam", "0"], ["bench", "train", "--steps", "x"],
                                       ["bench", "train", "--precision", "bfloat16"]])
def test_wrong_usage_is_one_line_and_status_2(arguments):
    status, output, error = qkv(*arguments, ok=False)
    assert status == 2 and output == "" and error.count("\n") == 1 and error.startswith("qkv: ")


@pytest.mark.parametrize("arguments", [
    ["translate", "run", "--sampling"], ["summarize", "run", "--sampling"], ["generate", "run", "--prompt", "A"],
    ["chat", "run"], ["evaluate", "run"], ["heads", "run"], ["experiment", "softmax"]],
    ids=" ".join)
def test_a_negative_seed_is_refused(arguments):
    for seed in ("-1", "-18446744073709551615"):
        status, output, error = qkv(*arguments, "--seed", seed, ok=False)
        assert (status, output, error) == (2, "", f"qkv: --seed: must be at least 0 (is {seed})\n")


def test_a_negative_seed_of_training_is_refused(corpus, tmp_path):
    status, _, error = qkv("train", "translate", *corpus, "--seed", -1, "--out", tmp_path / "run", ok=False)
    assert status != 0 and error.splitlines()[-1].endswith("seed must be at least 0 (is -1)")


@pytest.mark.parametrize("arguments", [["translate", "/nonexistent"], ["inspect", "/nonexistent"],
                                       ["attend", "/nonexistent", "hello"], ["evaluate", "/nonexistent"],
                                       ["bench", "train", "--model", "huge"]])
def test_failure_is_one_line_and_status_1(arguments):
    status, output, error = qkv(*arguments, text="", ok=False)
    assert status == 1 and output == "" and error.count("\n") == 1 and error.startswith("qkv: ")


@pytest.mark.parametrize("side", ["encoder", "decoder"])
def test_a_translator_has_an_encoder_and_a_decoder(side, corpus, tmp_path):
    _, _, error = qkv("train", "translate", *corpus, f"--{side}-layers", 0, "--out", tmp_path / "run", ok=False)
    assert error == f"qkv: recipe: {side}_layers must be at least 1 for a translator (is 0)\n"
    assert not (tmp_path / "run").exists()


def test_translations_keep_order_and_white_space(trained):
    lines = ["The dog sees the cat.", "", "   ", "He sleeps.", "The dog sees the cat.", "\tHe sleeps. "]
    _, output, _ = qkv("translate", trained, text="\n".join(lines) + "\n")
    translations = output.split("\n")
    assert len(translations) == 7 and translations[1] == translations[6] == "" and translations[2] == "   "
    assert translations[0] == translations[4] and translations[5] == f"\t{translations[3]} "
    assert qkv("translate", trained, text="\r\n".join(lines) + "\r\n")[1] == output
    assert qkv("translate", trained, "--threads", 1, "--batch-tokens", 1, text="\n".join(lines) + "\n")[1] == output


def test_sentences_of_a_line_are_translated_one_by_one(trained):
    def tokens(text, *options):
        lines = qkv("translate", trained, "--json", "--min-length", 3, *options, text=text)[1].splitlines()
        return [json.loads(line)["hypotheses"][0]["tokens"] for line in lines]

    text = "The dog sees the cat. He sleeps.\nThe dog sees the cat.\nHe sleeps.\n"
    both, first, second = tokens(text)
    assert both in ([*first, "</s>", *second], [*first, *second])
    whole, *alone = tokens(text, "--sentences", "line")
    assert whole != both and alone == [first, second]
    *_, message = qkv("translate", trained, "--sentences", "word", text="", ok=False)
    assert "--sentences" in message and "auto" in message and "line" in message


def test_a_long_sentence_is_translated_in_parts(trained):
    words = "the dog sees the cat in the garden, "
    _, output, error = qkv("translate", trained, "--beam", 2, text=words * 20 + "\n")
    assert output.count("\n") == 1
    assert "line 1: a sentence is longer than the model's 40 tokens, split into" in error
    *notes, last = qkv("translate", trained, "--beam", 1, text=(words * 10 + "\n") * 13)[2].splitlines()
    assert len(notes) == 10 and last == "qkv: 3 further notes are not shown"


def test_errors_of_invalid_text_name_the_line(trained):
    done = subprocess.run([QKV, "translate", str(trained)], input=b"fine\n\xff\n", capture_output=True)
    assert done.returncode == 1 and done.stdout.count(b"\n") == 1
    assert done.stderr == b"qkv: line 2: byte 1 is not valid UTF-8\n"


def test_attention_rows_sum_to_one(trained, tmp_path):
    qkv("attend", trained, "The dog sees the cat.", "--json", tmp_path / "a.json", "--html", tmp_path / "a.html")
    attention = json.loads((tmp_path / "a.json").read_text())["attention"]
    assert [kind["kind"] for kind in attention] == ["encoder", "decoder", "cross"]
    for kind in attention:
        for layer in kind["layers"]:
            for head in layer:
                assert len(head) == len(kind["rows"])
                for i, row in enumerate(head):
                    assert abs(sum(row) - 1) < 1e-5
                    if kind["kind"] == "decoder":
                        assert all(weight == 0 for weight in row[i + 1:])
    assert "<script" in (tmp_path / "a.html").read_text()
    assert qkv("attend", trained, "The dog sees the cat.", "--words")[1].count("\n") > 3


def test_inspect_lists_every_parameter(trained):
    info = json.loads(qkv("inspect", trained, "--json")[1])
    assert info["parameter_count"] == sum(p["count"] for p in info["parameters"])
    text = qkv("inspect", trained)[1]
    assert "decoder.layers.0.cross_attention.q.weight" in text
    summary = text.split("\n\n")[0].split("\n")
    assert [line.split(":")[0] for line in summary] == ["kind", "model", "vocabulary", "parameters", "memory"]
    assert summary[1] == "model: 1 encoder layer, 1 decoder layer of width 32, 4 heads, feed-forward width 32, 40 tokens at most"
    assert summary[2] == "vocabulary: 300 source, 300 target"
    assert summary[3] == f"parameters: {info['parameter_count']} ({info['parameter_count']} float32)"


def test_the_page_of_attention_opens_where_the_terminal_does(trained, tmp_path):
    if page_browser.missing():
        pytest.skip(page_browser.missing())
    qkv("attend", trained, "The dog sees the cat.", "--html", tmp_path / "a.html")
    browser = page_browser.Browser()
    for fragment, kind in (("", "Cross"), ("#encoder/1/1", "Encoder")):
        browser.driver.get("about:blank")
        browser.driver.get((tmp_path / "a.html").as_uri() + fragment)
        assert browser.script("all('#tabs [aria-selected=true]').map(tab => tab.textContent)")[0].startswith(kind)
    browser.quit()


def test_a_truncated_run_is_refused(trained, tmp_path):
    broken = tmp_path / "broken"
    subprocess.run(["cp", "-r", str(trained), str(broken)], check=True)
    for name in ("model.safetensors", "tokenizer.model", "config.json", "translation.json"):
        content = (trained / name).read_bytes()
        for size in (0, 1, len(content) // 2, len(content) - 3):
            (broken / name).write_bytes(content[:size])
            status, _, error = qkv("translate", broken, text="x\n", ok=False)
            assert status == 1 and error.count("\n") == 1 and name in error, error
        (broken / name).write_bytes(content)
    assert qkv("translate", broken, text="x\n")[0] == 0


@pytest.mark.parametrize("broken, message", [
    ((b"a\nb\n", b"a\n"), "line"), ((b"a\n\xff\n", b"a\nb\n"), ":2"), ((b"", b""), "no sentence pair")])
def test_invalid_training_text_is_refused(broken, message, tmp_path):
    source, target = tmp_path / "train.en", tmp_path / "train.de"
    source.write_bytes(broken[0])
    target.write_bytes(broken[1])
    status, _, error = qkv("train", "translate", "--train", source, target, "--dev", source, target, "--out",
                           tmp_path / "run", "--max-steps", 1, ok=False)
    assert status == 1 and error.strip().count("\n") == 0 and message in error, error
    assert not (tmp_path / "run").exists()


def test_a_tsv_file_is_accepted_and_skipped_pairs_are_counted(tmp_path):
    pairs = [f"{a}\t{b}" for a, b in zip((TEXT / "train.en").read_text().splitlines()[:300],
                                         (TEXT / "train.de").read_text().splitlines())]
    (tmp_path / "train.tsv").write_text("\n".join(pairs + ["\tleer", "word " * 120 + "\tWort"]) + "\n")
    (tmp_path / "dev.tsv").write_text("\n".join(pairs[:5]) + "\n")
    _, _, error = qkv("train", "translate", "--train", tmp_path / "train.tsv", "--dev", tmp_path / "dev.tsv", *SMALL,
                      "--max-length", 100, "--out", tmp_path / "run", "--max-steps", 2)
    assert "skipped 1 empty and 1 too long" in error
    (tmp_path / "bad.tsv").write_text("a\tb\na\tb\tc\n")
    status, _, error = qkv("train", "translate", "--train", tmp_path / "bad.tsv", "--dev", tmp_path / "dev.tsv",
                           "--out", tmp_path / "run2", ok=False)
    assert status == 1 and "bad.tsv:2" in error


def test_options_and_configuration_files_are_checked(tmp_path, corpus):
    out = ["--out", tmp_path / "run", "--max-steps", 1]
    for extra, message in [(["--d-model", "many"], "d_model"), (["--dropout", "1.5"], "dropout"),
                           (["--activation", "tanh"], "activation"), (["--schedule", "cosine", "--max-steps", 0], "max_steps")]:
        status, _, error = qkv("train", "translate", *corpus, *out, *extra, ok=False)
        assert status in (1, 2) and message in error, error
    (tmp_path / "c.json").write_text('{"d_modle": 32}')
    status, _, error = qkv("train", "translate", *corpus, *out, "--config", tmp_path / "c.json", ok=False)
    assert status == 1 and "d_modle" in error and "d_model" in error


def test_a_full_disk_is_an_error(trained):
    with open("/dev/full", "w") as full:
        done = subprocess.run([QKV, "translate", str(trained)], input=b"The dog.\n", stdout=full, stderr=subprocess.PIPE)
    assert done.returncode == 1 and b"No space left" in done.stderr


def test_a_boolean_option_needs_no_value(tmp_path, corpus):
    for name, given, wanted in [("a", ["--lowercase"], True), ("b", ["--lowercase", "false"], False), ("c", [], False)]:
        qkv("train", "translate", *corpus, *SMALL, *given, "--out", tmp_path / name, "--max-steps", 1)
        assert json.loads((tmp_path / name / "text.json").read_text())["lowercase"] is wanted


def test_the_profile_accounts_for_a_training_step():
    shape = ["bench", "train", "--model", "tiny", "--tokens", 256, "--steps", 2, "--profile"]
    result = json.loads(qkv(*shape, "--json")[1])
    names = " ".join(op["op"] for op in result["ops"])
    for op in ("linear ", "linear, backward ", "attention ", "layer norm ", "cross-entropy", "adam "):
        assert op in names
    assert all(op["ms"] > 0 and op["calls"] >= 1 for op in result["ops"])
    table = qkv(*shape)[1]
    assert "outside the ops" in table and "GFLOP/s of multiply-adds" in table


def test_standard_input_can_be_only_one_of_the_texts(corpus, tmp_path):
    train = ["train", "translate", *SMALL, "--out", tmp_path / "run", "--max-steps", 1]
    status, _, error = qkv(*train, "--train", "-", "-", *corpus[3:], text="a\n", ok=False)
    assert status == 1 and error == "qkv: training: standard input (-) can be only one of the text files\n"


def test_standard_input_is_read_from_its_current_position(corpus, tmp_path):
    pairs = tmp_path / "pairs.tsv"
    pairs.write_text("source\ttarget\n" + "a dog\tein Hund\n" * 30)
    with open(pairs, "rb", buffering=0) as file:
        file.read(len("source\ttarget\n"))
        done = subprocess.run([QKV, "train", "translate", *SMALL, "--vocab-size", "20", "--tokenizer", "bpe", "--train", "-", *map(str, corpus[3:]), "--out",
                               str(tmp_path / "run"), "--max-steps", "1"], stdin=file, capture_output=True, text=True)
    assert "training text: 30 pairs" in done.stderr, done.stderr


def test_a_text_without_a_usable_pair_leaves_no_run(corpus, tmp_path):
    status, _, error = qkv("train", "translate", *corpus, *SMALL, "--out", tmp_path / "run", "--max-length", 2, ok=False)
    assert status == 1 and "no usable sentence pairs" in error and not (tmp_path / "run").exists()
