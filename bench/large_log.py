#!/usr/bin/env python3
"""Writes a log of lines `user item` in the order of time, of any size, in constant memory.

    python3 bench/large_log.py --out LOG --users 1000000 --items 100000 --events 10    # events of a user, on average

Items form series of ten. Which series starts next follows a Zipf law. A user continues the series at hand with
probability --follow, where the part that comes next is by far the likeliest of the parts ahead; otherwise, and after
the last part, the user starts another series. With probability --repeat an event is one of the user's own earlier items. Half of the
users have a second series in mind and take turns, so that the last item alone says less than the history. The length
of a history is 2 plus a geometric number. The same options give the same bytes.
"""

import argparse
import random
import sys

PARTS = 10  # items of a series
AHEAD = [0.8, 0.95]  # the next part is one ahead with probability .8, two with .15, three with .05


class Zipf:
    """Draws 0 … n − 1 with probability about 1 / (k + 10), by inversion of the continuous law."""

    def __init__(self, n):
        self.n, self.ratio = n, (n + 10) / 10

    def draw(self, rng):
        return min(self.n - 1, int(10 * self.ratio ** rng.random() - 10))


def history(rng, length, series, items, follow, repeat):
    """Returns the items of one user, as numbers."""
    minds = [series.draw(rng) * PARTS for _ in range(2 if rng.random() < 0.5 else 1)]
    events = []
    for i in range(length):
        if events and rng.random() < repeat:
            events.append(events[int(len(events) * rng.random() ** 0.5)])  # recent ones are likelier
            continue
        mind = i % len(minds)
        here = following = minds[mind]
        if rng.random() < follow:
            draw = rng.random()
            following = here + 1 + sum(draw >= bound for bound in AHEAD)
        continues = following > here and following // PARTS == here // PARTS
        minds[mind] = following if continues else series.draw(rng) * PARTS
        events.append(min(here, items - 1))
    return events


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", default="-", help="file to write (default: standard output)")
    parser.add_argument("--users", type=int, default=100_000, help="number of users (default: %(default)s)")
    parser.add_argument("--items", type=int, default=10_000, help="number of items (default: %(default)s)")
    parser.add_argument("--events", type=float, default=10, help="mean events of a user, at least 2 (default: %(default)s)")
    parser.add_argument("--follow", type=float, default=0.6, help="share of events that continue (default: %(default)s)")
    parser.add_argument("--repeat", type=float, default=0, help="share of repetitions (default: %(default)s)")
    parser.add_argument("--longest", type=int, default=200, help="most events of a user (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="seed (default: %(default)s)")
    args = parser.parse_args()
    if args.users < 1 or args.items < 1 or args.events < 2 or not 0 <= args.repeat < 1 or not 0 <= args.follow <= 1:
        parser.error("users and items must be at least 1, events at least 2, follow and repeat shares")
    rng = random.Random(args.seed)
    series = Zipf(max(1, args.items // PARTS))
    more = (args.events - 2) / (args.events - 1)  # a geometric number of mean events − 2
    out = sys.stdout if args.out == "-" else open(args.out, "w", encoding="ascii", newline="\n")
    with out:
        for user in range(args.users):
            length = 2
            while length < args.longest and rng.random() < more:
                length += 1
            events = history(rng, length, series, args.items, args.follow, args.repeat)
            out.write("".join(f"{user} {item}\n" for item in events))


if __name__ == "__main__":
    main()
