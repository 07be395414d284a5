"""attention and attention_backward: reads the options and hands over to C++, which checks the arrays."""

from __future__ import annotations

import operator
from typing import Any

from . import _qkv

_CAUSAL = {False: _qkv.Causal.none, True: _qkv.Causal.bottom_right, "top-left": _qkv.Causal.top_left}
_FAR = 1 << 40  # beyond every sequence


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
    return_lse: bool = False,
    return_weights: bool = False,
) -> Any:
    """softmax(q kᵀ · scale + mask) v, exactly, without holding the T × S matrix.

    Arrays are NumPy's, PyTorch's, or any that speak DLPack, in the CPU's memory, of float32, bfloat16 (computed in
    float32) or float64 (plain loops, slow). Nothing is copied: the last axis must have stride 1, all others are free.
    Results are of q's kind.

    q: [B, H, T, Dk], k: [B, K, S, Dk], v: [B, K, S, Dv], with K a divisor of H: query head h reads key/value head
        h K // H. Packed sequences are q: [N, H, Dk], k: [M, K, Dk], v: [M, K, Dv] with q_offsets.
    q_offsets, k_offsets: [sequences + 1], whole numbers: sequence s has the tokens offsets[s] to offsets[s + 1].
        k_offsets is q_offsets if it is not given.
    mask: broadcasts to [B, H, T, S]; packed, to [sequences, H, longest T, longest S]. bool: True where attention is
        allowed. Floats (float32; float64 for float64 arrays) are added to the scores; -inf hides a key.
    causal: True: query i sees the keys up to i + S - T, so that the last query sees all. "top-left": up to i.
    scale: 1 / sqrt(Dk) if None.
    window: (left, right), or n for (n, n): query i sees the keys i + S - T - left to i + S - T + right (for "top-left",
        i - left to i). None or -1: no limit.
    softcap: c: scaled scores s become c tanh(s / c), before the mask is added.
    alibi: [H], slopes m: adds -m |i + S - T - j| to the score of query i and key j (for "top-left", -m |i - j|).

    Returns out: [B, H, T, Dv], or packed [N, H, Dv]. A query that sees no key gives zeros. After it, as a tuple, if
    asked for:
    lse: [B, H, T], packed [N, H], float32 (float64 for float64 arrays): log Σ exp(score); -inf where no key is seen.
    weights: [B, H, T, S], of lse's type; packed, [sequences, H, longest T, longest S], zero beyond the ends.

    Raises qkv.Error, a ValueError, with one line that names the argument.
    """
    arguments = _arguments(q, k, v, mask, causal, scale, window, softcap, alibi, q_offsets, k_offsets)
    out, lse, weights = _qkv.attention(arguments, bool(return_lse), bool(return_weights), None)
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
    return_mask_grad: bool = False,
) -> Any:
    """The gradients of Σ grad_out · out by q, k and v, from what attention(..., return_lse=True) gave.

    grad_out: the shape of out. The other arguments: as they were given to attention.
    Returns (dq, dk, dv), of the shapes of q, k, v; with return_mask_grad also dmask, of the shape of the mask of
    floats: where the mask was broadcast, the sum over what shares an entry.
    Raises qkv.Error, a ValueError, with one line that names the argument.
    """
    arguments = _arguments(q, k, v, mask, causal, scale, window, softcap, alibi, q_offsets, k_offsets)
    dq, dk, dv, dmask = _qkv.attention_backward(grad_out, arguments, out, lse, bool(return_mask_grad), None)
    return (dq, dk, dv, dmask) if return_mask_grad else (dq, dk, dv)


def _arguments(
    q: Any, k: Any, v: Any, mask: Any, causal: Any, scale: Any, window: Any, softcap: Any, alibi: Any,
    q_offsets: Any, k_offsets: Any
) -> _qkv.Arguments:
    if isinstance(causal, str) and causal not in _CAUSAL or not isinstance(causal, (bool, str)):
        raise _qkv.Error(f'attention: causal is {causal!r}, wanted False, True or "top-left"')
    left, right = window if isinstance(window, (tuple, list)) and len(window) == 2 else (window, window)
    return _qkv.Arguments(
        q, k, v, mask, alibi, q_offsets, k_offsets, _number("scale", scale), _number("softcap", softcap),
        _CAUSAL[causal], _limit(left), _limit(right),
    )


def _number(name: str, value: Any) -> float | None:
    try:
        return None if value is None else float(value)
    except (TypeError, ValueError):
        raise _qkv.Error(f"attention: {name} is {value!r}, wanted a number") from None


def _limit(value: Any) -> int:
    """One side of a window."""
    try:
        limit = -1 if value is None else operator.index(value)
    except TypeError:
        limit = -2
    if limit < -1:
        raise _qkv.Error(f"attention: window has {value!r}, wanted (left, right) of whole numbers, None or -1")
    return min(limit, _FAR)
