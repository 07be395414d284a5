"""Analysis of attention heads: what each of them does, and the effect of removing it."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from . import _qkv
from ._arguments import documents_options

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._options import HeadsOptions


@dataclass(frozen=True)
class Change:
    """A change of a measure, with its bootstrap interval of 95 %.

    >>> report = qkv.analyse_heads("runs/lm", "text.txt", lines=3, ablate="heads")
    >>> loss = report.ablations[0].loss
    >>> loss.low <= loss.value <= loss.high
    True
    """

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Head:
    """An attention head, its role and its scores.

    >>> head = qkv.analyse_heads("runs/lm", "text.txt", lines=3).heads[0]
    >>> head.kind, head.layer, head.head, sorted(head.scores)[:3]
    ('decoder', 1, 1, ['distance', 'entropy', 'first'])
    """

    kind: str  # "encoder", "decoder" or "cross"
    layer: int  # from 1
    head: int  # from 1
    role: str  # what it does, in a few words
    strength: float  # of the role: (score − uniform) / (1 − uniform), at most 1
    scores: dict[str, dict[str, Any]]  # by name: value, rows, and uniform, the score of attention with equal weights
    agreements: list[dict[str, Any]] = field(default_factory=list)  # relation, direction, pairs, share, baseline, offset
    importance: float | None = None  # mean over tokens of |∂ loss / ∂ ξ|, where ξ = 1 multiplies the head's output
    examples: list[dict[str, Any]] = field(default_factory=list)  # line, rows, columns, and weights to four decimals


@dataclass(frozen=True)
class BestHead:
    """The head that is farthest above the baseline of a role, or of a relation of words.

    >>> best = qkv.analyse_heads("runs/lm", "text.txt", lines=3).best[0]
    >>> best.relation, best.kind, best.layer
    ('token before', 'decoder', 1)
    """

    relation: str
    kind: str
    layer: int
    head: int
    count: int  # of rows, or of pairs of words
    value: float  # the score, or the share of pairs
    baseline: float  # the score of uniform attention, or the share of the best fixed offset
    direction: str = ""  # of a relation of words
    offset: int | None = None  # of its baseline
    loss: Change | None = None  # without the head, if heads were removed


@dataclass(frozen=True)
class Ablation:
    """The effect of removing a part of a model.

    >>> removed = qkv.analyse_heads("runs/lm", "text.txt", lines=3, ablate="sublayers").ablations
    >>> sorted((one.part, one.layer, one.head) for one in removed)
    [('decoder feed-forward', 1, None), ('decoder self-attention', 1, None)]
    """

    part: str  # "encoder self-attention", "decoder cross-attention", "decoder feed-forward" …
    layer: int  # from 1
    head: int | None  # from 1; None: the whole part
    loss: Change  # of the loss per token in nats
    ndcg10: Change | None = None  # of a recommender
    bleu: Change | None = None  # of a translator's greedy translations, if requested


@dataclass(frozen=True)
class PruneReport:
    """The result of HeadsReport.prune.

    >>> report = qkv.analyse_heads("runs/lm", "text.txt", lines=3, importance=True).prune(1, "runs/pruned")
    >>> report.out, report.removed, report.parameters < report.parameters_before
    ('runs/pruned', ['decoder self-attention, layer 1: heads 2'], True)
    """

    out: str  # the run directory that was written
    removed: list[str]  # "encoder self-attention, layer 1: heads 2, 5"
    parameters_before: int
    parameters: int


@dataclass(frozen=True)
class HeadsReport:
    """The result of analyse_heads.

    >>> report = qkv.analyse_heads("runs/lm", "text.txt", lines=3)
    >>> report.kind, report.texts, len(report.heads), report.ablate, report.loss
    ('language_model', 3, 2, 'none', None)
    """

    run: str
    kind: str  # of the run: "translator", "recommender", "language_model", "encoder" …
    texts: int
    source_tokens: int
    target_tokens: int
    own_translations: bool  # the targets are the model's own
    ablate: str
    replace_by: str
    heads: list[Head]  # all heads: by kind, layer and head
    best: list[BestHead]  # of each role and relation
    ablations: list[Ablation]
    loss: float | None = None  # per token, in nats, if it was computed
    ndcg10: float | None = None  # of a recommender, if the loss was computed
    bleu: float | None = None  # of greedy translations, if requested
    _found: Any = field(default=None, repr=False, compare=False)

    @classmethod
    def _of(cls, found: _qkv.HeadsReport) -> HeadsReport:
        values = json.loads(found.to_json())
        values["heads"] = [Head(**one) for one in values["heads"]]
        values["best"] = [BestHead(**_with_changes(one)) for one in values["best"]]
        values["ablations"] = [Ablation(**_with_changes(one)) for one in values["ablations"]]
        return cls(**values, _found=found)

    def to_text(self) -> str:
        """Returns the report for a terminal.

        >>> qkv.analyse_heads("runs/lm", "text.txt", lines=3).to_text().splitlines()[0]
        'runs/lm: language_model, 3 texts, 33 tokens'
        """
        return str(self._found.to_text())

    def to_json(self) -> str:
        """Returns JSON with all values.

        >>> import json
        >>> json.loads(qkv.analyse_heads("runs/lm", "text.txt", lines=3).to_json())["texts"]
        3
        """
        return str(self._found.to_json())

    def to_html(self) -> str:
        """Returns one page that needs no network; with maps of attention if examples or show_line were set.

        >>> "<title>" in qkv.analyse_heads("runs/lm", "text.txt", lines=3, examples=1).to_html()
        True
        """
        return str(self._found.to_html())

    def prune(self, count: int, out: str | os.PathLike[str]) -> PruneReport:
        """Writes a run without the least important heads of each attention of each layer.

        >>> qkv.analyse_heads("runs/lm", "text.txt", lines=3, importance=True).prune(1, "runs/pruned").out
        'runs/pruned'

        count: number of heads to remove from each attention.
        out: run directory to write; must not exist.

        Raises qkv.Error, a ValueError, if the report has no importance (the options importance or ablate="heads"), and if
        the run cannot lose these heads.
        """
        return PruneReport(*self._found.prune(count, os.fspath(out)))


def _with_changes(values: dict[str, Any]) -> dict[str, Any]:
    return {name: Change(**value) if isinstance(value, dict) else value for name, value in values.items()}


@documents_options("HeadsOptions")
def analyse_heads(
    run_directory: str | os.PathLike[str],
    data: str | os.PathLike[str] = "",
    **options: Unpack[HeadsOptions],
) -> HeadsReport:
    """Returns what the attention heads of a run do on texts or on a log, and the effect of removing them.

    docs/heads.md has the formulas.

    >>> report = qkv.analyse_heads("runs/en-de", "train.en", target="train.de", lines=5, ablate="heads")
    >>> report.kind, {head.kind for head in report.heads} == {"encoder", "decoder", "cross"}
    ('translator', True)
    >>> len(report.ablations) == len(report.heads)
    True

    run_directory: a run of any kind.
    data: file of texts, one per line; empty for a recommender, which has the log in its run.

    Raises qkv.Error, a ValueError, that names file and line, or the option, and TypeError for an unknown option.
    """
    values = {
        name: os.fspath(value) if isinstance(value, os.PathLike) else value for name, value in options.items()
    }
    return HeadsReport._of(_qkv.analyse_heads(os.fspath(run_directory), os.fspath(data), values))
