"""qkv translate: the output of every option, and streaming."""

import json
import math
import os
import re
import shutil
import signal
import subprocess
import time

import pytest
from conftest import QKV, ROOT, SMALL, check_translated_as_they_arrive, peak_memory, qkv

LINES = ["The dog sees the cat.", "", "He sleeps.", "A man reads the old book in the garden.", "The dog sees the cat."]
TEXT = "\n".join(LINES) + "\n"


def translate(run, *arguments, text=TEXT):
    return qkv("translate", run, *arguments, text=text)[1].splitlines()


def objects(run, *arguments, text=TEXT):
    return [json.loads(line) for line in translate(run, "--json", *arguments, text=text)]


def test_json_has_every_field(trained):
    found = objects(trained, "--beam", 4, "--n-best", 4, "--word-scores", "--attention")
    assert [t["source"] for t in found] == LINES
    assert found[0]["source_tokens"][-1] == "</s>" and found[1]["hypotheses"][0]["text"] == ""
    for t in found:
        scores = [h["score"] for h in t["hypotheses"]]
        assert scores == sorted(scores, reverse=True) and len(scores) == (4 if t["source"] else 1)
        for h in t["hypotheses"]:
            assert h["log_probability"] == pytest.approx(sum(h["token_scores"]))
            assert len(h["token_scores"]) in (len(h["tokens"]), len(h["tokens"]) + 1)
            assert h["log_probability"] == pytest.approx(h["score"] * max(1, len(h["token_scores"])))
            assert [target for _, target in h["alignment"]] == list(range(len(h["tokens"])))
            for (source, target), row in zip(h["alignment"], h["attention"]):
                assert len(row) == len(t["source_tokens"]) and math.isclose(sum(row), 1, abs_tol=1e-4)
                assert row[source] == max(row[:-1])
            if h["tokens"]:
                assert " ".join(w["word"] for w in h["words"]).split() == h["text"].split()


def test_plain_lines_have_fields(trained):
    texts = translate(trained)
    for form, count in (("--scores", 2), ("--alignment", 2), ("--word-scores", 2)):
        lines = translate(trained, form)
        assert [line.split(" ||| ")[0] for line in lines] == texts
        assert all(len(line.split(" ||| ")) == count for line in lines)
    n_best = [line.split(" ||| ") for line in translate(trained, "--n-best", 2)]
    assert [line[0] for line in n_best] == ["0", "0", "1", "2", "2", "3", "3", "4", "4"]
    pairs = translate(trained, "--alignment")[0].split(" ||| ")[1].split()
    assert all(len(pair.split("-")) == 2 for pair in pairs) and pairs


def test_the_layer_and_head_of_an_alignment_are_chosen(trained):
    last = objects(trained, "--attention", text="The dog sees the cat.\n")
    assert objects(trained, "--attention", "--attention-layer", 1, "--attention-head", 1, text="The dog sees the cat.\n") == last
    other = objects(trained, "--attention", "--attention-head", 2, text="The dog sees the cat.\n")
    assert other[0]["hypotheses"][0]["attention"] != last[0]["hypotheses"][0]["attention"]
    status, _, error = qkv("translate", trained, "--attention-layer", 2, text="x\n", ok=False)
    assert status == 1 and error == "qkv: attention: layer 2 does not exist (the decoder has 1 layers)\n"


def test_forced_scores_match_the_search(trained, tmp_path):
    found = [t for t in objects(trained, "--beam", 2) if t["source"]]
    targets, sources = tmp_path / "targets", "".join(t["source"] + "\n" for t in found)
    targets.write_text("".join(t["hypotheses"][0]["text"] + "\n" for t in found))
    scored = objects(trained, "--score", targets, text=sources)
    for t, s in zip(found, scored):
        wanted, given = t["hypotheses"][0], s["hypotheses"][0]
        if wanted["tokens"] == given["tokens"] and len(wanted["token_scores"]) > len(wanted["tokens"]):
            assert given["log_probability"] == pytest.approx(wanted["log_probability"], abs=1e-4)
    assert len(scored) == len(found)
    targets.write_text("only one\n")
    status, _, error = qkv("translate", trained, "--score", targets, text=sources, ok=False)
    assert status == 1 and "has 1 lines, fewer than standard input" in error


def test_lengths_are_limited(trained):
    for t in objects(trained, "--min-length", 6, "--max-length", 8):
        for h in t["hypotheses"]:
            assert not t["source"] or 6 <= len(h["tokens"]) <= 8


def test_no_ngram_is_repeated(trained):
    for t in objects(trained, "--no-repeat-ngram", 2, "--min-length", 12):
        tokens = t["hypotheses"][0]["tokens"]
        pairs = list(zip(tokens, tokens[1:]))
        assert len(set(pairs)) == len(pairs)


