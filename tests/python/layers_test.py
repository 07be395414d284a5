"""qkv.layers without PyTorch: the example of the documentation, arrays and errors."""

import re
import threading
from pathlib import Path

import numpy as np
import pytest

import qkv
from qkv import layers

ROOT = Path(__file__).resolve().parents[2]


def ones(*shape, dtype=np.float32):
    return np.ones(shape, dtype)


def test_the_example_of_the_documentation_learns():
    text = (ROOT / "docs/python.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(import numpy as np\nfrom qkv import layers\n.*?)```", text, re.DOTALL)
    assert len(code.splitlines()) <= 40
    names = {}
    exec(code, names)
    first, last = np.mean(names["losses"][:5]), np.mean(names["losses"][-5:])
    assert first > 2 and last < 0.2


def test_strided_rows_are_read_where_they_lie():
    wide = np.random.default_rng(1).standard_normal((4, 5, 9)).astype(np.float32)
    layer = layers.Linear(6, 2)
    x = wide[:, :, 1:7]
    np.testing.assert_array_equal(layer(x), layer(x.copy()))
    with pytest.raises(qkv.Error, match=r"Linear: x has strides .*make a contiguous copy"):
        layer(wide[:, :3, 1:7])


def test_a_result_keeps_its_values_in_the_next_pass():
    layer = layers.Linear(3, 2)
    y = layer(ones(2, 3))
    kept = y.copy()
    layer(5 * ones(2, 3))
    np.testing.assert_array_equal(y, kept)


def test_parameters_outlive_their_module():
    weight = layers.Linear(3, 2).parameters()["weight"]
    weight[:] = 7
    assert (weight == 7).all()


def test_the_same_seed_gives_the_same_dropout():
    layer = layers.EncoderLayer(8, 2, 16, dropout=0.5)
    x = ones(5, 8)
    np.testing.assert_array_equal(layer(x, seed=3), layer(x, seed=3))
    assert (layer(x, seed=3) != layer(x, seed=4)).any()
    np.testing.assert_array_equal(layer(x), layer(x))


def test_empty_inputs():
    assert layers.Linear(3, 2)(ones(0, 3)).shape == (0, 2)
    assert layers.Encoder(8, 2, 16, 1)(ones(0, 4, 8)).shape == (0, 4, 8)
    assert layers.Encoder(8, 2, 16, 1)(ones(2, 0, 8)).shape == (2, 0, 8)
    assert layers.Encoder(8, 2, 16, 1)(ones(2, 4, 8), lengths=[0, 0]).tolist() == np.zeros((2, 4, 8)).tolist()


