"""Evaluation of recommenders, of the baselines on logs, and of models of texts on rows."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any, Iterable, TypedDict, overload

from . import _qkv
from ._arguments import check_separator, check_text, checked_texts
from ._tables import Table, Tabular, is_tabular, listed, log_files, table_like

if TYPE_CHECKING:
    from typing_extensions import Unpack


class _Options(TypedDict, total=False):
    protocol: str | None
    next: int
    users: int | None
    validation: bool
    seed: int
    test_share: float
    segments: str | os.PathLike[str]
    lists: str | os.PathLike[str]
    columns: Iterable[str]
    min_events: int
    core: int
    separator: str
    time_format: str
    skip_bad_lines: bool


@overload
def evaluate(source: Table, **options: Unpack[_Options]) -> Table: ...


@overload
def evaluate(
    source: str | os.PathLike[str] | Iterable[str | os.PathLike[str]], **options: Unpack[_Options]
) -> dict[str, Any]: ...


@overload
def evaluate(source: Iterable[Table], **options: Unpack[_Options]) -> Table: ...


def evaluate(
    source: str | os.PathLike[str] | Tabular | Iterable[str | os.PathLike[str]] | Iterable[Tabular],
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
    separator: str = "",
    time_format: str = "",
    skip_bad_lines: bool = False,
) -> Any:
    """Evaluates the recommender of a run directory and the baselines, or the baselines alone on one or more logs.

    Returns what `qkv evaluate --json` prints; docs/evaluation-protocols.md describes it.

    >>> measures = qkv.evaluate("runs/films")
    >>> 0 <= measures["NDCG@10"] <= measures["HR@10"] <= 1
    True
    >>> "NDCG@10" in qkv.evaluate("log.csv", next=2)["baselines"]["popularity"]
    True

    source: a run directory, or a log or several. A log may be a table of pandas, polars or pyarrow, with columns as in
        a log; docs/interactions.md describes them. The result is a table of the same kind then: a row for each baseline
        and, with segments, each group of users, with the columns model, segment (with segments; "" for all users),
        users, and one for each measure.
    protocol: "full", "temporal", "users" or "sampled-N"; None is that of the run's split, for logs "full".
    next: number of targets, the first events of each user's held-out part; 0 is as many as the run holds out, 1 for logs.
    users: evaluates at most this many users, a sample by a hash of their names; 0 is all, None as many that
        users × items is at most 2e10, but at least 1000.
    validation: evaluates on the validation events instead of the test events.
    seed: of the random items of sampled-N.
    segments: also scores groups of users: "length", "popularity", or a file with lines user,segment.
    lists: a file to write the 20 best items of each user to, as user,item,rank.
    test_share, columns, min_events, core: how logs are split and read; a run has its own.
    separator, time_format, skip_bad_lines: how files are read: the text between columns, the format of the times in
        the directives of strptime, and whether lines that cannot be read are skipped and counted.

    Raises qkv.Error, a ValueError, for an invalid run, log or option.
    """
    sources = listed(source)
    check_text("time_format", time_format)
    check_separator(sources, separator)

    with log_files("source", sources, checked_texts("columns", columns)) as (paths, names):
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
                names,
                min_events,
                core,
                separator,
                time_format,
                skip_bad_lines,
            )
        )
    return table_like(sources[0], _columns(result)) if sources and is_tabular(sources[0]) else result


def _columns(result: dict[str, Any]) -> dict[str, list[Any]]:
    """Returns the measures of all models and groups of users as columns of a table."""
    rows = []
    for model, scores in result["baselines"].items():
        groups = {"": {"users": result["users"], **scores}, **scores.get("segments", {})}
        for segment, values in groups.items():
            rows.append({"model": model, "segment": segment, **values})
    names = [name for name in rows[0] if name != "segments"]
    if "segments" not in rows[0]:
        names.remove("segment")
    return {name: [row.get(name) for row in rows] for name in names}


def evaluate_texts(
    run_directory: str | os.PathLike[str],
    rows: str | os.PathLike[str],
    *,
    columns: Iterable[str] = (),
    label_separator: str = "",
    ranking: bool = False,
    device: str = "cpu",
    precision: str = "auto",
) -> dict[str, Any]:
    """Compares what a classifier or an embedder predicts for the rows of a file with what they have.

    Returns what `qkv evaluate --rows FILE --json` prints: compared ("labels", "sets of labels", "numbers", "rankings",
    "similarities" or "pairs"), rows, truncated, and the measures that training prints for dev rows. Of labels also
    labels, a list with label, rows, predicted, correct, precision, recall and f1 of each, and, of at most 256,
    confusion: how many rows of label i are taken for label j.

    >>> result = qkv.evaluate_texts("runs/sentiment", "labels.tsv")
    >>> result["compared"], 0 <= result["accuracy"] <= 1, len(result["confusion"]) == len(result["labels"])
    ('labels', True, True)

    rows: CSV, TSV or JSON lines, as for training: one or two texts and a label, labels or a number for a classifier; two
        texts and a score, or an anchor and its positive, for an embedder.
    columns: names or numbers of the columns; empty: usual names, or all.
    label_separator: text between several labels of a row; "" is that of the run's training.
    ranking: of a run that predicts numbers, measures how consecutive rows with the same first text are ranked, as a run
        that was trained to rank does.
    device, precision: as of Classifier.

    Raises qkv.Error, a ValueError, naming the run or the line of the file.
    """
    result: dict[str, Any] = json.loads(
        _qkv.evaluate_texts(
            os.fspath(run_directory),
            os.fspath(rows),
            checked_texts("columns", columns),
            label_separator,
            ranking,
            {"device": device, "precision": precision},
        )
    )
    return result
