"""Trains an encoder by masked language modelling with `qkv train encoder` and with PyTorch, from the same weights with
the same batches and masks, and compares the losses of all steps.

    VENV/bin/python bench/peers/masked_training.py QKV --text FILE --dev FILE [--steps 50] [--folder DIR] [-- OPTION …]

Options after -- are those of `qkv train encoder`, such as --lines. `bench/peers/install.sh VENV` creates VENV. PyTorch
trains the class of transformers that `qkv export` chooses, in float32, without dropout. With --float64 it also trains in
float64: how far its own float32 is from that is the part of a difference that is rounding. Prints JSON.
"""

import argparse
import itertools
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import sentencepiece
import torch
from masked_batches import Masking, masked_batches
from masked_torch import read_model, train


def train_encoder(qkv, options, given, run, *more):
    subprocess.run([qkv, "train", "encoder", "--text", options.text, "--dev", options.dev, "--eval-every", "0", "--dropout", "0",
                    "--attention-dropout", "0", *given, *more, "--out", run], check=True, capture_output=True)


def documents_of(text, run, tokenizer):
    """Returns the token ids of each document. Long ones may differ by a few tokens between versions of SentencePiece, which
    add up the scores of a text in float32."""
    encoder = json.loads((run / "encoder.json").read_text())
    separator = "\n" if encoder["lines"] else encoder["document_end"]
    return tokenizer.encode([document.removeprefix("\n") for document in Path(text).read_text().split(separator)])


def masking_of(run, tokenizer):
    training, encoder, model = (json.loads((run / f"{name}.json").read_text()) for name in ("training", "encoder", "config"))
    assert not encoder["whole_words"] and encoder["mask_span"] == 1 and not encoder["lowercase"]
    shares = {name: encoder[name] for name in ("mask_share", "mask_token_share", "random_token_share")}
    return Masking(training["seed"], model["max_length"], training["batch_tokens"], [tokenizer.bos_id()], [tokenizer.eos_id()],
                   tokenizer.piece_to_id("<mask>"), **shares)


def largest_difference(found, expected):
    return max(abs(a - b) / b for a, b in zip(found, expected, strict=True))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("qkv")
    parser.add_argument("--text", required=True, help="file to train on")
    parser.add_argument("--dev", required=True, help="file for evaluation, which is not compared")
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--folder", help="where runs are written, which must not have any (default: a temporary one)")
    parser.add_argument("--float64", action="store_true", help="also train in float64")
    end = sys.argv.index("--") if "--" in sys.argv else len(sys.argv)
    options, given = parser.parse_args(sys.argv[1:end]), sys.argv[end + 1:]
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(options.folder or temporary)
        train_encoder(options.qkv, options, given, folder / "start", "--max-steps", "1", "--learning-rate", "0")
        train_encoder(options.qkv, options, given, folder / "run", "--max-steps", str(options.steps))
        subprocess.run([options.qkv, "export", folder / "start", folder / "exported"], check=True, capture_output=True)
        run = folder / "run"
        tokenizer = sentencepiece.SentencePieceProcessor(model_file=str(run / "tokenizer.model"))
        steps = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
        steps = [step for step in steps if "loss" in step]
        documents = documents_of(options.text, run, tokenizer)
        batches = list(itertools.islice(masked_batches(documents, masking_of(run, tokenizer)), options.steps))
        assert [step["target_tokens"] for step in steps] == [sum(len(text[1]) for text in batch) for batch in batches]
        recipe = json.loads((run / "training.json").read_text())
        types = ["float32", "float64"] if options.float64 else ["float32"]
        models = {name: read_model(folder / "exported", getattr(torch, name)) for name in types}
        losses = {name: list(train(model, iter(batches), recipe)) for name, model in models.items()}
    losses["qkv"] = [step["loss"] for step in steps]
    best = losses[types[-1]]
    print(json.dumps({"class": type(models["float32"]).__name__, "masked tokens": sum(step["target_tokens"] for step in steps),
                      "last loss": best[-1],
                      "largest relative difference": {f"{name}, {types[-1]}": largest_difference(found, best)
                                                      for name, found in losses.items() if name != types[-1]},
                      "losses": losses}))


if __name__ == "__main__":
    main()
