"""Word alignments and syntax trees of generated pairs, taken from their derivation: the noun phrases and clauses that
english.py turned into text. A word is used only if its form occurs once in the sentence; the others stay unaligned and
have the relation dep (unspecified) in the tree."""

import contextlib
import re

import english
import german
import lexicon as lex
from grammar import Grammar
from syntax import WHAT, WHO, Name, Pair, Phrase, Pronoun

RECORDED = ("clause", "infinitive", "noun_phrase", "place", "predicate", "relative")
DETERMINERS = {"a": ("a", "an"), "this": ("this", "these")}


@contextlib.contextmanager
def recorded():
    """Yields a list, to which the calls of english.py are added: (name of the function, its first argument, others)."""
    calls, originals = [], {name: getattr(english, name) for name in RECORDED}

    def recording(name):
        def call(first, *others, **named):
            calls.append((name, first, named | dict(enumerate(others))))
            return originals[name](first, *others, **named)
        return call
    try:
        for name in RECORDED:
            setattr(english, name, recording(name))
        yield calls
    finally:
        for name, function in originals.items():
            setattr(english, name, function)


class RecordingGrammar(Grammar):
    """A grammar that keeps the derivation of each English sentence that it has drawn."""

    def __init__(self, random):
        super().__init__(random)
        self.derivations = {}

    def attempt(self):
        with recorded() as calls:
            result = super().attempt()
        self.derivations[result[0]] = calls
        return result


class Words:
    """The words of a sentence, between spaces."""

    def __init__(self, text):
        self.forms = text.split()
        self.plain = [form.strip(",.?").lower() for form in self.forms]

    def find(self, *forms):
        """Returns the index of the only word with one of these forms, or None."""
        wanted = {form.lower() for form in forms if form}
        found = [i for i, word in enumerate(self.plain) if word in wanted]
        return found[0] if len(found) == 1 else None

    def at(self, i, *forms):
        """Returns i if the word there has one of these forms, otherwise None."""
        return i if i is not None and i >= 0 and self.plain[i] in {form.lower() for form in forms if form} else None


def conllu(forms, heads):
    """Returns a sentence in CoNLL-U, with an empty line after it."""
    rows = [(i + 1, form, "_", "_", "_", "_", heads[i][0] + 1, heads[i][1], "_", "_") for i, form in enumerate(forms)]
    return "".join("\t".join(map(str, row)) + "\n" for row in rows) + "\n"


