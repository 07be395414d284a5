"""BLEU and chrF of translations against one reference each. The scores equal those of sacreBLEU."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Iterable

from . import _qkv
from ._arguments import checked_texts


@dataclass(frozen=True)
class BleuScore:
    """A score of bleu.

    >>> print(qkv.BleuScore(31.5, [60.0, 38.0, 26.0, 17.0], 1.0, 1000, 990))
    31.50
    """

    score: float  # 0 to 100
    precisions: list[float]  # of 1- to 4-grams, 0 to 100
    brevity_penalty: float
    hypothesis_length: int  # tokens
    reference_length: int  # tokens

    def __str__(self) -> str:
        return f"{self.score:.2f}"


def bleu(hypotheses: Iterable[str], references: Iterable[str], *, lowercase: bool = False) -> BleuScore:
    """Computes corpus BLEU with the 13a tokenization and exponential smoothing, as `qkv score bleu` does.

    Papineni et al., "BLEU: a Method for Automatic Evaluation of Machine Translation" (2002).

    >>> score = qkv.bleu(["The cat sat on the mat."], ["The cat sat on a mat."])
    >>> round(score.score, 2), score.brevity_penalty, score.hypothesis_length
    (48.89, 1.0, 7)

    hypotheses: translations; line i is scored against line i of the references.
    references: one for each translation.
    lowercase: ignores case.

    Raises qkv.Error, a ValueError, if the numbers of lines differ.
    """
    found = _qkv.bleu(checked_texts("hypotheses", hypotheses), checked_texts("references", references), lowercase)
    return BleuScore(
        found.score, found.precisions, found.brevity_penalty, found.hypothesis_length, found.reference_length
    )


def chrf(hypotheses: Iterable[str], references: Iterable[str], *, lowercase: bool = False) -> float:
    """Computes chrF2, from 0 to 100, of character 1- to 6-grams without spaces, as `qkv score chrf` does.

    Popović, "chrF: character n-gram F-score for automatic MT evaluation" (2015).

    >>> round(qkv.chrf(["The cat sat on the mat."], ["The cat sat on a mat."]), 2)
    71.42

    hypotheses: translations; line i is scored against line i of the references.
    references: one for each translation.
    lowercase: ignores case.

    Raises qkv.Error, a ValueError, if the numbers of lines differ.
    """
    return _qkv.chrf(checked_texts("hypotheses", hypotheses), checked_texts("references", references), lowercase)
