# Types of qkv.attention. Results are arrays of the same kind as q; their number depends on the flags return_*.
from typing import Any, Literal, Protocol, Sequence, TypedDict, TypeVar, Union, overload

from typing_extensions import Unpack

from . import _qkv

class _DLPack(Protocol):
    @property
    def dtype(self) -> Any: ...
    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any: ...

_A = TypeVar("_A", bound=_DLPack)
_Offsets = Union[_DLPack, Sequence[int]]

class _Options(TypedDict, total=False):
    mask: _DLPack | None
    causal: bool | Literal["top-left"]
    scale: float | None
    window: int | tuple[int | None, int | None] | None
    softcap: float | None
    alibi: _DLPack | None
    q_offsets: _Offsets | None
    k_offsets: _Offsets | None
    lengths: _Offsets | None
    k_lengths: _Offsets | None

@overload
def attention(
    q: _A,
    k: _DLPack,
    v: _DLPack,
    *,
    return_lse: Literal[False] = False,
    return_weights: Literal[False] = False,
    **options: Unpack[_Options],
) -> _A: ...
@overload
def attention(
    q: _A,
    k: _DLPack,
    v: _DLPack,
    *,
    return_lse: Literal[True],
    return_weights: Literal[False] = False,
    **options: Unpack[_Options],
) -> tuple[_A, _A]: ...
@overload
def attention(
    q: _A,
    k: _DLPack,
    v: _DLPack,
    *,
    return_lse: Literal[False] = False,
    return_weights: Literal[True],
    **options: Unpack[_Options],
) -> tuple[_A, _A]: ...
@overload
def attention(
    q: _A,
    k: _DLPack,
    v: _DLPack,
    *,
    return_lse: Literal[True],
    return_weights: Literal[True],
    **options: Unpack[_Options],
) -> tuple[_A, _A, _A]: ...
@overload
def attention(
    q: _A,
    k: _DLPack,
    v: _DLPack,
    *,
    return_lse: bool = False,
    return_weights: bool = False,
    **options: Unpack[_Options],
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
    return_mask_grad: Literal[False] = False,
    **options: Unpack[_Options],
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
    return_mask_grad: Literal[True],
    **options: Unpack[_Options],
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
    return_mask_grad: bool = False,
    **options: Unpack[_Options],
) -> tuple[_A, _A, _A] | tuple[_A, _A, _A, _A]: ...

def causal_of(causal: Any, where: str = "attention") -> _qkv.Causal: ...
