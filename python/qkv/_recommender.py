"""Recommendation with a run directory: the next items after a history, and items similar to one."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Iterable, overload

from . import _qkv
from ._analysis import HiddenStates
from ._arguments import check_text, checked_texts, checked_times, documents_options
from ._tables import Histories, Table, Tabular, is_tabular, table_like

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._options import RecommendOptions


@dataclass(frozen=True)
class Recommendation:
    """One recommended item.

    >>> best = qkv.Recommender("runs/films").recommend(["f0000", "f0010"], explain=True).items[0]
    >>> best.item[0], len(best.effects)
    ('f', 2)
    """

    item: str  # as named in the log
    score: float  # after softmax training a log-probability up to a constant; for popular items the number of events;
    # for similar items the cosine
    effects: list[float]  # with explain: for each event of Recommendations.read, the score minus the score without it


@dataclass(frozen=True)
class Recommendations:
    """The recommendations after one history.

    >>> answer = qkv.Recommender("runs/films").recommend(["f0000", "nothing"], top=3)
    >>> answer.read, answer.unknown, answer.popular, len(answer.names)
    (['f0000'], ['nothing'], False, 3)
    """

    items: list[Recommendation]  # best first; with diversity, in the order in which they were chosen
    popular: bool  # the history has no known item, and these are the most popular ones
    read: list[str]  # events that the model read, oldest first: the last known ones
    unknown: list[str]  # events that are not items of the model
    unknown_listed: list[str]  # entries of allow and deny that are not items of the model

    @property
    def names(self) -> list[str]:
        """The names of the items, best first."""
        return [item.item for item in self.items]


class Recommender:
    """A model with its catalogue and log, from a run directory. Methods are thread-safe.

    >>> recommender = qkv.Recommender("runs/films", catalogue="titles.csv")
    >>> recommender.users[:2], recommender.max_length
    (['u0000', 'u0001'], 20)
    >>> len(recommender.recommend(["f0000"], where=["genre=Crime"], top=3).names)
    3

    catalogue: a table of attributes of items for the option where: CSV, or separated by tabs or "::", with the names of
        the columns in the first row.
    item_column: the column of the items in the catalogue, a name or a number from 1; by default the first.
    new_items: a table of items that joined after training, with the feature columns that the run was trained with. They
        get vectors from their features, and can be recommended and stand in histories like other items.
    before: "test" or "validation": only the events before this held-out part are counted and are histories of users, as
        in qkv.evaluate. By default all events of the log are; do not compare such lists with held-out events.

    device: where the model computes: "cpu"; "cuda", a device plugin; or "auto", which is "cuda" if a plugin finds a
        device.
    precision: what a device computes with, "float32" or "bfloat16"; "auto" is bfloat16. The CPU computes with float32.

    Raises qkv.Error, a ValueError, naming the file, if the run is incomplete or damaged, or the table is invalid.
    """

    messages: list[str]  # what was found when tables were read
    items: list[str]  # in the order of their ids; new items follow
    users: list[str]
    max_length: int  # maximum number of events that the model reads

    def __init__(
        self,
        run_directory: str | os.PathLike[str],
        *,
        catalogue: str | os.PathLike[str] | None = None,
        item_column: str = "",
        new_items: str | os.PathLike[str] | None = None,
        before: str = "",
        device: str = "cpu",
        precision: str = "auto",
    ) -> None:
        tables = ["" if path is None else os.fspath(path) for path in (catalogue, new_items)]
        check_text("item_column", item_column)
        check_text("before", before)
        placement = {"device": device, "precision": precision}
        self._recommender = _qkv.Recommender(os.fspath(run_directory), tables[0], item_column, tables[1], before, placement)
        self.messages = self._recommender.messages()
        self.items, self.users = self._recommender.items(), self._recommender.users()
        self.max_length = self._recommender.max_length()

    def history(self, user: str) -> list[str]:
        """Returns the items of the events of a user of the log, in time order.

        >>> recommender = qkv.Recommender("runs/films")
        >>> recommender.history("u0000")[:2]
        ['f0174', 'f0175']
        >>> answer = recommender.recommend(recommender.history("u0000") + ["f0010"])  # and one more event

        Raises qkv.Error for an unknown user.
        """
        return self._recommender.history(_checked(user))

    def times(self, user: str) -> list[int | None]:
        """Returns the times of these events in the unit of the log; None for each in a log without times.

        >>> qkv.Recommender("runs/films").times("u0000")[:2]
        [1553349008, 1553417733]

        Raises qkv.Error for an unknown user.
        """
        return self._recommender.times(_checked(user))

    def recommend(
        self,
        history: Iterable[str],
        *,
        times: Iterable[int | None] | None = None,
        **options: Unpack[RecommendOptions],
    ) -> Recommendations:
        """Recommends the next items after a history of item names, oldest first; see recommend_all.

        >>> answer = qkv.Recommender("runs/films").recommend(["f0000", "f0010"], top=5, deny=["f0001"])
        >>> len(answer.names), "f0001" in answer.names
        (5, False)
        """
        return self.recommend_all([history], times=None if times is None else [times], **options)[0]

    @overload
    def recommend_all(
        self, histories: Table, *, columns: Iterable[str] = (), **options: Unpack[RecommendOptions]
    ) -> Table: ...

    @overload
    def recommend_all(
        self,
        histories: Iterable[Iterable[str]],
        *,
        times: Iterable[Iterable[int | None]] | None = None,
        **options: Unpack[RecommendOptions],
    ) -> list[Recommendations]: ...

    @documents_options("RecommendOptions")
    def recommend_all(
        self,
        histories: Iterable[Iterable[str]] | Tabular,
        *,
        times: Iterable[Iterable[int | None]] | None = None,
        columns: Iterable[str] = (),
        **options: Unpack[RecommendOptions],
    ) -> Any:
        """Recommends for many histories; result i belongs to history i and does not depend on the others.

        Unknown events are reported and ignored. A history without a known event gets the most popular items. Ctrl-C stops
        the call after a few hundred histories.

        >>> answers = qkv.Recommender("runs/films").recommend_all([["f0000", "f0010"], []], top=2)
        >>> [len(answer.items) for answer in answers], [answer.popular for answer in answers]
        ([2, 2], [False, True])

        times: for each history the time of each event in the unit of the log, or None; used by models that were trained
            with time_gaps.
        histories: lists of item names, oldest first; or a table of pandas, polars or pyarrow, with a row for each
            event, as in a log. The result is a table of the same kind then, with the columns of users and items, named
            as in the table, rank (from 1) and score; users are in the order of the table.
        columns: of the table: user, item and time, or the first two, as for a log; without it, they are found by usual
            names. Events are sorted by time; without a time they are in the order of the table. Times are integers,
            floats or timestamps; timestamps count seconds.

        Raises qkv.Error, a ValueError, that names the argument, column, row or option, and TypeError for an unknown
        option.
        """
        if is_tabular(histories):
            if times is not None:
                raise _qkv.Error("times must be a column of the table (are given separately)")
            return self._recommend_table(histories, checked_texts("columns", columns), options)
        if columns:
            raise _qkv.Error("columns requires that histories is a table")
        found = [checked_texts(f"histories[{i}]", history) for i, history in enumerate(histories)]  # type: ignore[arg-type]
        when = [[] for _ in found] if times is None else [checked_times(f"times[{i}]", t) for i, t in enumerate(times)]
        if len(when) != len(found):
            raise _qkv.Error(f"times must be given for each of {len(found)} histories (are given for {len(when)})")
        return [_recommendations(r) for r in self._recommender.recommend_all(found, when, dict(options))]

    def _recommend_table(self, table: Any, columns: list[str], options: RecommendOptions) -> Any:
        if options.get("explain"):
            raise _qkv.Error("explain requires that histories are lists: a table has no column for effects")
        read = Histories("histories", table, columns)
        answers = self._recommender.recommend_all(read.items, read.times, dict(options))
        ranked = [(user, rank, x) for user, a in zip(read.users, answers) for rank, x in enumerate(a.items, 1)]
        user, item = read.columns
        return table_like(
            table,
            {
                user: [user for user, _, _ in ranked],
                item: [read.item(x.item) for _, _, x in ranked],
                "rank": [rank for _, rank, _ in ranked],
                "score": [x.score for _, _, x in ranked],
            },
        )

    def basket(self, items: Iterable[str]) -> list[str]:
        """Returns items of events at the same time in the order in which a history should have them.

        It does not depend on the order in which they are given: by id, without duplicates, and then the unknown ones.

        >>> recommender = qkv.Recommender("runs/films")
        >>> basket = recommender.basket(["nothing", "f0010", "f0000", "f0010"])
        >>> sorted(basket[:2]), basket[2]
        (['f0000', 'f0010'], 'nothing')
        """
        return self._recommender.basket(checked_texts("items", items))

    @documents_options("RecommendOptions")
    def similar(self, item: str, **options: Unpack[RecommendOptions]) -> Recommendations:
        """Returns the items whose vectors have the largest cosines to that of an item, without that item.

        exclude_seen has no effect, and explain is refused.

        >>> found = qkv.Recommender("runs/films").similar("f0000", top=3)
        >>> len(found.names), -1.001 < found.items[0].score < 1.001
        (3, True)

        Raises qkv.Error for an unknown item.
        """
        check_text("item", item)
        return _recommendations(self._recommender.similar(item, dict(options)))

    def hidden(self, history: Iterable[str], *, times: Iterable[int | None] | None = None) -> HiddenStates:
        """Returns the hidden states of all layers for a history, of which the model reads the last max_length events.

        Its pieces are the items. The score of an item is the product of its vector and the last state of the last event, to
        which recommend adds transitions if the run has some.

        >>> states = qkv.Recommender("runs/films").hidden(["f0000", "f0010"])
        >>> states.pieces, states.values.shape[1]  # layers + 1, events, width
        (['f0000', 'f0010'], 2)

        times: the time of each event, as of recommend.

        Raises qkv.Error for an empty history and for an unknown item.
        """
        when = [] if times is None else checked_times("times", times)
        return HiddenStates._of(self._recommender.hidden(checked_texts("history", history), when))


def _checked(user: str) -> str:
    check_text("user", user)
    return user


def _recommendations(r: _qkv.Recommendations) -> Recommendations:
    items = [Recommendation(item.item, item.score, item.effects) for item in r.items]
    return Recommendations(items, r.popular, r.read, r.unknown, r.unknown_listed)
