#!/usr/bin/env python3
"""Writes log.csv (user,item,timestamp) and titles.csv (item,title,genre): the same bytes from the same seed.

    python3 generate.py [--out DIRECTORY]

Films that nobody made, watched by people who do not exist. A film is a part of a series, a series has a genre, and the
genres lie in a ring. Somebody has one or two series open, which they watch in order, taking turns between them in their
own way; now and then a film comes that has nothing to do with it. Who has finished a series opens another one of the
genre, or, as tastes drift, of the one beside it. So the last film alone says less about the next one than the films
before it do.
"""

import argparse
import pathlib
import random

SEED = 2018
USERS = 3000
SHORTEST, LONGEST = 15, 60  # films of a user
PARTS = 6  # of a series
ASIDE = 0.05  # films that have nothing to do with the rest
DRIFT = 0.35  # of the series that follow, those of a genre beside the last one
SECOND = 0.6  # of the people, those with two series open

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
    """What one user watches, in order, no film twice."""
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
    loyalty = 0.3 + 0.6 * draw.random()  # to the series that was watched last
    while len(seen) < wanted:
        if draw.random() < ASIDE:
            item = films.titles[below(draw, len(films.titles))][0]
        else:
            opened = [series for series in opened if series]
            if len(opened) < width:
                opened.append(open_series())
            turn = opened[-1] if len(opened) < 2 or draw.random() < loyalty else opened[0]
            opened.sort(key=lambda series: series is turn)  # the last one is the one that was watched last
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
