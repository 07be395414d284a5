"""qkv score equals sacreBLEU, on thousands of noisy lines and on edge cases.

The program is the environment variable QKV, or the newest build/*/qkv, or the qkv on PATH. Skipped without sacreBLEU.
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

sacrebleu = pytest.importorskip("sacrebleu")

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "support"))
from noisy_text import noisy_pairs  # noqa: E402

# Both sides compute in double; sums of six terms and one exponential leave less than this of a score up to 100.
TOLERANCE = 1e-9


def find_program():
    built = sorted(ROOT.glob("build/*/qkv"), key=lambda path: path.stat().st_mtime)
    return os.environ.get("QKV") or (built[-1] if built else shutil.which("qkv"))


PROGRAM = find_program()
pytestmark = pytest.mark.skipif(PROGRAM is None, reason="skipped: no qkv program is built")


def encode(lines):
    return "".join(line + "\n" for line in lines).encode()


def run_score(folder, metric, hypotheses, references, lowercase):
    reference_file = folder / "references.txt"
    reference_file.write_bytes(encode(references))
    command = [PROGRAM, "score", metric, "--ref", reference_file, "--json"] + ["--lowercase"] * lowercase
    result = subprocess.run(command, input=encode(hypotheses), capture_output=True, check=True)
    return json.loads(result.stdout)


def check(folder, hypotheses, references, lowercase):
    wanted = sacrebleu.BLEU(lowercase=lowercase).corpus_score(hypotheses, [references])
    found = run_score(folder, "bleu", hypotheses, references, lowercase)
    assert found["score"] == pytest.approx(wanted.score, rel=0, abs=TOLERANCE)
    assert found["precisions"] == pytest.approx(wanted.precisions, rel=0, abs=TOLERANCE)
    assert found["brevity_penalty"] == pytest.approx(wanted.bp, rel=0, abs=TOLERANCE)
    assert (found["hypothesis_length"], found["reference_length"]) == (wanted.sys_len, wanted.ref_len)

    wanted = sacrebleu.CHRF(lowercase=lowercase).corpus_score(hypotheses, [references])
    found = run_score(folder, "chrf", hypotheses, references, lowercase)
    assert found["score"] == pytest.approx(wanted.score, rel=0, abs=TOLERANCE)


@pytest.mark.parametrize("lowercase", [False, True])
@pytest.mark.parametrize("seed", [1, 2])
def test_thousands_of_noisy_lines_score_as_in_sacrebleu(tmp_path, seed, lowercase):
    check(tmp_path, *noisy_pairs(4000, seed), lowercase)


@pytest.mark.parametrize("lowercase", [False, True])
def test_small_corpora_score_as_in_sacrebleu(tmp_path, lowercase):
    for seed in range(60):
        check(tmp_path, *noisy_pairs(1 + seed % 3, 100 + seed), lowercase)


@pytest.mark.parametrize(
    "hypothesis, reference",
    [
        ("", ""),
        ("", "a reference"),
        ("a hypothesis", ""),
        ("same words in the same order.", "same words in the same order."),
        ("none of these", "all is different here"),
        ("a", "a"),
        ("a b c", "a b c"),
        ("a x b", "b y a z"),
        ("\u00a0", "\u3000"),
    ],
)
def test_edges_score_as_in_sacrebleu(tmp_path, hypothesis, reference):
    check(tmp_path, [hypothesis], [reference], lowercase=False)
