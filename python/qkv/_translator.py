"""Translation with a run directory."""

from __future__ import annotations

import itertools
import os
import pathlib
import threading
import warnings
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Callable, Iterable, Iterator, Sequence

from . import _qkv
from ._analysis import BeamTrace, HiddenStates, LogitLens, Patching, TranslationStates
from ._arguments import check_options, check_text, checked_texts, documents_options
from ._attention_map import AttentionMap
from ._tables import column_values, is_tabular

if TYPE_CHECKING:
    from concurrent.futures import Future

    import numpy as np
    from numpy.typing import NDArray
    from typing_extensions import Unpack

    from ._options import SummaryOptions, TranslateOptions


@dataclass(frozen=True)
class TokenReport:
    """A token of a translation, as translate reports it to on_token.

    >>> seen = []
    >>> translator = qkv.Translator("runs/en-de")
    >>> results = translator.translate(["He sleeps."], beam=1, on_token=seen.append)
    >>> seen[0].line, [report.last for report in seen].index(True) == len(seen) - 1
    (0, True)
    """

    line: int  # from 0
    hypothesis: int  # number of the sample, from 0
    token: str  # as spelled in the vocabulary
    log_probability: float
    last: bool  # the hypothesis ends here


@dataclass(frozen=True)
class Hypothesis:
    """One translation of a line.

    >>> found = qkv.Translator("runs/en-de").score(["He sleeps."], ["Er schläft."])[0].hypotheses[0]
    >>> [word for word, _ in found.words], len(found.token_scores) - len(found.tokens)  # the end token has a score, too
    (['Er', 'schläft.'], 1)
    >>> abs(sum(found.token_scores) - found.log_probability) < 1e-3
    True
    """

    text: str
    tokens: list[str]  # as spelled in the vocabulary, without start and final end
    score: float  # the order of hypotheses; higher is better
    log_probability: float  # of the model, without penalties: the sum of token_scores
    token_scores: list[float]  # log p of each token, and of the final end token if it was reached
    words: list[tuple[str, float]]  # log p summed over the tokens of each word
    alignment: list[tuple[int, int]]  # (source token, target token); only with the option alignment
    attention: list[list[float]]  # [target tokens][source tokens]; only with the option attention
    sentences: list[tuple[str, str]]  # of a text of several: each with its translation, "" after an early end
    missing_terms: list[str]  # terms of the glossary in the source whose translations it lacks
    untranslated: list[tuple[str, str]]  # sentences whose translations are so short that parts are probably missing


@dataclass(frozen=True)
class Translation:
    """A line and its translations, best first.

    >>> result = qkv.Translator("runs/en-de").translate(["He sleeps."], n_best=2, beam=2)[0]
    >>> result.source, len(result.hypotheses), str(result) == result.text == result.hypotheses[0].text
    ('He sleeps.', 2, True)
    """

    source: str
    source_tokens: list[str]
    hypotheses: list[Hypothesis]
    pivot: list[str] = field(default_factory=list)  # of a PivotTranslator: the texts in between
    source_prefix: str = ""  # the option: it is not in source, but in source_tokens

    @property
    def text(self) -> str:
        """The best translation."""
        return self.hypotheses[0].text

    def __str__(self) -> str:
        return self.text


