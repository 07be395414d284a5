"""Translating with a trained run directory, and looking at what it attends to."""

from __future__ import annotations

import os
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Iterable

from . import _qkv

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True)
class AttentionKind:
    """One kind of attention: what each row's token looks at among the columns' tokens."""

    name: str  # "encoder", "decoder" or "cross"
    causal: bool
    rows: list[str]  # sub-word pieces; "▁" begins a word
    columns: list[str]
    weights: NDArray[np.float32]  # [layers, heads, rows, columns]; rows sum to one


class AttentionMap:
    """The attention weights of a sentence and its translation."""

    source: str
    target: str
    kinds: dict[str, AttentionKind]  # by name: "encoder", "decoder", "cross"

    def __init__(self, found: _qkv.AttentionMap) -> None:
        self._found = found
        self.source, self.target = found.source, found.target
        self.kinds = {x.name: AttentionKind(x.name, x.causal, x.rows, x.columns, x.weights()) for x in found.kinds}

    def merge_words(self) -> AttentionMap:
        """Sub-words merged to words: weights of a word's columns are summed, those of its rows averaged."""
        return AttentionMap(self._found.merge_words())

    def to_html(self) -> str:
        """One page that needs no network."""
        return self._found.to_html()

    def to_json(self) -> str:
        """JSON with every weight."""
        return self._found.to_json()

    def __repr__(self) -> str:
        return f"AttentionMap(source={self.source!r}, target={self.target!r})"


class Translator:
    """A model with its tokenisers, from a run directory. Calls from several threads wait for each other.

    Raises qkv.Error, a ValueError, naming the file, if the directory does not hold a whole and sound run.
    """

    def __init__(self, run_directory: str | os.PathLike[str]) -> None:
        self._translator = _qkv.Translator(os.fspath(run_directory))

    def translate(
        self, lines: Iterable[str], *, beam: int = 5, length_penalty: float = 1.0, batch_tokens: int = 4096
    ) -> list[str]:
        """Line i of the result translates line i; an empty line gives an empty line.

        beam: 1 to 64 hypotheses; 1 is greedy search. length_penalty: α in Σ log p / tokens^α.
        batch_tokens: source tokens times beam of what is translated at one time.
        A line beyond the model's length is translated in parts, with a warning. Ctrl-C stops it after a batch.
        """
        for name, value, limit in (("beam", beam, 64), ("batch_tokens", batch_tokens, 1 << 24)):
            if not isinstance(value, int) or not 1 <= value <= limit:
                raise _qkv.Error(f"translate: {name} is {value!r}, wanted 1 to {limit}")
        texts = [lines] if isinstance(lines, str) else list(lines)
        for i, line in enumerate(texts):
            if isinstance(lines, str) or not isinstance(line, str):
                what = f"{type(lines).__name__} is {type(line).__name__}"
                raise _qkv.Error(f"translate: line {i + 1} of {what}, wanted a list of str")
            if not _is_unicode(line):
                raise _qkv.Error(f"translate: line {i + 1} is not valid Unicode")
        try:
            penalty = float(length_penalty)
        except (TypeError, ValueError):
            raise _qkv.Error(f"translate: length_penalty is {length_penalty!r}, wanted a number") from None
        translations, notes = self._translator.translate(texts, beam, penalty, batch_tokens)
        for note in notes:
            warnings.warn(note, stacklevel=2)
        return translations

    def attend(self, source: str, target: str | None = None) -> AttentionMap:
        """The attention weights of the model while it reads `source` and says `target`.

        If there is no target, the model's own translation. Raises qkv.Error if a sentence is empty or beyond the
        model's length.
        """
        for name, text in (("source", source), ("target", target or "")):
            if not isinstance(text, str) or not _is_unicode(text):
                raise _qkv.Error(f"attend: {name} is {text!r}, wanted a str of valid Unicode")
        return AttentionMap(self._translator.attend(source, target or ""))


def _is_unicode(text: str) -> bool:
    """False if half a surrogate pair is in it, which UTF-8 cannot hold."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
