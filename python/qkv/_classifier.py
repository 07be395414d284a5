"""Text classification and reranking with a run directory."""

from __future__ import annotations

import os
import warnings
from typing import TYPE_CHECKING, Iterable, NamedTuple

from . import _qkv
from ._arguments import check_text, checked_texts, documents_options
from ._tables import column_values, is_tabular

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._options import ClassifyOptions, RerankOptions


class LabelScore(NamedTuple):
    """A label of a text, and its score.

    >>> best, = qkv.Classifier("runs/sentiment").classify(["a b c"])[0]
    >>> best.label, 0.5 < best.score < 0.6
    ('neutral', True)
    """

    label: str
    score: float


class RankedText(NamedTuple):
    """A text that was ranked, by its index, and its score.

    >>> texts = ["a", "b c", "h g f"]
    >>> best = qkv.Classifier("runs/reranker").rerank("e d", texts)[0]
    >>> texts[best.index], round(best.score, 1)
    ('a', -1.4)
    """

    index: int  # type: ignore[assignment]  # hides the method of tuples
    score: float


class Classifier:
    """A model that classifies texts and pairs of texts. Methods are thread-safe.

    >>> qkv.Classifier("runs/sentiment").labels
    ['negative', 'neutral', 'positive']

    device: where the model computes: "cpu"; "cuda", a device plugin; or "auto", which is "cuda" if a plugin finds a
        device.
    precision: what a device computes with, "float32" or "bfloat16"; "auto" is bfloat16. The CPU computes with float32.

    Raises qkv.Error, a ValueError, naming the file, if the run is of another kind, incomplete or damaged.
    """

    labels: list[str]
    max_length: int  # default of the option max_length, in tokens

    def __init__(
        self, run_directory: str | os.PathLike[str], *, device: str = "cpu", precision: str = "auto"
    ) -> None:
        self._classifier = _qkv.Classifier(os.fspath(run_directory), {"device": device, "precision": precision})
        self.labels, self.max_length = self._classifier.labels(), self._classifier.max_length()

    @documents_options("ClassifyOptions")
    def classify(
        self, texts: Iterable[str | tuple[str, str]], **options: Unpack[ClassifyOptions]
    ) -> list[list[LabelScore]]:
        """Returns for each text, or pair of texts, its best labels in descending order of their scores.

        The result of a text does not depend on the others. Texts that are truncated give a Python warning. Ctrl-C stops
        the call after a few hundred texts. Options that are not set take the values of the run.

        >>> classifier = qkv.Classifier("runs/sentiment")
        >>> [best[0].label for best in classifier.classify(["a b c", ("a b", "c d")])]
        ['neutral', 'neutral']
        >>> round(sum(label.score for label in classifier.classify(["a b c"], top=0)[0]), 4)
        1.0

        texts: texts, and pairs as tuples; or a column of strings of pandas, polars or pyarrow.

        Raises qkv.Error, a ValueError, that names the invalid text or option, and TypeError for an unknown option.
        """
        firsts: list[str] = []
        seconds: list[str | None] = []
        if isinstance(texts, str):
            raise _qkv.Error(f"texts must be a list of str and pairs of str (is {texts!r})")
        if is_tabular(texts):
            texts = column_values("texts", texts)
        for i, text in enumerate(texts):
            first, second = text if isinstance(text, tuple) and len(text) == 2 else (text, None)
            check_text(f"texts[{i}]" if second is None else f"texts[{i}][0]", first)
            if second is not None:
                check_text(f"texts[{i}][1]", second)
            firsts.append(first)
            seconds.append(second)
        found, cut = self._classifier.classify(firsts, seconds, dict(options))
        self._warn(cut, len(firsts), options.get("max_length"))
        return [[LabelScore(self.labels[label], score) for label, score in best] for best in found]

    @documents_options("RerankOptions")
    def rerank(self, query: str, texts: Iterable[str], **options: Unpack[RerankOptions]) -> list[RankedText]:
        """Returns texts in descending order of the score of the pair (query, text); equal scores keep their order.

        Texts that are truncated give a Python warning. Options that are not set take the values of the run.

        >>> ranked = qkv.Classifier("runs/reranker").rerank("e d", ["a", "b c", "h g f"])
        >>> [text.index for text in ranked]
        [0, 1, 2]

        texts: texts, or a column of strings, as for classify.

        Raises qkv.Error, a ValueError, that names the invalid text or option, and TypeError for an unknown option.
        """
        check_text("query", query)
        found = checked_texts("texts", texts)
        ranked, cut = self._classifier.rerank(query, found, dict(options))
        self._warn(cut, len(found), options.get("max_length"))
        return [RankedText(index, score) for index, score in ranked]

    def _warn(self, cut: int, count: int, limit: int | None) -> None:
        if cut:
            longest = limit or self.max_length
            warnings.warn(f"{cut} of {count} texts had more than {longest} tokens and were truncated", stacklevel=3)
