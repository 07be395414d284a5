"""Draws noun phrases and clauses for sentences that are grammatical, if not always sensible."""

import lexicon as lex
from english import words
from syntax import IT, PRONOUNS, WHO, Clause, Name, Pair, Phrase, Place, Predicate, Pronoun

TENSES = ("present", "past", "future")
FIRST_AND_SECOND = (PRONOUNS["I"], PRONOUNS["we"], PRONOUNS["you"])


# Relative frequencies of the kinds of verbs.
FRAMES = {"transitive": 12, "giving": 2.5, "intransitive": 2.5, "motion": 1.2, "travel": 1, "live": 0.7,
          "position": 0.7, "sitting": 0.8, "putting": 1, "quality": 2}


class Redraw(Exception):
    """Raised if the drawn words do not fit together; another sentence must be drawn."""


class Clauses:
    """Draws words and phrases. Uses only random() of a random.Random, which is the same in all versions of Python."""

    def __init__(self, random):
        self.random = random
        self.used = set()   # nouns and names of this sentence; none is used twice
        self.links = set()  # (verb or adjective, noun) pairs of this sentence

    # Drawing

    def one(self, choices, weights=None):
        if not weights:
            return choices[int(self.random.random() * len(choices))]
        mark = self.random.random() * sum(weights)
        for choice, weight in zip(choices, weights):
            mark -= weight
            if mark < 0:
                return choice
        return choices[-1]

    def often(self, probability):
        return self.random.random() < probability

    def unused(self, nouns):
        free = [n for n in nouns if n.english not in self.used]
        if not free:
            raise Redraw
        noun = self.one(free)
        self.used.add(noun.english)
        return noun

    # Noun phrases

    def phrase(self, nouns, definite=False, subject=None, plain=False, singular=False):
        """Returns a noun phrase. Its owner may be the clause's subject. plain: only the or a, and no adjective."""
        noun = self.unused(nouns)
        plural = bool(noun.english_plural) and not singular and self.often(0.3)
        np = Phrase(self.determiner(noun, plural, definite, subject, plain), noun, plural)
        if np.determiner == "number":
            np.number = self.one(lex.NUMBERS)
        fitting = [a for a in lex.ALL_ADJECTIVES if noun.kind in a.kinds]
        if fitting and not plain and self.often(0.3):
            np.adjective = self.adjective(noun)
        return np

    def determiner(self, noun, plural, definite, subject, plain):
        mass = noun.english_plural is None
        chances = {"the": 6}
        if not definite:
            chances |= {"bare": 3 if mass else 1.5} if plural or mass else {"a": 4}
        if not plain:
            chances |= {"this": 1, "owner": 0 if noun.english in ("man", "woman") else 2}
        if not plain and not definite and not mass:
            chances |= {"number": 1.5, "many": 0.7, "all": 0.5} if plural else {"every": 0.4}
        kind = self.one(list(chances), list(chances.values()))
        return self.owner(subject) if kind == "owner" else kind

    def owner(self, subject):
        """Returns an owner: a pronoun for the subject or the speakers, or a genitive."""
        pronoun = self.pronoun_for(subject) if subject else None
        if pronoun and self.often(0.5):
            return pronoun
        if self.often(0.5):
            return self.one(FIRST_AND_SECOND)
        if self.often(0.5):
            return self.name()
        return self.phrase(lex.BY_KIND["person"], definite=True, plain=True)

    def name(self):
        pronoun = self.one(("he", "she"))
        name = self.one([n for n in lex.NAMES[pronoun] if n not in self.used])
        self.used.add(name)
        return Name(name, pronoun)

    def pronoun_for(self, np):
        """Returns the pronoun for a subject; None if there is none or it is ambiguous (das Mädchen: es or sie)."""
        if isinstance(np, Pronoun):
            return np if np != WHO else None
        if np.plural:
            return PRONOUNS["they"]
        if isinstance(np, Name):
            return PRONOUNS[np.pronoun]
        if np.noun.english == "girl" or np.determiner in ("no", "every"):
            return None
        if np.noun.kind != "person" or np.noun.gender == "n":
            return IT[np.noun.gender]
        return PRONOUNS["he" if np.noun.gender == "m" else "she"]

    def person(self):
        """Returns a subject: a pronoun, a name, a pair or a noun phrase."""
        kind = self.one(("pronoun", "name", "pair", "phrase", "nobody"), (3, 2, 1, 6, 0.2))
        if kind == "pronoun":
            return self.one(list(PRONOUNS.values()))
        if kind == "name":
            return self.name()
        if kind == "pair":
            return self.people()
        if kind == "nobody":
            return Phrase("no", self.unused(lex.BY_KIND["person"]))
        return self.phrase(lex.BY_KIND["person"])

    def people(self):
        people = lex.BY_KIND["person"]
        first = self.name() if self.often(0.5) else self.phrase(people, definite=True, plain=True, singular=True)
        return Pair(first, self.phrase(people, definite=True, plain=self.often(0.5), subject=first))

    def subject_for(self, verb):
        return self.phrase(lex.BY_KIND["animal"]) if verb.base in lex.OF_ANIMALS and self.often(0.4) else self.person()

    def adjective(self, noun, compared=False):
        fitting = [a for a in lex.ALL_ADJECTIVES if noun.kind in a.kinds]
        adjective = self.one([a for a in fitting if a.english not in lex.NOT_COMPARED] if compared else fitting)
        self.links.add((adjective.english, noun.english))
        return adjective

    def object_of(self, verb, subject, definite=False, plain=False):
        nouns = verb.objects
        if nouns[0].kind == "person" and not plain and self.often(0.3):
            if self.often(0.4):
                return self.name()
            clash = FIRST_AND_SECOND if subject.person != 3 else ()
            return self.one([p for p in PRONOUNS.values() if p != subject and p not in clash])
        np = self.phrase(nouns, definite or bool(verb.preposition), subject, plain)
        self.links.add((verb.base, np.noun.english))
        return np

    # Clauses

    def clause(self, tense=None, subject=None, plain=False, frame=None):
        """Returns a clause with verb, subject and objects. plain: without modal and negation."""
        frame = frame or self.one(list(FRAMES), list(FRAMES.values()))
        tense = tense or self.one(TENSES, (5, 4, 2))
        if frame == "quality":
            return self.quality(tense, subject, plain)
        verb = self.one(lex.VERBS[frame])
        if frame == "position":
            subject = subject or self.phrase(verb.objects, plain=plain)
            if not isinstance(subject, Phrase) or subject.noun not in verb.objects:
                raise Redraw
        subject = subject or self.subject_for(verb)
        c = Clause(subject, verb, tense)
        if verb.past == verb.base and tense != "future" and not c.third_singular:
            raise Redraw  # "they put": present or past?
        self.fill(c, frame, plain)
        nobody = getattr(subject, "determiner", "") == "no"
        if not plain and frame != "position" and verb.base not in lex.STATES and tense != "future":
            if self.often(0.25):
                c.modal = self.one([m for m in lex.MODALS if tense in m.tenses])
            elif verb.base in lex.LIKED and tense == "present" and not verb.particle and self.often(0.2):
                c.liking = True
        c.negative = not plain and not nobody and self.deniable(c) and self.often(0.2)
        return c

    def deniable(self, c):
        """Returns whether the clause may be negated. With a quantified object, negation would be ambiguous."""
        return getattr(c.direct, "determiner", "") not in ("number", "many", "all", "every")

    def fill(self, c, frame, plain):
        """Adds the objects and the place that the verb requires."""
        if frame in ("transitive", "giving", "putting"):
            c.direct = self.object_of(c.verb, c.subject, plain=plain)
        if frame == "giving":
            c.indirect = self.receiver(c.subject)
        elif frame == "motion":
            c.place = self.towards()
        elif frame == "travel":
            town, stadt = self.one(lex.TOWNS)
            c.place = Place("to " + town, "nach " + stadt)
        elif frame == "live":
            town, stadt = self.one(lex.TOWNS)
            c.place = Place("in " + town, "in " + stadt)
        elif frame in ("position", "sitting", "putting"):
            c.place = self.near("acc" if frame == "putting" else "dat")

    def receiver(self, subject):
        if self.often(0.4):
            clash = FIRST_AND_SECOND if subject.person != 3 else ()
            return self.one([p for p in PRONOUNS.values() if p != subject and p not in clash])
        return self.phrase(lex.BY_KIND["person"], definite=True, subject=subject, plain=self.often(0.5))

    def quality(self, tense, subject, plain):
        """Returns a clause such as: is very old, is older than the dog."""
        subject = subject or self.one((self.person, lambda: self.phrase(self.describable())))()
        noun = subject.noun if isinstance(subject, Phrase) else lex.BY_ENGLISH["man"]
        compared = not plain and self.often(0.35)
        c = Clause(subject, lex.BE, tense)
        c.predicate = Predicate(self.adjective(noun, compared))
        if compared:
            c.predicate.than = self.phrase(lex.BY_KIND[noun.kind], definite=True)
        elif self.often(0.3):
            c.predicate.degree = self.one(lex.DEGREES)
        c.negative = not plain and getattr(subject, "determiner", "") != "no" and self.often(0.2)
        return c

    def describable(self):
        kind = self.one("animal reading dish food clothes vehicle furniture place upright thing".split())
        return lex.BY_KIND[kind]

    def towards(self):
        if self.often(0.15):
            return Place("home", "nach Hause")
        np = self.phrase(lex.BY_KIND["place"], definite=True, singular=True, plain=self.often(0.6))
        return Place("to", lex.PLACE_PREPOSITIONS.get(np.noun.english, ("in", "in", "in"))[2], "acc", np)

    def somewhere(self):
        if self.often(0.1):
            return Place("at home", "zu Hause")
        np = self.phrase(lex.BY_KIND["place"], definite=True, singular=True, plain=self.often(0.6))
        preposition, präposition, _ = lex.PLACE_PREPOSITIONS.get(np.noun.english, ("in", "in", "in"))
        return Place(preposition, präposition, "dat", np)

    def near(self, case):
        preposition, präposition = self.one(lex.AROUND)
        definite, plain = self.often(0.7), self.often(0.7)
        np = self.phrase(lex.BY_KIND["furniture"], definite=definite, singular=True, plain=plain)
        return Place(preposition, präposition, case, np)

    def when(self, tense):
        if tense == "present" or self.often(0.6):
            return self.one(lex.TIMES[tense])
        if self.often(0.4):
            day, tag = self.one(lex.DAYS)
            return "on " + day, "am " + tag
        number, zahl = self.one(lex.NUMBERS)
        span, spanne = self.one(lex.SPANS)
        if tense == "past":
            return words(number, span, "ago"), words("vor", zahl, spanne)
        return words("in", number, span), words("in", zahl, spanne)

    def adorn(self, c):
        """Adds adverbs: when, how often, how, with whom, where."""
        if c.verb is not lex.BE and not c.place and not c.indirect and not c.verb.preposition:
            intransitive = not c.direct
            if intransitive and not c.verb.reflexive and not c.negative and self.often(0.25):
                c.manner = self.one(lex.MANNERS[:2] if c.verb.base in ("run", "swim") else lex.MANNERS[2:])
            elif self.often(0.12):
                c.companion = self.phrase(lex.BY_KIND["person"], definite=True, plain=True, subject=c.subject)
            if self.often(0.3):
                c.place = self.somewhere()
        steady = c.tense != "future" and not c.modal and not c.negative and getattr(c.subject, "determiner", "") != "no"
        if steady and self.often(0.2):
            c.often = self.one(lex.OFTEN)
        elif self.often(0.5):
            c.time = self.when(c.tense)
            if c.verb.base in lex.STATES | {"be"} or c.modal or c.liking:
                c.time = None if c.time in lex.NOW else c.time
        return c
