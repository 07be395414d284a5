"""qkv.attention compared with the formula: every mask shape, causality, window, softcap, slopes, grouped heads, offsets."""

import itertools
import os
import signal

import numpy as np
import pytest
from reference import attention, mask_shapes, tolerance

import qkv

B, H = 2, 4
LENGTHS = [(5, 7), (7, 5), (6, 6)]
CASES = [("none", None)] + [(kind, i) for kind in ("bool", "float") for i in range(len(mask_shapes(1, 1, 1, 1)))]
TYPES = [np.float64, np.float32]


def make_mask(random, kind, shape, type):
    if kind == "bool":
        return np.asarray(random.random(shape) < 0.6)
    mask = np.asarray(random.standard_normal(shape), type)
    return np.where(random.random(shape) < 0.2, type(-np.inf), mask)


def make(random, type, T, S, K=H, Dk=8, Dv=8):
    return [random.standard_normal(shape).astype(type) for shape in ((B, H, T, Dk), (B, K, S, Dk), (B, K, S, Dv))]


def check(type, q, k, v, options):
    """Compares out, lse and weights with those of the formula."""
    expected = attention(q, k, v, **options)
    found = qkv.attention(q, k, v, **options, return_lse=True, return_weights=True)
    of_out, of_rest = tolerance(np.finfo(type).eps, q, k, v, **options)
    for x, expected, limit in zip(found, expected, (of_out, of_rest, of_rest)):
        assert x.dtype == type and x.shape == expected.shape
        np.testing.assert_allclose(x, expected, rtol=0, atol=limit, err_msg=str(options))


@pytest.mark.parametrize("type", TYPES)
@pytest.mark.parametrize("kind, shape", CASES)
def test_attention_matches_the_formula(random, type, kind, shape):
    windows = [None, 0, 2, (1, 3), (None, 2), (3, -1)]
    for (T, S), causal, window in itertools.product(LENGTHS, (False, True, "top-left"), windows):
        K, Dk, Dv = (random.choice(x) for x in ([1, 2, 4], [1, 8, 17], [3, 8]))
        q, k, v = make(random, type, T, S, K, Dk, Dv)
        options = {"causal": causal, "window": window}
        if kind != "none":
            options["mask"] = make_mask(random, kind, mask_shapes(B, H, T, S)[shape], type)
        if random.random() < 0.5:
            options["softcap"] = 1.5
        if random.random() < 0.5:
            options["alibi"] = random.random(H).astype(type)
        if random.random() < 0.5:
            options["scale"] = 0.7
        check(type, q, k, v, options)


@pytest.mark.parametrize("type", TYPES)
def test_longer_sequences(random, type):
    q, k, v = make(random, type, 150, 133, K=2, Dk=64, Dv=48)
    check(type, q, k, v, {"causal": True})
    check(type, q, k, v, {"window": 40, "alibi": random.random(H).astype(type)})


def offsets(lengths):
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)


