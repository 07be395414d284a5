"""Pairs of noisy lines, a hypothesis and its reference: a function of the seed.

`python tests/support/noisy_text.py tests/golden` writes score-hypotheses.txt and score-references.txt, 300 lines each,
and prints the scores that the installed sacreBLEU gives them, as tests/eval/score_test.cc quotes them.
"""

import pathlib
import random
import sys

WORDS = (
    "the a of to and in cat dog river bridge house stone quickly slowly reads Writes SINGS tomorrow yesterday "
    "don't it's rock-'n'-roll well-known e-mail x-ray 20-year-old 1990-2000 3-4 5- -5 --- -- - – — … "
    "1,000 1,000,000.50 3.14 .5 5. ,7 7, 1.2.3 12:30 50% $9.99 €20 £3,50 No.5 A.B.C. U.S. a.m. i.e., etc... ...and "
    "\"quoted\" 'single' «guillemets» „deutsch“ “curly” ‘a’ (round) [square] {curly} <tag> </tag> <skipped> <skipped>x "
    "&quot;so&quot; &amp; &lt;b&gt; &amp;lt; &amp;quot; &apos; &nbsp; &AMP; &#39; R&D & &amp "
    "a/b a\\b c++ C# #tag @name name@example.org http://example.org/a?b=c&d=e ~50 ^2 a_b `code` |pipe| * = + ; : ? ! ?! "
    "café naïve Ångström cafe\u0301 a\u0308o\u0308 ÉCOLE Straße STRASSE ẞ İstanbul ıslak ΟΔΟΣ ΣΑΣ Σ ὈΔΥΣΣΕΎΣ Ǆ ǅ "
    "Москва река МОСТ 東京 大阪、 猫です。 你好 世界! 한국어 مرحبا بالعالم، ١٢٣ ۵.۶ १,२ שלום עולם 🙂 👩‍👩‍👧 🇫🇷 ½ ² Ⅳ ａｂ１．５ "
    "\ufeff zero\u200bwidth soft\u00adhyphen non\u2011breaking 𝔘𝔫𝔦 𐐀𐐁 x\u0000y"
).split(" ")
SPACES = [" "] * 40 + list("\t\v\f\x1c\x1d\x1e\x1f\x85\xa0\u1680\u2000\u2003\u2009\u200a\u2028\u2029\u202f\u205f\u3000")
PLAIN = WORDS[:17]


def line(rng, words):
    count = rng.choice([0, 1, 1, 2, 3, 4, 5, 8, 13, 21])
    text = "".join(rng.choice(words) + rng.choice(SPACES if rng.random() < 0.9 else [""]) for _ in range(count))
    return rng.choice(["", "", "", " ", "\u3000"]) + text + rng.choice(["", ".", ".", "...", "!", "?", ",", "-", '"'])


def mutate(rng, text):
    """Drops, doubles, swaps and replaces some characters, or some words, or none."""
    kind = rng.randrange(4)
    if kind == 0:
        return text
    units = list(text) if kind == 1 else text.split(" ")
    out = []
    for unit in units:
        draw = rng.random()
        if draw < 0.04:
            continue
        out.append(rng.choice(WORDS) if draw < 0.10 else unit)
        if draw > 0.97:
            out.append(unit)
        if draw > 0.94 and len(out) > 1:
            out[-1], out[-2] = out[-2], out[-1]
    return ("" if kind == 1 else " ").join(out)


def pair(rng):
    words = PLAIN if rng.random() < 0.3 else WORDS
    reference = line(rng, words)
    hypothesis = mutate(rng, reference) if rng.random() < 0.85 else line(rng, words)
    if rng.random() < 0.1:
        hypothesis = rng.choice([hypothesis.upper(), hypothesis.lower(), hypothesis.title()])
    return hypothesis, reference


def noisy_pairs(count, seed):
    """Hypotheses and references: two lists of `count` lines."""
    rng = random.Random(seed)
    hypotheses, references = zip(*(pair(rng) for _ in range(count)))
    return list(hypotheses), list(references)


def main(folder):
    import sacrebleu

    hypotheses, references = noisy_pairs(300, seed=13)
    for name, lines in ("score-hypotheses.txt", hypotheses), ("score-references.txt", references):
        pathlib.Path(folder, name).write_bytes("".join(line + "\n" for line in lines).encode())
    print("sacrebleu", sacrebleu.__version__)
    for lowercase in False, True:
        bleu = sacrebleu.BLEU(lowercase=lowercase).corpus_score(hypotheses, [references])
        chrf = sacrebleu.CHRF(lowercase=lowercase).corpus_score(hypotheses, [references])
        print(bleu.score, bleu.precisions, bleu.bp, bleu.sys_len, bleu.ref_len, chrf.score)


if __name__ == "__main__":
    main(sys.argv[1])
