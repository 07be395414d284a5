# Types of qkv.attention: results are of the kind of q, and as many as are asked for.
from typing import Any, Literal, Protocol, Sequence, TypeVar, Union, overload

class DLPack(Protocol):
    @property
    def dtype(self) -> Any: ...
    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any: ...

A = TypeVar("A", bound=DLPack)
Offsets = Union[DLPack, Sequence[int]]
@overload
def attention(
    q: A,
    k: DLPack,
    v: DLPack,
    *,
    mask: DLPack | None = None,
    causal: bool | Literal["top-left"] = False,
    scale: float | None = None,
    window: int | tuple[int | None, int | None] | None = None,
    softcap: float | None = None,
    alibi: DLPack | None = None,
    q_offsets: Offsets | None = None,
    k_offsets: Offsets | None = None,
    return_lse: Literal[False] = False,
    return_weights: Literal[False] = False,
) -> A: ...
@overload
def attention(
    q: A,
    k: DLPack,
    v: DLPack,
    *,
    mask: DLPack | None = None,
    causal: bool | Literal["top-left"] = False,
    scale: float | None = None,
    window: int | tuple[int | None, int | None] | None = None,
    softcap: float | None = None,
    alibi: DLPack | None = None,
    q_offsets: Offsets | None = None,
    k_offsets: Offsets | None = None,
    return_lse: Literal[True],
    return_weights: Literal[False] = False,
) -> tuple[A, A]: ...
@overload
def attention(
    q: A,
    k: DLPack,
    v: DLPack,
    *,
    mask: DLPack | None = None,
    causal: bool | Literal["top-left"] = False,
    scale: float | None = None,
    window: int | tuple[int | None, int | None] | None = None,
    softcap: float | None = None,
    alibi: DLPack | None = None,
    q_offsets: Offsets | None = None,
    k_offsets: Offsets | None = None,
    return_lse: Literal[False] = False,
    return_weights: Literal[True],
) -> tuple[A, A]: ...
@overload
def attention(
    q: A,
    k: DLPack,
    v: DLPack,
    *,
    mask: DLPack | None = None,
    causal: bool | Literal["top-left"] = False,
    scale: float | None = None,
    window: int | tuple[int | None, int | None] | None = None,
    softcap: float | None = None,
    alibi: DLPack | None = None,
    q_offsets: Offsets | None = None,
    k_offsets: Offsets | None = None,
    return_lse: Literal[True],
    return_weights: Literal[True],
) -> tuple[A, A, A]: ...
@overload
def attention(
    q: A,
    k: DLPack,
    v: DLPack,
    *,
    mask: DLPack | None = None,
    causal: bool | Literal["top-left"] = False,
    scale: float | None = None,
    window: int | tuple[int | None, int | None] | None = None,
    softcap: float | None = None,
    alibi: DLPack | None = None,
    q_offsets: Offsets | None = None,
    k_offsets: Offsets | None = None,
    return_lse: bool = False,
    return_weights: bool = False,
) -> A | tuple[A, A] | tuple[A, A, A]: ...
@overload
def attention_backward(
    grad_out: DLPack,
    q: A,
    k: DLPack,
    v: DLPack,
    out: DLPack,
    lse: DLPack,
    *,
    mask: DLPack | None = None,
    causal: bool | Literal["top-left"] = False,
    scale: float | None = None,
    window: int | tuple[int | None, int | None] | None = None,
    softcap: float | None = None,
    alibi: DLPack | None = None,
    q_offsets: Offsets | None = None,
    k_offsets: Offsets | None = None,
    return_mask_grad: Literal[False] = False,
) -> tuple[A, A, A]: ...
@overload
def attention_backward(
    grad_out: DLPack,
    q: A,
    k: DLPack,
    v: DLPack,
    out: DLPack,
    lse: DLPack,
    *,
    mask: DLPack | None = None,
    causal: bool | Literal["top-left"] = False,
    scale: float | None = None,
    window: int | tuple[int | None, int | None] | None = None,
    softcap: float | None = None,
    alibi: DLPack | None = None,
    q_offsets: Offsets | None = None,
    k_offsets: Offsets | None = None,
    return_mask_grad: Literal[True],
) -> tuple[A, A, A, A]: ...
@overload
def attention_backward(
    grad_out: DLPack,
    q: A,
    k: DLPack,
    v: DLPack,
    out: DLPack,
    lse: DLPack,
    *,
    mask: DLPack | None = None,
    causal: bool | Literal["top-left"] = False,
    scale: float | None = None,
    window: int | tuple[int | None, int | None] | None = None,
    softcap: float | None = None,
    alibi: DLPack | None = None,
    q_offsets: Offsets | None = None,
    k_offsets: Offsets | None = None,
    return_mask_grad: bool = False,
) -> tuple[A, A, A] | tuple[A, A, A, A]: ...
