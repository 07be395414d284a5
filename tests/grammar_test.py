"""The example corpus: the committed files are what the generator writes, its splits share nothing, and its German agrees. The
agreement check is independent of the grammar: it has its own table of genders and reads the finished text."""

import pathlib
import re
import sys

import pytest

GRAMMAR = pathlib.Path(__file__).resolve().parent.parent / "examples" / "grammar"
sys.path.insert(0, str(GRAMMAR))
sys.dont_write_bytecode = True

import generate  # noqa: E402

SPLITS = {"train": 20000, "dev": 500, "test": 1000}


def lines(name):
    return (GRAMMAR / name).read_text(encoding="utf-8").splitlines()


@pytest.fixture(scope="module")
def texts():
    return {(split, language): lines(f"{split}.{language}") for split in SPLITS for language in ("en", "de")}


def test_regenerating_gives_the_same_bytes(tmp_path):
    generate.write(tmp_path)
    for split in SPLITS:
        for language in ("en", "de"):
            name = f"{split}.{language}"
            assert (tmp_path / name).read_bytes() == (GRAMMAR / name).read_bytes(), name


def test_both_sides_have_the_promised_number_of_lines(texts):
    for (split, _), text in texts.items():
        assert len(text) == SPLITS[split]


def test_no_sentence_comes_twice_in_any_split(texts):
    for language in ("en", "de"):
        every = [line for split in SPLITS for line in texts[split, language]]
        assert len(set(every)) == len(every)


def test_every_test_word_is_known_from_training(texts):
    for language in ("en", "de"):
        known, asked = (set(re.findall(r"\w+", " ".join(texts[split, language]))) for split in ("train", "test"))
        assert len({w.lower() for w in asked} - {w.lower() for w in known}) <= len(asked) // 200


def test_sentences_are_clean_lines_of_four_to_eighteen_words(texts):
    for text in texts.values():
        for line in text:
            assert re.fullmatch(r"[A-ZÄÖÜ][A-Za-zÄÖÜäöüß,']*( [A-Za-zÄÖÜäöüß,']+)+[.?]", line), line
            assert 4 <= len(line.split()) <= 18, line


# Genders, typed by hand: masculine, feminine, neuter, in the nominative singular.
GENDER = {noun: gender for gender, nouns in {
    "m": """Mann Junge Bäcker Student Nachbar Freund Bruder Vater Sohn Onkel Großvater König Bauer Koch Kellner Polizist Ingenieur
        Gast Tourist Pfleger Musiker Kunde Kollege Fahrer Hund Vogel Bär Löwe Affe Fuchs Wolf Elefant Brief Roman Bericht Satz
        Apfel Kuchen Keks Pfannkuchen Käse Reis Honig Salat Schinken Kaffee Tee Saft Wein Schlüssel Löffel Bleistift Ring
        Hammer Koffer Korb Teller Regenschirm Ball Computer Spiegel Mantel Hut Rock Schuh Schal Pullover Anzug Handschuh
        Zug Bus Tisch Stuhl Teppich Schreibtisch Schrank Garten Wald Park Keller Markt Bahnhof Strand Flughafen See Fluss
        Morgen Abend Nachmittag Sommer Winter Moment""",
    "f": """Frau Lehrerin Ärztin Schwester Mutter Tochter Tante Großmutter Königin Malerin Sängerin Anwältin Pilotin Journalistin
        Chefin Gärtnerin Katze Maus Kuh Ente Ziege Zeitung Geschichte Postkarte Zeitschrift Birne Kartoffel Wurst Tomate
        Karotte Banane Zwiebel Kirsche Suppe Butter Schokolade Milch Kamera Blume Fahrkarte Landkarte Lampe Tasse Flasche Kiste
        Kerze Tasche Uhr Gitarre Jacke Mütze Straßenbahn Tür Schublade Bank Küche Schule Stadt Kirche Bibliothek Brücke
        Insel Nacht Woche""",
    "n": """Kind Mädchen Pferd Schwein Kaninchen Buch Gedicht Ei Brot Fleisch Wasser Bier Bild Messer Kissen Glas Telefon Geschenk
        Hemd Kleid Auto Fahrrad Schiff Boot Taxi Fenster Tor Bett Sofa Regal Dorf Büro Restaurant Hotel Theater Krankenhaus
        Museum Badezimmer Kino Schlafzimmer Haus Jahr""",
}.items() for noun in nouns.split()}
WEAK_MASCULINE = set("Junge Student Nachbar Bauer Polizist Tourist Kunde Kollege Bär Löwe Affe Elefant".split())

