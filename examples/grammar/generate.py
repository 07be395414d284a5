#!/usr/bin/env python3
"""Writes {train,dev,test}.{en,de}, one sentence per line. The same seed gives the same bytes.

    python3 generate.py [--out DIRECTORY] [--domain workshop]

Pairs of a verb and its object or of an adjective and its noun are split by a hash: one in ten is held out of train and
dev. The first half of the test set are new sentences without a held-out pair, the second half are sentences with at
least one. No English or German sentence is repeated, within or across the sets.

With --annotations, test.align gets word alignments of the test pairs (lines of i-j), test.conllu the syntax trees of
their English side, and test.de.conllu those of their German side, which `qkv heads` reads (docs/heads.md).

With --domain the sentences are about other things, with the same grammar: a smaller corpus, to which a translator that
was trained on the first one can be adapted (docs/fine-tuning.md).
"""

import argparse
import hashlib
import pathlib
import random

import lexicon
from annotations import Annotation, RecordingGrammar
from grammar import Grammar

SEED = 2017
SIZES = 20000, 500, 1000        # lines of train, dev and test
DOMAIN_SIZES = 4000, 200, 500   # the same of a domain
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


def splits(sizes=SIZES, grammar=None):
    """Returns {"train": [(English, German), ...], "dev": ..., "test": ...}."""
    train, dev, test = sizes
    known, novel = [], []
    wanted_known, wanted_novel = train + dev + test // 2, test - test // 2
    for english, german, is_novel in sentences(grammar or Grammar(random.Random(SEED))):
        (novel if is_novel else known).append((english, german))
        if len(known) >= wanted_known and len(novel) >= wanted_novel:
            break
    return {"train": known[:train], "dev": known[train:train + dev],
            "test": known[train + dev:wanted_known] + novel[:wanted_novel]}


def write(directory, sizes=SIZES):
    for name, pairs in splits(sizes).items():
        for side, language in enumerate(("en", "de")):
            text = "".join(pair[side] + "\n" for pair in pairs)
            (directory / f"{name}.{language}").write_bytes(text.encode())


def annotations(sizes=SIZES):
    """Returns an Annotation of each test pair."""
    grammar = RecordingGrammar(random.Random(SEED))
    return [Annotation(*pair, grammar.derivations[pair[0]]) for pair in splits(sizes, grammar)["test"]]


def write_annotations(directory, sizes=SIZES):
    of_test = annotations(sizes)
    (directory / "test.align").write_bytes("".join(a.alignment() + "\n" for a in of_test).encode())
    (directory / "test.conllu").write_bytes("".join(a.tree() for a in of_test).encode())
    (directory / "test.de.conllu").write_bytes("".join(a.german_tree() for a in of_test).encode())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Write the English-German example corpus.")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parent, help="directory")
    parser.add_argument("--domain", choices=sorted(lexicon.DOMAINS), help="write a corpus of this domain instead")
    parser.add_argument("--annotations", action="store_true",
                        help="also write test.align, test.conllu and test.de.conllu: alignments and trees of the test pairs")
    options = parser.parse_args()
    if options.domain:
        lexicon.enter(options.domain)
    options.out.mkdir(parents=True, exist_ok=True)
    sizes = DOMAIN_SIZES if options.domain else SIZES
    write(options.out, sizes)
    if options.annotations:
        write_annotations(options.out, sizes)
