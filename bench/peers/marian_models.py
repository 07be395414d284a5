"""Marian's side of marian_decode.py: makes a model and measures the speed of translation with Marian's CPU back end.

    python marian_models.py make DIR --size tiny|base --text FILE...
    python marian_models.py speed DIR [--beam 4] [--batch 32] [--lines 256]

`make` writes a model in Marian's format with random weights and a joint vocabulary of at most 8,000 pieces learned from
the texts, and DIR/lines.txt: beginnings of lines of the texts that have 24 pieces, their end included.
`speed` translates lines to 24 tokens each with two threads. It prints JSON: the best of three rounds, tokenization
included. With a batch of 1 each line is a call of its own. Numbers are float32: Marian 1.12 of PyPI does not know
intgemm8, and is as fast with packed8 and packed16.
"""

import json
import math
import time
from pathlib import Path

from common import LENGTH, TRANSLATORS, run_model_command, train_vocabulary


def make_lines(vocabulary, texts):
    """Returns the beginnings of lines that have LENGTH pieces together with their end."""
    lines = []
    for text in texts:
        for line in Path(text).read_text(encoding="utf-8").splitlines():
            beginning = vocabulary.decode(vocabulary.encode(line)[:LENGTH - 1])
            if len(vocabulary.encode(beginning)) == LENGTH - 1:
                lines.append(beginning)
    return lines


def make_weights(size, vocabulary):
    """Returns the arrays of a model, in which no gain or bias has its default and no translation ends by itself."""
    import numpy as np

    width, _, inner, layers = TRANSLATORS[size]
    rng, arrays = np.random.default_rng(0), {}

    def add(name, rows, columns, scale, mean=0.0):
        arrays[name] = (mean + scale * rng.standard_normal((rows, columns))).astype(np.float32)

    def add_linear(prefix, part, inputs, outputs):
        add(f"{prefix}_W{part}", inputs, outputs, 1 / math.sqrt(inputs))
        add(f"{prefix}_b{part}", 1, outputs, 0.1)

    def add_norm(prefix):
        add(prefix + "_ln_scale", 1, width, 0.2, 1)
        add(prefix + "_ln_bias", 1, width, 0.1)

    add("Wemb", vocabulary, width, 1 / math.sqrt(width))
    add("decoder_ff_logit_out_b", 1, vocabulary, 0.5)
    arrays["decoder_ff_logit_out_b"][0, 0] = -100  # the end of a sentence
    for side, attentions in (("encoder", ["self"]), ("decoder", ["self", "context"])):
        for layer in range(1, layers + 1):
            for attention in attentions:
                prefix = f"{side}_l{layer}_{attention}"
                for part in "qkvo":
                    add_linear(prefix, part, width, width)
                add_norm(prefix + "_Wo")
            prefix = f"{side}_l{layer}_ffn"
            add_linear(prefix, "1", width, inner)
            add_linear(prefix, "2", inner, width)
            add_norm(prefix + "_ffn")
    return arrays


def make_config(size, vocabulary):
    width, heads, inner, layers = TRANSLATORS[size]
    return {"type": "transformer", "version": "v1.12.0", "enc-depth": layers, "dec-depth": layers, "dim-emb": width,
            "dim-vocabs": [vocabulary] * 2, "transformer-heads": heads, "transformer-dim-ffn": inner,
            "transformer-ffn-depth": 2, "transformer-ffn-activation": "swish", "transformer-preprocess": "",
            "transformer-postprocess": "dan", "transformer-postprocess-emb": "d", "transformer-postprocess-top": "",
            "transformer-decoder-autoreg": "self-attention", "transformer-no-projection": False,
            "transformer-train-position-embeddings": False, "transformer-tied-layers": [],
            "tied-embeddings": False, "tied-embeddings-src": False, "tied-embeddings-all": True, "skip": False,
            "layer-normalization": False, "right-left": False, "lemma-dim-emb": 0, "input-types": [], "ulr": False,
            "max-length": 50}


def make(a):
    import numpy as np
    import yaml

    folder = Path(a.folder)
    folder.mkdir(parents=True, exist_ok=True)
    vocabulary = train_vocabulary(folder / "vocab.spm", a.text)
    (folder / "lines.txt").write_text("\n".join(make_lines(vocabulary, a.text)) + "\n", encoding="utf-8")
    config = yaml.dump(make_config(a.size, len(vocabulary))).encode() + b"\0"
    np.savez(folder / "model.npz", **make_weights(a.size, len(vocabulary)),
             **{"special:model.yml": np.frombuffer(config, np.int8)})
    print(folder)


def speed(a):
    import pymarian

    folder = Path(a.folder)
    lines = (folder / "lines.txt").read_text(encoding="utf-8").splitlines()[:a.lines]
    options = (f"--models {folder}/model.npz --vocabs {folder}/vocab.spm {folder}/vocab.spm --beam-size {a.beam} "
               f"--mini-batch {a.batch} --maxi-batch 100 --max-length-factor 1 --cpu-threads 2 --workspace 3000 "
               "--no-spm-decode --quiet")
    translator = pymarian.Translator(options)

    def translate():
        if a.batch > 1:
            return translator.translate(lines)
        return [translator.translate([line])[0] for line in lines]

    translate()
    seconds = []
    for _ in range(3):
        start = time.perf_counter()
        translations = translate()
        seconds.append(time.perf_counter() - start)
    tokens = sum(len(translation.split()) for translation in translations)
    print(json.dumps({"peer": "marian", "beam": a.beam, "batch": a.batch, "lines": len(lines), "out_tokens": tokens,
                      "seconds": round(min(seconds), 3), "tokens_per_s": round(tokens / min(seconds))}))


run_model_command(__doc__, make, speed)
