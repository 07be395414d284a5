"""Arrays: nothing is copied, any strides are accepted, and results are of the same kind as q."""

import ctypes
import tracemalloc

import numpy as np
import pytest

import qkv


def make(random, *shape, type=np.float32):
    return [random.standard_normal(shape).astype(type) for _ in "qkv"]


def test_strided_views_match_contiguous_arrays(random):
    q, k, v = make(random, 2, 3, 6, 8)
    expected = qkv.attention(q, k, v, causal=True, return_lse=True)
    token_first = [np.ascontiguousarray(x.transpose(0, 2, 1, 3)).transpose(0, 2, 1, 3) for x in (q, k, v)]
    gaps = [np.repeat(np.pad(x, ((0, 0), (0, 0), (0, 0), (3, 5))), 2, 1)[:, ::2, :, 3:-5] for x in (q, k, v)]
    backwards = [x[::-1, :, ::-1].copy()[::-1, :, ::-1] for x in (q, k, v)]
    for views in (token_first, gaps, backwards):
        assert not views[0].flags.c_contiguous
        found = qkv.attention(*views, causal=True, return_lse=True)
        assert all(np.array_equal(x, y) for x, y in zip(found, expected))
        x, y = (qkv.attention_backward(a[0], *b, *a, causal=True) for a, b in ((found, views), (expected, (q, k, v))))
        assert all(np.array_equal(a, b) for a, b in zip(x, y))


def test_backward_accepts_any_strides(random):
    q, k, v = make(random, 2, 3, 6, 8)
    out, lse = qkv.attention(q, k, v, return_lse=True)
    expected = qkv.attention_backward(out, q, k, v, out, lse)
    turned = np.ascontiguousarray(out.transpose(2, 0, 1, 3)).transpose(1, 2, 0, 3)
    found = qkv.attention_backward(turned, q, k, v, turned, np.asfortranarray(lse))
    assert all(np.array_equal(a, b) for a, b in zip(found, expected))
    one = np.broadcast_to(np.float32([[[[1]]]]), (2, 3, 6, 1))  # with width 1, any stride is valid
    assert qkv.attention_backward(one, q, k, v[..., :1], out[..., :1], lse)[2].shape == (2, 3, 6, 1)


def test_broadcast_keys_and_masks_are_not_copied(random):
    q, k, v = make(random, 3, 2, 4, 8)
    k, v = (np.broadcast_to(x[:1], x.shape) for x in (k, v))
    mask = np.broadcast_to(np.float32([0, -1, -2, -3]), (3, 2, 4, 4))
    expected = qkv.attention(q, k.copy(), v.copy(), mask=mask.copy())
    assert np.array_equal(qkv.attention(q, k, v, mask=mask), expected)


def test_arguments_are_not_copied(random):
    q, k, v = (x.transpose(0, 2, 1, 3) for x in make(random, 2, 500, 8, 64))
    lse = np.zeros((2, 8, 500), np.float32)
    window = {"window": 1, "mask": np.broadcast_to(np.True_, (2, 8, 500, 500))}
    tracemalloc.start()
    try:
        out = qkv.attention(q, k, v, **window)
        qkv.attention_backward(q, q, k, v, q, lse, **window)
        peak = tracemalloc.get_traced_memory()[1]  # NumPy reports its allocations to tracemalloc
    finally:
        tracemalloc.stop()
    assert out.shape == q.shape and peak < q.nbytes / 20


def test_results_are_writable_and_own_their_memory(random):
    q, k, v = make(random, 1, 2, 4, 8)
    out, lse = qkv.attention(q, k, v, return_lse=True)
    kept = out.copy()
    assert out.flags.writeable and out.flags.c_contiguous and not np.shares_memory(out, q)
    again = qkv.attention(q, k, v)
    again[:] = 0
    del again, lse, q, k, v
    assert np.array_equal(out, kept)


def test_read_only_arrays_are_accepted(random):
    arrays = make(random, 1, 2, 4, 8)
    expected = qkv.attention(*arrays)
    for x in arrays:
        x.flags.writeable = False
    assert np.array_equal(qkv.attention(*arrays), expected)


@pytest.mark.parametrize("packed", [False, True])
def test_bfloat16_arrays(random, packed):
    bfloat16 = pytest.importorskip("ml_dtypes").bfloat16
    q, k, v = (x.astype(bfloat16) for x in make(random, *((9, 2, 16) if packed else (2, 2, 9, 16))))
    options = {"q_offsets": [0, 4, 9]} if packed else {"causal": True}
    out, lse, weights = qkv.attention(q, k, v, **options, return_lse=True, return_weights=True)
    exact = [x.astype(np.float32) for x in (q, k, v)]
    expected = qkv.attention(*exact, **options, return_lse=True, return_weights=True)
    assert out.dtype == bfloat16 and lse.dtype == weights.dtype == np.float32
    half = 2.0**-8  # half a unit in the last place of 8 bits; rounding the weights adds as much
    np.testing.assert_allclose(out.astype(np.float32), expected[0], rtol=half, atol=half * abs(exact[2]).max())
    np.testing.assert_allclose(lse, expected[1], rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(weights, expected[2], rtol=1e-4, atol=1e-6)
    grad_out = np.ones_like(out)
    found = qkv.attention_backward(grad_out, q, k, v, out, lse, **options)
    precise = qkv.attention_backward(grad_out.astype(np.float32), *exact, out.astype(np.float32), lse, **options)
    for x, y in zip(found, precise):
        assert x.dtype == bfloat16
        np.testing.assert_allclose(x.astype(np.float32), y, rtol=4 * half, atol=4 * half * abs(y).max())


class Other:
    """An array of another framework that exposes its memory only by DLPack."""

    def __init__(self, array):
        self.array = np.asarray(array)
        self.dtype = self.array.dtype

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()

    def __array_namespace__(self):
        return Namespace


class Namespace:
    from_dlpack = staticmethod(lambda x: Other(np.from_dlpack(x)))


def test_results_use_the_framework_of_q(random):
    q, k, v = make(random, 1, 2, 4, 8)
    expected = qkv.attention(q, k, v, return_lse=True)
    found = qkv.attention(Other(q), k, Other(v), return_lse=True)
    assert all(isinstance(x, Other) and np.array_equal(x.array, y) for x, y in zip(found, expected))
    assert isinstance(qkv.attention(q, Other(k), v), np.ndarray)


def test_other_devices_are_rejected(random):
    q, k, v = make(random, 1, 2, 4, 8)

    class OnCuda(Other):
        def __dlpack__(self, **_):
            capsule = self.array.__dlpack__()
            pointer = ctypes.pythonapi.PyCapsule_GetPointer
            pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
            ctypes.c_int32.from_address(pointer(capsule, b"dltensor") + 8).value = 2  # DLTensor.device.device_type
            return capsule

    with pytest.raises(qkv.Error, match="attention: k is in the memory of another device .*2.*, expected the CPU's"):
        qkv.attention(q, OnCuda(k), v)