def test_threads_may_share_a_layer():
    layer = layers.EncoderLayer(16, 2, 32)
    x = [np.random.default_rng(i).standard_normal((i + 1, 16)).astype(np.float32) for i in range(8)]
    expected = [layer(part) for part in x]
    found = {}

    def run(i):
        for _ in range(20):
            found[i] = layer(x[i])

    threads = [threading.Thread(target=run, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for i in range(8):
        np.testing.assert_array_equal(found[i], expected[i])


ENCODER = layers.Encoder(8, 2, 16, 1)
ATTENTION = layers.MultiHeadAttention(8, 2)


@pytest.mark.parametrize("call, message", [
    (lambda: layers.Linear(3, 2)(ones(2, 4)), r"Linear: x has width 4, expected 3"),
    (lambda: layers.Linear(3, 2)(ones(2, 3, dtype=np.float64)), r"Linear: x is float64, expected float32"),
    (lambda: layers.Linear(3, 2)([1, 2, 3]), r"Linear: x is of type list, expected an array or tensor"),
    (lambda: layers.Linear(3, 2).backward(ones(2, 2)), r"Linear: backward needs a forward pass first"),
    (lambda: layers.Linear(3, 2, dtype="float16"), r'dtype is \'float16\', expected "float32" or "float64"'),
    (lambda: layers.Linear(0, 2), r"Linear: in must be between 1 and 16777216 \(is 0\)"),
    (lambda: layers.Linear(3, 2).load_state_dict({"weight": np.ones((2, 3))}), r"Linear: parameter bias is missing"),
    (lambda: layers.MultiHeadAttention(8, 3, key_value_heads=2), r"key_value_heads must divide heads \(3\)"),
    (lambda: ENCODER(ones(8)), r"Encoder: inputs must have shape \[N, d\] or \[B, T, d\] \(found \[8\]\)"),
    (lambda: ENCODER(ones(4, 8), lengths=[4]), r"Encoder: lengths needs a batch of three axes, \[B, T, d\]"),
    (lambda: ENCODER(ones(1, 4, 8), offsets=[0, 4]), r"Encoder: offsets needs packed rows, \[N, d\]"),
    (lambda: ENCODER(ones(1, 4, 8), lengths=[5]), r"Encoder: lengths must be from 0 to 4, the width of the batch \(found 5\)"),
    (lambda: ENCODER(ones(1, 4, 8), lengths=[-1]), r"Encoder: lengths\[0\] is -1, expected 0 to"),
    (lambda: ENCODER(ones(1, 4, 8), lengths=[1, 2]), r"Encoder: lengths has 2 lengths, expected one for each of 1 sequences"),
    (lambda: ENCODER(ones(4, 8), offsets=[0, 3, 2, 4]), r"Encoder: offsets must not decrease \(3 is followed by 2\)"),
    (lambda: ENCODER(ones(4, 8), offsets=[0, 9]), r"Encoder: offsets must be from 0 to 4"),
    (lambda: ENCODER(ones(4, 8), mask=ones(3, 4, 4)), r"Encoder: mask has shape \[3, 4, 4\], expected one that broadcasts to \[1, 2, 4, 4\]"),
    (lambda: ENCODER(ones(4, 8), mask=np.ones((4, 4))), r"Encoder: mask is float64, expected bool or float32"),
    (lambda: ENCODER.attention_weights("cross"), r"Encoder: no attention is named \"cross\" \(choose from: self\)"),
    (lambda: ATTENTION(ones(4, 8), v=ones(4, 8)), r"MultiHeadAttention: v is given without k"),
    (lambda: ATTENTION(ones(4, 8), ones(3, 8), ones(2, 8)), r"MultiHeadAttention: v has 2 rows, expected 3"),
    (lambda: ATTENTION(ones(4, 8), causal="left"), r"MultiHeadAttention: causal is 'left', expected False, True or \"top-left\""),
    (lambda: layers.Embedding(5, 4)([5]), r"Embedding: ids must be from 0 to 4 \(found 5\)"),
    (lambda: layers.Embedding(5, 4)([1 << 40]), r"Embedding: ids\[0\] is 1099511627776, expected 0 to"),
    (lambda: layers.Embedding(5, 4, positions="rotary"), r"Embedding: positions must be none, learned or sinusoidal"),
    (lambda: layers.cross_entropy(ones(2, 3), [0, 3]), r"cross_entropy: labels must be from 0 to 2, or -100 \(found 3\)"),
    (lambda: layers.cross_entropy(ones(2, 3), [0]), r"cross_entropy: expected 2 labels, found 1"),
    (lambda: layers.softmax(np.ones(3, np.int32)), r"softmax: x is int32, expected float32 or float64"),
    (lambda: layers.positional_encoding(3, 4, "rotary"), r"positional_encoding: kind must be sinusoidal \(is rotary\)"),
])
def test_errors_name_the_argument(call, message):
    with pytest.raises(qkv.Error, match=message):
        call()


def test_unknown_options_are_type_errors():
    with pytest.raises(TypeError, match=r"Encoder\(\) got an unexpected keyword argument 'target_vocab'"):
        layers.Encoder(8, 2, 16, 1, target_vocab=7)
