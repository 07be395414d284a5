"""Writes letters.txt, lines of letters, and training.json: a recipe, and the losses of its steps when transformers' models
are trained on these lines, in float64, with the batches and masks of `qkv train encoder`.

    python make_training.py      with torch and transformers

The models are those of make.py, ../bert/pretraining, ../bert/modernbert and esm.
"""

import json
import pathlib
import random
import sys

import torch

HERE = pathlib.Path(__file__).parent
sys.path.append(str(HERE.parents[2] / "bench/peers"))
from masked_batches import Masking, masked_batches  # noqa: E402
from masked_torch import read_model, train  # noqa: E402

LETTERS = "abcdefgh"
RECIPE = {"optimizer": "adamw", "learning_rate": 0.01, "warmup_steps": 10, "schedule": "cosine", "max_steps": 50, "beta1": 0.9,
          "beta2": 0.98, "epsilon": 1e-9, "weight_decay": 0.01, "clip_norm": 1, "label_smoothing": 0, "batch_tokens": 256, "seed": 7}
MODELS = {"pretraining": ("[CLS]", "[SEP]", "[MASK]"), "modernbert": ("[CLS]", "[SEP]", "[MASK]"), "esm": ("<cls>", "<eos>", "<mask>")}


def line(draw):
    """Letters, each the next or the third after the one before. The longest lines are pieces of their own."""
    at, letters = draw.randrange(8), []
    for _ in range(draw.randrange(3, 31)):
        letters.append(LETTERS[at])
        at = (at + draw.choice([1, 1, 1, 3])) % 8
    return " ".join(letters)


def losses(name, documents):
    folder = HERE / name if (HERE / name).exists() else HERE.parent / "bert" / name
    vocabulary = (folder / "vocab.txt").read_text().split()
    start, end, mask = (vocabulary.index(token) for token in MODELS[name])
    model = read_model(folder, torch.float64)
    longest = model.config.max_position_embeddings
    masking = Masking(RECIPE["seed"], longest, RECIPE["batch_tokens"], [start], [end], mask)
    ids = [[vocabulary.index(letter) for letter in document.split()] for document in documents]
    return list(train(model, masked_batches(ids, masking), RECIPE))


torch.set_num_threads(1)
draw = random.Random(1)
lines = [line(draw) for _ in range(200)]
(HERE / "letters.txt").write_text("".join(text + "\n" for text in lines))
answer = {"recipe": RECIPE, "losses": {name: losses(name, lines) for name in MODELS}}
(HERE / "training.json").write_text(json.dumps(answer, indent=1) + "\n")
