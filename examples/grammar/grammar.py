"""The grammar rules. Each rule draws a sentence and returns it as an (English, German) pair."""

import re

import english
import german
import lexicon as lex
from clauses import TENSES, Clauses, Redraw
from english import words
from syntax import WHAT, WHO, Clause, Pair, Phrase


def finish(text, end="."):
    """Attaches commas to words, drops a comma before the final mark, and capitalizes the first letter."""
    text = re.sub(r"\s*,(\s*,)*", ",", text).rstrip(", ") + end
    return text[0].upper() + text[1:].replace("can not", "cannot")


def sentence(english_text, german_text, end="."):
    return finish(english_text, end), finish(german_text, end)


class Grammar(Clauses):
    def statement(self):
        c = self.adorn(self.clause())
        if c.time and self.often(0.45):
            c.front = "time"
        elif self.often(0.12):
            c.comment, c.front = self.one(lex.COMMENTS), "comment"
        return sentence(english.clause(c), german.clause(c))

    def asked(self, frame=None):
        """Returns a clause to ask about, without "no": "what does no woman read?" is excluded."""
        c = self.clause(frame=frame)
        if getattr(c.subject, "determiner", "") == "no":
            raise Redraw
        return c

    def yes_no_question(self):
        c = self.asked()
        c.negative = False
        self.adorn(c)
        return sentence(english.clause(c, inverted=True), german.clause(c, "first"), "?")

    def subject_question(self):
        """Who reads the book?"""
        frame = self.one(("transitive", "giving", "motion", "travel", "live", "sitting"))
        c = self.clause(self.one(TENSES), WHO, frame=frame)
        c.negative = False
        self.adorn(c)
        return sentence(english.clause(c), german.clause(c), "?")

    def object_question(self):
        """What does the woman read? Whom does she wait for? Which book does she read?"""
        c = self.asked("transitive")
        c.negative = c.liking = False
        np = c.direct
        if isinstance(np, Phrase) and np.noun.english_plural and np.determiner in ("the", "a", "bare", "this"):
            asked = Phrase("which", np.noun, np.plural, np.adjective)
        else:
            person = not isinstance(np, Phrase) or np.noun.kind == "person"
            if not person and c.verb.preposition:
                raise Redraw
            asked = WHO if person else WHAT
        c.direct = asked
        question = (english.noun_phrase(asked), german.direct_object(c))
        self.adorn(c)
        return sentence(words(question[0], english.clause(c, inverted=True, gap="direct")),
                        words(question[1], german.clause(c, "first", "direct")), "?")

    def adverb_question(self):
        """When, where, why, how often?"""
        ask = self.one((("when", "wann"), ("where", "wo"), ("why", "warum"), ("how often", "wie oft")), (3, 3, 3, 1))
        c = self.asked(self.one(("transitive", "intransitive", "giving")))
        c.negative = c.negative and ask[0] == "why"
        if ask[0] == "why" and self.often(0.4):
            c.time = self.when(c.tense)
            c.time = None if c.time in lex.NOW else c.time
        return sentence(words(ask[0], english.clause(c, inverted=True)), words(ask[1], german.clause(c, "first")), "?")

    def direction_question(self):
        c = self.asked(self.one(("motion", "travel")))
        c.negative, c.place = False, None
        if self.often(0.6):
            c.time = self.when(c.tense)
            c.time = None if c.modal and c.time in lex.NOW else c.time
        return sentence(words("where", english.clause(c, inverted=True)),
                        words("wohin", german.clause(c, "first")), "?")

    def subordinate(self):
        """main because subordinate, or the subordinate clause first, followed by the verb of the main clause."""
        conjunction, konjunktion, tenses = self.one(lex.CONJUNCTIONS)
        main_tense, tense = self.one(tenses)
        main = self.clause(main_tense)
        taken_up = self.pronoun_for(main.subject)
        inner = self.clause(tense, taken_up if taken_up and self.often(0.5) else None)
        if inner.verb.base == main.verb.base or inner.negative and conjunction == "before":
            raise Redraw
        if self.often(0.15) and conjunction != "before":
            inner_text = ("it was raining", "es geregnet hat") if tense == "past" else ("it is raining", "es regnet")
        else:
            inner_text = english.clause(inner), german.clause(inner, "last")
        self.one_time(main)
        if self.often(0.35) and not main.time and inner.subject != taken_up:
            return sentence(words(conjunction, inner_text[0], ",", english.clause(main)),
                            words(konjunktion, inner_text[1], ",", german.clause(main, "first")))
        return sentence(words(english.clause(main), conjunction, inner_text[0]),
                        words(german.clause(main), ",", konjunktion, inner_text[1]))

    def one_time(self, c):
        if self.often(0.25) and c.verb.base not in lex.STATES:
            c.time = self.when(c.tense)
            c.front = "time"
            if c.time in lex.NOW:
                c.time, c.front = None, ""

    def reported(self):
        """says that, hopes that, does not know whether"""
        tense = self.one(("present", "past"))
        c = self.clause(tense, plain=True, frame="saying")
        c.negative = getattr(c.subject, "determiner", "") != "no" and self.often(0.2)
        whether = c.verb.base == "know" and c.negative
        inner_tense = "past" if tense == "past" else self.one(TENSES)
        inner = self.clause(inner_tense, plain=self.often(0.5))
        if self.often(0.4):
            inner.time = self.when(inner_tense)
            inner.time = None if inner.time in lex.NOW else inner.time
        c.complement = ("whether" if whether else "that", inner)
        return sentence(english.clause(c), german.clause(c))

    def purpose(self):
        """tries to read the book; goes to the market in order to buy bread"""
        if self.often(0.5):
            c = self.clause(self.one(TENSES), plain=True, frame="planning")
            kind = "to"
        else:
            c = self.clause(self.one(TENSES), plain=True, frame=self.one(("motion", "travel")))
            kind = "in order to"
        aim = self.clause("future", c.subject, plain=True, frame=self.one(("transitive", "giving")))
        if aim.verb.base in lex.STATES:
            raise Redraw
        c.complement = (kind, aim)
        if kind == "to" and self.often(0.3):
            c.time, c.front = self.when(c.tense), "time"
            if c.time in lex.NOW:
                c.time, c.front = None, ""
        return sentence(english.clause(c), german.clause(c))

    def relative_subject(self):
        """The man who reads the book sleeps."""
        head = Phrase(self.one(("the", "this")), self.unused(lex.BY_KIND["person"]), self.often(0.3))
        if self.often(0.6):
            head.relative = self.clause(self.one(TENSES), head, plain=True, frame=self.people_frame()), "subject"
        else:
            head.relative = self.object_relative(head, [v for v in lex.VERBS["transitive"] if head.noun in v.objects])
        subject = Phrase(head.determiner, head.noun, head.plural, None, None, head.relative)
        head.relative[0].subject = head if head.relative[1] == "subject" else head.relative[0].subject
        c = self.clause(self.one(("present", "past")), subject)
        if c.verb.base == head.relative[0].verb.base:
            raise Redraw
        return sentence(english.clause(c), german.clause(c))

    def people_frame(self):
        return self.one(("transitive", "travel", "live", "quality", "giving"), (6, 1, 1, 1, 1))

    def object_relative(self, head, verbs):
        verb = self.one([v for v in verbs if v.past != v.base])
        inner = Clause(self.person(), verb, self.one(("present", "past")), direct=head)
        self.links.add((verb.base, head.noun.english))
        return inner, "direct"

    def relative_object(self):
        """The woman finds the book that the man looks for."""
        c = self.clause(frame="transitive", plain=self.often(0.6))
        nouns = c.verb.objects
        if not isinstance(c.direct, Phrase) or c.direct.determiner not in ("the", "a", "this"):
            noun = self.unused(nouns)
            c.direct = Phrase("the", noun, bool(noun.english_plural) and self.often(0.2))
            self.links.add((c.verb.base, c.direct.noun.english))
        if isinstance(c.subject, Phrase) and c.subject.determiner == "no":
            c.subject = self.name()
        c.negative = c.negative and c.direct.determiner != "a"
        noun = c.direct.noun
        verbs = [v for v in lex.VERBS["transitive"] if noun in v.objects and v != c.verb]
        if verbs and (noun.kind != "person" or self.often(0.5)):
            c.direct.relative = self.object_relative(c.direct, verbs)
        elif noun.kind == "person":
            head = Phrase(c.direct.determiner, noun, c.direct.plural)
            c.direct.relative = self.clause(None, head, plain=True, frame=self.people_frame()), "subject"
        if c.direct.relative and c.direct.relative[0].verb.base == c.verb.base:
            raise Redraw
        return sentence(english.clause(c), german.clause(c))

    def passive(self):
        """The bread was bought by the woman."""
        verb = self.one([v for v in lex.VERBS["transitive"] if v.base in lex.WITH_PASSIVE and not v.preposition])
        patient = self.phrase(verb.objects)
        self.links.add((verb.base, patient.noun.english))
        c = Clause(patient, verb, self.one(("present", "past")), passive=True)
        if self.often(0.6):
            c.agent = self.name() if self.often(0.3) else self.phrase(lex.BY_KIND["person"], plain=self.often(0.5))
        c.negative = patient.determiner not in ("many", "all", "every", "number") and self.often(0.15)
        if self.often(0.6):
            c.time = self.when(c.tense)
            c.time = None if c.time in lex.NOW else c.time
        c.front = "time" if c.time and self.often(0.5) else ""
        return sentence(english.clause(c), german.clause(c))

    def existence(self):
        """There is an old tree in the garden: es gibt with the accusative."""
        kinds = "animal flat upright clothes dish food drink furniture person".split()
        np = self.phrase([n for kind in kinds for n in lex.BY_KIND[kind]], plain=self.often(0.4))
        determiners = ("a", "no") if not np.plural else ("bare", "number", "many", "no")
        if np.noun.english_plural is None:
            determiners = ("bare", "no")
        np.determiner = self.one(determiners)
        np.number = self.one(lex.NUMBERS) if np.determiner == "number" else None
        tense = self.one(("present", "past"))
        where = self.somewhere() if self.often(0.5) else self.near("dat")
        there = words("there", english.be(np, tense), english.noun_phrase(np))
        es = ("gibt es" if tense == "present" else "gab es"), german.noun_phrase(np, "acc")
        if self.often(0.5):
            return sentence(words(english.place(where), there), words(german.place(where), *es))
        return sentence(words(there, english.place(where)), words(*es[0].split()[::-1], es[1], german.place(where)))

    def coordination(self):
        """Two clauses with and, but, or; or two objects, or one object and not the other."""
        tense = self.one(TENSES)
        if self.often(0.5):
            first, second = self.clause(tense), self.clause(tense)
            self.one_time(first)
            conjunction = self.one((("and", "und"), ("but", ", aber")))
            return sentence(words(english.clause(first), ",", conjunction[0], english.clause(second)),
                            words(german.clause(first), conjunction[1], german.clause(second)))
        c = self.clause(tense, plain=True, frame="transitive")
        while len(c.verb.objects) < 6 or c.verb.preposition:
            c = self.clause(tense, plain=True, frame="transitive")
        contrast = self.often(0.4) and getattr(c.subject, "determiner", "") != "no"
        pair = [self.phrase(c.verb.objects, definite=True, plain=self.often(0.6)) for _ in range(2)]
        self.links |= {(c.verb.base, np.noun.english) for np in pair}
        c.direct, c.negative = Pair(*pair, contrast), contrast
        if not contrast:
            self.adorn(c)
        return sentence(english.clause(c), german.clause(c))

    RULES = ((statement, 30), (yes_no_question, 6), (subject_question, 3), (object_question, 5), (adverb_question, 4),
             (direction_question, 1), (subordinate, 14), (reported, 8), (purpose, 6), (relative_subject, 6),
             (relative_object, 6), (passive, 5), (existence, 4), (coordination, 8))

    def attempt(self):
        """Returns (English, German, links) of one sentence. Throws Redraw if its words do not fit together."""
        rule = self.one([r for r, _ in self.RULES], [w for _, w in self.RULES])
        self.used, self.links = set(), set()
        return *rule(self), frozenset(self.links)

    def draw(self):
        """Returns the first attempt that succeeds."""
        while True:
            try:
                return self.attempt()
            except Redraw:
                continue
