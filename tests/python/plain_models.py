"""The encoder-decoder of the paper, and a recommender, in plain NumPy, in float64, from the weights of a run directory."""

import json
import math
import struct

import numpy as np
import reference


def read_weights(path):
    """The tensors of a safetensors file of float32."""
    data = path.read_bytes()
    length, = struct.unpack("<Q", data[:8])
    header = json.loads(data[8:8 + length])
    body = data[8 + length:]
    return {name: np.frombuffer(body[slice(*x["data_offsets"])], np.float32).reshape(x["shape"]).astype(np.float64)
            for name, x in header.items() if name != "__metadata__"}


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value, shift, at = value | (byte & 127) << shift, shift + 7, at + 1
        if byte < 128:
            return value, at


def read_pieces(path):
    """The ids of the pieces of a SentencePiece model: field 1 of the model, each with its text in field 1."""
    data, at, ids = path.read_bytes(), 0, {}
    while at < len(data) and data[at] == 0x0A:
        length, begin = varint(data, at + 1)
        size, text = varint(data, begin + 1)
        ids.setdefault(data[text:text + size].decode(), len(ids))
        at = begin + length
    return ids


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


class PlainModel:
    """The weights of a run, and what its layers do with them.

    see: called with the name of an output and its value; the model continues with what it returns.
    """

    def __init__(self, run, **expected):
        self.see = lambda name, x: x
        self.config = json.loads((run / "config.json").read_text())
        assert {name: self.config[name] for name in expected} == expected
        self.w = read_weights(run / "model.safetensors")

    def linear(self, name, x):
        y = x @ self.w[f"{name}.weight"].T
        return y + self.w[f"{name}.bias"] if f"{name}.bias" in self.w else y

    def norm(self, name, x):
        centred = x - x.mean(-1, keepdims=True)
        scale = np.sqrt((centred**2).mean(-1, keepdims=True) + self.config["norm_epsilon"])
        return self.w[f"{name}.weight"] * centred / scale + self.w[f"{name}.bias"]

    def attend(self, name, x, z, causal):
        """The output, and the weights [H, T, S]."""
        heads = self.config["heads"]
        q, k, v = (np.stack(np.split(self.linear(f"{name}.{part}", y), heads, -1)) for part, y in (("q", x), ("k", z), ("v", z)))
        out, _, weights = reference.attention(q, k, v, causal=causal)
        heads = self.see(f"{name}.heads", np.concatenate([*out], -1))
        return self.see(name, self.linear(f"{name}.output", heads)), weights


class PlainRecommender(PlainModel):
    """SASRec: norms before the sublayers and after the last one, GELU, learned positions of a history's items."""

    def __init__(self, run):
        super().__init__(run, norm="layer", norm_position="pre", final_norm=True, activation="gelu", gated_ffn=False,
                         positions="learned", scale_embeddings=True, encoder_layers=0)

    def states(self, ids):
        """The hidden states of a history, [layers + 1, events, d]."""
        x = np.sqrt(self.config["d_model"]) * self.w["target_embedding.weight"][ids]
        x += self.w["decoder.positions.weight"][:len(ids)]
        states = [x]
        for layer in range(self.config["decoder_layers"]):
            name = f"decoder.layers.{layer}"
            normed = self.norm(f"{name}.self_attention_norm", x)
            x = x + self.attend(f"{name}.self_attention", normed, normed, True)[0]
            hidden = self.linear(f"{name}.feed_forward.first", self.norm(f"{name}.feed_forward_norm", x))
            hidden *= (1 + np.vectorize(math.erf)(hidden / math.sqrt(2))) / 2
            x = x + self.linear(f"{name}.feed_forward.second", hidden)
            states.append(x)
        states[-1] = self.norm("decoder.norm", x)
        return np.stack(states)


class PlainTranslator(PlainModel):
    """Post-norm, ReLU, sinusoidal positions, one table of embeddings."""

    def __init__(self, run):
        super().__init__(run, norm="layer", norm_position="post", activation="relu", gated_ffn=False, positions="interleaved",
                         shared_embeddings=True, tied_output=True, scale_embeddings=True)

    def embed(self, ids):
        d = self.config["d_model"]
        i = np.arange(d)
        angle = np.arange(len(ids))[:, None] / 10000.0 ** ((i - i % 2) / d)
        return np.sqrt(d) * self.w["embedding.weight"][ids] + np.where(i % 2, np.cos(angle), np.sin(angle))

    def stack(self, side, x, memory=None):
        """The hidden states, and the weights of self-attention and cross-attention of each layer."""
        states, own, cross = [self.see(f"{side}.embedding", x)], [], []
        for layer in range(self.config[f"{side}_layers"]):
            name, x = f"{side}.layers.{layer}", states[-1]
            out, weights = self.attend(f"{name}.self_attention", x, x, side == "decoder")
            x = self.norm(f"{name}.self_attention_norm", x + out)
            own.append(weights)
            if memory is not None:
                out, weights = self.attend(f"{name}.cross_attention", x, memory, False)
                x = self.norm(f"{name}.cross_attention_norm", x + out)
                cross.append(weights)
            hidden = np.maximum(self.linear(f"{name}.feed_forward.first", x), 0)
            out = self.see(f"{name}.feed_forward", self.linear(f"{name}.feed_forward.second", hidden))
            states.append(self.see(name, self.norm(f"{name}.feed_forward_norm", x + out)))
        return np.stack(states), own, cross

    def logits(self, states):
        logits = states @ self.w["embedding.weight"].T
        return logits + self.w["output.bias"] if "output.bias" in self.w else logits

    def probabilities(self, states):
        return softmax(self.logits(states))
