"""PyTorch: scaled dot-product attention by qkv's kernels, with gradients, and inside torch.compile.

scaled_dot_product_attention   the function of torch.nn.functional, with windows, softcaps, ALiBi and packed sequences
enable, disable                let torch.nn.functional.scaled_dot_product_attention use it for tensors of the CPU
register_transformers          attn_implementation="qkv" in transformers

What is not qkv's, such as tensors on other devices, float16 and dropout, is computed by PyTorch, and a warning says so
once. Both use the number of threads of torch.set_num_threads, in one pool.

>>> import torch, qkv.torch
>>> q, k, v = torch.randn(3, 1, 2, 5, 4, requires_grad=True).unbind()
>>> qkv.torch.scaled_dot_product_attention(q, k, v, is_causal=True).sum().backward()
"""

from __future__ import annotations

import math
import sys
import warnings
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Callable, Iterator

import torch
import torch.nn.functional as F

from ._attention import attention, attention_backward
from ._qkv import use_openmp
from ._system import set_threads, threads

__all__ = ["disable", "enable", "register_transformers", "scaled_dot_product_attention"]

_pytorch: Callable[..., torch.Tensor] = F.scaled_dot_product_attention
_CAUSAL: tuple[Any, ...] = (False, "top-left", True)  # by the number that the operators take
_TYPES = (torch.float32, torch.float64, torch.bfloat16)
_WIDEST = 1024  # head
_warned: set[str] = set()


def _dense(x: torch.Tensor) -> torch.Tensor:
    """A detached tensor whose last axis has stride 1."""
    x = x.detach()
    return x if x.shape[-1] < 2 or x.stride(-1) == 1 else x.contiguous()


def _detached(x: torch.Tensor | None) -> torch.Tensor | None:
    return None if x is None else _dense(x)


@contextmanager
def _threads_of_pytorch() -> Iterator[None]:
    if threads() != torch.get_num_threads():
        set_threads(torch.get_num_threads())
    use_openmp(True)
    try:
        yield
    finally:
        use_openmp(False)


def _options(
    mask: torch.Tensor | None, alibi: torch.Tensor | None, q_offsets: torch.Tensor | None,
    k_offsets: torch.Tensor | None, scale: float, softcap: float | None, causal: int, left: int, right: int,
) -> dict[str, Any]:
    return {
        "mask": None if mask is None else mask.detach(), "alibi": _detached(alibi), "q_offsets": _detached(q_offsets),
        "k_offsets": _detached(k_offsets), "scale": scale, "softcap": softcap, "causal": _CAUSAL[causal],
        "window": (left, right),
    }


@torch.library.custom_op("qkv::attention", mutates_args=(), device_types="cpu")
def _forward(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: torch.Tensor | None, alibi: torch.Tensor | None,
    q_offsets: torch.Tensor | None, k_offsets: torch.Tensor | None, scale: float, softcap: float | None, causal: int,
    left: int, right: int,
) -> tuple[torch.Tensor, torch.Tensor]:
    options = _options(mask, alibi, q_offsets, k_offsets, scale, softcap, causal, left, right)
    with _threads_of_pytorch():
        out, lse = attention(_dense(q), _dense(k), _dense(v), return_lse=True, **options)
    return out, lse


@_forward.register_fake
def _(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *options: Any, **named: Any
) -> tuple[torch.Tensor, torch.Tensor]:
    real = torch.float64 if q.dtype == torch.float64 else torch.float32
    return q.new_empty((*q.shape[:-1], v.shape[-1])), q.new_empty(q.shape[:-1], dtype=real)


