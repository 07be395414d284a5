"""qkv translate with several runs: translation through a language in between."""

import json
import shutil
import signal
import subprocess
import time

import pytest
from conftest import QKV, ROOT, check_translated_as_they_arrive, peak_memory, qkv

LINES = ["The dog sees the cat.", "", "He sleeps. The dog sees the cat.", "  A man reads the old book in the garden.  "]
TEXT = "\n".join(LINES) + "\n"


# A translator, and an imported one with defaults of its own.
RUNS = ROOT / "tests/golden/runs"
FIRST, SECOND = RUNS / "translator", RUNS / "imported-translator"


def output(*arguments, text=TEXT):
    return qkv("translate", *arguments, text=text)[1]


def objects(*arguments, text=TEXT):
    return [json.loads(line) for line in output(*arguments, "--json", text=text).splitlines()]


def refused(*arguments, code=1, text=TEXT):
    found = qkv("translate", *arguments, text=text, ok=False)
    assert found[0] == code and found[1] == "", found
    return found[2]


def test_a_chain_is_a_pipe():
    for options in ([], ["--beam", 1], ["--sentences", "line"], ["--workers", 3, "--window", 2]):
        assert output(FIRST, SECOND, *options) == output(SECOND, *options, text=output(FIRST, *options))
    assert output(FIRST, SECOND, FIRST) == output(FIRST, text=output(SECOND, text=output(FIRST)))


def test_json_has_the_texts_in_between():
    first, second = objects(FIRST), objects(SECOND, text=output(FIRST))
    for found, one, two in zip(objects(FIRST, SECOND), first, second, strict=True):
        assert found["source"] == one["source"] and found["source_tokens"] == one["source_tokens"]
        assert found["pivot"] == [one["hypotheses"][0]["text"]] == [two["source"]]
        best, before, last = found["hypotheses"][0], one["hypotheses"][0], two["hypotheses"][0]
        assert best["text"] == last["text"] and best["token_scores"] == last["token_scores"]
        assert best["score"] == pytest.approx(before["score"] + last["score"])
        assert best["log_probability"] == pytest.approx(before["log_probability"] + last["log_probability"])
        assert all(source < len(found["source_tokens"]) and target < len(best["tokens"])
                   for source, target in best["alignment"])
    assert "pivot" not in first[0]


def test_n_best_lists_and_prefixes_are_those_of_the_last_run():
    lists = [line.split(" ||| ") for line in output(FIRST, SECOND, "--n-best", 2).splitlines()]
    assert [line[0] for line in lists] == ["0", "0", "1", "2", "2", "3", "3"]
    found = objects(FIRST, SECOND, "--prefix", "The", text="He sleeps.\n")[0]
    assert found["hypotheses"][0]["text"].startswith("The")
    assert found["pivot"] == [output(FIRST, text="He sleeps.\n")[:-1]]


def test_protected_parts_are_there_once():
    parts = ["https://example.org/a?b=1", "{name}", "12.5 km", "%s", "<b>", "me@example.org"]
    text = "".join(f"The dog {part} sees the cat. He sleeps {part}.\n" for part in parts)
    for line, part in zip(objects(FIRST, SECOND, text=text), parts, strict=True):
        assert line["pivot"][0].count(part) == line["hypotheses"][0]["text"].count(part) == 2, line


def test_a_document_keeps_its_markup(tmp_path):
    (tmp_path / "a.html").write_text('<p class="x">The <i>dog</i> <b>sees</b> the cat.</p>\n<pre>The dog</pre>\n')
    qkv("translate", FIRST, SECOND, "--document", tmp_path / "a.html", "--out", tmp_path / "b.html")
    html = (tmp_path / "b.html").read_text()
    assert html.startswith('<p class="x">') and html.endswith("</p>\n<pre>The dog</pre>\n")
    assert all(html.count(tag) == 1 for tag in ("<b>", "</b>", "<i>", "</i>"))
    text = html[len('<p class="x">'):html.index("</p>")]
    for tag in ("<b>", "</b>", "<i>", "</i>"):
        text = text.replace(tag, "")
    assert text.split() == output(FIRST, SECOND, text="The dog sees the cat.\n").split()


