"""Imported translators are fine-tuned with the tokens around the text, and the languages, that they translate with."""

import pytest
from conftest import ROOT, qkv

GOLDEN = ROOT / "tests/golden/encoder_decoders"
PAIRS = [("the dog runs .", "a dog sees the cat ."), ("a cat sees the dog .", "the cat runs ."),
         ("the park .", "the dog ."), ("a dog .", "a cat runs in the park .")]
TUNE = ["--batch-tokens", 256, "--threads", 1, "--learning-rate", 0.01, "--warmup-steps", 10, "--dropout", 0,
        "--label-smoothing", 0, "--eval-every", 400, "--max-steps", 400]


@pytest.fixture
def text(tmp_path):
    for side, lines in zip(("src", "tgt"), zip(*PAIRS)):
        (tmp_path / side).write_text("".join(line + "\n" for line in lines))
    files = [tmp_path / "src", tmp_path / "tgt"]
    return ["--train", *files, "--dev", *files]


@pytest.mark.parametrize("name, source, target", [
    ("opus", "", ""), ("bart", "", ""), ("t5", "", ""), ("madlad", "", "de"), ("mbart", "en", "de"),
    ("mbart50", "de_DE", "en_XX"), ("m2m_100", "en", "de"), ("nllb", "eng_Latn", "deu_Latn")])
def test_what_is_learned_is_translated(text, tmp_path, name, source, target):
    languages = [part for pair in (("--from", source), ("--to", target)) if pair[1] for part in pair]
    qkv("import", GOLDEN / name, tmp_path / "base")
    train = ["train", "translate", *text, "--init", tmp_path / "base", *TUNE, "--out"]
    report = qkv(*train, tmp_path / "run", *languages)[2]
    translated = qkv("translate", tmp_path / "run", "--beam", 1, *languages, "--input", text[1])[1].splitlines()
    assert translated == [target for _, target in PAIRS]
    assert "bleu 100.00" in report
    qkv(*train, tmp_path / "run")  # there is nothing left to do; the run knows its languages
    for wrong, error in [([], "target_language must be one of "), (["--to", "xx"], 'is "xx"')] if target else [
            (["--to", "de"], 'target_language must be empty, because the model does not read it (is "de")')]:
        status, _, message = qkv(*train, tmp_path / "new", *languages[:-2], *wrong, ok=False)
        assert status == 1 and error in message and message.count("\n") == 1
        assert not (tmp_path / "new").exists()
