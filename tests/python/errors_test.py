"""Errors: each is a qkv.Error of one line with the argument, the value found and the accepted values."""

import numpy as np
import pytest

import qkv

Q = np.ones((2, 4, 5, 8), np.float32)
K = np.ones((2, 2, 7, 8), np.float32)
PACKED = np.ones((9, 4, 8), np.float32)
LONG = np.ones((2, 4, 5, 16), np.float32)
UNALIGNED = np.frombuffer(bytes(4 * Q.size + 1), np.float32, offset=1).reshape(Q.shape)
RECORDS = np.zeros(Q.shape, [("a", "f4"), ("b", "u1")])["a"]  # strides of five bytes


def wide(n):
    return np.ones((1, 1, 2, n), np.float32)


ARRAYS = {
    "q is of type list, expected an array or tensor": ([1.0], K, K),
    "q is of type NoneType, expected an array": (None, K, K),
    "k is of type str, expected an array": (Q, "k", K),
    "k has 2 sequences, q 1: expected the same": (Q[0], K, K),
    "q has shape [8], expected [B, heads, T, width], or [N, heads, width] with q_offsets": (Q[0, 0, 0], K, K),
    "v has shape [], expected [B, heads, T, width]": (Q, K, np.float32([1]).reshape(())),
    "k has 3 heads, q 4: expected a divisor": (Q, np.ones((2, 3, 7, 8), np.float32), K),
    "k has 0 heads, q 4: expected a divisor": (Q, K[:, :0], K[:, :0]),
    "q has shape [2, 0, 5, 8], expected at least one head": (Q[:, :0], K[:, :0], K[:, :0]),
    "v has 1 heads, k 2: expected the same": (Q, K, K[:, :1]),
    "v has 6 tokens, k 7: expected the same": (Q, K, K[:, :, :6]),
    "k has 7 numbers a head, q 8: expected the same": (Q, K[..., :7], K),
    "k has 1 sequences, q 2: expected the same": (Q, K[:1], K),
    "v has 1 sequences, q 2: expected the same": (Q, K, K[:1]),
    "q is float16, expected float32, float64 or bfloat16": (Q.astype(np.float16), K, K),
    "q is int64, expected float32": (Q.astype(np.int64), K, K),
    "q is uint16, expected float32": (Q.astype(np.uint16), K, K),
    "k is float64, expected float32": (Q, K.astype(np.float64), K),
    "v is complex64, expected float32": (Q, K, K.astype(np.complex64)),
    "ndarray of >f4) cannot be exported by DLPack": (Q.astype(">f4"), K, K),
    "ndarray of object) cannot be exported by DLPack": (Q.astype(object), K, K),
    "ndarray of float32) cannot be exported by DLPack": (RECORDS, K, K),
    "q is not aligned to its elements of 4 bytes": (UNALIGNED, K, K),
    "q has stride 2 in its last axis, expected 1: make a contiguous copy": (LONG[..., ::2], K, K),
    "k has stride -1 in its last axis, expected 1": (Q, K[..., ::-1], K),
    "key_width and value_width must be between 1 and 1024 (are 0 and 8)": (Q[..., :0], K[..., :0], K),
    "must be between 1 and 1024 (are 8 and 5000)": (wide(8), wide(8), wide(5000)),
}

OPTIONS = {
    'causal is 1, expected False, True or "top-left"': {"causal": 1},
    "causal is 'left', expected False, True": {"causal": "left"},
    "causal is [], expected False": {"causal": []},
    "scale is 'x', expected a number": {"scale": "x"},
    "softcap is 'x', expected a number": {"softcap": "x"},
    "softcap is 0, expected more than 0": {"softcap": 0},
    "softcap is -1, expected more than 0": {"softcap": -1},
    "softcap is nan, expected more than 0": {"softcap": np.nan},
    "softcap is inf, expected more than 0": {"softcap": np.inf},
    "window has -2, expected (left, right)": {"window": -2},
    "window has 1.5, expected (left, right)": {"window": (1, 1.5)},
    "window has (1, 2, 3), expected (left, right)": {"window": (1, 2, 3)},
    "mask is of type int, expected an array": {"mask": 1},
    "mask is float64, expected bool or float32": {"mask": np.zeros(7)},
    "mask is uint8, expected bool or float32": {"mask": np.zeros(7, np.uint8)},
    "mask has shape [3, 7], expected one that broadcasts to [2, 4, 5, 7]": {"mask": np.zeros((3, 7), np.float32)},
    "mask has shape [1, 2, 4, 5, 7], expected one": {"mask": np.zeros((1, 2, 4, 5, 7), np.float32)},
    "mask has shape [0], expected one": {"mask": np.zeros(0, bool)},
    "alibi has shape [3], expected one slope for each of 4 heads": {"alibi": np.zeros(3, np.float32)},
    "alibi is float64, expected float32": {"alibi": np.zeros(4)},
    "alibi has stride 2 in its last axis": {"alibi": np.zeros(8, np.float32)[::2]},
    "k_offsets without q_offsets": {"k_offsets": [0, 7]},
}