class Annotation:
    """links: pairs (English word, German word). heads: {English word: (its head, relation)}, from 0; the root has the
    head −1."""

    def __init__(self, english_text, german_text, calls):
        self.en, self.de = Words(english_text), Words(german_text)
        self.links, self.heads, self.calls = set(), {}, calls
        self.nouns = {}  # id of a noun phrase, or (id of a pronoun, role): its English head word
        for _, np, others in reversed(self.of("noun_phrase")):  # owners before what they own
            self.add_noun_phrase(np, others)
        for _, place, _ in self.of("place"):
            self.add_place(place)
        self.clauses = [(c, self.add_clause(c, name, others)) for name, c, others in self.of("clause", "infinitive")]
        self.connect()
        self.drop_conflicts()
        self.attach_the_rest()

    def of(self, *names):
        return [call for call in self.calls if call[0] in names and call[1]]

    def link(self, i, *others):
        self.links |= {(i, j) for j in others if i is not None and j is not None}

    def attach(self, i, head, relation):
        if i is not None and head is not None and i != head:
            self.heads.setdefault(i, (head, relation))

    # Noun phrases

    def noun_of(self, np):
        return self.noun_of(np.first) if isinstance(np, Pair) else self.nouns.get(id(np))

    def add_noun_phrase(self, np, others):
        if isinstance(np, Pronoun):
            role = others.get(0, others.get("role", "object"))
            self.nouns[id(np), role] = i = self.en.find(np.english[role != "subject"])
            self.link(i, self.de.find(*np.german))
        elif isinstance(np, Name):
            self.nouns[id(np)] = i = self.en.find(np.name, np.name + "'s", np.name + "'")
            self.link(i, self.de.find(np.name, np.name + "s"))
        elif isinstance(np, Pair):
            word = "but" if np.contrast else "and"
            self.link(self.en.find(word), self.de.find("sondern" if np.contrast else "und"))
            self.attach(self.noun_of(np.second), self.noun_of(np.first), "conj")
            self.attach(self.en.find(word), self.noun_of(np.second), "cc")
        else:
            self.add_phrase(np)

    def add_phrase(self, np):
        form = np.noun.english_plural if np.plural else np.noun.english
        self.nouns[id(np)] = noun = i = self.en.find(form, form + "'s", form + "'")
        j = self.de.find(*(german.noun(np, case) for case in german.CASES))
        self.link(i, j)
        for relation, pair, endings in (("amod", np.adjective and (np.adjective.english, np.adjective.stem), True),
                                        ("nummod", np.number, False)):
            if not pair or i is None:
                continue
            forms = [pair[1] + e for e in ("", "e", "en", "er", "es", "em")] if endings else [pair[1]]
            i = self.en.at(i - 1, pair[0].split()[-1])
            j = None if j is None else self.de.at(j - 1, *forms)
            self.link(i, j)
            self.attach(i, noun, relation)
        self.add_determiner(np, noun, i, j)

    def add_determiner(self, np, noun, i, j):
        """i, j: the first words after the determiner."""
        kind = np.determiner
        if i is None or kind in ("bare", "number"):
            return
        if isinstance(kind, Pronoun):
            i, relation = self.en.at(i - 1, kind.english[2]), "nmod:poss"
        elif isinstance(kind, str):
            i, relation = self.en.at(i - 1, *DETERMINERS.get(kind, (kind,))), "det"
        else:
            self.attach(self.noun_of(kind), noun, "nmod:poss")
            return
        self.attach(i, noun, relation)
        forms = {german.determiner(np, case) for case in german.CASES}
        if kind in ("a", "bare"):  # of a negated object
            forms |= {"k" + form for form in forms}
        if kind == "the":
            forms |= set(german.CONTRACTIONS.values())
        self.link(i, None if j is None else self.de.at(j - 1, *forms))

    def first_word(self, np):
        """Returns the index of the first English word of a phrase."""
        i = self.nouns.get(id(np))
        owned = [word for word, (head, relation) in self.heads.items()
                 if head == i and relation in ("det", "amod", "nummod", "nmod:poss")]
        if isinstance(np.determiner, Phrase):
            owned.append(self.first_word(np.determiner))
        return None if i is None or None in owned else min([i, *owned])

    def add_place(self, place):
        if not place.phrase:
            if " " not in place.english + place.german:
                self.link(self.en.find(place.english), self.de.find(place.german))
            return
        i = self.first_word(place.phrase)
        i = None if i is None else self.en.at(i - 1, place.english.split()[-1])
        self.attach(i, self.nouns[id(place.phrase)], "case")
        contracted = [short for long, short in german.CONTRACTIONS.items() if long.startswith(place.german + " ")]
        if " " not in place.english:
            self.link(i, self.de.find(place.german, *contracted))

    # Clauses

    def add_clause(self, c, name, others):
        """Returns the head of the clause: its first full verb, or the adjective after "be"."""
        gap = others.get("gap", "")
        if name == "infinitive":
            operator, rest = "", c.verb.base
        else:
            operator, rest = english.verb_group(c, others.get("inverted", False) or c.negative)
        verbs = rest.split() or [operator]
        head, main = self.en.find(verbs[0]), self.en.find(verbs[-1])
        first = self.en.find(operator or verbs[0])
        self.link_verb(c, name, first, main)
        if head != main:
            self.attach(main, head, "xcomp")
        if rest and operator:
            self.attach(first, head, "aux:pass" if c.passive else "aux")
        if c.negative:
            self.link(self.en.find("not"), self.de.find("nicht"))
        if c.predicate:
            head = self.add_predicate(c, main)
            main = head
        if c.negative:
            self.attach(self.en.find("not"), head, "advmod")
        self.add_arguments(c, name, gap, head, main)
        return head

    def link_verb(self, c, name, first, main):
        if name == "infinitive":
            self.link(main, self.de.find(c.verb.infinitive, c.verb.prefix + "zu" + c.verb.infinitive))
            return
        finite, end = german.verb_group(c)
        if end == c.verb.prefix:  # the finite verb is the full verb, which a prefix may follow or precede
            whole = self.de.find(end + finite)
            self.link(main, *([self.de.find(finite), self.de.find(end)] if whole is None else [whole]))
            self.link(first if c.liking else None, self.de.find("gern"))
            return
        self.link(main, self.de.find(end))
        if c.modal or c.passive or c.tense == "future":
            self.link(first, self.de.find(finite))

    def add_predicate(self, c, verb):
        p = c.predicate
        form = p.adjective.english_comparative if p.than else p.adjective.english
        i = self.en.find(form.split()[-1])
        self.link(i, self.de.find(p.adjective.german_comparative if p.than else p.adjective.german))
        self.attach(verb, i, "cop")
        if p.than:
            self.attach(self.noun_of(p.than), i, "obl")
            self.link(self.en.find("than"), self.de.find("als"))
        elif p.degree:
            self.add_adverb(p.degree, i)
        return i

    def add_adverb(self, pair, head):
        if pair and " " not in pair[0]:
            i = self.en.find(pair[0])
            self.attach(i, head, "advmod")
            self.link(i, self.de.find(pair[1]) if " " not in pair[1] else None)

    def argument(self, np, role="object"):
        return self.nouns.get((id(np), role)) if isinstance(np, Pronoun) else self.noun_of(np)

    def add_arguments(self, c, name, gap, head, main):
        subject = "nsubj:pass" if c.passive else "nsubj"
        if name != "infinitive" and gap != "subject":
            self.attach(self.argument(c.subject, "subject"), head, subject)
        if c.direct and (gap != "direct" or c.direct in (WHO, WHAT) or getattr(c.direct, "determiner", "") == "which"):
            self.attach(self.argument(c.direct), main, "obl" if c.verb.after else "obj")
        for np, relation in ((c.indirect, "iobj"), (c.agent, "obl:agent"), (c.companion, "obl"),
                             (c.place and c.place.phrase, "obl")):
            if np:
                self.attach(self.argument(np), main, relation)
        for pair in (c.time, c.often, c.manner, c.comment):
            self.add_adverb(pair, head)

    # Clauses within others

    def head_of(self, clause):
        return next((head for c, head in self.clauses if c is clause), None)

    def connect(self):
        inner = set()
        for _, np, _ in self.of("relative"):
            if np.relative:
                clause, gap = np.relative
                inner.add(id(clause))
                self.connect_relative(np, clause, gap)
        for c, head in self.clauses:
            if c.complement:
                kind, clause = c.complement
                inner.add(id(clause))
                relation = {"to": "xcomp", "in order to": "advcl"}.get(kind, "ccomp")
                self.attach(self.head_of(clause), head, relation)
                if relation == "ccomp":
                    i = self.en.find(kind)
                    self.attach(i, self.head_of(clause), "mark")
                    self.link(i, self.de.find({"that": "dass", "whether": "ob"}[kind]))
        self.root = self.connect_main([head for c, head in self.clauses if id(c) not in inner])

    def connect_relative(self, np, clause, gap):
        noun, head = self.nouns.get(id(np)), self.head_of(clause)
        pronoun = None if noun is None or noun + 1 >= len(self.en.plain) else self.en.at(noun + 1, "that", "who", "whom")
        relation = "nsubj" if gap == "subject" else "obl" if clause.verb.after else "obj"
        self.attach(pronoun, head, relation)
        self.attach(head, noun, "acl:relcl")
        j = self.de.find(*{german.noun(np, case) for case in german.CASES})
        if j is not None and self.de.forms[j].endswith(",") and not clause.verb.preposition:
            self.link(pronoun, self.de.at(j + 1, *{german.ending(german.RELATIVE, np, case) for case in german.CASES}))

    def connect_main(self, heads):
        """Returns the root, given the heads of the clauses that are in no other."""
        if not heads:
            return self.existence()
        if len(heads) == 1 or None in heads:
            return heads[0]
        for word, wort in (("and", "und"), ("but", "aber")):
            i = self.en.find(word)
            if i is not None and heads[0] < i < heads[1]:
                self.link(i, self.de.find(wort))
                self.attach(heads[1], heads[0], "conj")
                self.attach(i, heads[1], "cc")
                return heads[0]
        for conjunction, konjunktion, _ in lex.CONJUNCTIONS:
            i = self.en.find(conjunction)
            if i is not None and max(heads) > i:
                inner = min(head for head in heads if head > i)
                main = next(head for head in heads if head != inner)
                self.link(i, self.de.find(konjunktion))
                self.attach(inner, main, "advcl")
                self.attach(i, inner, "mark")
                return main
        return heads[0]

    def existence(self):
        """there is, es gibt"""
        root = self.en.find("is", "are", "was", "were")
        self.link(root, self.de.find("gibt", "gab"))
        self.link(self.en.find("there"), self.de.find("es"))
        self.attach(self.en.find("there"), root, "expl")
        places = [place.phrase for _, place, _ in self.of("place")]
        for _, np, _ in self.of("noun_phrase"):
            if any(np is phrase for phrase in places):
                self.attach(self.noun_of(np), root, "obl")
            elif self.noun_of(np) not in self.heads:
                self.attach(self.noun_of(np), root, "nsubj")
        return root

    # The whole sentence

    def drop_conflicts(self):
        """Drops the links of pronouns and others that claim the same German word for two English ones, unless the German
        word is a contraction of two."""
        claims = {}
        for i, j in self.links:
            claims.setdefault(j, set()).add(i)
        contracted = set(german.CONTRACTIONS.values())
        self.links = {(i, j) for i, j in self.links if len(claims[j]) == 1 or self.de.plain[j] in contracted}

    def attach_the_rest(self):
        if self.root is None:
            self.root = 0
        self.heads[self.root] = (-1, "root")
        for i in range(len(self.en.forms)):
            if i not in self.heads or not self.reaches_root(i):
                self.heads[i] = (self.root, "dep")

    def reaches_root(self, i):
        for _ in self.en.forms:
            if i == self.root:
                return True
            i = self.heads.get(i, (self.root, ""))[0]
        return i == self.root

    def alignment(self):
        """Returns the links in Pharaoh format."""
        return " ".join(f"{i}-{j}" for i, j in sorted(self.links))

    def tree(self):
        """Returns the English sentence in CoNLL-U, with an empty line after it."""
        return conllu(self.en.forms, self.heads)

    def german_tree(self):
        """Returns the same of the German sentence."""
        return conllu(self.de.forms, self.german_heads())

    def german_heads(self):
        """Returns the heads of the German words: the translations of the heads of the English words that they translate."""
        first, heads = {}, {}
        for i, j in sorted(self.links):
            first.setdefault(i, j)
        for j in range(len(self.de.forms)):
            translated = [i for i, k in self.links if k == j]
            if translated:
                heads[j] = self.german_head(min(translated, key=self.depth), j, first)
        root = min((j for j, (head, _) in heads.items() if head < 0), default=0)
        for j in range(len(self.de.forms)):
            if heads.get(j, (-1, ""))[0] < 0:
                heads[j] = (root, "dep")
        heads[root] = (-1, "root")
        return heads

    def german_head(self, i, j, first):
        """Returns the head of the German word j, which translates the English word i, and its relation. first: the first
        translation of English words."""
        if first[i] != j:
            return first[i], "dep"
        head, relation = self.heads[i]
        while head >= 0 and first.get(head, j) == j:
            (head, _), relation = self.heads[head], "dep"
        return (first[head], relation) if head >= 0 else (-1, "root")

    def depth(self, i):
        """Returns the number of words between an English word and the root, itself included."""
        return 0 if i < 0 else 1 + self.depth(self.heads[i][0])