# What a determiner's ending may stand for: gender (p: plural) and case (n a d g). Read from an ordinary school table.
DER = {"der": "mn fd fg pg", "die": "fn fa pn pa", "das": "nn na", "den": "ma pd", "dem": "md nd", "des": "mg ng"}
DIESER = {"er": "mn fd fg pg", "e": "fn fa pn pa", "es": "nn na mg ng", "en": "ma pd", "em": "md nd"}
EIN = {"": "mn nn na", "e": "fn fa pn pa", "er": "fd fg pg", "es": "mg ng", "en": "ma pd", "em": "md nd"}
CONTRACTED = {"im": "md nd", "am": "md nd", "zum": "md nd", "vom": "md nd", "zur": "fd", "ins": "na", "ans": "na"}
PREPOSITIONS = {"mit": "d", "von": "d", "zu": "d", "um": "a", "in": "ad", "an": "ad", "auf": "ad", "über": "ad", "unter": "ad",
                "hinter": "ad", "neben": "ad", "vor": "ad"}
EIN_STEMS = ("ein", "kein", "mein", "dein", "sein", "ihr", "unser")
DIESER_STEMS = ("dies", "jed", "welch", "all")


def readings(word):
    """[(class, {gender + case})] of a determiner: class is weak or mixed, by the adjective that follows it."""
    if word in DER:
        return [("weak", set(DER[word].split()))]
    if word in CONTRACTED:
        return [("weak", set(CONTRACTED[word].split()))]
    for stems, table, kind in ((DIESER_STEMS, DIESER, "weak"), (EIN_STEMS, EIN, "mixed")):
        for stem in stems:
            if word.startswith(stem) and word[len(stem):] in table:
                return [(kind, set(table[word[len(stem):]].split()))]
    return []


def adjective_fits(kind, ending, feature):
    gender, case = feature
    if kind == "weak" or gender == "p" or case in "dg":
        short = gender != "p" and (case == "n" or case == "a" and gender in "fn")
        return ending == ("e" if short else "en")
    return ending == {"mn": "er", "ma": "en", "fn": "e", "fa": "e", "nn": "es", "na": "es"}[feature]


def noun_features(word, plurals):
    """{gender + case} that a form of a noun can have."""
    found = set()
    for noun, gender in GENDER.items():
        if word == noun:
            cases = "n" if noun in WEAK_MASCULINE else "nad" + ("g" if gender == "f" else "")
            found |= {gender + case for case in cases}
        if noun in WEAK_MASCULINE and word in (noun + "n", noun + "en"):
            found |= {"ma", "md", "mg"}
        if gender != "f" and noun not in WEAK_MASCULINE and word in (noun + "s", noun + "es"):
            found.add(gender + "g")
    for plural in plurals:
        if word == plural:
            found |= {"pn", "pa", "pg"} | ({"pd"} if plural[-1] in "ns" else set())
        if word == plural + "n" and plural[-1] not in "ns":
            found.add("pd")
    return found


def test_determiner_adjective_and_noun_agree_in_gender_number_and_case(texts):
    plurals = {noun.german_plural for noun in __import__("lexicon").BY_ENGLISH.values()} - {"-"} | {"Tage", "Wochen"}
    phrase = re.compile(r"(?:\b([\w]+) )?\b([\w]+) (?:([a-zäöüß]+) )?([A-ZÄÖÜ]\w+)")
    checked, known = 0, {}
    for split in SPLITS:
        for line in texts[split, "de"]:
            words = re.findall(r"\w+|[,.?]", line)
            words[0] = words[0].lower() if words[0].lower() in DER or readings(words[0].lower()) else words[0]
            for i, word in enumerate(words):
                if not word[0].isupper():
                    continue
                for back in (1, 2):
                    start = i - back
                    if start < 0 or not readings(words[start]) or not words[start + 1:i] == [w for w in words[start + 1:i] if w.islower()]:
                        continue
                    if word not in known:
                        known[word] = noun_features(word, plurals)
                    if not known[word]:
                        continue  # a name
                    (kind, features), = readings(words[start])
                    features = features & known[word]
                    if back == 2:
                        ending = re.search("(e|en|em|er|es)$", words[start + 1])
                        if not ending:
                            continue
                        features = {f for f in features if adjective_fits(kind, ending[1], f)}
                    before = words[start - 1].lower() if start else ""
                    if before in PREPOSITIONS and words[start] not in CONTRACTED:
                        features = {f for f in features if f[1] in PREPOSITIONS[before]}
                    assert features, (line, words[start:i + 1])
                    checked += 1
                    break
    assert checked > 30000


# Checked by hand, a case of every rule.
EXPECTED = """
"""
