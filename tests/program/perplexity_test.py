"""qkv score perplexity and qkv score tokens: forms of output, windows and refusals. tests/convert compares the numbers."""

import json
import math

import pytest
from conftest import ROOT, qkv

RUN = ROOT / "tests/golden/runs/language"
TEXT = "The dog and the cat, The dog and the cat, The dog and the cat"


def tokens(text):
    return [json.loads(line) for line in qkv("score", "tokens", RUN, text=text)[1].splitlines()]


def test_every_line_has_its_tokens():
    lines = ["The dog", "", "A cat"]
    found = tokens("".join(line + "\n" for line in lines))
    assert [line["text"] for line in found] == lines
    for line in found:
        assert "".join(token["text"] for token in line["tokens"]) == line["text"]
        values = [token["log_probability"] for token in line["tokens"]]
        assert line["log_probability"] == pytest.approx(sum(values)) and all(value < 0 for value in values)
        assert line["perplexity"] == (pytest.approx(math.exp(-sum(values) / len(values))) if values else None)


def test_tokens_are_those_that_generate_reports():
    made = json.loads(qkv("generate", RUN, "--prompt", "The ", "--temperature", 0, "--max-tokens", 6, "--json")[1])
    (scored,) = tokens("The " + made["text"] + "\n")
    expected = [token["log_probability"] for token in made["tokens"]][:len(scored["tokens"]) - 4]
    assert [token["log_probability"] for token in scored["tokens"]][4:] == pytest.approx(expected, abs=1e-5)
    options = ["--alternatives", 3]
    best = json.loads(qkv("score", "tokens", RUN, *options, text="The\n")[1])["tokens"][1]["alternatives"]
    assert len(best) == 3 and best[0]["log_probability"] >= best[1]["log_probability"]


def test_perplexity_is_printed_for_a_text_and_for_lines():
    (line,) = tokens(TEXT + "\n")
    figures = json.loads(qkv("score", "perplexity", RUN, "--json", text=TEXT)[1])
    assert figures["metric"] == "perplexity" and figures["tokens"] == figures["scored"] == len(TEXT)
    assert figures["perplexity"] == pytest.approx(line["perplexity"])
    assert figures["bits_per_byte"] == pytest.approx(-line["log_probability"] / math.log(2) / len(TEXT))
    assert qkv("score", "perplexity", RUN, text=TEXT)[1].startswith(f"perplexity = {figures['perplexity']:.4f} ({len(TEXT)} tokens, ")
    lines = qkv("score", "perplexity", RUN, "--lines", text=f"{TEXT}\n\nA cat\n")[1].splitlines()
    assert lines[0] == f"{line['perplexity']:.4f}\t{line['log_probability']:.4f}\t{len(TEXT)}"
    assert lines[1] == "nan\t0.0000\t0" and lines[2].endswith("\t5")
    assert json.loads(qkv("score", "perplexity", RUN, "--lines", "--json", text="\n")[1])["perplexity"] is None


def test_windows_score_every_token_once(tmp_path):
    (tmp_path / "text").write_text(TEXT)
    for stride, scored in ((1, len(TEXT)), (12, len(TEXT)), (24, len(TEXT) - len(TEXT) // 24)):
        out = qkv("score", "perplexity", RUN, "--file", tmp_path / "text", "--stride", stride, "--json")[1]
        assert json.loads(out)["scored"] == scored, stride


@pytest.mark.parametrize("arguments, status, message", [
    (["perplexity"], 2, "run: is required for perplexity"), (["bleu"], 2, "--ref: is required for bleu"),
    (["bleu", RUN, "--ref", "x"], 2, "run: is no option of bleu"), (["perplexity", RUN, "--hyp", "x"], 2, "--hyp: is no option of perplexity"),
    (["tokens", RUN, "--lines"], 2, "--lines: is no option of tokens"),
    (["perplexity", RUN, "--context", "25"], 1, "context must be between 2 and 24, the model's max_length (is 25)"),
    (["perplexity", RUN, "--context", "4", "--stride", "5"], 1, "stride must be at most context, 4 (is 5)"),
    (["perplexity", RUN], 1, "score: standard input has no token to score")])
def test_errors_are_one_line(arguments, status, message):
    assert qkv("score", *arguments, text="", ok=False) == (status, "", f"qkv: {message}\n")
