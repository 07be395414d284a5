"""Checks the rules of the project's language that a program can check: words, comment openings, width, error texts.

The rules hold for every tracked text file. `python3 tests/language_test.py [PATH...]` prints the violations below each
path (default: the whole repository).
"""
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WORD_LISTS = {ROOT / "examples/grammar/tables.py"}  # vocabulary of the example language, not prose

ISE_STEMS = (  # of verbs that the project spells with -ize, before the -is- that is refused
    "author capital categor character custom discret emphas equal factor final formal general harmon initial linear "
    "local material maxim memor minim normal optim organ parallel penal priorit quant random real recogn regular serial "
    "special stabil standard summar symbol synchron token util vector visual"
)
CODE = {".h", ".cc", ".cu", ".py", ".pyi", ".cmake", ".sh", ".js", ".html", ".css"}
WORDS = {  # word or phrase, as a regular expression -> what to write
    r"foret(?:ells?|elling|old)": "predict",
    r"(?:is|are) none of": "unknown ..., choose from ...",
    r"anew": "again",
    r"at one time": "at once",
    r"(?:go|goes|going|gone|went) on": "continue",
    r"let(?:s|ting)? go": "drop, discard",
    r"beside": "next to, alongside",
    r"(?<![.>])(?:tell|tells|told)(?!\()": "report, emit, distinguish",
    r"so many": "the number of",
    r"that are held": "state what holds them",
    r"a divisor of heads": "Number of key/value heads",
    r"for one thread, which": "Not thread-safe",
    r"what is searched for": "Search",
    r"how it is done": "Execution",
    r"the best items, and why": "top-k retrieval and explanations",
    rf"[\w-]*(?:{'|'.join(ISE_STEMS.split())})is(?:e|es|ed|er|ers|ing|ations?|able)": "-ize, -ization",
}
OPENING = re.compile(r'(?:(?://|^ *#|"""|\*) ?|(?://|#) [^"\n]*[.:;] )(Of|What)\b(?![^.]*\?)', re.MULTILINE)
STRING = r'R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"'
LITERAL = re.compile(STRING, re.DOTALL)
NAME = re.compile(r"\bTEST\w*\((\w+),\s*(\w+)\)|\bdef (test_\w+)\(")
FOLDERS = "|".join(sorted(folder.name for folder in (ROOT / "src").iterdir() if folder.is_dir()))
PRIVATE_FILE = re.compile(rf"\bsrc/|(?<![\w/])(?:{FOLDERS})/[\w/-]+\.(?:h|cc)\b")
LINK_TARGET = re.compile(r'(?<=\])\((?:[^()"]|"[^"]*")*\)|<[^<>]*>')


def spaced(phrase):
    """Matches the phrase in any case, also where a comment or a string literal continues on the next line."""
    return re.compile(rf'(?<![\w-])(?:{phrase})(?![\w-])'.replace(" ", r'(?:\s|//|#|\*|"\s*")+'), re.IGNORECASE)


PHRASES = [(spaced(phrase), advice) for phrase, advice in WORDS.items()]
ANY_PHRASE = spaced("|".join(WORDS))


def tracked():
    """The text files of the repository that people read, except WORD_LISTS and this one, which quotes what it forbids."""
    names = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    files = [ROOT / name for name in names.split("\0") if name]
    readable = [file for file in files if file.suffix in CODE | {".md"} or file.name in ("CMakeLists.txt", "run")]
    return [file for file in readable if file.is_file() and file not in WORD_LISTS | {Path(__file__).resolve()}]


def at(file, text, position):
    return f"{file.relative_to(ROOT)}:{text.count(chr(10), 0, position) + 1}"


