# Types of qkv.attention: results are of the kind of q, and as many as are asked for.
from typing import Any, Literal, Protocol, Sequence, TypeVar, Union, overload

class _DLPack(Protocol):
    @property
    def dtype(self) -> Any: ...
    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any: ...

_A = TypeVar("_A", bound=_DLPack)
_Offsets = Union[_DLPack, Sequence[int]]
@overload
def attention(
    q: _A,
    k: _DLPack,
    v: _DLPack,
    *,
    mask: _DLPack | None = None,
    causal: bool | Literal["top-left"] = False,
    scale: float | None = None,
    window: int | tuple[int | None, int | None] | None = None,
    softcap: float | None = None,
    alibi: _DLPack | None = None,
    q_offsets: _Offsets | None = None,
    k_offsets: _Offsets | None = None,
    return_lse: Literal[False] = False,
    return_weights: Literal[False] = False,
) -> _A: ...
@overload
def attention(
    q: _A,
    k: _DLPack,
    v: _DLPack,
    *,
    mask: _DLPack | None = None,
    causal: bool | Literal["top-left"] = False,
    scale: float | None = None,
    window: int | tuple[int | None, int | None] | None = None,
    softcap: float | None = None,
    alibi: _DLPack | None = None,
    q_offsets: _Offsets | None = None,
    k_offsets: _Offsets | None = None,
    return_lse: Literal[True],
    return_weights: Literal[False] = False,
) -> tuple[_A, _A]: ...
@overload
def attention(
    q: _A,
    k: _DLPack,
    v: _DLPack,
    *,
    mask: _DLPack | None = None,
    causal: bool | Literal["top-left"] = False,
    scale: float | None = None,
    window: int | tuple[int | None, int | None] | None = None,
    softcap: float | None = None,
    alibi: _DLPack | None = None,
    q_offsets: _Offsets | None = None,
    k_offsets: _Offsets | None = None,
    return_lse: Literal[False] = False,
    return_weights: Literal[True],
) -> tuple[_A, _A]: ...
@overload
def attention(
    q: _A,
    k: _DLPack,
    v: _DLPack,
    *,
    mask: _DLPack | None = None,
    causal: bool | Literal["top-left"] = False,
    scale: float | None = None,
    window: int | tuple[int | None, int | None] | None = None,
    softcap: float | None = None,
    alibi: _DLPack | None = None,
    q_offsets: _Offsets | None = None,
    k_offsets: _Offsets | None = None,
    return_lse: Literal[True],
    return_weights: Literal[True],
) -> tuple[_A, _A, _A]: ...
@overload
def attention(
    q: _A,
    k: _DLPack,
    v: _DLPack,
    *,
    mask: _DLPack | None = None,
    causal: bool | Literal["top-left"] = False,
    scale: float | None = None,
    window: int | tuple[int | None, int | None] | None = None,
    softcap: float | None = None,
    alibi: _DLPack | None = None,
    q_offsets: _Offsets | None = None,
    k_offsets: _Offsets | None = None,
    return_lse: bool = False,
    return_weights: bool = False,
) -> _A | tuple[_A, _A] | tuple[_A, _A, _A]: ...
@overload
def attention_backward(
    grad_out: _DLPack,
    q: _A,
    k: _DLPack,
    v: _DLPack,
    out: _DLPack,
    lse: _DLPack,
    *,
    mask: _DLPack | None = None,
    causal: bool | Literal["top-left"] = False,
    scale: float | None = None,
    window: int | tuple[int | None, int | None] | None = None,
    softcap: float | None = None,
    alibi: _DLPack | None = None,
    q_offsets: _Offsets | None = None,
    k_offsets: _Offsets | None = None,
    return_mask_grad: Literal[False] = False,
) -> tuple[_A, _A, _A]: ...
@overload
def attention_backward(
    grad_out: _DLPack,
    q: _A,
    k: _DLPack,
    v: _DLPack,
    out: _DLPack,
    lse: _DLPack,
    *,
    mask: _DLPack | None = None,
    causal: bool | Literal["top-left"] = False,
    scale: float | None = None,
    window: int | tuple[int | None, int | None] | None = None,
    softcap: float | None = None,
    alibi: _DLPack | None = None,
    q_offsets: _Offsets | None = None,
    k_offsets: _Offsets | None = None,
    return_mask_grad: Literal[True],
) -> tuple[_A, _A, _A, _A]: ...
@overload
def attention_backward(
    grad_out: _DLPack,
    q: _A,
    k: _DLPack,
    v: _DLPack,
    out: _DLPack,
    lse: _DLPack,
    *,
    mask: _DLPack | None = None,
    causal: bool | Literal["top-left"] = False,
    scale: float | None = None,
    window: int | tuple[int | None, int | None] | None = None,
    softcap: float | None = None,
    alibi: _DLPack | None = None,
    q_offsets: _Offsets | None = None,
    k_offsets: _Offsets | None = None,
    return_mask_grad: bool = False,
) -> tuple[_A, _A, _A] | tuple[_A, _A, _A, _A]: ...