@pytest.mark.parametrize("type", TYPES)
@pytest.mark.parametrize("causal", [False, True, "top-left"])
@pytest.mark.parametrize("kind", ["none", "bool", "float"])
def test_packed_sequences_match_separate_calls(random, type, causal, kind):
    Ts, Ss = [3, 0, 6, 4, 2], [5, 2, 4, 4, 0]
    q, k, v = (random.standard_normal((sum(n), heads, width)).astype(type)
               for n, heads, width in ((Ts, 4, 8), (Ss, 2, 8), (Ss, 2, 5)))
    q_offsets, k_offsets = offsets(Ts), offsets(Ss)
    options = {"causal": causal, "alibi": random.random(4).astype(type)}
    for shape in mask_shapes(len(Ts), 4, max(Ts), max(Ss)) if kind != "none" else [()]:
        mask = None if kind == "none" else make_mask(random, kind, shape, type)
        out, lse, weights = qkv.attention(q, k, v, mask=mask, q_offsets=q_offsets, k_offsets=k_offsets, **options,
                                          return_lse=True, return_weights=True)
        assert out.shape == (15, 4, 5) and lse.shape == (15, 4) and weights.shape == (5, 4, 6, 5)
        for s, (T, S) in enumerate(zip(Ts, Ss)):
            rows, keys = slice(*q_offsets[s:s + 2]), slice(*k_offsets[s:s + 2])
            whole = None if mask is None else np.broadcast_to(mask, (5, 4, 6, 5))[s, :, :T, :S]
            single = [np.swapaxes(x, 0, 1)[None] for x in (q[rows], k[keys], v[keys])]
            expected = qkv.attention(*single, mask=whole, **options, return_lse=True, return_weights=True)
            of_out, of_rest = tolerance(np.finfo(type).eps, *single, mask=whole, alibi=options["alibi"])
            np.testing.assert_allclose(out[rows], np.swapaxes(expected[0][0], 0, 1), rtol=0, atol=of_out)
            np.testing.assert_allclose(lse[rows], expected[1][0].T, rtol=0, atol=of_rest)
            np.testing.assert_allclose(weights[s, :, :T, :S], expected[2][0], rtol=0, atol=of_rest)
            assert not weights[s, :, T:].any() and not weights[s, :, :, S:].any()


def test_k_offsets_default_to_q_offsets(random):
    q, k, v = (random.standard_normal((9, 2, 4)).astype(np.float32) for _ in "qkv")
    expected = qkv.attention(q, k, v, q_offsets=offsets([4, 5]), k_offsets=offsets([4, 5]))
    assert np.array_equal(qkv.attention(q, k, v, q_offsets=[0, 4, 9]), expected)
    assert np.array_equal(qkv.attention(q, k, v, q_offsets=np.array([0, 4, 9])), expected)


@pytest.mark.parametrize("type", TYPES)
def test_rows_without_keys_are_zero(random, type):
    q, k, v = make(random, type, 5, 4)
    mask = np.ones((5, 4), bool)
    mask[2] = False
    out, lse, weights = qkv.attention(q, k, v, mask=mask, return_lse=True, return_weights=True)
    assert not out[:, :, 2].any() and not weights[:, :, 2].any() and np.all(lse[:, :, 2] == -np.inf)
    assert out[:, :, [0, 1, 3, 4]].all() and np.isfinite(lse[:, :, [0, 1, 3, 4]]).all()


@pytest.mark.parametrize("type", TYPES)
def test_nan_affects_only_rows_that_attend_to_it(random, type):
    q, k, v = make(random, type, 6, 6)
    clean = qkv.attention(q, k, v, causal=True)
    q[0, 1, 2], k[1, 0, 4], v[0, 3, 5] = np.nan, np.nan, np.nan
    out = qkv.attention(q, k, v, causal=True)
    spoiled = np.zeros((B, H, 6), bool)
    spoiled[0, 1, 2] = spoiled[1, 0, 4:] = spoiled[0, 3, 5] = True
    assert np.array_equal(np.isnan(out).any(-1), spoiled)
    atol = 2 * tolerance(np.finfo(type).eps, *make(random, type, 6, 6))[0]  # rows near them may be summed in another order
    np.testing.assert_allclose(out[~spoiled], clean[~spoiled], rtol=0, atol=atol)


@pytest.mark.parametrize("B, T, S", [(0, 3, 3), (2, 0, 3), (2, 3, 0), (2, 0, 0)])
@pytest.mark.parametrize("type", TYPES)
def test_empty_arrays(type, B, T, S):
    q, k = np.ones((B, 2, T, 4), type), np.ones((B, 2, S, 4), type)
    out, lse, weights = qkv.attention(q, k, k, return_lse=True, return_weights=True)
    assert out.shape == q.shape and lse.shape == (B, 2, T) and weights.shape == (B, 2, T, S)
    assert not out.any() and np.all(lse == -np.inf)
    gradients = qkv.attention_backward(out, q, k, k, out, lse)
    assert [x.shape for x in gradients] == [q.shape, k.shape, k.shape] and not any(x.any() for x in gradients)


