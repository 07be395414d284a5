"""qkv.attention_backward compared with finite differences of qkv.attention in float64, and float32 with float64."""

import numpy as np
import pytest
from reference import tolerance

import qkv

B, H, K, T, S, DK, DV = 2, 4, 2, 3, 4, 3, 2
OPTIONS = {
    "plain": {},
    "causal": {"causal": True},
    "top-left": {"causal": "top-left", "window": (1, None)},
    "window": {"window": (1, 0)},
    "softcap": {"softcap": 0.8, "scale": 0.9},
    "alibi": {"alibi": np.array([0.1, 0.2, 0.3, 0.4])},
    "all": {"causal": True, "window": (2, 0), "softcap": 1.2, "alibi": np.array([0.5, 0.0, 0.25, 1.0])},
}
MASKS = [(B, H, T, S), (1, H, T, S), (B, 1, 1, S), (1, 1, T, 1), (T, S), ()]


def make(random, type=np.float64):
    return [random.standard_normal(shape).astype(type)
            for shape in ((B, H, T, DV), (B, H, T, DK), (B, K, S, DK), (B, K, S, DV))]


def differences(f, x, step=1e-5):
    """Returns (f(x + step) - f(x - step)) / (2 step) for every element. Changes x temporarily."""
    found = np.zeros_like(x)
    for i in np.ndindex(x.shape):
        before = x[i]
        x[i] = before + step
        above = f()
        x[i] = before - step
        found[i] = (above - f()) / (2 * step)
        x[i] = before
    return found


def check(arrays, grad_out, options, found):
    """Compares gradients with respect to `arrays` with finite differences. Third derivatives are about 10, so that the
    errors are of the order of step² and ε / step."""
    q, k, v = arrays[:3]
    for x, dx in zip(arrays, found):
        expected = differences(lambda: (qkv.attention(q, k, v, **options) * grad_out).sum(), x)
        assert dx.shape == x.shape
        np.testing.assert_allclose(dx, expected, rtol=0, atol=1e-8)


def backward(grad_out, q, k, v, options, **more):
    out, lse = qkv.attention(q, k, v, **options, return_lse=True)
    return qkv.attention_backward(grad_out, q, k, v, out, lse, **options, **more)


@pytest.mark.parametrize("name", OPTIONS)
def test_gradients_match_finite_differences(random, name):
    grad_out, *arrays = make(random)
    check(arrays, grad_out, OPTIONS[name], backward(grad_out, *arrays, OPTIONS[name]))


@pytest.mark.parametrize("shape", MASKS)
def test_mask_gradient_has_the_shape_of_the_mask(random, shape):
    grad_out, *arrays = make(random)
    mask = np.asarray(random.standard_normal(shape))
    options = {"mask": mask, "causal": True}
    found = backward(grad_out, *arrays, options, return_mask_grad=True)
    assert len(found) == 4
    check([*arrays, mask], grad_out, options, found)


def test_gradients_through_a_bool_mask(random):
    grad_out, *arrays = make(random)
    options = {"mask": random.random((B, 1, T, S)) < 0.7}
    check(arrays, grad_out, options, backward(grad_out, *arrays, options))


def test_packed_gradients_match_finite_differences(random):
    Ts, Ss = [3, 0, 4, 1], [2, 3, 4, 0]
    grad_out, q, k, v = (random.standard_normal((sum(n), heads, width))
                         for n, heads, width in ((Ts, H, DV), (Ts, H, DK), (Ss, K, DK), (Ss, K, DV)))
    mask = random.standard_normal((4, 1, 4, 4))
    options = {"q_offsets": np.cumsum([0, *Ts]), "k_offsets": np.cumsum([0, *Ss]), "mask": mask, "causal": "top-left"}
    found = backward(grad_out, q, k, v, options, return_mask_grad=True)
    check([q, k, v, mask], grad_out, options, found)
    assert not found[1][2:5].any() and found[3][0].any()  # the keys of the sequence without queries


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("name", OPTIONS)
def test_float32_gradients_match_float64(random, name, masked):
    arrays = make(random, np.float32)
    options = {key: x.astype(np.float32) if key == "alibi" else x for key, x in OPTIONS[name].items()}
    exact = dict(OPTIONS[name])
    if masked:
        options["mask"] = random.standard_normal((B, 1, T, S)).astype(np.float32)
        exact["mask"] = options["mask"].astype(np.float64)
    if "alibi" in exact:
        exact["alibi"] = options["alibi"].astype(np.float64)
    found = backward(*arrays, options, return_mask_grad=masked)
    expected = backward(*(x.astype(np.float64) for x in arrays), exact, return_mask_grad=masked)
    # Backward has two more products than forward, over at most S or T H / K rows, with values of similar size.
    limit = 8 * T * H * max(tolerance(np.finfo(np.float32).eps, *arrays[1:], **options))
    for x, y in zip(found, expected):
        assert x.dtype == np.float32
        np.testing.assert_allclose(x, y, rtol=0, atol=limit * max(1, abs(y).max()))
