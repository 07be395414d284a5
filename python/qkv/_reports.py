"""Reports of training: for callbacks, for a progress bar, and as its result."""

from __future__ import annotations

import importlib
from dataclasses import dataclass, field
from typing import Any, Callable

from . import _qkv


@dataclass(frozen=True)
class StepReport:
    """One training step.

    >>> report = qkv.StepReport(step=1, epoch=1, max_steps=100, loss=5.0, nll=4.9, learning_rate=0.001,
    ...                         gradient_norm=1.0, target_tokens=200, seconds=0.1, tokens_per_second=2000.0)
    >>> f"{report.step} of {report.max_steps}: loss {report.loss}"
    '1 of 100: loss 5.0'
    """

    step: int  # from 1
    epoch: int  # from 1
    max_steps: int  # 0: no limit
    loss: float  # per target token, natural logarithm
    nll: float  # the same without label smoothing and other terms of the loss
    learning_rate: float
    gradient_norm: float
    target_tokens: int  # of this step
    seconds: float  # since the start of the run, including the time before it was resumed
    tokens_per_second: float  # of this step
    noise_scale: float = 0.0  # target tokens above which a larger step gains little; 0: unknown, as with one shard
    skipped_steps: int = 0  # so far: steps that were not applied because their loss or gradient was not finite
    rollbacks: int = 0  # so far: returns to an earlier state after a loss far above the recent ones


@dataclass(frozen=True)
class EvaluationReport:
    """One evaluation on the dev data.

    >>> report = qkv.EvaluationReport(step=500, candidates={"last": {"loss": 2.1, "bleu": 20.5}}, baselines={},
    ...                               best="last", improved=True)
    >>> report.measures["bleu"]
    20.5
    """

    step: int
    candidates: dict[str, dict[str, float]]  # measures of "last" and, if they were evaluated, "average" and "ema"
    baselines: dict[str, dict[str, float]]  # the same of simpler models, for recommenders
    best: str  # name of the best candidate
    improved: bool  # it is the best so far, and becomes the model of the run

    @property
    def measures(self) -> dict[str, float]:
        """The measures of the best candidate: "loss", "bleu", "NDCG@10", …"""
        return self.candidates[self.best]


@dataclass(frozen=True)
class TrainingResult:
    """The result of a training function.

    >>> result = qkv.train_language_model("text.txt", "runs/result", max_steps=2, progress=False)
    >>> result.finished, result.steps, result.evaluation.step
    (True, 2, 2)
    """

    run: str  # path of the run directory
    finished: bool  # False: a callback stopped it
    steps: int  # that were taken by this call
    evaluation: EvaluationReport | None  # the last one of this call
    messages: list[str] = field(repr=False)  # lines about the data, memory, the reason for the end, …


class ProgressBar:
    """A bar of tqdm, which appears with the first step; none if tqdm is not installed."""

    def __init__(self, progress: bool | None) -> None:
        self._make: Any = None
        self._bar: Any = None
        if progress is False:
            return
        try:
            self._make = importlib.import_module("tqdm.auto").tqdm
        except ImportError:
            if progress:
                raise _qkv.Error("progress is True, which requires the package tqdm") from None

    def step(self, report: StepReport) -> None:
        if self._make is None:
            return
        if self._bar is None:
            self._bar = self._make(total=report.max_steps or None, initial=report.step - 1, unit="step")
        self._bar.set_postfix(loss=f"{report.loss:.3f}", refresh=False)
        self._bar.update(1)

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()


class Reporter:
    """Passes reports on to callbacks and a progress bar, and keeps what a TrainingResult has."""

    def __init__(
        self,
        on_step: Callable[[StepReport], object] | None,
        on_evaluation: Callable[[EvaluationReport], object] | None,
        on_message: Callable[[str], object] | None,
        progress: bool | None,
    ) -> None:
        self._on_step, self._on_evaluation, self._on_message = on_step, on_evaluation, on_message
        self._bar = ProgressBar(progress)
        self.steps, self.messages = 0, list[str]()
        self.evaluation: EvaluationReport | None = None

    def __enter__(self) -> Reporter:
        return self

    def __exit__(self, *error: object) -> None:
        self._bar.close()

    def callables(self) -> tuple[Callable[..., bool], ...]:
        """The functions that _qkv calls; a true result stops training."""
        return self._message, self._step, self._evaluation

    def _message(self, line: str) -> bool:
        self.messages.append(line)
        if self._on_message is not None:
            self._on_message(line)
        return False

    def _step(self, found: _qkv.StepReport) -> bool:
        self.steps += 1
        report = StepReport(
            found.step, found.epoch, found.max_steps, found.loss, found.nll, found.learning_rate, found.gradient_norm,
            found.target_tokens, found.seconds, found.tokens_per_second, found.noise_scale,
            found.skipped_steps, found.rollbacks,
        )
        self._bar.step(report)
        return self._on_step is not None and bool(self._on_step(report))

    def _evaluation(self, found: _qkv.EvaluationReport) -> bool:
        candidates = {name: dict(measures) for name, measures in found.candidates}
        baselines = {name: dict(measures) for name, measures in found.baselines}
        self.evaluation = EvaluationReport(found.step, candidates, baselines, found.best, found.improved)
        return self._on_evaluation is not None and bool(self._on_evaluation(self.evaluation))
