"""attention and attention_backward. This module reads the options; the C++ module checks the arrays."""

from __future__ import annotations

import operator
from typing import Any

from . import _qkv

_CAUSAL = {False: _qkv.Causal.none, True: _qkv.Causal.bottom_right, "top-left": _qkv.Causal.top_left}
_FAR = 1 << 40  # longer than any sequence


def attention(
    q: Any,
    k: Any,
    v: Any,
    *,
    mask: Any = None,
    causal: Any = False,
    scale: Any = None,
    window: Any = None,
    softcap: Any = None,
    alibi: Any = None,
    q_offsets: Any = None,
    k_offsets: Any = None,
    lengths: Any = None,
    k_lengths: Any = None,
    return_lse: bool = False,
    return_weights: bool = False,
) -> Any:
    """Scaled dot-product attention, softmax(q kᵀ · scale + mask) v, exact and without storing the T × S matrix.

    Arrays are from NumPy, PyTorch or any library that supports DLPack, in CPU memory, with type float32, bfloat16
    (computed in float32) or float64 (plain loops, slow). Nothing is copied: the last axis must have stride 1, the others
    may have any stride. Results are of the same kind as q.

    >>> q = k = v = np.eye(3, dtype=np.float32)[None, None]  # one sequence, one head, 3 tokens of width 3
    >>> qkv.attention(q, k, v, causal=True, scale=np.log(2))[0, 0].round(3)
    array([[1.   , 0.   , 0.   ],
           [0.333, 0.667, 0.   ],
           [0.25 , 0.25 , 0.5  ]], dtype=float32)

    q: [B, H, T, Dk], k: [B, K, S, Dk], v: [B, K, S, Dv]. K must divide H: query head h uses key/value head h K // H.
        [H, T, Dk], [K, S, Dk], [K, S, Dv] are one sequence, [T, Dk], [S, Dk], [S, Dv] one head of one sequence.
        Packed sequences have q: [N, H, Dk], k: [M, K, Dk], v: [M, K, Dv] and q_offsets.
    q_offsets, k_offsets: integers [sequences + 1]; sequence s has the tokens offsets[s] to offsets[s + 1] - 1. The default
        of k_offsets is q_offsets.
    lengths, k_lengths: integers [B], tokens of each sequence of a padded batch: keys from k_lengths on are not attended to,
        and queries from lengths on give what a query without keys gives. With T = S the default of k_lengths is lengths.
    mask: broadcasts to [B, H, T, S], or, for packed sequences, to [sequences, H, longest T, longest S]. A bool mask is
        True where attention is allowed. A float mask (float32, or float64 for float64 arrays) is added to the scores;
        -inf excludes a key.
    causal: True: query i attends to keys up to i + S - T, so that the last query attends to all. "top-left": up to key i.
    scale: factor on the scores; 1 / sqrt(Dk) if None.
    window: (left, right), or n for (n, n): query i attends to keys i + S - T - left to i + S - T + right (for "top-left",
        i - left to i). None or -1 is unlimited.
    softcap: c replaces each scaled score s by c tanh(s / c), before the mask is added.
    alibi: slopes m, [H]; adds -m |i + S - T - j| to the score of query i and key j (for "top-left", -m |i - j|).

    Returns out: [B, H, T, Dv], [N, H, Dv] for packed sequences, and without the axes that q lacks; zeros for a query
    that attends to no key. With return_lse or return_weights, returns a tuple of out and:
    lse: [B, H, T], or [N, H], float32 (float64 for float64 arrays): log Σ exp(score); -inf where there is no key.
    weights: [B, H, T, S], or [sequences, H, longest T, longest S] padded with zeros, of the type of lse.

    Raises qkv.Error, a ValueError, that names the argument.
    """
    missing = _missing_axes(q, q_offsets)
    arguments = _arguments(*_with_axes(missing, q, k, v), mask, causal, scale, window, softcap, alibi, q_offsets,
                           k_offsets, lengths, k_lengths)
    found = _qkv.attention(arguments, bool(return_lse), bool(return_weights), None)
    out, lse, weights = _without_axes(missing, *found)
    if not return_lse and not return_weights:
        return out
    return (out, *([lse] if return_lse else []), *([weights] if return_weights else []))


