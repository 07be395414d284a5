"""Imported translators are fine-tuned with the tokens around the text, and the languages, that they translate with."""

import importlib.util
import json

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


@pytest.mark.skipif(importlib.util.find_spec("transformers") is None, reason="no transformers")
def test_a_translator_of_marian_goes_through_the_circle(text, tmp_path):
    import torch
    import transformers

    qkv("import", GOLDEN / "opus", tmp_path / "base")
    qkv("train", "translate", *text, "--init", tmp_path / "base", *TUNE, "--max-steps", 60, "--out", tmp_path / "run")
    qkv("export", tmp_path / "run", tmp_path / "exported")
    model = transformers.MarianMTModel.from_pretrained(tmp_path / "exported").eval()
    tokenizer = transformers.MarianTokenizer.from_pretrained(tmp_path / "exported")
    before = transformers.MarianMTModel.from_pretrained(GOLDEN / "opus")
    assert (model.model.encoder.layers[0].fc1.weight != before.model.encoder.layers[0].fc1.weight).any()
    lines = [source for source, _ in PAIRS]
    scored = qkv("translate", tmp_path / "run", "--beam", 1, "--json", text="".join(line + "\n" for line in lines))[1]
    for line, answer in zip(lines, map(json.loads, scored.splitlines()), strict=True):
        found, source = answer["hypotheses"][0], tokenizer([line], return_tensors="pt")
        with torch.no_grad():
            ids = model.generate(**source, do_sample=False, num_beams=1, max_length=30)
            p = model(**source, decoder_input_ids=ids[:, :-1]).logits[0].log_softmax(-1)
        scores = [p[i, ids[0, i + 1]].item() for i in range(ids.shape[1] - 1)]
        assert tokenizer.decode(ids[0], skip_special_tokens=True) == found["text"]
        assert found["token_scores"] == pytest.approx(scores, abs=1e-4)
