"""Writes the models of this folder: small random ones in Marian's format, with what Marian itself makes of them.

    python make.py        # needs numpy, pymarian, pyyaml and sentencepiece; written with pymarian 1.12.42

NAME/model.npz with model.npz.decoder.yml and a vocabulary is a model, and NAME/expected.json a list of [source, target
pieces, whether it ends, score]: the four best translations by Marian and their log-probabilities. These are computed again below in
float64; the script fails if Marian's differ. The exception is `prenorm`: Marian 1.12 leaves out the norm of keys and
values of self-attention from the second token of a translation on, but not in training. Its scores are those of the
model as it is trained.
"""
import json
import pathlib
import shutil

import numpy as np
import pymarian
import sentencepiece
import yaml

HERE = pathlib.Path(__file__).parent
LONGEST = 3  # tokens of a translation for each of the source, its end included
GRAMMAR = HERE.parent.parent.parent / "examples" / "grammar"
BASE = {"type": "transformer", "enc-depth": 1, "dec-depth": 1, "dim-emb": 16, "transformer-heads": 2,
        "transformer-dim-ffn": 24, "transformer-ffn-activation": "swish", "transformer-ffn-depth": 2,
        "transformer-preprocess": "", "transformer-postprocess": "dan", "transformer-postprocess-emb": "d",
        "transformer-postprocess-top": "", "transformer-decoder-autoreg": "self-attention",
        "transformer-no-projection": False, "transformer-train-position-embeddings": False,
        "transformer-tied-layers": [], "tied-embeddings": False, "tied-embeddings-all": True,
        "tied-embeddings-src": False, "skip": False, "layer-normalization": False, "right-left": False,
        "lemma-dim-emb": 0, "input-types": [], "ulr": False, "max-length": 50, "version": "v1.12.0"}
SEPARATE = {"tied-embeddings-all": False}
MODELS = {
    "tied": {"dec-depth": 2},
    "prenorm": {"transformer-preprocess": "n", "transformer-postprocess": "da", "transformer-postprocess-top": "n"},
    "embeddings": SEPARATE | {"tied-embeddings": True, "transformer-postprocess-emb": "dn",
                              "transformer-ffn-activation": "relu", "transformer-postprocess-top": "n"},
    "untied": SEPARATE | {"tied-embeddings-src": True},
    "old": SEPARATE,
    "spm": {"enc-depth": 2, "dec-depth": 1},
}


def weights(c, V, name, seed):
    rng, tensors, d, F = np.random.default_rng(seed), {}, c["dim-emb"], c["transformer-dim-ffn"]

    def add(name, *shape, scale=0.4, around=0.0):
        tensors[name] = (rng.standard_normal(shape) * scale + around).astype(np.float32)

    def norm(prefix, ending=""):
        add(prefix + "_ln_scale" + ending, 1, d, scale=0.2, around=1)
        add(prefix + "_ln_bias" + ending, 1, d)

    def norms(prefix):
        if "n" in c["transformer-preprocess"]:
            norm(prefix, "_pre")
        if "n" in c["transformer-postprocess"]:
            norm(prefix)

    for table in ["Wemb"] if c["tied-embeddings-all"] or c["tied-embeddings-src"] else ["encoder_Wemb", "decoder_Wemb"]:
        add(table, V, d)
    if name == "untied":
        add("decoder_ff_logit_out_Wt", V, d)
    if name == "old":
        add("decoder_ff_logit_out_W", d, V)
    add("decoder_ff_logit_out_b", 1, V)
    tensors["decoder_ff_logit_out_b"][0, 0] += 2  # translations end
    for side, depth in [("encoder", c["enc-depth"]), ("decoder", c["dec-depth"])]:
        if "n" in c["transformer-postprocess-emb"]:
            norm(side + "_emb", "_pre")
        if "n" in c["transformer-postprocess-top"]:
            norm(side + "_top")
        for i in range(1, depth + 1):
            for kind in ["self"] + ["context"] * (side == "decoder"):
                prefix = f"{side}_l{i}_{kind}"
                for part in "qkvo":
                    add(f"{prefix}_W{part}", d, d)
                    add(f"{prefix}_b{part}", 1, d)
                norms(prefix + "_Wo")
            prefix = f"{side}_l{i}_ffn"
            for part, shape in [("1", (d, F)), ("2", (F, d))]:
                add(f"{prefix}_W{part}", *shape)
                add(f"{prefix}_b{part}", 1, shape[1])
            norms(prefix + "_ffn")
    return tensors