def words_of(name):
    """CausalRowsIgnoreLaterKeys and test_causal_rows as separate words."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|_", " ", name)


def forbidden_words(file, text):
    names = [(found, words_of(" ".join(filter(None, found.groups())))) for found in NAME.finditer(text)]
    for pattern, advice in PHRASES if ANY_PHRASE.search("\n".join([text, *(words for _, words in names)])) else ():
        for found in pattern.finditer(text):
            yield f'{at(file, text, found.start())}: "{" ".join(found.group().split())}" (write: {advice})'
        for found, words in names:
            if pattern.search(words):
                yield f"{at(file, text, found.start())}: the test name {found.group()} (write: {advice})"


def comment_openings(file, text):
    if file.suffix in CODE or file.name in ("CMakeLists.txt", "run"):
        blank = LITERAL.sub(lambda literal: re.sub(r"[^\n]", "_", literal.group()), text)
        code = text if file.suffix in (".py", ".pyi") else blank  # docstrings are literals
        for found in OPENING.finditer(code):
            yield f'{at(file, text, found.start(1))}: a comment begins with "{found.group(1)}"'


def long_lines(file, text):
    """Lines of Markdown of more than 120 columns, outside tables and code, not counting the targets of links."""
    fenced = False
    for number, line in enumerate(text.splitlines() if file.suffix == ".md" else (), 1):
        fenced ^= line.lstrip().startswith("```")
        if not fenced and not line.startswith("|") and len(LINK_TARGET.sub("", line)) > 120:
            yield f"{file.relative_to(ROOT)}:{number}: {len(line)} columns (at most 120)"


def arguments(text, position):
    """The text between the parenthesis at `position` and the one that closes it."""
    depth, begin = 0, position
    while position < len(text):
        literal = LITERAL.match(text, position)
        position = literal.end() if literal else position + 1
        depth += 0 if literal else {"(": 1, ")": -1}.get(text[position - 1], 0)
        if depth == 0:
            break
    return text[begin:position]


def library_errors(file, text):
    """Errors of the library that name a command-line flag, or that say `wanted` for `expected`."""
    if file.relative_to(ROOT).parts[0] in ("src", "include"):
        for call in re.finditer(r"\b(?:fail\w*|Error)(?=\()", text):
            literals = " ".join(literal.group() for literal in LITERAL.finditer(arguments(text, call.end())))
            for wrong in re.findall(r"(?<![\w-])--[a-z][\w-]*|\bwanted\b", literals):
                yield f'{at(file, text, call.start())}: an error says "{wrong}"'


def private_files(file, text):
    if file.relative_to(ROOT).parts[0] == "include":
        for found in PRIVATE_FILE.finditer(text):
            yield f"{at(file, text, found.start())}: a public header names {found.group()}"


RULES = (forbidden_words, comment_openings, long_lines, library_errors, private_files)


def violations(paths, rules=RULES):
    within = [ROOT / path for path in paths]
    files = [file for file in tracked() if any(file.is_relative_to(path) for path in within)]
    assert files
    return [line for file in files for rule in rules for line in rule(file, file.read_text(encoding="utf-8"))]


def test_no_word_of_the_list_is_used():
    assert not violations(["."], [forbidden_words])


def test_no_comment_begins_with_of_or_what():
    assert not violations(["."], [comment_openings])


def test_markdown_has_at_most_120_columns():
    assert not violations(["."], [long_lines])


def test_errors_of_the_library_name_parameters():
    assert not violations(["."], [library_errors])


def test_public_headers_do_not_cite_private_files():
    assert not violations(["include"], [private_files])


def test_the_rules_find_what_they_forbid():
    cases = [
        (forbidden_words, "src/a.cc", "// It goes\n// on.", 1),
        (forbidden_words, "src/a.cc", '"the rest is " "none of"', 1),
        (forbidden_words, "src/a.cc", "TEST(Beam, GoesOnAfterTheEnd)", 1),
        (forbidden_words, "tests/a.py", "def test_it_is_told():", 1),
        (forbidden_words, "src/a.cc", "file.tell(); besides", 0),
        (forbidden_words, "a.md", "Optimised code, un-normalised, tokenisers, randomise(x), quantisation.", 5),
        (forbidden_words, "tests/a.cc", "TEST(Text, IsTokenisedOnce)", 1),
        (forbidden_words, "a.md", "Otherwise advise precise exercises: emphasis, optimize, realism.", 0),
        (comment_openings, "src/a.cc", "int a;  // What it is.", 1),
        (comment_openings, "src/a.cc", '// "What"\nf("// What");', 0),
        (comment_openings, "tests/a.py", '    """Of each."""', 1),
        (long_lines, "a.md", "x" * 121, 1),
        (long_lines, "a.md", "```\n" + "x" * 121 + "\n```\n| " + "x" * 121 + "\n[a](" + "x" * 121 + ' "f(")', 0),
        (library_errors, "src/a.cc", 'fail("{}: see --beam", f(")"));', 1),
        (library_errors, "src/a.cc", 'fail("beam is {}", "-- a"); "--beam"', 0),
        (private_files, "include/qkv/a.h", "// See src/ops/a.h and ops/b.h.", 2),
    ]
    found = [(rule.__name__, text, len(list(rule(ROOT / name, text)))) for rule, name, text, _ in cases]
    assert found == [(rule.__name__, text, count) for rule, _, text, count in cases]


if __name__ == "__main__":
    print("\n".join(violations(sys.argv[1:] or ["."])))