def test_results_do_not_depend_on_the_number_of_threads(random):
    q, k, v = make(random, np.float32, 200, 300)
    before = qkv.threads()
    try:
        qkv.set_threads(1)
        one = qkv.attention(q, k, v)
        qkv.set_threads(3)
        assert qkv.threads() == 3 and np.array_equal(qkv.attention(q, k, v), one)
    finally:
        qkv.set_threads(before)


def test_the_threads_of_openmp_change_no_bit(random):
    q, k, v = make(random, np.float32, 200, 300)
    own = qkv.attention(q, k, v)
    qkv._qkv.use_openmp(True)
    try:
        assert np.array_equal(qkv.attention(q, k, v), own)
    finally:
        qkv._qkv.use_openmp(False)


def test_a_process_may_fork(random):
    q, k, v = make(random, np.float32, 200, 300)
    before = qkv.attention(q, k, v)
    child = os.fork()
    if child == 0:
        signal.alarm(60)  # ends a child that waits for threads of its parent
        os._exit(0 if np.array_equal(qkv.attention(q, k, v), before) else 1)
    assert os.waitpid(child, 0)[1] == 0


@pytest.mark.parametrize("type", TYPES)
@pytest.mark.parametrize("causal", [False, True])
def test_padded_sequences_match_separate_calls(random, type, causal):
    q, k, v = make(random, type, 6, 5)
    lengths, k_lengths = [3, 0], [5, 2]
    out, lse, weights = qkv.attention(q, k, v, lengths=lengths, k_lengths=np.array(k_lengths), causal=causal,
                                      return_lse=True, return_weights=True)
    for b, (T, S) in enumerate(zip(lengths, k_lengths)):
        single = q[b:b + 1, :, :T], k[b:b + 1, :, :S], v[b:b + 1, :, :S]
        expected = qkv.attention(*single, causal=causal, return_lse=True, return_weights=True)
        of_out, of_rest = tolerance(np.finfo(type).eps, *single)
        np.testing.assert_allclose(out[b, :, :T], expected[0][0], rtol=0, atol=of_out)
        np.testing.assert_allclose(lse[b, :, :T], expected[1][0], rtol=0, atol=of_rest)
        np.testing.assert_allclose(weights[b, :, :T, :S], expected[2][0], rtol=0, atol=of_rest)
        assert not out[b, :, T:].any() and np.all(lse[b, :, T:] == -np.inf)
        assert not weights[b, :, T:].any() and not weights[b, :, :, S:].any()


def test_gradients_of_padded_sequences_are_zero_beyond_their_lengths(random):
    q, k, v = make(random, np.float32, 6, 6)
    padded = {"lengths": [4, 1]}
    out, lse = qkv.attention(q, k, v, return_lse=True, **padded)
    found = qkv.attention_backward(np.ones_like(out), q, k, v, out, lse, **padded)
    for b, n in enumerate(padded["lengths"]):
        single = [x[b:b + 1, :, :n] for x in (q, k, v)]
        part, part_lse = qkv.attention(*single, return_lse=True)
        expected = qkv.attention_backward(np.ones_like(part), *single, part, part_lse)
        for x, y in zip(found, expected):
            np.testing.assert_allclose(x[b, :, :n], y[0], rtol=0, atol=1e-5)
            assert not x[b, :, n:].any()


def test_arrays_without_a_batch_or_heads(random):
    q, k, v = make(random, np.float32, 6, 5)
    expected = qkv.attention(q, k, v, causal=True, return_lse=True, return_weights=True)
    for x, y in zip(qkv.attention(q[1], k[1], v[1], causal=True, return_lse=True, return_weights=True), expected):
        assert np.array_equal(x, y[1])
    one = q[1, 0], k[1, 0], v[1, 0]
    found = qkv.attention(*one, causal=True, return_lse=True, return_weights=True)
    for x, y in zip(found, expected):
        assert np.array_equal(x, y[1, 0])
    gradients = qkv.attention_backward(found[0], *one, *found[:2], causal=True)
    assert [x.shape for x in gradients] == [x.shape for x in one]
