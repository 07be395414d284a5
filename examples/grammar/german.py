"""German text of noun phrases and clauses: gender, case and adjective endings; verb second, first or last; separable
prefixes; the order of the midfield.

Commas are separate words; grammar.finish attaches them."""

import re

from english import words
from syntax import Name, Pair, Phrase, Pronoun

CASES = ("nom", "acc", "dat", "gen")
# rows m f n plural, columns nom acc dat gen
THE = dict(m="der den dem des", f="die die der der", n="das das dem des", p="die die den der")
WEAK_DETERMINER = dict(m="er en em es", f="e e er er", n="es es em es", p="e e en er")  # dieser, jeder, welcher, aller
MIXED_DETERMINER = dict(m="- en em es", f="e e er er", n="- - em es", p="e e en er")  # ein, kein, mein
WEAK = dict(m="e en en en", f="e e en en", n="e e en en", p="en en en en")  # after der, dieser
MIXED = dict(m="er en en en", f="e e en en", n="es es en en", p="en en en en")  # after ein, kein, mein
STRONG = dict(m="er en em en", f="e e er er", n="es es em en", p="e e en er")  # after nothing, zwei, viele
RELATIVE = dict(m="der den dem dessen", f="die die der deren", n="das das dem dessen", p="die die denen deren")
DETERMINER_STEM = {"this": "dies", "every": "jed", "which": "welch", "all": "all"}
CONTRACTIONS = {"in dem": "im", "an dem": "am", "zu dem": "zum", "zu der": "zur", "von dem": "vom", "in das": "ins",
                "an das": "ans"}
PREPOSITION_CASE = {"zu": "dat", "nach": "dat", "mit": "dat", "von": "dat"}

# ich du er wir sie
PRESENT = {
    "sein": "bin bist ist sind sind", "haben": "habe hast hat haben haben", "werden": "werde wirst wird werden werden",
    "wissen": "weiß weißt weiß wissen wissen", "können": "kann kannst kann können können",
    "müssen": "muss musst muss müssen müssen", "wollen": "will willst will wollen wollen",
    "sollen": "soll sollst soll sollen sollen", "dürfen": "darf darfst darf dürfen dürfen",
    "möchten": "möchte möchtest möchte möchten möchten",
}
# Verbs that form the past with the preterite; the others use the perfect.
PRETERITE = {"sein": "war", "haben": "hatte", "werden": "wurde", "können": "konnte", "müssen": "musste",
             "wollen": "wollte", "sollen": "sollte", "dürfen": "durfte", "wissen": "wusste"}


def ending(table, np, case):
    form = table["p" if np.plural else np.noun.gender].split()[CASES.index(case)]
    return "" if form == "-" else form


def noun_phrase(np, case):
    if isinstance(np, Pronoun):
        return np.german[CASES.index(case)]
    if isinstance(np, Name):
        return np.name + "s" if case == "gen" else np.name
    if isinstance(np, Pair):
        first, second = noun_phrase(np.first, case), noun_phrase(np.second, case)
        return words("nicht", first, ", sondern", second) if np.contrast else words(first, "und", second)
    owner = np.determiner
    before = noun_phrase(owner, "gen") if isinstance(owner, Name) else determiner(np, case)
    after = noun_phrase(owner, "gen") if isinstance(owner, Phrase) else ""
    return words(before, np.number and np.number[1], np.adjective and adjective(np, case), noun(np, case), after)


def determiner(np, case):
    kind = np.determiner
    if kind == "the" or isinstance(kind, Phrase):
        return ending(THE, np, case)
    if kind in DETERMINER_STEM:
        return DETERMINER_STEM[kind] + ending(WEAK_DETERMINER, np, case)
    if kind == "many":
        return "viel" + ending(STRONG, np, case)
    if kind in ("bare", "number"):
        return ""
    stem = kind.possessive if isinstance(kind, Pronoun) else {"a": "ein", "no": "kein"}[kind]
    return stem + ending(MIXED_DETERMINER, np, case)


