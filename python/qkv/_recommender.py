"""Recommending with a trained run directory: the next items after a history."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any, Iterable

from . import _qkv
from ._arguments import checked_texts, checked_times, set_options


@dataclass(frozen=True)
class Recommendation:
    """One item that is suggested."""

    item: str  # as the log names it
    score: float  # after softmax training a logarithm up to a constant; of popular items their events
    effects: list[float]  # if asked for: of each event of Recommendations.read, the score less what it is without it


@dataclass(frozen=True)
class Recommendations:
    """The suggestions after one history, and what became of it."""

    items: list[Recommendation]  # the best first
    popular: bool  # the history has no known item: these are the items with the most events
    read: list[str]  # the events that the model read, oldest first: the last known ones
    unknown: list[str]  # events that name no item of the model
    unknown_listed: list[str]  # entries of allow and deny that name none

    @property
    def names(self) -> list[str]:
        """The items' names, the best first."""
        return [item.item for item in self.items]


class Recommender:
    """A model with its catalogue and log, from a run directory. Any number of threads may call it at the same time.

    Raises qkv.Error, a ValueError, naming the file, if the directory does not hold a whole and sound run.
    """

    items: list[str]  # in the order of their ids
    users: list[str]
    max_length: int  # events of a history that the model reads, at most

    def __init__(self, run_directory: str | os.PathLike[str]) -> None:
        self._recommender = _qkv.Recommender(os.fspath(run_directory))
        self.items, self.users = self._recommender.items(), self._recommender.users()
        self.max_length = self._recommender.max_length()

    def history(self, user: str) -> list[str]:
        """All events of a user of the log, in time order. Raises qkv.Error for another user."""
        return self._recommender.history(checked_texts("history", "user", [user])[0])

    def times(self, user: str) -> list[int | None]:
        """When each of these events was, in the unit of the log; None for each in a log without times."""
        return self._recommender.times(checked_texts("times", "user", [user])[0])

    def recommend(
        self, history: Iterable[str], *, times: Iterable[int | None] | None = None, **options: Any
    ) -> Recommendations:
        """What comes after a history of item names, oldest first; the options are those of recommend_all."""
        return self.recommend_all([history], times=None if times is None else [times], **options)[0]

    def recommend_all(
        self,
        histories: Iterable[Iterable[str]],
        *,
        times: Iterable[Iterable[int | None]] | None = None,
        top: int = 10,
        exclude_seen: bool = True,
        allow: Iterable[str] | None = None,
        deny: Iterable[str] = (),
        explain: bool = False,
    ) -> list[Recommendations]:
        """Result i is for history i, the same alone and in any company.

        times: of each history the time of each event in the unit of the log, None for one that has none; or no times at
            all. Models that were trained with time_gaps read them.
        top: items wanted; there are fewer where the catalogue has no more.
        exclude_seen: suggest no item that the history holds anywhere.
        allow: suggest these items alone. deny: suggest none of these.
        explain: fill Recommendation.effects, which costs the model as many passes as the history has events.
        Unknown events are reported, and the others count; a history with no known event gets the popular items.
        Ctrl-C stops it after some hundred histories.
        """
        found = [checked_texts("recommend", f"event of history {i + 1}, number", h) for i, h in enumerate(histories)]
        when = [[] for _ in found] if times is None else [checked_times("recommend", t) for t in times]
        if len(when) != len(found):
            raise _qkv.Error(f"recommend: times of {len(when)} histories for {len(found)}, wanted as many")
        options = set_options(
            _qkv.RecommendOptions(),
            "recommend",
            top=top,
            exclude_seen=exclude_seen,
            allow=None if allow is None else checked_texts("recommend", "item of allow, number", allow),
            deny=checked_texts("recommend", "item of deny, number", deny),
            explain=explain,
        )
        return [_recommendations(r) for r in self._recommender.recommend_all(found, when, options)]


def _recommendations(r: _qkv.Recommendations) -> Recommendations:
    items = [Recommendation(item.item, item.score, item.effects) for item in r.items]
    return Recommendations(items, r.popular, r.read, r.unknown, r.unknown_listed)
