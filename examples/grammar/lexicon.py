"""Nouns, adjectives and verbs, read from the tables. Derives regular English forms."""

import re
from dataclasses import dataclass
from typing import NamedTuple

from tables import *


class Noun(NamedTuple):
    english: str
    english_plural: str | None  # None: a mass noun
    gender: str                 # m, f or n
    german: str
    german_plural: str
    weak: bool
    kind: str


class Adjective(NamedTuple):
    english: str
    english_comparative: str
    german: str
    german_comparative: str
    stem: str
    kinds: frozenset


@dataclass(frozen=True)
class Verb:
    base: str            # English: look
    past: str
    participle: str
    after: str           # directly after the verb: look for
    particle: str        # after a pronoun: pick him up
    infinitive: str      # German, without its prefix
    third: str           # third person singular if irregular, else ''
    prefix: str
    german_participle: str
    auxiliary: str       # haben or sein
    reflexive: bool
    preposition: str     # of its object, or ''
    case: str            # of its object
    objects: tuple       # the nouns it may take


class Modal(NamedTuple):
    english: str   # "can"; "have to", "want to": inflected; "be allowed to": with be; "would like to"
    german: str
    tenses: tuple


MODALS = (Modal("can", "können", ("present", "past")), Modal("have to", "müssen", ("present", "past")),
          Modal("want to", "wollen", ("present", "past")), Modal("be supposed to", "sollen", ("present", "past")),
          Modal("be allowed to", "dürfen", ("present", "past")), Modal("would like to", "möchten", ("present",)))


def _regular_past(base):
    if base.endswith("e"):
        return base + "d"
    if base.endswith("y") and base[-2] not in "aeiou":
        return base[:-1] + "ied"
    return base + "ed"


def _regular_plural(noun):
    if noun.endswith(("s", "x", "ch", "sh")):
        return noun + "es"
    if noun.endswith("y") and noun[-2] not in "aeiou":
        return noun[:-1] + "ies"
    return noun + "s"


def _read_nouns(table):
    nouns, kind = {}, None
    for line in table.strip().splitlines():
        if not line.startswith(" "):
            kind = line
            continue
        for english, article, german, weak, plural in re.findall(r"(\S+) = (der|die|das) (\w+)(\*?), (\w+|-)", line):
            singular, _, many = english.partition("/")
            mass = plural == "-"
            nouns[singular] = Noun(singular, None if mass else many or _regular_plural(singular),
                                   {"der": "m", "die": "f", "das": "n"}[article], german, plural, bool(weak), kind)
    return nouns


def _read_adjectives():
    adjectives = []
    for line in ADJECTIVES.strip().splitlines():
        english, german, kinds = (part.strip() for part in line.split("|"))
        plain, _, comparative = english.partition("/")
        form, german_comparative, *stem = german.split(", ")
        wanted = set(kinds.split())
        if "object" in wanted:
            wanted |= set(OBJECT_KINDS)
        adjectives.append(Adjective(plain, comparative or "more " + plain, form, german_comparative,
                                    stem[0] if stem else form, frozenset(wanted)))
    return adjectives


def _read_verbs(table, known):
    verbs = []
    for line in table.strip().splitlines():
        english, german, objects, *government = (part.strip() for part in line.split("|"))
        head, *rest = english.split()
        base, past, participle = (head.split("/") + ["", ""])[:3]
        past = past or _regular_past(base)
        particle = rest[0][1:] if rest and rest[0].startswith("+") else ""
        infinitive, *third, german_participle = german.split(", ")
        reflexive = infinitive.startswith("sich ")
        prefix, _, infinitive = infinitive.removeprefix("sich ").rpartition("+")
        auxiliary = "sein" if german_participle.startswith("ist ") else "haben"
        preposition, _, case = (government[0] if government else "acc").rpartition("+")
        nouns = tuple(n for n in known if n.kind in objects.split() or n.english in objects.split())
        if objects and not nouns:
            continue
        verbs.append(Verb(base, past, participle or past, "" if particle else " ".join(rest), particle, infinitive,
                          third[0] if third else "", prefix, german_participle.removeprefix("ist "), auxiliary,
                          reflexive, preposition, case, nouns))
    return verbs


BY_ENGLISH = _read_nouns(NOUNS)
BY_KIND = {kind: [n for n in BY_ENGLISH.values() if n.kind == kind] for kind in {n.kind for n in BY_ENGLISH.values()}}
ALL_ADJECTIVES = _read_adjectives()
_VERB_TABLES = (
    ("transitive", TRANSITIVE), ("giving", GIVING), ("intransitive", INTRANSITIVE), ("motion", MOTION),
    ("travel", TRAVEL), ("live", LIVE), ("position", POSITION), ("sitting", SITTING), ("putting", PUTTING),
    ("saying", SAYING), ("planning", PLANNING))
VERBS = {name: _read_verbs(table, BY_ENGLISH.values()) for name, table in _VERB_TABLES}
BE = Verb("be", "was", "been", "", "", "sein", "ist", "", "gewesen", "sein", False, "", "nom", ())


def enter(domain):
    """Replaces the nouns of some kinds by those of a domain, and drops the verbs that no noun is left for."""
    nouns = _read_nouns(DOMAINS[domain])
    kinds = {n.kind for n in nouns.values()}
    known = [n for n in BY_ENGLISH.values() if n.kind not in kinds] + list(nouns.values())
    BY_ENGLISH.update(nouns)
    for kind in kinds:
        BY_KIND[kind] = [n for n in nouns.values() if n.kind == kind]
    for name, table in _VERB_TABLES:
        VERBS[name] = _read_verbs(table, known)
