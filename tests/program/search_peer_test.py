"""The search on models of others, whose answers lie in ../shared/cases: CTranslate2's hypotheses and scores exactly, and what Hugging Face's
generate finds at its own score or better."""

import json
import math

import pytest
from conftest import ROOT, qkv

CASES = ROOT.parent / "shared/cases"
pytestmark = pytest.mark.skipif(not CASES.exists(), reason="no ../shared/cases")


def imported(source, folder):
    qkv("import", source, folder)
    return folder


def translated(run, lines, *options):
    """Translates each line as a whole, as CTranslate2 does."""
    options = ("--json", "--sentences", "line", *options)
    return [json.loads(line) for line in qkv("translate", run, *options, text="\n".join(lines) + "\n")[1].splitlines()]


@pytest.fixture(scope="module")
def aren(tmp_path_factory):
    run = imported(CASES / "aren/aren-transliteration", tmp_path_factory.mktemp("aren") / "run")
    cases = json.loads((CASES / "aren/cases.json").read_text())
    return run, cases["cases"], [" ".join(case["source"]) for case in cases["cases"]]


@pytest.mark.parametrize("batch_tokens", [1, 4096])
def test_beams_are_those_of_ctranslate2(aren, batch_tokens):
    run, cases, lines = aren
    options = ["--beam", 4, "--max-length", 40, "--batch-tokens", batch_tokens]
    found = translated(run, lines, *options, "--n-best", 4)
    sums = translated(run, lines, *options, "--length-penalty", 0)
    for case, mean, total in zip(cases, found, sums):
        assert [h["tokens"] for h in mean["hypotheses"]] == [h["tokens"] for h in case["beam4_lp1"]]
        for h, wanted in zip(mean["hypotheses"], case["beam4_lp1"]):
            assert h["score"] == pytest.approx(wanted["score"], abs=1e-4)
        assert total["hypotheses"][0]["tokens"] == case["beam4_lp0"]["tokens"]
        assert total["hypotheses"][0]["score"] == pytest.approx(case["beam4_lp0"]["score"], abs=1e-4)


def test_greedy_attention_and_forced_scores_are_those_of_ctranslate2(aren, tmp_path):
    run, cases, lines = aren
    (tmp_path / "targets").write_text("".join(" ".join(case["greedy"]) + "\n" for case in cases))
    greedy = translated(run, lines, "--beam", 1, "--max-length", 40, "--attention")
    forced = translated(run, lines, "--score", tmp_path / "targets", "--tokens")
    for case, found, scored in zip(cases, greedy, forced):
        hypothesis = found["hypotheses"][0]
        assert hypothesis["tokens"] == case["greedy"]
        assert hypothesis["score"] == pytest.approx(case["greedy_score"], abs=1e-4)
        wanted = case["forced_token_logprobs_of_greedy"]["log_probs"]
        assert scored["hypotheses"][0]["token_scores"] == pytest.approx(wanted, abs=1e-4)
        assert hypothesis["token_scores"] == pytest.approx(wanted, abs=1e-4)
        for row, exact in zip(hypothesis["attention"], case["cross_attention_greedy"], strict=True):
            assert row == pytest.approx(exact, abs=1e-4)


def test_hypotheses_of_hugging_face_score_no_better(tmp_path):
    run = imported(CASES / "marian", tmp_path / "run")
    cases = json.loads((CASES / "marian/cases.json").read_text())
    pieces = {number: piece for piece, number in json.loads((CASES / "marian/vocab.json").read_text()).items()}
    lines = [case["source"] for case in cases["cases"]]
    ours = translated(run, lines, "--beam", 4, "--n-best", 4, "--max-length", cases["max_new_tokens"])
    for case, found in zip(cases["cases"], ours):
        theirs = [h for h in case["beam4"] if len(h["ids"]) < cases["max_new_tokens"]]  # longer ones end for nothing
        (tmp_path / "targets").write_text("".join(" ".join(pieces[i] for i in h["ids"][:-1]) + "\n" for h in case["beam4"]))
        scored = translated(run, [case["source"]] * len(case["beam4"]), "--score", tmp_path / "targets", "--tokens")
        forced = [s["hypotheses"][0]["score"] for s in scored]
        assert forced[: len(theirs)] == pytest.approx([h["score"] for h in theirs], abs=1e-4)
        best = found["hypotheses"][0]
        assert best["score"] >= max(forced) - 1e-4
        assert best["score"] == pytest.approx(math.fsum(best["token_scores"]) / len(best["token_scores"]), abs=1e-6)
