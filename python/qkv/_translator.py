"""Translating with a trained run directory, and looking at what it attends to."""

from __future__ import annotations

import itertools
import os
import threading
import warnings
from concurrent.futures import Future
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Callable, Iterable, Iterator, Sequence

from . import _qkv
from ._arguments import checked_texts, is_unicode, set_options

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
    """The attention weights of a sentence and its translation, or of a text and what a model goes on with."""

    source: str
    target: str
    kinds: dict[str, AttentionKind]  # by name: "encoder", "decoder", "cross"; of a language model "decoder" alone

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


@dataclass(frozen=True)
class Hypothesis:
    """One translation of a line."""

    text: str
    tokens: list[str]  # as the vocabulary spells them, without start and end
    score: float  # what hypotheses are ordered by
    log_probability: float  # the model's own: the sum of token_scores
    token_scores: list[float]  # log p of each token, and of the end token if it was reached
    words: list[tuple[str, float]]  # log p summed over each word's tokens
    alignment: list[tuple[int, int]]  # (source token, target token), if asked for
    attention: list[list[float]]  # [target tokens][source tokens], if asked for


@dataclass(frozen=True)
class Translation:
    """A line and its translations, the best first."""

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
    """A model with its tokenisers, from a run directory. Any number of threads may call it at the same time.

    ensemble: further run directories with the same vocabularies; the probability of a token is the mean of theirs.
    Raises qkv.Error, a ValueError, naming the file, if a directory does not hold a whole and sound run.
    """

    def __init__(
        self, run_directory: str | os.PathLike[str], ensemble: Iterable[str | os.PathLike[str]] = ()
    ) -> None:
        self._translator = _qkv.Translator(os.fspath(run_directory), [os.fspath(run) for run in ensemble])

    def translate(
        self,
        lines: Iterable[str],
        *,
        beam: int = 5,
        n_best: int = 1,
        length_penalty: float = 1.0,
        coverage_penalty: float = 0.0,
        min_length: int = 0,
        max_length: int = 0,
        repetition_penalty: float = 1.0,
        no_repeat_ngram: int = 0,
        prefixes: Iterable[str] = (),
        alternatives: bool = False,
        sampling: bool = False,
        temperature: float = 1.0,
        top_k: int = 0,
        top_p: float = 1.0,
        seed: int = 1,
        alignment: bool = False,
        attention: bool = False,
        replace_unknown: bool = False,
        attention_layer: int = 0,
        attention_head: int = 1,
        batch_tokens: int = 4096,
        workers: int = 1,
        on_token: Callable[[_qkv.TokenReport], object] | None = None,
    ) -> list[Translation]:
        """Result i translates line i; an empty line gives an empty text.

        beam: hypotheses kept a step; 1 is greedy search. n_best: hypotheses returned, at most beam, or any number of
            samples.
        length_penalty: α in Σ log p / tokens^α; 0 is the plain sum. coverage_penalty: β of β Σ_j log min(Σ_i a_ij, 1).
        min_length, max_length: tokens before the end token, and with it (0: twice the source's and 16).
        repetition_penalty: multiplies log p of tokens that were said before. no_repeat_ngram: no run of so many tokens
            comes twice.
        prefixes: one for each line, what its hypotheses begin with. alternatives: n_best ways to go on from there with
            different tokens.
        sampling: draw tokens from p^(1/temperature) over the top_k most probable tokens (0: all), of these over the
            fewest with the probability top_p together. The draws depend on the seed and the sentence alone.
        alignment, attention: fill these fields, from a layer and head counted from 1 (layer 0: the last).
        replace_unknown: unknown words become the source words that they are aligned with.
        batch_tokens: source tokens times beam of what is translated at one time. workers: batches translated side by
            side; the threads are shared among them. They change no translation.
        on_token: called for each token of greedy search or sampling; what is true ends that hypothesis.
        A line beyond the model's length is translated in parts, with a warning. Ctrl-C stops it after a batch.
        """
        options = set_options(
            _qkv.TranslateOptions(),
            "translate",
            beam=beam,
            n_best=n_best,
            length_penalty=length_penalty,
            coverage_penalty=coverage_penalty,
            min_length=min_length,
            max_length=max_length,
            repetition_penalty=repetition_penalty,
            no_repeat_ngram=no_repeat_ngram,
            alternatives=alternatives,
            sampling=sampling,
            temperature=temperature,
            top_k=top_k,
            top_p=top_p,
            seed=seed,
            alignment=alignment,
            attention=attention,
            replace_unknown=replace_unknown,
            attention_layer=attention_layer,
            attention_head=attention_head,
            batch_tokens=batch_tokens,
            workers=workers,
        )
        found, notes = self._translator.translate(
            checked_texts("translate", "line", lines),
            options,
            checked_texts("translate", "prefix", prefixes),
            on_token,
        )
        for note in notes:
            warnings.warn(note, stacklevel=2)
        return [_translation(t) for t in found]

    def translate_async(self, lines: Iterable[str], **options: Any) -> Future[list[Translation]]:
        """translate on a thread of its own; in a coroutine, await asyncio.wrap_future(...)."""
        texts, count, done = list(lines), _qkv.threads(), Future[list[Translation]]()

        def work() -> None:
            _qkv.set_threads(count)  # a thread of its own begins with the number that the environment says
            try:
                done.set_result(self.translate(texts, **options))
            except BaseException as error:
                done.set_exception(error)

        threading.Thread(target=work, daemon=True).start()
        return done

    def stream(self, lines: Iterable[str], **options: Any) -> Iterator[Translation]:
        """translate for any number of lines: takes up to 1,024 at one time, and gives the first ones early."""
        rest, count = iter(lines), 32
        while chunk := list(itertools.islice(rest, count)):
            yield from self.translate(chunk, **options)
            count = min(4 * count, 1024)

    def score(
        self,
        sources: Iterable[str],
        targets: Iterable[str] | Iterable[Sequence[str]],
        *,
        length_penalty: float = 1.0,
        alignment: bool = False,
        attention: bool = False,
        attention_layer: int = 0,
        attention_head: int = 1,
        batch_tokens: int = 4096,
    ) -> list[Translation]:
        """What the model thinks of given targets: one hypothesis a source, whose token_scores end with the end token's.

        targets: texts, or lists of tokens as hypotheses have them. Raises qkv.Error if a pair is beyond the model's
        length.
        """
        options = set_options(
            _qkv.TranslateOptions(),
            "score",
            length_penalty=length_penalty,
            alignment=alignment,
            attention=attention,
            attention_layer=attention_layer,
            attention_head=attention_head,
            batch_tokens=batch_tokens,
        )
        texts, wanted = checked_texts("score", "source", sources), list(targets)
        if all(isinstance(target, str) for target in wanted) and not isinstance(targets, str):
            found = self._translator.score(texts, checked_texts("score", "target", wanted), options)
        else:
            tokens = [
                checked_texts("score", f"token of target {i + 1}, number", target) for i, target in enumerate(wanted)
            ]
            found = self._translator.score_tokens(texts, tokens, options)
        return [_translation(t) for t in found]

    def attend(self, source: str, target: str | None = None) -> AttentionMap:
        """The attention weights of the model while it reads `source` and says `target`.

        If there is no target, the model's own translation. Raises qkv.Error if a sentence is empty or beyond the
        model's length.
        """
        for name, text in (("source", source), ("target", target or "")):
            if not isinstance(text, str) or not is_unicode(text):
                raise _qkv.Error(f"attend: {name} is {text!r}, wanted a str of valid Unicode")
        return AttentionMap(self._translator.attend(source, target or ""))


def _hypothesis(h: _qkv.Hypothesis) -> Hypothesis:
    return Hypothesis(
        h.text, h.tokens, h.score, h.log_probability, h.token_scores, h.words, h.alignment, h.attention
    )


def _translation(t: _qkv.Translation) -> Translation:
    return Translation(t.source, t.source_tokens, [_hypothesis(h) for h in t.hypotheses])
