"""English text of noun phrases and clauses: agreement in number and person, do-support, place before time."""

from lexicon import NOW, STATES
from syntax import Name, Pair, Pronoun

DOUBLED = {"run", "swim", "sit", "put", "get", "plan", "begin", "forget", "travel"}


def words(*parts):
    return " ".join(part for part in parts if part)


def noun_phrase(np, role="object"):
    """Returns the text of a noun phrase. role: subject or object, which matters for pronouns."""
    if isinstance(np, Pronoun):
        return np.english[role != "subject"]
    if isinstance(np, Name):
        return np.name
    if isinstance(np, Pair):
        return words(noun_phrase(np.first, role), "but" if np.contrast else "and", noun_phrase(np.second, role))
    noun = np.noun.english_plural if np.plural else np.noun.english
    rest = words(np.number and np.number[0], np.adjective and np.adjective.english, noun)
    return words(determiner(np, rest), rest, relative(np))


def determiner(np, rest):
    if isinstance(np.determiner, Pronoun):
        return np.determiner.english[2]
    if not isinstance(np.determiner, str):
        owner = noun_phrase(np.determiner, "subject")
        return owner + ("'" if owner.endswith("s") and np.determiner.plural else "'s")
    if np.determiner == "a":
        return "an" if rest[0] in "aeiou" else "a"
    if np.determiner == "this" and np.plural:
        return "these"
    return "" if np.determiner in ("bare", "number") else np.determiner


def relative(np):
    if not np.relative:
        return ""
    inner, gap = np.relative
    pronoun = "that" if np.noun.kind != "person" else "who" if gap == "subject" else "whom"
    return words(pronoun, clause(inner, gap=gap))


def third(base):
    if base == "have":
        return "has"
    if base.endswith(("s", "x", "ch", "sh", "o")):
        return base + "es"
    if base.endswith("y") and base[-2] not in "aeiou":
        return base[:-1] + "ies"
    return base + "s"


def progressive(base):
    if base == "lie":
        return "lying"
    if base in DOUBLED:
        return base + base[-1] + "ing"
    return (base[:-1] if base.endswith("e") and not base.endswith("ee") else base) + "ing"


def be(subject, tense):
    if tense == "past":
        return "were" if subject.plural or subject.person == 2 else "was"
    if subject.plural or subject.person == 2:
        return "are"
    return "am" if subject.person == 1 else "is"


def verb_group(clause, support):
    """Returns (operator, rest). The operator swaps places with the subject in questions and takes "not". A plain verb has
    none, unless `support` requests do."""
    verb, subject, tense = clause.verb, clause.subject, clause.tense
    if clause.passive:
        return be(subject, tense), verb.participle
    if tense == "future":
        return "will", verb.base
    head, past, tail = verb.base, verb.past, ""
    if clause.modal:
        modal, tail = clause.modal.english, verb.base
        if modal == "can":
            return ("could" if tense == "past" else "can"), tail
        if modal == "would like to":
            return "would", words("like to", tail)
        if modal.startswith("be "):
            return be(subject, tense), words(modal[3:], tail)
        head = modal.split()[0]
        past, tail = {"have": "had", "want": "wanted"}[head], "to " + tail
    elif clause.liking:
        head, past, tail = "like", "liked", "to " + verb.base
    elif head == "be":
        return be(subject, tense), ""
    elif clause.time in NOW and head not in STATES:
        return be(subject, tense), progressive(head)
    if support:
        return ("did" if tense == "past" else "does" if clause.third_singular else "do"), words(head, tail)
    finite = past if tense == "past" else third(head) if clause.third_singular else head
    return "", words(finite, tail)


def after_verb(clause, gap):
    direct = noun_phrase(clause.direct) if clause.direct and gap != "direct" else ""
    split = isinstance(clause.direct, Pronoun) and clause.verb.particle
    return words(clause.verb.after, "" if split else clause.verb.particle,
                 clause.indirect and noun_phrase(clause.indirect), direct, split and clause.verb.particle,
                 clause.predicate and predicate(clause.predicate), clause.manner and clause.manner[0],
                 clause.agent and "by " + noun_phrase(clause.agent),
                 clause.companion and "with " + noun_phrase(clause.companion), place(clause.place),
                 clause.time and clause.front != "time" and clause.time[0], complement(clause))


def clause(c, inverted=False, gap=""):
    """Returns the text of a clause. inverted: operator before subject; gap: role of the relative or question word."""
    subject = "" if gap == "subject" else noun_phrase(c.subject, "subject")
    operator, rest = verb_group(c, inverted or c.negative)
    front = getattr(c, c.front)[0] if c.front else ""
    start = [operator, subject] if inverted else [subject, operator]
    return words(front, *start, c.negative and "not", c.often and c.often[0], rest, after_verb(c, gap))


def infinitive(c):
    return words("to", c.verb.base, after_verb(c, ""))


def predicate(p):
    if p.than:
        return words(p.adjective.english_comparative, "than", noun_phrase(p.than))
    return words(p.degree and p.degree[0], p.adjective.english)


def place(p):
    return words(p.english, p.phrase and noun_phrase(p.phrase)) if p else ""


def complement(c):
    if not c.complement:
        return ""
    kind, inner = c.complement
    return infinitive(inner) if kind in ("to", "in order to") else words(kind, clause(inner))