def adjective(np, case):
    kind = np.determiner
    if kind in ("bare", "number", "many") or isinstance(kind, Name):
        table = STRONG
    elif kind in ("a", "no") or isinstance(kind, Pronoun):
        table = MIXED
    else:
        table = WEAK
    return np.adjective.stem + ending(table, np, case)


def noun(np, case):
    n = np.noun
    if np.plural:
        return n.german_plural + ("n" if case == "dat" and n.german_plural[-1] not in "ns" else "")
    if n.weak and case != "nom":
        return n.german_plural
    if case == "gen" and n.gender != "f":
        one_syllable = len(re.findall("[aeiouäöü]+", n.german.lower())) == 1
        return n.german + ("es" if one_syllable or n.german.endswith("s") else "s")
    return n.german


def prepositional(preposition, np, case):
    text = words(preposition, noun_phrase(np, case))
    if isinstance(np, Phrase) and (np.determiner == "the" or isinstance(np.determiner, Phrase)):
        for long, short in CONTRACTIONS.items():
            if text.startswith(long + " "):
                return short + text[len(long):]
    return text


def present(verb, subject, third=""):
    """Returns the present form. Only du and er can be irregular (liest); e is inserted between d or t and an ending
    (arbeitet); wir has the infinitive."""
    if verb in PRESENT:
        return PRESENT[verb].split()[3 if subject.plural else subject.person - 1]
    stem = verb[:-2] if verb.endswith("en") else verb[:-1]
    if subject.plural:
        return verb
    if subject.person == 1:
        return (stem[:-2] + "l" if stem.endswith("el") else stem) + "e"
    if third:
        return third if subject.person == 3 else third[:-1] + ("t" if third[-2] in "sßz" else "st")
    linked = stem + "e" if re.search("(d|t|ffn|chn|gn|tm)$", stem) else stem
    if subject.person == 3:
        return linked + "t"
    return linked + ("t" if linked[-1] in "sßz" else "st")


def preterite(verb, subject):
    form = PRETERITE[verb]
    if subject.plural:
        return form + ("n" if form.endswith("e") else "en")
    return form + "st" if subject.person == 2 else form


def tensed(verb, subject, tense):
    return preterite(verb, subject) if tense == "past" else present(verb, subject)


def verb_group(c):
    """Returns (finite, end): the words in second and in last position of a main clause."""
    v, s = c.verb, c.subject
    infinitive = v.prefix + v.infinitive
    if c.passive:
        return tensed("werden", s, c.tense), v.german_participle
    if c.tense == "future":
        return present("werden", s), infinitive
    if c.modal:
        return tensed(c.modal.german, s, c.tense), infinitive
    if c.tense == "past" and v.infinitive in PRETERITE:
        return preterite(v.infinitive, s), v.prefix
    if c.tense == "past":
        return present(v.auxiliary, s), v.german_participle
    return present(v.infinitive, s, v.third), v.prefix


def takes_kein(c):
    """Returns whether the negation is kein, as for most indefinite objects (kein Brot), rather than nicht."""
    indefinite = isinstance(c.direct, Phrase) and c.direct.determiner in ("a", "bare")
    return indefinite and not c.verb.preposition and not c.liking


def direct_object(c):
    np = c.direct
    if c.verb.preposition and c.verb.case == "acc":
        return words(c.verb.preposition, noun_phrase(np, "acc"))  # denkt an das Kind; "ans" is for places
    if c.verb.preposition:
        return prepositional(c.verb.preposition, np, c.verb.case)
    if c.negative and takes_kein(c):
        np = Phrase("no", np.noun, np.plural, np.adjective)
    return noun_phrase(np, c.verb.case)


def subject_text(c):
    return words(noun_phrase(c.subject, "nom"), isinstance(c.subject, Phrase) and relative(c.subject))


