"""A reference attention in float64 NumPy that stores the T × S matrix, and bounds of the rounding error."""

import itertools

import numpy as np


def scores(q, k, *, mask=None, causal=False, scale=None, window=None, softcap=None, alibi=None):
    """Returns scores s_ij, [..., H, T, S], -inf where query i does not attend to key j. q: [..., H, T, Dk], k: [..., K, S,
    Dk]."""
    T, S = q.shape[-2], k.shape[-2]
    k = np.repeat(k, q.shape[-3] // k.shape[-3], -3)
    s = q @ np.swapaxes(k, -1, -2) * (q.shape[-1] ** -0.5 if scale is None else scale)
    if softcap is not None:
        s = softcap * np.tanh(s / softcap)
    place = np.arange(T) + (0 if causal == "top-left" else S - T)
    distance = np.arange(S) - place[:, None]
    left, right = window if isinstance(window, tuple) else (window, window)
    seen = np.ones((T, S), bool)
    if causal:
        seen &= distance <= 0
    if left is not None and left >= 0:
        seen &= distance >= -left
    if right is not None and right >= 0:
        seen &= distance <= right
    if mask is not None and mask.dtype == bool:
        seen = seen & mask
    elif mask is not None:
        s = s + mask.astype(np.float64)
    if alibi is not None:
        s = s - alibi.astype(np.float64)[:, None, None] * abs(distance)
    return np.where(seen, s, -np.inf)


def attention(q, k, v, **options):
    """Returns (out, lse, weights)."""
    q, k, v = (x.astype(np.float64) for x in (q, k, v))
    s = scores(q, k, **options)
    largest = s.max(-1, keepdims=True, initial=-np.inf)
    weights = np.exp(s - np.where(np.isfinite(largest), largest, 0))
    total = weights.sum(-1, keepdims=True)
    with np.errstate(divide="ignore"):
        lse = np.where(total > 0, largest + np.log(total), -np.inf)[..., 0]
    weights = np.divide(weights, total, where=total > 0, out=np.zeros_like(weights))
    return weights @ np.repeat(v, q.shape[-3] // v.shape[-3], -3), lse, weights


def tolerance(epsilon, q, k, v, *, mask=None, scale=None, alibi=None, **_):
    """Returns the error bounds of (out, lse and weights) for arithmetic with this epsilon.

    A score is a sum of Dk products, scaled, capped, with a mask and a slope added. Its error is at most (Dk + 8) ε times
    its largest possible value. The relative error of a weight is twice that, plus the S roundings of the sum. The same
    holds for out, which is a weighted mean of v.
    """
    q, k, v = (x.astype(np.float64) for x in (q, k, v))
    D, S = q.shape[-1], k.shape[-2]
    longest_q, longest_k = (np.sqrt((x**2).sum(-1).max(initial=0)) for x in (q, k))
    size = (D**-0.5 if scale is None else abs(scale)) * longest_q * longest_k
    if mask is not None and mask.dtype != bool:
        size += abs(mask[np.isfinite(mask)]).max(initial=0)
    if alibi is not None:
        size += abs(alibi).max() * (q.shape[-2] + S)
    error = (2 * (D + 8) * (size + 1) + S + 8) * epsilon
    return error * abs(v).max(initial=0), error * (1 + size)


def mask_shapes(B, H, T, S):
    """Returns every shape that broadcasts to [B, H, T, S], also with missing axes."""
    kept = itertools.product((False, True), repeat=4)
    full = [tuple(n if keep else 1 for n, keep in zip((B, H, T, S), keeps)) for keeps in kept]
    return full + [(H, T, S), (T, S), (S,), (T, 1), ()]
