"""Public functions with random arguments, some of them of wrong types: a result, or an exception of Python for a wrong
argument; never a crash. QKV_CALLS times as many calls can be requested."""

import os
import random as standard

import numpy as np
import pytest

import qkv

CALLS = 300 * int(os.environ.get("QKV_CALLS", "1"))
REFUSED = (qkv.Error, TypeError, ValueError, OverflowError, BufferError)
ODD = [None, True, -1, 0, 1, 2, 7, 2**31, 2**63 - 1, -(2**63), 2**80, 0.5, -0.5, 1e308, float("nan"), float("inf"), "", "a",
       "\udc80", "the dog", "\0", b"x", [], ["a"], [None], {}, (1, 2), object(), np.float32(2), np.zeros(3), np.zeros((2, 0))]


def any_value(draw):
    return draw.choice(ODD)


def array(draw):
    """An array that is usually [B, H, T, D] of float32, contiguous."""
    shape = [draw.randint(1, 3), draw.randint(1, 3), draw.randint(0, 5), draw.randint(1, 5)]
    if draw.random() < 0.8:
        shape[:2], shape[3] = [2, 2], 4
    if draw.random() < 0.1:
        shape = shape[draw.randint(0, 3):]
    x = np.random.default_rng(draw.randint(0, 9)).normal(size=shape).astype(
        draw.choice([np.float32] * 8 + [np.float64, np.float16, np.int32]))
    change = draw.randint(0, 30)
    if change == 0:
        x = x[..., ::-1]
    elif change == 1:
        x = np.broadcast_to(x, (2, *x.shape))
    elif change == 2:
        x = np.swapaxes(x, 0, -1)
    elif change == 3:
        x[...] = draw.choice([np.nan, np.inf]) if x.dtype.kind == "f" else 0
    elif change == 4:
        x = any_value(draw)
    return x


def options(draw, names):
    return {name: any_value(draw) for name in names if draw.random() < 0.15}


def repeat(call):
    results = {"accepted": 0, "refused": 0}
    for seed in range(CALLS):
        try:
            call(standard.Random(seed))
            results["accepted"] += 1
        except REFUSED as error:
            if isinstance(error, qkv.Error):
                assert str(error) and "\n" not in str(error), (seed, str(error))
            results["refused"] += 1
    assert min(results.values()) > 0, results


OPTIONS = ["causal", "scale", "softcap", "window", "mask", "q_offsets"]


def test_attention():
    def forward(draw):
        q, k, v = array(draw), array(draw), array(draw)
        return qkv.attention(q, k if draw.random() < 0.5 else q, v if draw.random() < 0.5 else q, **options(draw, OPTIONS))

    repeat(forward)


def test_attention_backward():
    def backward(draw):
        x = array(draw)
        more = options(draw, OPTIONS)
        out, lse = qkv.attention(x, x, x, return_lse=True, **more)
        given = [array(draw) if draw.random() < 0.1 else good for good in (out, x, x, x, out, lse)]
        qkv.attention_backward(*given, **more)

    repeat(backward)


def test_layers():
    def call(draw):
        size = lambda: draw.choice([1, 2, 4, 8]) if draw.random() < 0.9 else any_value(draw)
        kind = draw.choice(["Linear", "LayerNorm", "RMSNorm", "FeedForward", "MultiHeadAttention"])
        counts = {"Linear": 2, "LayerNorm": 1, "RMSNorm": 1, "FeedForward": 2, "MultiHeadAttention": 2}
        layer = getattr(qkv.layers, kind)(*[size() for _ in range(counts[kind])])
        x = np.ones((draw.randint(1, 3), draw.choice([1, 2, 4, 8])), np.float32) if draw.random() < 0.8 else array(draw)
        layer(x)
        layer.backward(x if draw.random() < 0.5 else array(draw))

    repeat(call)


def methods(model, texts):
    """Bound methods of a model and how their first argument is drawn."""
    def call(draw):
        name = draw.choice(list(texts))
        argument = texts[name](draw) if draw.random() < 0.9 else any_value(draw)
        fields = {"max_length": 3, "max_tokens": 3, "beam": 2, "n_best": 1, "top": 2, "seed": 1, "temperature": 0.5,
                  "top_p": 0.9, "batch_tokens": 8, "length_penalty": 1, "diversity": 0.5, "unknown_option": 1}
        chosen = {field: any_value(draw) if draw.random() < 0.3 else value for field, value in fields.items()
                  if draw.random() < 0.1}
        if name.startswith("generate") and not isinstance(chosen.get("max_tokens"), str):
            chosen["max_tokens"] = draw.choice([0, 1, 3, -1, None, "x"])
        getattr(model, name)(argument, **chosen)

    return call


def some_texts(draw):
    return [draw.choice(["He sleeps.", "a", "", "123", "\0", "\n", "ß"]) for _ in range(draw.randint(0, 3))]


def test_models(trained, counting, films):
    translator, generator, recommender = qkv.Translator(trained), qkv.Generator(counting), qkv.Recommender(films / "run")
    repeat(methods(translator, {"translate": some_texts, "encode": some_texts, "attend": lambda draw: "He sleeps."}))
    repeat(methods(generator, {"generate": lambda draw: "123", "generate_all": lambda draw: ["1", "23"]}))
    repeat(methods(recommender, {"recommend": some_texts, "similar": lambda draw: draw.choice(["1", "2", "x"]),
                                 "history": lambda draw: "1"}))
    repeat(methods(qkv.Embedder(trained), {"embed": some_texts}))


def test_scores():
    def call(draw):
        draw_texts = lambda: some_texts(draw) if draw.random() < 0.9 else any_value(draw)
        qkv.bleu(draw_texts(), draw_texts())
        qkv.chrf(draw_texts(), draw_texts())

    repeat(call)