class Reference:
    """The log-probability of a translation, in float64."""

    def __init__(self, c, tensors):
        self.c, self.t = c, {name: tensor.astype(np.float64) for name, tensor in tensors.items()}

    def positions(self, length):
        half = self.c["dim-emb"] // 2
        angle = np.arange(length)[:, None] * 10000.0 ** (-np.arange(half) / (half - 1))
        return np.concatenate([np.sin(angle), np.cos(angle)], 1)

    def process(self, operations, x, prefix, before=None, ending=""):
        for operation in self.c["transformer-" + operations]:
            if operation == "a" and before is not None:
                x = x + before
            if operation == "n":
                centred = x - x.mean(-1, keepdims=True)
                x = centred / np.sqrt((centred ** 2).mean(-1, keepdims=True) + 1e-6)
                x = x * self.t[f"{prefix}_ln_scale{ending}"] + self.t[f"{prefix}_ln_bias{ending}"]
        return x

    def linear(self, x, prefix, part):
        return x @ self.t[f"{prefix}_W{part}"] + self.t[f"{prefix}_b{part}"]

    def attention(self, prefix, x, memory, causal):
        query = self.process("preprocess", x, prefix + "_Wo", ending="_pre")
        memory = query if memory is None else memory
        q, k, v = self.linear(query, prefix, "q"), self.linear(memory, prefix, "k"), self.linear(memory, prefix, "v")
        heads, d = [], self.c["dim-emb"] // self.c["transformer-heads"]
        for head in range(self.c["transformer-heads"]):
            part = slice(head * d, (head + 1) * d)
            scores = q[:, part] @ k[:, part].T / np.sqrt(d)
            if causal:
                scores[np.triu_indices(len(scores), 1)] = -np.inf
            share = np.exp(scores - scores.max(-1, keepdims=True))
            heads.append(share / share.sum(-1, keepdims=True) @ v[:, part])
        out = self.linear(np.concatenate(heads, 1), prefix, "o")
        return self.process("postprocess", out, prefix + "_Wo", x)

    def feed_forward(self, prefix, x):
        hidden = self.linear(self.process("preprocess", x, prefix + "_ffn", ending="_pre"), prefix, "1")
        relu = self.c["transformer-ffn-activation"] == "relu"
        hidden = np.maximum(hidden, 0) if relu else hidden / (1 + np.exp(-hidden))
        return self.process("postprocess", self.linear(hidden, prefix, "2"), prefix + "_ffn", x)

    def stack(self, side, x, memory=None):
        x = self.process("postprocess-emb", x + self.positions(len(x)), side + "_emb", ending="_pre")
        for i in range(1, self.c[side[:3] + "-depth"] + 1):
            x = self.attention(f"{side}_l{i}_self", x, None, side == "decoder")
            if side == "decoder":
                x = self.attention(f"{side}_l{i}_context", x, memory, False)
            x = self.feed_forward(f"{side}_l{i}_ffn", x)
        return self.process("postprocess-top", x, side + "_top")

    def score(self, source, target):
        shared = self.t.get("Wemb")
        table = self.t.get("decoder_Wemb", shared)
        scale = np.sqrt(self.c["dim-emb"])
        memory = self.stack("encoder", self.t.get("encoder_Wemb", shared)[source] * scale)
        inputs = np.concatenate([np.zeros((1, self.c["dim-emb"])), table[target[:-1]] * scale])
        output = self.t.get("decoder_ff_logit_out_Wt", table)
        output = self.t["decoder_ff_logit_out_W"].T if "decoder_ff_logit_out_W" in self.t else output
        logits = self.stack("decoder", inputs, memory) @ output.T + self.t["decoder_ff_logit_out_b"]
        logits -= logits.max(-1, keepdims=True)
        return float((logits[range(len(target)), target] - np.log(np.exp(logits).sum(-1))).sum())


def train_pieces(path):
    lines = (GRAMMAR / "train.en").read_text().splitlines()[:2000]
    with open(path, "wb") as file:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(lines), model_writer=file, vocab_size=60, normalization_rule_name="identity",
            eos_id=0, unk_id=1, bos_id=-1, pad_id=-1, minloglevel=2)


def make(name, seed):
    """Returns False if the translations of this random model are too similar, or do not end."""
    folder = HERE / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    vocabulary = "vocab.spm" if name == "spm" else "vocab.yml"
    if name == "spm":
        train_pieces(folder / vocabulary)
        sp = sentencepiece.SentencePieceProcessor(str(folder / vocabulary))
        pieces = [sp.id_to_piece(i) for i in range(len(sp))]
        split, sources = sp.encode, ["the dog sees the cat", "a red bird", "the old man"]
    else:
        pieces = ["</s>", "<unk>", '"', "ä:#", "null", "1"] + [f"w{i}" for i in range(24)]
        split, sources = (lambda text: [pieces.index(word) for word in text.split()]), ["w3 w5 w7 w1", "w2 null w20 1 w3 \"", "w0"]
        (folder / vocabulary).write_text("".join(f"{json.dumps(p, ensure_ascii=False)}: {i}\n" for i, p in enumerate(pieces)))
    config = BASE | MODELS[name]
    config["dim-vocabs"] = [len(pieces)] * 2
    tensors = weights(config, len(pieces), name, seed)
    text = np.frombuffer(yaml.dump(config).encode() + b"\0", np.int8)
    np.savez(folder / "model.npz", **tensors, **{"special:model.yml": text})
    decoder = {"relative-paths": True, "models": ["model.npz"], "vocabs": [vocabulary] * 2}
    (folder / "model.npz.decoder.yml").write_text(yaml.dump(decoder))

    marian = pymarian.Translator(f"--models {folder}/model.npz --vocabs {folder}/{vocabulary} {folder}/{vocabulary} "
                                 f"--beam-size 4 --n-best --mini-batch 1 --cpu-threads 1 --max-length-factor {LONGEST} --quiet"
                                 + " --no-spm-decode" * (name == "spm"))
    reference, expected = Reference(config, tensors), []
    for line in marian.translate(sources):
        number, words, _, score = line.split(" ||| ")
        target, source = words.split(), sources[int(number)]
        ends = len(target) < LONGEST * (len(split(source)) + 1)
        ids = [pieces.index(word) for word in target] + [0] * ends
        own = reference.score(split(source) + [0], ids)
        if name != "prenorm":
            assert abs(own - float(score)) < 2e-5 * max(1, abs(own)), (name, line, own)
        expected.append([source, target, ends, own])
    if len({tuple(target[:3]) for _, target, *_ in expected}) < 6 or sum(ends for _, _, ends, _ in expected) < 4:
        return False
    if not any(len(target) > 1 and ends for _, target, ends, _ in expected[::4]):
        return False
    (folder / "expected.json").write_text("[" + ",\n ".join(json.dumps(e, ensure_ascii=False) for e in expected) + "]\n")
    print(name, seed, expected[0])
    return True


if __name__ == "__main__":
    for model in MODELS:
        assert any(make(model, seed) for seed in range(500))