def test_many_files(tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in/a").write_text(TEXT)
    qkv("translate", FIRST, SECOND, "--in", tmp_path / "in", "--out", tmp_path / "out")
    assert (tmp_path / "out/a").read_text() == output(FIRST, SECOND)


def test_lines_are_translated_as_they_arrive():
    check_translated_as_they_arrive([FIRST, SECOND], LINES, output(FIRST, SECOND).splitlines())


def test_lines_before_an_invalid_one_are_translated():
    text = TEXT.encode() * 20 + b"\xff\n" + TEXT.encode()
    done = subprocess.run([QKV, "translate", FIRST, SECOND], input=text, capture_output=True)
    assert done.returncode == 1 and done.stderr.splitlines()[-1] == b"qkv: line 81: byte 1 is not valid UTF-8"
    assert done.stdout.decode() == output(FIRST, SECOND) * 20


def test_an_interrupt_ends_it_between_lines():
    with subprocess.Popen([QKV, "translate", FIRST, SECOND], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE) as program:
        program.stdin.write(TEXT.encode())
        program.stdin.flush()
        for _ in LINES:
            program.stdout.readline()
        time.sleep(0.2)
        program.send_signal(signal.SIGINT)
        assert program.wait(30) == 130 and program.stdout.read() == b""
        assert all(b"longer than" in line for line in program.stderr.read().splitlines())


def test_memory_does_not_grow_with_the_lines():
    def peak(lines):
        command = [QKV, "translate", FIRST, SECOND, "--threads", "1", "--max-length", "8", "--window", "256"]
        return peak_memory(command, "He.\n" * lines)
    assert peak(16000) <= peak(2000) + 8 * 1024  # KiB


def test_runs_of_other_kinds_and_damaged_ones_are_named(counting, tmp_path):
    assert str(counting) in refused(FIRST, counting)
    assert str(counting) in refused(counting, FIRST)
    assert str(tmp_path / "none") in refused(FIRST, tmp_path / "none")
    shutil.copytree(FIRST, tmp_path / "damaged")
    weights = max((tmp_path / "damaged").rglob("*.safetensors"), key=lambda path: path.stat().st_size)
    for file in (tmp_path / "damaged").rglob("*.safetensors"):
        file.write_bytes(file.read_bytes()[:100])
    error = refused(FIRST, tmp_path / "damaged")
    assert error.startswith(f"qkv: {tmp_path}/damaged") and error.count("\n") == 1 and weights.exists()


@pytest.mark.parametrize(
    "option", [["--ensemble", "RUN"], ["--score", "FILE"], ["--glossary", "FILE"], ["--attention"]])
def test_options_of_a_single_run_are_refused(option):
    error = refused(FIRST, FIRST, *option, code=2)
    assert error.count("\n") == 1 and f"{option[0]}: cannot be combined with several runs" in error


def test_languages_in_between_are_for_models_with_several(tmp_path):
    assert "--pivot-language: requires several runs" in refused(FIRST, "--pivot-language", "en", code=2)
    run = tmp_path / "m2m"
    qkv("import", ROOT / "tests/golden/encoder_decoders/m2m_100", run)
    languages = ["--from", "de", "--to", "fr"]
    assert refused(run, run, *languages) == (
        "qkv: model 1 of the chain has several languages: its target_language must be that of the text in between "
        "(is missing)\n")
    found = objects(run, run, *languages, "--pivot-language", "en", text="a b\n")[0]
    one = objects(run, "--from", "de", "--to", "en", text="a b\n")[0]
    assert found["pivot"] == [one["hypotheses"][0]["text"]]
    assert "pivot languages must be 1, one for each text in between (are 2)" in refused(
        run, run, *languages, "--pivot-language", "en", "--pivot-language", "fr")
