"""Evaluation of recommenders and of the baselines on logs."""

from __future__ import annotations

import json
import os
from typing import Any, Iterable

from . import _qkv
from ._arguments import checked_texts


def evaluate(
    source: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    *,
    protocol: str | None = None,
    next: int = 0,
    users: int | None = None,
    validation: bool = False,
    seed: int = 1,
    test_share: float = 0.1,
    segments: str | os.PathLike[str] = "",
    lists: str | os.PathLike[str] = "",
    columns: Iterable[str] = (),
    min_events: int = 3,
    core: int = 0,
) -> dict[str, Any]:
    """Evaluates the recommender of a run directory and the baselines, or the baselines alone on one or more logs.

    Returns what `qkv evaluate --json` prints; docs/evaluation-protocols.md describes it. Raises qkv.Error for an invalid
    run, log or option.

    source: a run directory, or a log or several.
    protocol: "full", "temporal", "users" or "sampled-N"; None is that of the run's split, for logs "full".
    next: number of targets, the first events of each user's held-out part; 0 is as many as the run holds out, 1 for logs.
    users: evaluates at most this many users, a sample by a hash of their names; 0 is all, None as many that
        users × items is at most 2e10, but at least 1000.
    validation: evaluates on the validation events instead of the test events.
    seed: of the random items of sampled-N.
    segments: also scores groups of users: "length", "popularity", or a file with lines user,segment.
    lists: a file to write the 20 best items of each user to, as user,item,rank.
    test_share, columns, min_events, core: how logs are split and read; a run has its own.
    """
    names = [source] if isinstance(source, (str, os.PathLike)) else list(source)
    paths = [os.fspath(name) for name in names]
    run = paths[0] if len(paths) == 1 and os.path.isdir(paths[0]) else ""
    result: dict[str, Any] = json.loads(
        _qkv.evaluate(
            run,
            paths,
            protocol or "",
            next,
            -1 if users is None else users,
            validation,
            seed,
            test_share,
            os.fspath(segments),
            os.fspath(lists),
            checked_texts("columns", columns),
            min_events,
            core,
        )
    )
    return result
