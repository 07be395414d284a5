#!/usr/bin/env python3
"""Writes {train,dev,test}.{en,de}, one sentence per line. The same seed gives the same bytes.

    python3 generate.py [--out DIRECTORY]

Pairs of a verb and its object or of an adjective and its noun are split by a hash: one in ten is held out of train and
dev. The first half of the test set are new sentences without a held-out pair, the second half are sentences with at
least one. No English or German sentence is repeated, within or across the sets.
"""

import argparse
import hashlib
import pathlib
import random

from grammar import Grammar

SEED = 2017
TRAIN, DEV, TEST = 20000, 500, 1000
SHORTEST, LONGEST = 4, 18  # words


def held_out(link):
    return hashlib.sha256(" ".join(link).encode()).digest()[0] < 26


def sentences(grammar):
    """Yields (English, German, contains a held-out pair) without end; no text is repeated."""
    seen = set()
    while True:
        english, german, links = grammar.draw()
        lengths = len(english.split()), len(german.split())
        if min(lengths) < SHORTEST or max(lengths) > LONGEST or english in seen or german in seen:
            continue
        seen |= {english, german}
        yield english, german, any(map(held_out, links))


def splits():
    """Returns {"train": [(English, German), ...], "dev": ..., "test": ...}."""
    known, novel = [], []
    wanted_known, wanted_novel = TRAIN + DEV + TEST // 2, TEST - TEST // 2
    for english, german, is_novel in sentences(Grammar(random.Random(SEED))):
        (novel if is_novel else known).append((english, german))
        if len(known) >= wanted_known and len(novel) >= wanted_novel:
            break
    return {"train": known[:TRAIN], "dev": known[TRAIN:TRAIN + DEV],
            "test": known[TRAIN + DEV:wanted_known] + novel[:wanted_novel]}


def write(directory):
    for name, pairs in splits().items():
        for side, language in enumerate(("en", "de")):
            text = "".join(pair[side] + "\n" for pair in pairs)
            (directory / f"{name}.{language}").write_bytes(text.encode())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Write the English-German example corpus.")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parent, help="directory")
    write(parser.parse_args().out)