def test_translations_start_with_their_prefixes(trained, tmp_path):
    for line, source in zip(translate(trained, "--prefix", "Ein Hund"), LINES):
        assert line.startswith("Ein Hund") == bool(source)
    prefixes = tmp_path / "prefixes"
    prefixes.write_text("Der\n\nEr\n\nDie\n")
    lines = translate(trained, "--prefix-file", prefixes)
    assert lines[0].startswith("Der") and lines[2].startswith("Er") and lines[4].startswith("Die")
    assert lines[3] == translate(trained)[3]
    prefixes.write_text("Der\n")
    status, _, error = qkv("translate", trained, "--prefix-file", prefixes, text=TEXT, ok=False)
    assert status == 1 and "has 1 lines, fewer than standard input" in error
    status, _, error = qkv("translate", trained, "--prefix", "Der Hund " * 40, text=TEXT, ok=False)
    assert status == 1 and error.startswith("qkv: line 1: prefix must have fewer than")


def test_alternatives_differ_in_their_first_token(trained):
    hypotheses = objects(trained, "--alternatives", "--n-best", 5, "--beam", 2, text="The dog sees the cat.\n")[0]["hypotheses"]
    assert len({(h["tokens"] or [""])[0] for h in hypotheses}) == 5


def test_samples_depend_on_seed_and_sentence(trained):
    sampling = ["--sampling", "--n-best", 3, "--top-k", 50, "--top-p", 0.95, "--temperature", 1.2]

    def texts(*options):
        return [line.split(" ||| ")[1] for line in translate(trained, *sampling, *options)]

    drawn = texts("--seed", 5)
    assert texts("--seed", 5, "--batch-tokens", 1, "--threads", 1) == drawn != texts("--seed", 6)
    assert drawn[:3] == drawn[-3:]
    status, _, error = qkv("translate", trained, "--top-k", 5, text=TEXT, ok=False)
    assert status == 2 and "--sampling" in error


def test_an_ensemble_of_a_run_with_itself_equals_the_run(trained):
    assert translate(trained, "--ensemble", trained) == translate(trained)
    other = ROOT / "tests/golden/runs/translator"
    status, _, error = qkv("translate", trained, "--ensemble", other, text="x\n", ok=False)
    assert status == 1 and "vocabulary differs from that of" in error and str(other) in error


def test_workers_do_not_change_the_output(trained):
    text = TEXT * 60
    wanted = translate(trained, "--n-best", 2, "--threads", 1, text=text)
    for workers in (2, 3):
        assert translate(trained, "--n-best", 2, "--workers", workers, "--batch-tokens", 200, text=text) == wanted
    assert translate(trained, "--n-best", 2, "--window", 1, text=text) == wanted


def test_lines_are_translated_as_they_arrive(trained):
    check_translated_as_they_arrive([trained], LINES, translate(trained))