def attention_backward(
    grad_out: Any,
    q: Any,
    k: Any,
    v: Any,
    out: Any,
    lse: Any,
    *,
    mask: Any = None,
    causal: Any = False,
    scale: Any = None,
    window: Any = None,
    softcap: Any = None,
    alibi: Any = None,
    q_offsets: Any = None,
    k_offsets: Any = None,
    lengths: Any = None,
    k_lengths: Any = None,
    return_mask_grad: bool = False,
) -> Any:
    """Returns the gradients of Σ grad_out · out with respect to q, k and v.

    >>> q, k, v = np.random.default_rng(1).standard_normal((3, 1, 2, 5, 8), np.float32)
    >>> out, lse = qkv.attention(q, k, v, causal=True, return_lse=True)
    >>> dq, dk, dv = qkv.attention_backward(np.ones_like(out), q, k, v, out, lse, causal=True)
    >>> dq.shape, bool(np.isclose(dv[0, 0, :, 0].sum(), 5))  # each of 5 queries spreads a weight of 1 over the values
    ((1, 2, 5, 8), True)

    grad_out: the gradient with respect to out, of its shape.
    out, lse: the results of attention(..., return_lse=True) with the same other arguments.
    mask, causal, …: as for attention.

    Returns (dq, dk, dv), of the shapes of q, k and v. With return_mask_grad, also returns dmask, of the shape of the float
    mask: where the mask was broadcast, the sum over the scores that share an entry.

    Raises qkv.Error, a ValueError, that names the argument.
    """
    missing = _missing_axes(q, q_offsets)
    arguments = _arguments(*_with_axes(missing, q, k, v), mask, causal, scale, window, softcap, alibi, q_offsets,
                           k_offsets, lengths, k_lengths)
    grad_out, out = _with_axes(missing, grad_out, out)
    lse, = _with_axes(missing, lse)
    *found, dmask = _qkv.attention_backward(grad_out, arguments, out, lse, bool(return_mask_grad), None)
    dq, dk, dv = _without_axes(missing, *found)
    return (dq, dk, dv, dmask) if return_mask_grad else (dq, dk, dv)


def _missing_axes(q: Any, q_offsets: Any) -> int:
    """The number of axes, batch and heads, that the arrays are given without."""
    axes = getattr(q, "ndim", 4)
    return 4 - axes if q_offsets is None and axes in (2, 3) else 0


def _with_axes(missing: int, first: Any, *others: Any) -> list[Any]:
    """The arrays as views with `missing` more axes at the front; those with other axes than the first as they are."""
    same = [getattr(x, "ndim", None) == getattr(first, "ndim", None) for x in (first, *others)]
    return [x[(None,) * missing] if missing and fits else x for x, fits in zip((first, *others), same)]


def _without_axes(missing: int, *arrays: Any) -> list[Any]:
    return [x if x is None else x[(0,) * missing] if missing else x for x in arrays]


def _arguments(
    q: Any, k: Any, v: Any, mask: Any, causal: Any, scale: Any, window: Any, softcap: Any, alibi: Any,
    q_offsets: Any, k_offsets: Any, lengths: Any, k_lengths: Any
) -> _qkv.Arguments:
    left, right = window if isinstance(window, (tuple, list)) and len(window) == 2 else (window, window)
    return _qkv.Arguments(
        q, k, v, mask, alibi, q_offsets, k_offsets, lengths, k_lengths, _number("scale", scale), _number("softcap", softcap),
        causal_of(causal), _limit(left), _limit(right),
    )


def causal_of(causal: Any, where: str = "attention") -> _qkv.Causal:
    """The value of an argument causal. Raises Error, which begins with `where`, for any other."""
    if isinstance(causal, str) and causal not in _CAUSAL or not isinstance(causal, (bool, str)):
        raise _qkv.Error(f'{where}: causal is {causal!r}, expected False, True or "top-left"')
    return _CAUSAL[causal]


def _number(name: str, value: Any) -> float | None:
    try:
        return None if value is None else float(value)
    except (TypeError, ValueError):
        raise _qkv.Error(f"attention: {name} is {value!r}, expected a number") from None


def _limit(value: Any) -> int:
    """Returns one side of a window."""
    try:
        limit = -1 if value is None else operator.index(value)
    except TypeError:
        limit = -2
    if limit < -1:
        raise _qkv.Error(f"attention: window has {value!r}, expected (left, right) of integers, None or -1")
    return min(limit, _FAR)
