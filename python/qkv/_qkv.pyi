# The extension module, as python/src binds it.
import enum
from typing import Any

import numpy as np
from numpy.typing import NDArray

class Error(ValueError): ...

class Causal(enum.Enum):
    none = 0
    bottom_right = 1
    top_left = 2

class Arguments:
    def __init__(
        self,
        q: object,
        k: object,
        v: object,
        mask: object | None,
        alibi: object | None,
        q_offsets: object | None,
        k_offsets: object | None,
        scale: float | None,
        softcap: float | None,
        causal: Causal,
        left: int,
        right: int,
    ) -> None: ...

# part_budget: multiplications between two looks for signals; None: some tenths of a second
def attention(
    arguments: Arguments, return_lse: bool, return_weights: bool, part_budget: float | None
) -> tuple[Any, Any, Any]: ...
def attention_backward(
    grad_out: object, arguments: Arguments, out: object, lse: object, return_mask_grad: bool, part_budget: float | None
) -> tuple[Any, Any, Any, Any]: ...
def set_threads(count: int) -> None: ...
def threads() -> int: ...
def version() -> str: ...

class Translator:
    def __init__(self, run_directory: str) -> None: ...
    def translate(
        self, lines: list[str], beam: int, length_penalty: float, batch_tokens: int
    ) -> tuple[list[str], list[str]]: ...
    def attend(self, source: str, target: str) -> AttentionMap: ...

class AttentionKind:
    @property
    def name(self) -> str: ...
    @property
    def causal(self) -> bool: ...
    @property
    def rows(self) -> list[str]: ...
    @property
    def columns(self) -> list[str]: ...
    def weights(self) -> NDArray[np.float32]: ...

class AttentionMap:
    @property
    def source(self) -> str: ...
    @property
    def target(self) -> str: ...
    @property
    def kinds(self) -> list[AttentionKind]: ...
    def merge_words(self) -> AttentionMap: ...
    def to_html(self) -> str: ...
    def to_json(self) -> str: ...
