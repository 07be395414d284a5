#!/usr/bin/env python3
"""Writes log.csv (user,item,timestamp) and titles.csv (item,title,genre). The same seed gives the same bytes.

    python3 generate.py [--out DIRECTORY]

The films and users are fictional. Each film is part of a series, each series has a genre, and the genres form a ring.
A user watches one or two series in order, alternating between them with a personal preference, and occasionally an
unrelated film. After finishing a series, the user starts another one of the same genre or, as tastes drift, of a
neighbouring genre. The last film alone therefore predicts the next one less well than the whole history.
"""

import argparse
import pathlib
import random

SEED = 2018
USERS = 3000
SHORTEST, LONGEST = 15, 60  # films per user
PARTS = 6  # films per series
ASIDE = 0.05  # share of unrelated films
DRIFT = 0.35  # share of new series from a neighbouring genre
SECOND = 0.6  # share of users who watch two series at a time

OPENINGS = ["Silent", "Golden", "Seven", "Last", "Hidden", "Winter", "Burning", "Distant"]
GENRES = {
    "Crime": ["Harbour", "Witness"],
    "Thriller": ["Signal", "Corridor"],
    "Science fiction": ["Orbit", "Colony"],
    "Adventure": ["Island", "Compass"],
    "Fantasy": ["Dragon", "Crown"],
    "Family": ["Puppy", "Holiday"],
    "Comedy": ["Wedding", "Neighbour"],
    "Romance": ["Letter", "Summer"],
    "Drama": ["Orchard", "Daughter"],
    "Mystery": ["Lighthouse", "Key"],
}


class Films:
    """The catalogue: series by genre, each a list of item ids, and (item, title, genre) of every film."""

    def __init__(self):
        self.series, self.titles = [], []
        for genre, nouns in GENRES.items():
            self.series.append([])
            for name in (f"{opening} {noun}" for noun in nouns for opening in OPENINGS):
                parts = [f"f{len(self.titles) + part:04}" for part in range(PARTS)]
                self.titles += [(item, f"{name}, Part {part + 1}", genre) for part, item in enumerate(parts)]
                self.series[-1].append(parts)


def below(draw, count):
    return int(draw.random() * count)  # random() is the same in every version of Python


def history(films, draw):
    """Returns the films of one user in order, without repetition."""
    genre = below(draw, len(GENRES))
    seen, watched, opened = [], set(), []

    def open_series():
        nonlocal genre
        if draw.random() < DRIFT:
            genre = (genre + (1 if draw.random() < 0.5 else -1)) % len(GENRES)
        fresh = [series for series in films.series[genre] if series[0] not in watched]
        return list(fresh[below(draw, len(fresh))]) if fresh else []

    wanted = SHORTEST + below(draw, LONGEST - SHORTEST + 1)
    width = 2 if draw.random() < SECOND else 1
    loyalty = 0.3 + 0.6 * draw.random()  # probability of continuing the series that was watched last
    while len(seen) < wanted:
        if draw.random() < ASIDE:
            item = films.titles[below(draw, len(films.titles))][0]
        else:
            opened = [series for series in opened if series]
            if len(opened) < width:
                opened.append(open_series())
            turn = opened[-1] if len(opened) < 2 or draw.random() < loyalty else opened[0]
            opened.sort(key=lambda series: series is turn)  # the last entry was watched last
            if not turn:
                continue
            item = turn.pop(0)
        if item not in watched:
            watched.add(item)
            seen.append(item)
    return seen


def write(directory):
    films, draw = Films(), random.Random(SEED)
    events = []
    for user in range(USERS):
        time = 1_500_000_000 + below(draw, 100_000_000)
        for item in history(films, draw):
            time += 3600 + below(draw, 200_000)
            events.append((f"u{user:04}", item, time))
    directory.mkdir(parents=True, exist_ok=True)
    log = "".join(f"{user},{item},{time}\n" for user, item, time in events)
    titles = "".join(f'{item},"{title}",{genre}\n' for item, title, genre in films.titles)
    (directory / "log.csv").write_bytes(("user,item,timestamp\n" + log).encode())
    (directory / "titles.csv").write_bytes(("item,title,genre\n" + titles).encode())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Write the example log of films.")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("films"), help="directory")
    write(parser.parse_args().out)