@torch.library.custom_op("qkv::attention_backward", mutates_args=(), device_types="cpu")
def _backward(
    grad: torch.Tensor, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, out: torch.Tensor, lse: torch.Tensor,
    mask: torch.Tensor | None, alibi: torch.Tensor | None, q_offsets: torch.Tensor | None,
    k_offsets: torch.Tensor | None, scale: float, softcap: float | None, causal: int, left: int, right: int,
    with_mask: bool,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    options = _options(mask, alibi, q_offsets, k_offsets, scale, softcap, causal, left, right)
    arrays = (_dense(grad), _dense(q), _dense(k), _dense(v), _dense(out), lse.detach())
    with _threads_of_pytorch():
        if with_mask:
            return attention_backward(*arrays, return_mask_grad=True, **options)
        return (*attention_backward(*arrays, **options), q.new_empty(0))


@_backward.register_fake
def _(
    grad: torch.Tensor, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, out: torch.Tensor, lse: torch.Tensor,
    mask: torch.Tensor | None, *options: Any, **named: Any
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    with_mask = named["with_mask"] if "with_mask" in named else options[-1]
    dmask = mask.new_empty(mask.shape) if with_mask and mask is not None else q.new_empty(0)
    return q.new_empty(q.shape), k.new_empty(k.shape), v.new_empty(v.shape), dmask


def _save(ctx: Any, inputs: tuple[Any, ...], output: tuple[torch.Tensor, torch.Tensor]) -> None:
    q, k, v, mask, alibi, q_offsets, k_offsets, *ctx.options = inputs
    ctx.save_for_backward(q, k, v, *output, mask, alibi, q_offsets, k_offsets)
    ctx.mark_non_differentiable(output[1])
    ctx.set_materialize_grads(False)


def _gradients(ctx: Any, grad: torch.Tensor | None, _: Any) -> tuple[torch.Tensor | None, ...]:
    if grad is None:
        return (None,) * 12
    q, k, v, out, lse, *tensors = ctx.saved_tensors
    if ctx.needs_input_grad[4]:
        raise NotImplementedError("qkv.torch: alibi_slopes requires a gradient; pass alibi_slopes.detach()")
    with_mask = ctx.needs_input_grad[3]
    dq, dk, dv, dmask = _backward(grad, q, k, v, out, lse, *tensors, *ctx.options, with_mask)
    return (dq, dk, dv, dmask if with_mask else None, *(None,) * 8)


_forward.register_autograd(_gradients, setup_context=_save)


def _not_ours(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, mask: torch.Tensor | None,
              dropout_p: float) -> str | None:
    """Why PyTorch has to compute it; None if it does not."""
    tensors = [query, key, value] + ([] if mask is None else [mask])
    if any(x.device.type != "cpu" for x in tensors):
        return f"tensors on {query.device.type}"
    if query.dtype not in _TYPES or not query.dtype == key.dtype == value.dtype:
        return f"{query.dtype}".removeprefix("torch.")
    if max(query.shape[-1], value.shape[-1]) > _WIDEST:
        return f"heads wider than {_WIDEST}"
    return "dropout" if dropout_p else None


def _fall_back(reason: str, own_options: bool, *arguments: Any, **options: Any) -> torch.Tensor:
    if own_options:
        raise ValueError(f"qkv.torch: window, softcap, alibi_slopes and offsets are not available for {reason}")
    if reason not in _warned:
        _warned.add(reason)
        warnings.warn(f"qkv.torch: PyTorch computes attention with {reason}", stacklevel=3)
    return _pytorch(*arguments, **options)


def _with_batch(x: torch.Tensor, lead: torch.Size) -> torch.Tensor:
    """x as [B, H, T, D]; `lead` are the axes before [T, D] of the query, the last of them heads."""
    heads = x.shape[-3] if lead else 1
    x = x.expand(*lead[:-1], heads, *x.shape[-2:]) if lead else x
    return x.reshape(-1, heads, *x.shape[-2:])


def _mask_of(mask: torch.Tensor | None, query: torch.Tensor, lead: torch.Size) -> torch.Tensor | None:
    """The mask with the four axes of the scores, of a type that the operator takes."""
    if mask is None:
        return None
    if mask.dtype != torch.bool:
        mask = mask.to(torch.float64 if query.dtype == torch.float64 else torch.float32)
    if len(lead) > 2 and mask.ndim > 3:
        mask = mask.expand(*lead[:-1], *mask.shape[-3:]).reshape(-1, *mask.shape[-3:])
    return mask[(None,) * (4 - mask.ndim)]


def scaled_dot_product_attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attn_mask: torch.Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
    *,
    window: int | tuple[int | None, int | None] | None = None,
    softcap: float | None = None,
    alibi_slopes: torch.Tensor | None = None,
    q_offsets: torch.Tensor | None = None,
    k_offsets: torch.Tensor | None = None,
) -> torch.Tensor:
    """softmax(query keyᵀ · scale + attn_mask) value, as torch.nn.functional.scaled_dot_product_attention computes it.

    query: [..., H, T, Dk], key: [..., H, S, Dk], value: [..., H, S, Dv], of float32, float64 or bfloat16. With enable_gqa
        key and value may have fewer heads, a divisor of H.
    attn_mask: broadcasts to [..., H, T, S]; bool, True where attention is allowed, or numbers that are added.
    is_causal: query i sees keys up to i. Not together with attn_mask.
    window: (left, right), or n for (n, n): query i sees keys p - left to p + right, where p is i with is_causal, and
        otherwise i + S - T, so that the last query is at the last key; None is unlimited.
    softcap: c replaces each scaled score s by c tanh(s / c), before the mask is added.
    alibi_slopes: m, [H]; adds -m |p - j| to the score of key j.
    q_offsets, k_offsets: int32 [sequences + 1]: packed sequences, with query [N, H, Dk], key [M, H, Dk] and value
        [M, H, Dv]; sequence s has the tokens offsets[s] to offsets[s + 1] - 1. The default of k_offsets is q_offsets.

    Returns [..., H, T, Dv], or [N, H, Dv] for packed sequences. Differentiable once, in query, key, value and attn_mask.

    >>> import torch, qkv.torch
    >>> q, k, v = torch.randn(3, 1, 2, 5, 4).unbind()
    >>> qkv.torch.scaled_dot_product_attention(q, k, v, is_causal=True).shape
    torch.Size([1, 2, 5, 4])
    """
    own = not all(x is None for x in (window, softcap, alibi_slopes, q_offsets, k_offsets))
    if reason := _not_ours(query, key, value, attn_mask, dropout_p):
        return _fall_back(reason, own, query, key, value, attn_mask=attn_mask, dropout_p=dropout_p,
                          is_causal=is_causal, scale=scale, enable_gqa=enable_gqa)
    if is_causal and attn_mask is not None:
        raise ValueError("qkv.torch: is_causal and attn_mask are both given, expected one of them")
    if query.ndim < 2 or not query.ndim == key.ndim == value.ndim:
        raise ValueError(f"qkv.torch: query, key and value have {query.ndim}, {key.ndim} and {value.ndim} axes, "
                         "expected the same number, 2 or more")
    if query.ndim > 2 and q_offsets is None and not enable_gqa and query.shape[-3] != key.shape[-3]:
        raise ValueError(f"qkv.torch: query has {query.shape[-3]} heads and key {key.shape[-3]}, expected the same "
                         "without enable_gqa")
    factor = 1 / math.sqrt(query.shape[-1]) if scale is None else float(scale)
    left, right = window if isinstance(window, tuple) else (window, window)
    options = (alibi_slopes, q_offsets, k_offsets, factor, softcap, int(is_causal), -1 if left is None else left,
               -1 if right is None else right)
    out: torch.Tensor
    if q_offsets is not None:
        out, _ = _forward(query, key, value, attn_mask, *options)
        return out
    lead = query.shape[:-2]
    out, _ = _forward(_with_batch(query, lead), _with_batch(key, lead), _with_batch(value, lead),
                      _mask_of(attn_mask, query, lead), *options)
    return out.reshape(*query.shape[:-1], value.shape[-1])


class enable:
    """Lets torch.nn.functional.scaled_dot_product_attention, and with it PyTorch's modules, use qkv on the CPU.

    It holds until `disable`, or, as a context manager, to the end of the block.

    >>> import torch, qkv.torch
    >>> with qkv.torch.enable():
    ...     out = torch.nn.functional.scaled_dot_product_attention(*torch.randn(3, 1, 2, 5, 4))
    """

    def __init__(self) -> None:
        self._before = F.scaled_dot_product_attention
        F.scaled_dot_product_attention = scaled_dot_product_attention

    def __enter__(self) -> enable:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        F.scaled_dot_product_attention = self._before


def disable() -> None:
    """Ends `enable`.

    >>> import torch, qkv.torch
    >>> before = torch.nn.functional.scaled_dot_product_attention
    >>> enabled = qkv.torch.enable()
    >>> qkv.torch.disable()
    >>> torch.nn.functional.scaled_dot_product_attention is before
    True
    """
    F.scaled_dot_product_attention = _pytorch


def _for_transformers(
    module: Any, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, attention_mask: torch.Tensor | None,
    dropout: float = 0.0, scaling: float | None = None, is_causal: bool | None = None, softcap: float | None = None,
    position_bias: torch.Tensor | None = None, **_: Any,
) -> tuple[torch.Tensor, None]:
    """The attention function of transformers: [B, H, T, D] to [B, T, H, D]. A mask contains the window."""
    if is_causal is None:
        is_causal = bool(getattr(module, "is_causal", False))
    if position_bias is not None:
        from transformers.integrations.sdpa_attention import create_position_bias_mask

        attention_mask = create_position_bias_mask(position_bias, attention_mask, is_causal, query, key)
    out = scaled_dot_product_attention(
        query, key, value, attention_mask, dropout, is_causal and attention_mask is None and query.shape[-2] > 1,
        scaling, True, softcap=softcap)
    return out.transpose(1, 2).contiguous(), None


def register_transformers() -> None:
    """Makes attn_implementation="qkv" known to transformers. Called on import if transformers is imported before.

    >>> import qkv.torch, transformers
    >>> qkv.torch.register_transformers()
    >>> "qkv" in transformers.AttentionInterface()
    True
    """
    from transformers import AttentionInterface, AttentionMaskInterface
    from transformers.masking_utils import sdpa_mask

    AttentionInterface.register("qkv", _for_transformers)
    AttentionMaskInterface.register("qkv", sdpa_mask)


if "transformers" in sys.modules:
    register_transformers()