OFFSETS = {
    "q_offsets[2] is 2, expected 3 to 9": [0, 3, 2, 9],
    "q_offsets[1] is 10, expected 0 to 9": [0, 10],
    "q_offsets[1] is -1, expected 0 to 9": [0, -1, 9],
    "q_offsets[0] is -1, expected 0 to 9": [-1, 9],
    "q_offsets begins with 1, expected 0": [1, 9],
    "q_offsets ends with 8, expected the 9 tokens": [0, 8],
    "q_offsets has shape [], expected [sequences + 1]": np.asarray(9),
    "q_offsets has shape [0], expected [sequences + 1]": np.zeros(0, np.int32),
    "q_offsets has shape [1, 2], expected": np.int32([[0, 9]]),
    "q_offsets is float64, expected int32 or int64": [0.0, 9.0],
    "q_offsets is uint32, expected int32 or int64": np.uint32([0, 9]),
    "q_offsets is of type int, expected an array": 9,
    "q_offsets[1] is 4294967305, expected 0 to 9": [0, 2**32 + 9],
}


def says(line, call, *arguments, **options):
    with pytest.raises(qkv.Error) as raised:
        call(*arguments, **options)
    assert str(raised.value).startswith("attention: ") and line in str(raised.value) and "\n" not in str(raised.value)
    assert isinstance(raised.value, ValueError)


@pytest.mark.parametrize("line", ARRAYS)
def test_array_errors(line):
    says(line, qkv.attention, *ARRAYS[line])


@pytest.mark.parametrize("line", OPTIONS)
def test_option_errors(line):
    says(line, qkv.attention, Q, K, K, **OPTIONS[line])


@pytest.mark.parametrize("line", OFFSETS)
def test_offset_errors(line):
    says(line, qkv.attention, PACKED, PACKED, PACKED, q_offsets=OFFSETS[line])


def test_packed_array_errors():
    says("q has shape [2, 4, 5, 8], expected [N, heads, width] with q_offsets", qkv.attention, Q, K, K, q_offsets=[0, 2])
    says("k_offsets has 2 sequences, q_offsets 1", qkv.attention, *[PACKED] * 3, q_offsets=[0, 9], k_offsets=[0, 4, 9])
    says("q_offsets[1] is 9, expected 0 to 4", qkv.attention, PACKED, PACKED[:4], PACKED[:4], q_offsets=[0, 9])
    says("mask has shape [9, 9], expected one that broadcasts to [2, 4, 5, 5]", qkv.attention, *[PACKED] * 3,
         q_offsets=[0, 4, 9], mask=np.ones((9, 9), bool))


def test_backward_argument_errors():
    out, lse = qkv.attention(Q, K, K, return_lse=True)
    good = {"grad_out": out, "q": Q, "k": K, "v": K, "out": out, "lse": lse}
    for line, wrong in {
        "grad_out has shape [2, 4, 5, 7], expected [2, 4, 5, 8]": {"grad_out": out[..., :7]},
        "out has shape [2, 4, 4, 8], expected [2, 4, 5, 8]": {"out": out[:, :, 1:]},
        "lse has shape [2, 4], expected [2, 4, 5]": {"lse": lse[..., 0]},
        "lse is float64, expected float32": {"lse": lse.astype(np.float64)},
        "out is float64, expected float32": {"out": out.astype(np.float64)},
        "grad_out has stride 0 in its last axis, expected 1": {"grad_out": np.broadcast_to(np.float32(1), out.shape)},
        "return_mask_grad requires a float mask": {"return_mask_grad": True},
    }.items():
        says(line, qkv.attention_backward, **{**good, **wrong})
    says("return_mask_grad requires a float mask", qkv.attention_backward, **good, mask=np.ones(7, bool), return_mask_grad=True)


def test_windows_longer_than_every_sequence_have_no_effect():
    assert np.array_equal(qkv.attention(Q, K, K, window=10**30), qkv.attention(Q, K, K))
    found = qkv.attention(Q, K, K, window=(2**63, 2**63 - 1), causal=True)
    assert np.array_equal(found, qkv.attention(Q, K, K, causal=True))


def test_options_must_be_finite():
    for scale in (np.nan, np.inf):
        with pytest.raises(qkv.Error, match="attention: scale must be finite"):
            qkv.attention(Q, K, K, scale=scale)


def test_masks_that_are_not_finite_give_nan():
    assert np.isnan(qkv.attention(Q, K, K, mask=np.full(7, np.nan, np.float32))).all()
    assert np.isnan(qkv.attention(Q, K, K, mask=np.full(7, np.inf, np.float32))).all()


def test_results_larger_than_memory_raise_memory_error():
    few = np.ones((1, 1, 1, 1), np.float32)
    for q_shape, k_shape in (((1, 1, 1 << 46, 1), (1, 1, 1, 1)), ((1 << 30, 1 << 30, 1, 1), (1 << 30, 1, 1, 1))):
        q, k = np.broadcast_to(few, q_shape), np.broadcast_to(few, k_shape)
        with pytest.raises(MemoryError):
            qkv.attention(q, k, k)


@pytest.mark.parametrize("count", [0, -1, 1025, 1 << 40])
def test_invalid_thread_counts_are_rejected(count):
    with pytest.raises(qkv.Error, match="set_threads: count must be between 1 and 1024"):
        qkv.set_threads(count)


def test_errors_of_lengths():
    says("lengths has 1 lengths, expected one for each of 2 sequences", qkv.attention, Q, K, K, lengths=[3],
         k_lengths=[1, 2])
    says("k_lengths[1] is 8, expected 0 to 7", qkv.attention, Q, K, K, k_lengths=[1, 8])
    says("lengths has shape [1, 1], expected [B]", qkv.attention, Q, K, K, lengths=[[1]])
    says("k has 7 tokens, q 5: expected the same, or k_lengths", qkv.attention, Q, K, K, lengths=[1, 2])
    says("lengths together with q_offsets", qkv.attention, Q[0], K[0], K[0], q_offsets=[0, 4], lengths=[1])
