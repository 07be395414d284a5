# The extension module, as python/src binds it.
import enum
from typing import Any, Callable

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
def fma_peak(seconds: float) -> float: ...

class TranslateOptions:
    beam: int
    n_best: int
    length_penalty: float
    coverage_penalty: float
    min_length: int
    max_length: int
    repetition_penalty: float
    no_repeat_ngram: int
    alternatives: bool
    sampling: bool
    temperature: float
    top_k: int
    top_p: float
    seed: int
    alignment: bool
    attention: bool
    replace_unknown: bool
    attention_layer: int
    attention_head: int
    batch_tokens: int
    workers: int
    window: int
    def __init__(self) -> None: ...

class TokenReport:
    @property
    def line(self) -> int: ...
    @property
    def hypothesis(self) -> int: ...
    @property
    def token(self) -> str: ...
    @property
    def log_probability(self) -> float: ...
    @property
    def last(self) -> bool: ...

class Hypothesis:
    @property
    def text(self) -> str: ...
    @property
    def tokens(self) -> list[str]: ...
    @property
    def score(self) -> float: ...
    @property
    def log_probability(self) -> float: ...
    @property
    def token_scores(self) -> list[float]: ...
    @property
    def words(self) -> list[tuple[str, float]]: ...
    @property
    def alignment(self) -> list[tuple[int, int]]: ...
    @property
    def attention(self) -> list[list[float]]: ...

class Translation:
    @property
    def source(self) -> str: ...
    @property
    def source_tokens(self) -> list[str]: ...
    @property
    def hypotheses(self) -> list[Hypothesis]: ...

class Translator:
    def __init__(self, run_directory: str, ensemble: list[str]) -> None: ...
    # on_token: true ends the hypothesis
    def translate(
        self,
        lines: list[str],
        options: TranslateOptions,
        prefixes: list[str],
        on_token: Callable[[TokenReport], object] | None,
    ) -> tuple[list[Translation], list[str]]: ...
    def score(self, sources: list[str], targets: list[str], options: TranslateOptions) -> list[Translation]: ...
    def score_tokens(
        self, sources: list[str], targets: list[list[str]], options: TranslateOptions
    ) -> list[Translation]: ...
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
