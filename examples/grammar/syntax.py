"""The language-independent content of a sentence: noun phrases and clauses. english.py and german.py turn them into
text."""

from dataclasses import dataclass
from typing import Any, NamedTuple

from lexicon import Adjective, Modal, Noun, Verb


class Pronoun(NamedTuple):
    english: tuple   # I, me, my
    german: tuple    # nom, acc, dat
    possessive: str  # stem of mein
    reflexive: str
    person: int = 3
    plural: bool = False


def _pronoun(english, german, possessive, reflexive, person=3, plural=False):
    return Pronoun(tuple(english.split()), tuple(german.split()), possessive, reflexive, person, plural)


PRONOUNS = {
    "I": _pronoun("I me my", "ich mich mir", "mein", "mich", 1),
    "you": _pronoun("you you your", "du dich dir", "dein", "dich", 2),
    "he": _pronoun("he him his", "er ihn ihm", "sein", "sich"),
    "she": _pronoun("she her her", "sie sie ihr", "ihr", "sich"),
    "we": _pronoun("we us our", "wir uns uns", "unser", "uns", 1, True),
    "they": _pronoun("they them their", "sie sie ihnen", "ihr", "sich", 3, True),
}
# Things and animals are "it" in English, whatever their gender in German.
IT = {
    "m": _pronoun("it it its", "er ihn ihm", "sein", "sich"),
    "f": _pronoun("it it its", "sie sie ihr", "ihr", "sich"),
    "n": _pronoun("it it its", "es es ihm", "sein", "sich"),
}
WHO = _pronoun("who whom whose", "wer wen wem", "", "sich")
WHAT = _pronoun("what what", "was was", "", "sich")


@dataclass
class Name:
    name: str
    pronoun: str  # he or she
    person: int = 3
    plural: bool = False


@dataclass
class Phrase:
    """determiner number adjective noun relative: "the old men who sing". A possessive determiner is the owner's
    Pronoun; a Name or a Phrase as determiner is a genitive: "Anna's book", "das Buch der Frau"."""
    determiner: Any  # the a this every no which many all bare number, or the owner
    noun: Noun
    plural: bool = False
    adjective: Adjective | None = None
    number: tuple | None = None
    relative: Any = None  # (Clause, gap)
    person: int = 3

    @property
    def definite(self):
        return self.determiner in ("the", "this", "every", "all", "which") or not isinstance(self.determiner, str)


@dataclass
class Pair:
    """The phrase "first and second" or, with contrast, "not the first but the second"."""
    first: Any
    second: Any
    contrast: bool = False
    person: int = 3
    plural: bool = True
    definite = True


@dataclass
class Predicate:
    adjective: Adjective
    degree: tuple | None = None
    than: Any = None  # comparative


@dataclass
class Place:
    """A preposition in each language with a noun phrase, or fixed words: home, nach Hause. case: acc for a direction, dat
    for a location."""
    english: str
    german: str
    case: str = ""
    phrase: Any = None


@dataclass
class Clause:
    subject: Any
    verb: Verb
    tense: str = "present"  # present, past, future
    modal: Modal | None = None
    negative: bool = False
    passive: bool = False
    liking: bool = False        # likes to read, liest gern
    direct: Any = None
    indirect: Any = None
    predicate: Predicate | None = None
    often: tuple | None = None  # adverbs and times are pairs of words
    manner: tuple | None = None
    companion: Any = None       # with whom
    agent: Any = None           # of the passive
    place: Place | None = None
    time: tuple | None = None
    comment: tuple | None = None
    front: str = ""             # words before the verb in place of the subject: time, comment
    complement: tuple | None = None  # (that, whether, to or in order to; Clause)

    @property
    def third_singular(self):
        return self.subject.person == 3 and not self.subject.plural