def test_lines_before_an_invalid_one_are_translated(trained):
    text = TEXT.encode() * 20 + b"\xff\n" + TEXT.encode()
    done = subprocess.run([QKV, "translate", str(trained)], input=text, capture_output=True)
    assert done.returncode == 1 and done.stderr == b"qkv: line 101: byte 1 is not valid UTF-8\n"
    assert done.stdout.count(b"\n") == 100


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_ends_it_between_lines(trained, number):
    with subprocess.Popen([QKV, "translate", str(trained)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE) as program:
        program.stdin.write(TEXT.encode())
        program.stdin.flush()
        output = b"".join(program.stdout.readline() for _ in LINES)
        time.sleep(0.2)
        program.send_signal(number)
        assert program.wait(30) == 128 + number
        assert program.stderr.read() == b"" and program.stdout.read() == b"" and output.count(b"\n") == len(LINES)


def test_a_closed_pipe_ends_it_quietly(trained):
    with subprocess.Popen([QKV, "translate", str(trained)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, preexec_fn=lambda: signal.signal(signal.SIGPIPE, signal.SIG_DFL)) as program:
        program.stdout.close()
        try:
            program.stdin.write(TEXT.encode() * 200)
            program.stdin.close()
        except BrokenPipeError:
            pass
        assert program.wait(60) == -signal.SIGPIPE
        assert program.stderr.read() == b""


def test_progress_is_shown_only_on_a_terminal(trained, tmp_path):
    ours, theirs = os.openpty()
    text = TEXT * 2000  # many times the 0.2 seconds after which progress is shown
    with open(tmp_path / "out", "wb") as out:
        done = subprocess.run([QKV, "translate", str(trained)], input=text.encode(), stdout=out, stderr=theirs)
    os.write(theirs, b"$")  # a terminal gives what was written in pieces; closed, it may take the rest along
    shown = b""
    while not shown.endswith(b"$"):
        shown += os.read(ours, 1 << 16)
    os.close(theirs)
    os.close(ours)
    shown = shown.removesuffix(b"$").decode()
    assert done.returncode == 0 and (tmp_path / "out").read_bytes().count(b"\n") == 10_000
    assert " lines, " in shown and shown.endswith("\r\x1b[K")
    assert qkv("translate", trained, text=text)[2] == ""


def test_options_out_of_range_are_named(trained):
    for arguments, expected, message in [
            (["--n-best", 6], 1, "n_best must be at most beam, 5, unless sampling (is 6)"),
            (["--beam", 1025], 2, "--beam: must be between 1 and 1024 (is 1025)"),
            (["--repetition-penalty", -1], 2, "--repetition-penalty: must be above 0 and at most 1000 (is -1)"),
            (["--length-penalty", "1e300"], 2, "--length-penalty: must be between -10 and 10 (is 1e300)"),
            (["--sampling", "--temperature", -1], 2, "--temperature: must be at least 0 (is -1)"),
            (["--sampling", "--top-p", 2], 2, "--top-p: must be above 0 and at most 1 (is 2)"),
            (["--coverage-penalty", "nan"], 2, "--coverage-penalty: must be between 0 and 1000 (is nan)"),
            (["--temperature", 1], 2, "--temperature requires --sampling")]:
        status, _, error = qkv("translate", trained, *arguments, text=TEXT, ok=False)
        assert status == expected and message in error and error.count("\n") == 1, error


@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="no /proc")
def test_memory_does_not_grow_with_the_lines(trained):
    """The peak with eight times as many lines is the same, except for buffers that the first windows do not need."""
    def peak(lines):
        command = [QKV, "translate", str(trained), "--beam", "1", "--max-length", "1", "--threads", "1"]
        return peak_memory(command, "He.\n" * lines)
    assert peak(16000) <= peak(2000) + 8 * 1024  # KiB


def test_files_that_are_no_utf8_name_the_command_that_makes_them_so(trained, corpus, counting, tmp_path):
    text = tmp_path / "text"
    for content, hint in (("A dog.\n".encode("utf-16"), "iconv -f utf-16 -t utf-8 FILE"),
                          ("A dog.\n".encode("utf-16-be").replace(b"\0A", b"\xfe\xff\0A", 1), "iconv -f utf-16"),
                          (b"\xfd7zXZ\x00A dog.\n", "xzcat FILE")):
        text.write_bytes(content)
        for command in (["translate", trained, "--input", text], ["embed", trained, "--file", text],
                        ["train", "lm", "--text", text, "--out", tmp_path / "lm", "--max-steps", 1],
                        ["train", "translate", "--train", text, text, *corpus[3:], "--out", tmp_path / "run"],
                        ["train", "translate", *corpus[:3], "--dev", text, text, "--out", tmp_path / "run"]):
            status, _, error = qkv(*command, ok=False)
            assert status == 1 and "is not valid UTF-8 (the file is " in error and hint in error, (command, error)
        done = subprocess.run([QKV, "translate", trained], input=content, capture_output=True)
        assert done.returncode == 1 and hint.encode() in done.stderr


def test_a_dev_text_without_usable_pairs_is_named(corpus, tmp_path):
    long = tmp_path / "long.en"
    long.write_text("a dog and a cat and a bird and a horse\n" * 3)
    small = ["train", "translate", *corpus[:3], "--dev", long, long, *SMALL[:-6], "--threads", 1, "--out", tmp_path / "run",
             "--max-steps", 1]
    status, _, error = qkv(*small, "--max-length", 5, "--batch-tokens", 64, ok=False)
    assert status == 1 and f"{long} and {long}: no usable sentence pairs for evaluation (0 empty, 3 too long: over 5 tokens)" in error
    status, _, error = qkv(*small, "--max-length", 40, "--batch-tokens", 8, ok=False)
    assert status == 1 and f"{long} and {long}: batch_tokens must be at least " in error
    status, _, error = qkv(*small, "--vocab-size", 10, ok=False)
    assert status == 1 and "character_coverage" not in error
    assert re.search(r"vocab_size 10: .*; the characters of the text and the special pieces need at least \d+$", error.strip())


def test_a_translation_with_line_ends_is_one_line(tmp_path):
    run = tmp_path / "run"
    shutil.copytree(ROOT / "tests/golden/runs/imported-translator", run)
    pieces = json.loads((run / "vocabulary.json").read_text())
    ends = {"en": "e\nn", "q": "q\r\n", "ed": "e\u2028d"}
    (run / "vocabulary.json").write_text(json.dumps([ends.get(piece, piece) for piece in pieces]))
    (tmp_path / "parts").mkdir()
    source = "a b\nc d e\n"
    (tmp_path / "parts/part").write_text(source)
    texts = [json.loads(line)["hypotheses"] for line in qkv("translate", run, "--n-best", 3, "--json", text=source)[1].splitlines()]
    assert all(set("\n\u2028") & set(hypotheses[0]["text"]) for hypotheses in texts)

    def plain(text):
        return re.sub("\r\n|[\n\r\u2028]", " ", text)

    out = subprocess.run([QKV, "translate", run], input=source.encode(), capture_output=True, check=True).stdout.decode()
    assert out == "".join(plain(hypotheses[0]["text"]) + "\n" for hypotheses in texts)
    qkv("translate", run, "--in", tmp_path / "parts", "--out", tmp_path / "done")
    assert (tmp_path / "done/part").read_bytes().decode() == out
    records = subprocess.run([QKV, "translate", run, "--n-best", "3"], input=source.encode(), capture_output=True, check=True).stdout.decode()
    assert [record.split(" ||| ")[:2] for record in records.splitlines()] == \
        [[str(i), plain(h["text"])] for i, hypotheses in enumerate(texts) for h in hypotheses]