class Translator:
    """A model with its tokenizers, from a run directory. Methods are thread-safe.

    >>> translator = qkv.Translator("runs/en-de")
    >>> [result.source for result in translator.translate(["He sleeps.", "The dog runs."])]
    ['He sleeps.', 'The dog runs.']

    ensemble: further run directories with the same vocabularies. The probability of a token is the mean over all models.

    device: where the model computes: "cpu"; "cuda", a device plugin; or "auto", which is "cuda" if a plugin finds a
        device.
    precision: what a device computes with, "float32" or "bfloat16"; "auto" is bfloat16. The CPU computes with float32.

    Raises qkv.Error, a ValueError, naming the file, if a run is incomplete or damaged.
    """

    def __init__(
        self,
        run_directory: str | os.PathLike[str],
        ensemble: Iterable[str | os.PathLike[str]] = (),
        *,
        device: str = "cpu",
        precision: str = "auto",
    ) -> None:
        runs = [os.fspath(run) for run in ensemble]
        self._translator = _qkv.Translator(os.fspath(run_directory), runs, {"device": device, "precision": precision})
        self._defaults = _qkv.default_translate_options(os.fspath(run_directory))
        self._summary_defaults, self._no_summaries = _summary_defaults(os.fspath(run_directory))

    @documents_options("TranslateOptions")
    def translate(
        self,
        lines: Iterable[str],
        *,
        prefixes: Iterable[str] = (),
        on_token: Callable[[TokenReport], object] | None = None,
        **options: Unpack[TranslateOptions],
    ) -> list[Translation]:
        """Translates lines; result i belongs to line i. An empty line gives an empty text.

        A line may be a text of several lines. Each of its sentences is translated by itself, and the white space around
        them stays as it is; sentences="line" translates each text as a whole. A sentence that is longer than the model's
        maximum is translated in parts, with a warning. Ctrl-C stops the call after a batch.

        >>> translator = qkv.Translator("runs/en-de")
        >>> first, second = translator.translate(["He sleeps."], beam=4, n_best=2)[0].hypotheses
        >>> first.score >= second.score
        True
        >>> translator.translate(["He sleeps."], prefixes=["Er"])[0].text[:2]
        'Er'

        lines: strings; or a column of strings of pandas, polars or pyarrow.
        prefixes: one for each line, the beginning of its hypotheses.
        on_token: called for each token of greedy search or sampling; a true result ends the hypothesis and, if n_best is
            1, the line. The sentences of a line follow each other.

        Raises qkv.Error, a ValueError, that names the invalid line or option, and TypeError for an unknown option.
        """
        found, notes = self._translator.translate(
            checked_texts("lines", lines), {**self._defaults, **options}, checked_texts("prefixes", prefixes),
            _reported(on_token)
        )
        for note in notes:
            warnings.warn(note, stacklevel=2)
        return [_translation(t) for t in found]

    @documents_options("SummaryOptions")
    def summarize(self, texts: Iterable[str], **options: Unpack[SummaryOptions]) -> list[Translation]:
        """Summarizes texts with a model of whole texts: BART, Pegasus, T5, or one trained on texts and their summaries.

        Result i belongs to text i, whose line breaks the model reads as it was trained to. The defaults are those of qkv
        summarize. A text longer than the model's maximum is split, with a warning, and the summaries of its parts are
        joined. Ctrl-C stops the call after a batch.

        >>> summarizer = qkv.Translator("runs/bart")
        >>> [result.source for result in summarizer.summarize(["the dog runs\\nin the park ."], max_length=4)]
        ['the dog runs\\nin the park .']

        texts: strings; or a column of strings of pandas, polars or pyarrow.

        Raises qkv.Error, a ValueError, for a run that translates sentences, and for an invalid text or option, and TypeError
        for an option that summaries do not have, such as n_best.
        """
        check_options("summarize", "SummaryOptions", options)
        if self._no_summaries:
            raise _qkv.Error(self._no_summaries)
        found, notes = self._translator.translate(
            checked_texts("texts", texts), {**self._summary_defaults, **options}, [], None)
        for note in notes:
            warnings.warn(note, stacklevel=2)
        return [_translation(t) for t in found]

    def translate_document(
        self,
        document: str | os.PathLike[str] | bytes,
        out: str | os.PathLike[str] | None = None,
        *,
        format: str = "",
        columns: Iterable[str] = (),
        languages: tuple[str, str] = ("", ""),
        **options: Unpack[TranslateOptions],
    ) -> bytes | None:
        """Translates the text of a document; every other byte stays. Returns the document, or writes it to `out`.

        The format follows from the end of the file's name; docs/documents.md lists all. Inline markup moves with its
        words. `out` is written when it is complete.

        >>> translator = qkv.Translator("runs/en-de")
        >>> html = translator.translate_document(b"<p class=x>He sleeps.</p>", format="html", beam=2)
        >>> html.startswith(b"<p class=x>"), html.endswith(b"</p>")
        (True, True)
        >>> sorted(translator.document_formats())[:2]
        ['csv', 'docx']

        document: a path, or the bytes of a document, which require `format`.
        format: its name, such as "docx".
        columns: of a CSV file, those to translate: names in its first line, or numbers from "1"; none: all.
        languages: codes of source and target, for TMX and XLIFF files that do not name them.
        options: those of translate.

        Raises qkv.Error, a ValueError, for an unknown format and for a document that does not have it.
        """
        values = {**self._defaults, **options}
        return _translate_document(
            document, out, format,
            lambda name, content, wanted: self._translator.translate_bytes(
                name, content, values, format, wanted, languages),
            lambda path, to, wanted: self._translator.translate_file(path, to, values, format, wanted, languages),
            columns)

    @staticmethod
    def document_formats() -> dict[str, list[str]]:
        """Returns the formats of documents, each with the ends of its files' names.

        >>> qkv.Translator.document_formats()["html"]
        ['.html', '.htm']
        """
        return _qkv.document_formats()

    def translate_async(
        self,
        lines: Iterable[str],
        *,
        prefixes: Iterable[str] = (),
        on_token: Callable[[TokenReport], object] | None = None,
        **options: Unpack[TranslateOptions],
    ) -> Future[list[Translation]]:
        """Calls translate on a new thread and returns its future. In a coroutine, use await asyncio.wrap_future(...).

        >>> translator = qkv.Translator("runs/en-de")
        >>> future = translator.translate_async(["He sleeps."])
        >>> future.result() == translator.translate(["He sleeps."])
        True

        Arguments are those of translate; what it raises, future.result() raises.
        """
        from concurrent.futures import Future  # slow to import

        texts, count, done = _lines(lines), _qkv.threads(), Future[list[Translation]]()

        def work() -> None:
            _qkv.set_threads(count)  # the count of a new thread is that of the environment
            try:
                done.set_result(self.translate(texts, prefixes=prefixes, on_token=on_token, **options))
            except BaseException as error:
                done.set_exception(error)

        threading.Thread(target=work, daemon=True).start()
        return done

    def stream(self, lines: Iterable[str], **options: Unpack[TranslateOptions]) -> Iterator[Translation]:
        """Translates any number of lines, up to 1,024 at once. The first calls take fewer, to give results early.

        >>> lines = ("He sleeps." for _ in range(100))  # or an open file
        >>> sum(result.source == "He sleeps." for result in qkv.Translator("runs/en-de").stream(lines))
        100

        Takes lines and options, and raises errors, as translate does.
        """
        rest, count = iter(_lines(lines) if is_tabular(lines) else lines), 32
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

        >>> translator = qkv.Translator("runs/en-de")
        >>> right, wrong = translator.score(["He sleeps."] * 2, ["Er schläft.", "schläft Er."])
        >>> right.hypotheses[0].log_probability > wrong.hypotheses[0].log_probability
        True

        targets: texts, or lists of tokens as in Hypothesis.tokens.
        Uses the options length_penalty, alignment, attention, attention_layer, attention_head and batch_tokens of
        translate.

        Raises qkv.Error if a source or target is longer than the model's maximum.
        """
        texts, given = checked_texts("sources", sources), _targets(targets)
        return [_translation(t) for t in self._translator.score(texts, given, {**self._defaults, **options})]

    def encode(self, texts: Iterable[str], **options: Unpack[TranslateOptions]) -> list[NDArray[np.float32]]:
        """Returns the encoder's output: for each text an array [tokens, d], with a row for each of its source_tokens.

        The arrays are views of one packed array. An ensemble returns the output of its first model. Uses the options
        source_language, target_language and batch_tokens of translate.

        >>> first, second = qkv.Translator("runs/en-de").encode(["He sleeps.", "The dog runs."])
        >>> first.dtype, first.shape[1]
        (dtype('float32'), 32)

        Raises qkv.Error if a text is empty or longer than the model's maximum.
        """
        return _rows(*self._translator.encode(checked_texts("texts", texts), dict(options)))

    def logits(
        self,
        sources: Iterable[str],
        targets: Iterable[str] | Iterable[Sequence[str]],
        **options: Unpack[TranslateOptions],
    ) -> list[NDArray[np.float32]]:
        """Returns the logits of the whole vocabulary for given targets: for each target an array [tokens + 1, vocabulary].

        Row i predicts token i, and the last row the end token: its log-softmax there is token_scores[i] of score. An ensemble
        returns the log of the mean probability. Takes targets as score does, and uses the options
        source_language, target_language and batch_tokens of translate. The arrays are views of one packed array, of
        4 bytes per logit.

        >>> translator = qkv.Translator("runs/en-de")
        >>> logits, = translator.logits(["He sleeps."], ["Er schläft."])
        >>> len(logits) == len(translator.score(["He sleeps."], ["Er schläft."])[0].hypotheses[0].token_scores)
        True

        Raises qkv.Error if a source or target is longer than the model's maximum.
        """
        return _rows(*self._translator.logits(checked_texts("sources", sources), _targets(targets), dict(options)))

    def _pair_options(
        self, source: str, target: str | None, source_language: str, target_language: str
    ) -> dict[str, Any]:
        """Checks the texts of a pair, and returns its options."""
        languages = {"source_language": source_language, "target_language": target_language}
        for name, text in {"source": source, "target": target or "", **languages}.items():
            check_text(name, text)
        return {**self._defaults, **languages}

    def attend(
        self,
        source: str,
        target: str | None = None,
        *,
        source_language: str = "",
        target_language: str = "",
        method: str = "weights",
        steps: int = 50,
        baseline: str = "",
    ) -> AttentionMap:
        """Returns the attention weights for `source` and `target`, by default the model's own translation.

        >>> found = qkv.Translator("runs/en-de").attend("He sleeps.", "Er schläft.")
        >>> sorted(found.kinds), found.kinds["encoder"].rows == found.kinds["cross"].columns
        (['cross', 'decoder', 'encoder'], True)

        source_language, target_language: as in translate.
        method: "weights"; the attention of all layers up to one, "rollout" or "flow"; or attributions of log p of each
            target token to the source and the target before it: "gradient" (times input) or "integrated" (gradients, at
            `steps` points); these have no kind "encoder". See AttentionKind.
        baseline: text whose first token takes the place of every token in the baseline of attributions; by default
            embeddings of zeros.

        Raises qkv.Error if a sentence is empty or longer than the model's maximum.
        """
        options = self._pair_options(source, target, source_language, target_language)
        attribution = {"method": method, "steps": steps, "baseline": baseline}
        return AttentionMap._of(self._translator.attend(source, target or "", options, attribution))

    def hidden(
        self, source: str, target: str | None = None, *, source_language: str = "", target_language: str = ""
    ) -> TranslationStates:
        """Returns the hidden states of all layers for `source` and `target`, by default the model's own translation.

        >>> states = qkv.Translator("runs/en-de").hidden("He sleeps.", "Er schläft.")
        >>> len(states.encoder.pieces) == states.encoder.values.shape[1]
        True

        source_language, target_language: as in translate. An ensemble returns the states of its first model.

        Raises qkv.Error if a sentence is empty or longer than the model's maximum.
        """
        options = self._pair_options(source, target, source_language, target_language)
        found = self._translator.hidden(source, target or "", options)
        return TranslationStates(found.translation, HiddenStates._of(found.encoder), HiddenStates._of(found.decoder))

    def lens(
        self, source: str, target: str | None = None, *, source_language: str = "", target_language: str = ""
    ) -> LogitLens:
        """Returns what the decoder would predict after each layer, at each token of `target`, by default the model's own
        translation (the logit lens).

        >>> lens = qkv.Translator("runs/en-de").lens("He sleeps.", "Er schläft.")
        >>> lens.read[0], lens.target
        ('<s>', 'Er schläft.')

        source_language, target_language: as in translate.

        Raises qkv.Error if a sentence is empty or longer than the model's maximum.
        """
        options = self._pair_options(source, target, source_language, target_language)
        return LogitLens._of(self._translator.lens(source, target or "", options))

    def patch(
        self,
        clean: str,
        corrupted: str,
        *,
        part: str = "residual",
        stack: str = "auto",
        prefix: str = "",
        answer: str = "",
        wrong: str = "",
        source_language: str = "",
        target_language: str = "",
    ) -> Patching:
        """Returns how much of the answer to `clean` each part of the model carries, if its output there takes the place of
        that in a pass over `corrupted`, a source of as many tokens (activation patching).

        >>> translator = qkv.Translator("runs/en-de")
        >>> found = translator.patch("He sleeps.", "He smiles.", prefix="Er")
        >>> found.stack, found.recovered.shape == (2, len(found.clean))  # layers + 1, tokens
        ('encoder', True)

        part: "residual", the hidden state of a layer at a token; "attention", "cross-attention" or "feed-forward", what
            one adds to it; or "head" or "cross-head", the output of a head at all tokens.
        stack: "encoder" or "decoder", whose layers are patched; "auto" is the encoder, but for cross-attention.
        prefix: beginning of the translation, after which the answer is predicted; by default it is the first token.
        answer, wrong: texts whose first tokens are compared: logit(answer) - logit(wrong). By default the most probable
            ones for clean and corrupted. If these are the same, log p(answer) is measured.
        source_language, target_language: as in translate.

        Raises qkv.Error for sources of different lengths or longer than the model's maximum, and for those with the same
        score.
        """
        texts = {"prefix": prefix, "answer": answer, "wrong": wrong}
        for name, text in {"clean": clean, "corrupted": corrupted, **texts}.items():
            check_text(name, text)
        options = self._pair_options(clean, None, source_language, target_language)
        patch = {"part": part, "stack": stack, **texts}
        return Patching._of(self._translator.patch(clean, corrupted, patch, options))

    def trace(self, source: str, **options: Unpack[TranslateOptions]) -> BeamTrace:
        """Returns the steps of the beam search of one source, which is not split into sentences.

        >>> trace = qkv.Translator("runs/en-de").trace("He sleeps.", beam=3)
        >>> best = max(trace.steps[-1].ended, key=lambda one: one.score)
        >>> len(trace.steps[0].live), trace.steps[-1].live, best.score < 0
        (3, [], True)

        options: those of translate that concern the search, such as beam, length_penalty and max_length.

        Raises qkv.Error if the source is empty or longer than the model's maximum, and for sampling.
        """
        check_text("source", source)
        return BeamTrace._of(self._translator.trace(source, {**self._defaults, **options}))

    @property
    def languages(self) -> list[str]:
        """The codes of the languages of a model with several; empty for other models."""
        return self._translator.languages()


def _summary_defaults(run: str) -> tuple[dict[str, Any], str]:
    """Returns the defaults of summaries and "", or no defaults and the reason why the run has no summaries."""
    try:
        return _qkv.default_summary_options(run), ""
    except _qkv.Error as error:
        return {}, str(error)


def _translate_document(
    document: str | os.PathLike[str] | bytes,
    out: str | os.PathLike[str] | None,
    format: str,
    of_bytes: Callable[[str, bytes, list[str]], tuple[bytes, list[str]]],
    of_file: Callable[[bytes, bytes, list[str]], list[str]],
    columns: Iterable[str],
) -> bytes | None:
    """Translates a document by a function of its bytes, or of the paths of two files. Warns of notes."""
    check_text("format", format)
    wanted = checked_texts("columns", columns)
    if isinstance(document, bytes) and not format:
        raise _qkv.Error("the bytes of a document require its format, such as format=\"html\"")
    translated = None
    if out is not None and not isinstance(document, bytes):
        notes = of_file(os.fsencode(document), os.fsencode(out), wanted)
    elif out is not None:
        raise _qkv.Error("out requires the path of a document, not its bytes")
    else:
        name = "the document" if isinstance(document, bytes) else os.fspath(document)
        content = document if isinstance(document, bytes) else pathlib.Path(document).read_bytes()
        translated, notes = of_bytes(name, content, wanted)
    for note in notes:
        warnings.warn(note, stacklevel=3)
    return translated


def _reported(on_token: Callable[[TokenReport], object] | None) -> Callable[[_qkv.TokenReport], object] | None:
    """Returns a function that calls on_token with what the library reports."""
    if on_token is None:
        return None
    return lambda r: on_token(TokenReport(r.line, r.hypothesis, r.token, r.log_probability, r.last))


def _lines(lines: Iterable[str]) -> list[str]:
    """Returns lines as a list that translate checks."""
    return column_values("lines", lines) if is_tabular(lines) else list(lines)


def _targets(targets: Any) -> list[str] | list[list[str]]:
    """Returns targets as texts or as lists of tokens."""
    targets = targets if isinstance(targets, str) or is_tabular(targets) else list(targets)
    if is_tabular(targets) or isinstance(targets, str) or all(isinstance(target, str) for target in targets):
        return checked_texts("targets", targets)
    return [checked_texts(f"targets[{i}]", target) for i, target in enumerate(targets)]


def _rows(packed: NDArray[np.float32], offsets: list[int]) -> list[NDArray[np.float32]]:
    return [packed[begin:end] for begin, end in zip(offsets, offsets[1:])]


def _hypothesis(h: _qkv.Hypothesis) -> Hypothesis:
    return Hypothesis(
        h.text, h.tokens, h.score, h.log_probability, h.token_scores, h.words, h.alignment, h.attention, h.sentences,
        h.missing_terms, h.untranslated
    )


def _translation(t: _qkv.Translation) -> Translation:
    return Translation(t.source, t.source_tokens, [_hypothesis(h) for h in t.hypotheses], t.pivot, t.source_prefix)