def midfield(c, gap, with_subject):
    """Returns the midfield: subject, pronouns, dative, definite object, time, often, gern, nicht, manner, place,
    indefinite object, predicate."""
    subject = subject_text(c) if with_subject and gap != "subject" else ""
    reflexive = c.subject.reflexive if isinstance(c.subject, Pronoun) else "sich"
    reflexive = reflexive if c.verb.reflexive else ""
    first = (subject, reflexive) if isinstance(c.subject, Pronoun) else (reflexive, subject)
    direct = direct_object(c) if c.direct and gap != "direct" else ""
    pronoun, early, late, last = "", "", "", ""
    contrast = isinstance(c.direct, Pair) and c.direct.contrast
    if direct and isinstance(c.direct, Pronoun) and not c.verb.preposition:
        pronoun = direct
    elif direct and (c.verb.preposition or contrast):
        last = direct
    elif direct and not c.indirect and (isinstance(c.direct, (Name, Pair)) or c.direct.definite):
        early = direct
    elif direct and (c.indirect or c.place and c.place.case == "acc"):
        late = direct
    nicht = "nicht" if c.negative and not takes_kein(c) and not contrast else ""
    after_place = "" if pronoun or early or late or last else direct
    if c.indirect and c.direct.definite:
        late, nicht = words(late, nicht), ""
    return words(*first, pronoun, c.indirect and noun_phrase(c.indirect, "dat"), early,
                 c.comment and c.front != "comment" and c.comment[1], c.time and c.front != "time" and c.time[1],
                 c.often and c.often[1], nicht if c.liking else "", c.liking and "gern", late,
                 "" if c.liking else nicht, c.manner and c.manner[1], c.agent and prepositional("von", c.agent, "dat"),
                 c.companion and prepositional("mit", c.companion, "dat"), last, place(c.place), after_place,
                 c.predicate and predicate(c.predicate))


def extraposed(c, gap):
    """Returns the text after the last verb: than-phrase, relative clause of the object, complement clause."""
    than = c.predicate and c.predicate.than
    late = c.direct if isinstance(c.direct, Phrase) and gap != "direct" else None
    return words(than and words("als", noun_phrase(than, "nom")), late and relative(late), complement(c))


def clause(c, order="second", gap=""):
    """Returns the text of a clause with its finite verb second, first or last. gap: the role of the relative or question
    word."""
    finite, end = verb_group(c)
    after = extraposed(c, gap)
    if order == "last":
        verb = end + finite if end == c.verb.prefix else words(end, finite)
        return words(midfield(c, gap, True), verb, after)
    if order == "first":
        return words(finite, midfield(c, gap, True), end, after)
    if c.front:
        return words(getattr(c, c.front)[1], finite, midfield(c, gap, True), end, after)
    return words(subject_text(c), finite, midfield(c, gap, False), end, after)


def infinitive(c):
    verb = c.verb.prefix + "zu" + c.verb.infinitive if c.verb.prefix else "zu " + c.verb.infinitive
    return words(midfield(c, "", False), verb, extraposed(c, ""))


def relative(np):
    if not np.relative:
        return ""
    inner, gap = np.relative
    case = "nom" if gap == "subject" else inner.verb.case
    preposition = inner.verb.preposition if gap == "direct" else ""
    return words(",", preposition, ending(RELATIVE, np, case), clause(inner, "last", gap), ",")


def predicate(p):
    return p.adjective.german_comparative if p.than else words(p.degree and p.degree[1], p.adjective.german)


def place(p):
    if not p:
        return ""
    return prepositional(p.german, p.phrase, PREPOSITION_CASE.get(p.german, p.case)) if p.phrase else p.german


def complement(c):
    if not c.complement:
        return ""
    kind, inner = c.complement
    if kind in ("to", "in order to"):
        return words(",", kind != "to" and "um", infinitive(inner), ",")
    return words(",", {"that": "dass", "whether": "ob"}[kind], clause(inner, "last"), ",")
