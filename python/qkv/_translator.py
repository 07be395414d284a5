"""Translation with a run directory, and its attention weights."""

from __future__ import annotations

import itertools
import os
import threading
import warnings
from concurrent.futures import Future
from dataclasses import dataclass
from typing import TYPE_CHECKING, Callable, Iterable, Iterator, Sequence

from . import _qkv
from ._arguments import check_text, checked_texts, documents_options

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from typing_extensions import Unpack

    from ._options import TranslateOptions


@dataclass(frozen=True)
class AttentionKind:
    """One kind of attention: the weights of each row token over the column tokens."""

    name: str  # "encoder", "decoder" or "cross"
    causal: bool
    rows: list[str]  # sub-word pieces; "▁" begins a word
    columns: list[str]
    weights: NDArray[np.float32]  # [layers, heads, rows, columns]; rows sum to one


class AttentionMap:
    """The attention weights of a sentence and its translation, or of a text and its continuation."""

    source: str
    target: str
    kinds: dict[str, AttentionKind]  # by name: "encoder", "decoder", "cross"; a language model has only "decoder"

    def __init__(self, found: _qkv.AttentionMap) -> None:
        self._found = found
        self.source, self.target = found.source, found.target
        self.kinds = {x.name: AttentionKind(x.name, x.causal, x.rows, x.columns, x.weights()) for x in found.kinds}

    def merge_words(self) -> AttentionMap:
        """Merges sub-words into words: sums the weights over the columns of a word, and averages them over its rows."""
        return AttentionMap(self._found.merge_words())

    def to_html(self) -> str:
        """Returns a self-contained HTML page."""
        return self._found.to_html()

    def to_json(self) -> str:
        """Returns JSON with every weight."""
        return self._found.to_json()

    def __repr__(self) -> str:
        return f"AttentionMap(source={self.source!r}, target={self.target!r})"


@dataclass(frozen=True)
class Hypothesis:
    """One translation of a line."""

    text: str
    tokens: list[str]  # as spelled in the vocabulary, without start and end
    score: float  # the order of hypotheses; higher is better
    log_probability: float  # of the model, without penalties: the sum of token_scores
    token_scores: list[float]  # log p of each token, and of the end token if it was reached
    words: list[tuple[str, float]]  # log p summed over the tokens of each word
    alignment: list[tuple[int, int]]  # (source token, target token); only with the option alignment
    attention: list[list[float]]  # [target tokens][source tokens]; only with the option attention


@dataclass(frozen=True)
class Translation:
    """A line and its translations, best first."""

    source: str
    source_tokens: list[str]
    hypotheses: list[Hypothesis]

    @property
    def text(self) -> str:
        """The best translation."""
        return self.hypotheses[0].text

    def __str__(self) -> str:
        return self.text


class Translator:
    """A model with its tokenizers, from a run directory. Methods are thread-safe.

    ensemble: further run directories with the same vocabularies. The probability of a token is the mean over all models.
    Raises qkv.Error, a ValueError, naming the file, if a run is incomplete or damaged.
    """

    def __init__(
        self, run_directory: str | os.PathLike[str], ensemble: Iterable[str | os.PathLike[str]] = ()
    ) -> None:
        self._translator = _qkv.Translator(os.fspath(run_directory), [os.fspath(run) for run in ensemble])

    @documents_options("TranslateOptions")
    def translate(
        self,
        lines: Iterable[str],
        *,
        prefixes: Iterable[str] = (),
        on_token: Callable[[_qkv.TokenReport], object] | None = None,
        **options: Unpack[TranslateOptions],
    ) -> list[Translation]:
        """Translates lines; result i belongs to line i. An empty line gives an empty text.

        A line that is longer than the model's maximum is translated in parts, with a warning. Ctrl-C stops the call after
        a batch.

        prefixes: one for each line, the beginning of its hypotheses.
        on_token: called for each token of greedy search or sampling; a true result ends the hypothesis.
        """
        found, notes = self._translator.translate(
            checked_texts("lines", lines), dict(options), checked_texts("prefixes", prefixes), on_token
        )
        for note in notes:
            warnings.warn(note, stacklevel=2)
        return [_translation(t) for t in found]

    def translate_async(
        self,
        lines: Iterable[str],
        *,
        prefixes: Iterable[str] = (),
        on_token: Callable[[_qkv.TokenReport], object] | None = None,
        **options: Unpack[TranslateOptions],
    ) -> Future[list[Translation]]:
        """Calls translate on a new thread. In a coroutine, use await asyncio.wrap_future(...)."""
        texts, count, done = list(lines), _qkv.threads(), Future[list[Translation]]()

        def work() -> None:
            _qkv.set_threads(count)  # the count of a new thread is that of the environment
            try:
                done.set_result(self.translate(texts, prefixes=prefixes, on_token=on_token, **options))
            except BaseException as error:
                done.set_exception(error)

        threading.Thread(target=work, daemon=True).start()
        return done

    def stream(self, lines: Iterable[str], **options: Unpack[TranslateOptions]) -> Iterator[Translation]:
        """Translates any number of lines, up to 1,024 at once. The first calls take fewer, to give results early."""
        rest, count = iter(lines), 32
        while chunk := list(itertools.islice(rest, count)):
            yield from self.translate(chunk, **options)
            count = min(4 * count, 1024)

    def score(
        self,
        sources: Iterable[str],
        targets: Iterable[str] | Iterable[Sequence[str]],
        **options: Unpack[TranslateOptions],
    ) -> list[Translation]:
        """Scores given targets: one hypothesis for each source. Its token_scores end with that of the end token.

        targets: texts, or lists of tokens as in Hypothesis.tokens.
        Uses the options length_penalty, alignment, attention, attention_layer, attention_head and batch_tokens of
        translate. Raises qkv.Error if a source or target is longer than the model's maximum.
        """
        texts, given = checked_texts("sources", sources), list(targets)
        if all(isinstance(target, str) for target in given) and not isinstance(targets, str):
            found = self._translator.score(texts, checked_texts("targets", given), dict(options))
        else:
            tokens = [checked_texts(f"targets[{i}]", target) for i, target in enumerate(given)]
            found = self._translator.score_tokens(texts, tokens, dict(options))
        return [_translation(t) for t in found]

    def attend(
        self, source: str, target: str | None = None, *, source_language: str = "", target_language: str = ""
    ) -> AttentionMap:
        """Returns the attention weights for `source` and `target`, by default the model's own translation.

        source_language, target_language: as in translate.
        Raises qkv.Error if a sentence is empty or longer than the model's maximum.
        """
        check_text("source", source)
        check_text("target", target or "")
        check_text("source_language", source_language)
        check_text("target_language", target_language)
        return AttentionMap(self._translator.attend(source, target or "", source_language, target_language))

    @property
    def languages(self) -> list[str]:
        """The codes of the languages of a model with several; empty for other models."""
        return self._translator.languages()


def _hypothesis(h: _qkv.Hypothesis) -> Hypothesis:
    return Hypothesis(
        h.text, h.tokens, h.score, h.log_probability, h.token_scores, h.words, h.alignment, h.attention
    )


def _translation(t: _qkv.Translation) -> Translation:
    return Translation(t.source, t.source_tokens, [_hypothesis(h) for h in t.hypotheses])
