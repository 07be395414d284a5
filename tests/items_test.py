"""docs/items.md is current, and each item of docs/items.toml has a section, a line, a test, and a command or a page.

docs_test.py checks the links of the page: files, headings, and lines that hold the code and the tests that they name.
"""
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT / "docs/site"))

import write_items  # noqa: E402
from docs_test import heading_anchors  # noqa: E402

ITEMS = write_items.items()
FIELDS = {"number", "what", "formulas", "code", "tests", "shown"}
QUICK = ("qkv explain", *(f"qkv experiment {name}" for name in ("softmax", "gradients", "order")))
MATH = ROOT / "docs/math.md"


def options_of_commands():
    """Words of a command -> names of its options, from docs/commands.md."""
    text = (ROOT / "docs/commands.md").read_text(encoding="utf-8")
    sections = re.split(r"^## ", text, flags=re.MULTILINE)[1:]
    return {section.partition("\n")[0]: {name for names in re.findall(r"^\| `(-[^`]*)`", section, re.MULTILINE)
                                         for name in re.findall(r"--?[\w-]+", names)} for section in sections}


OPTIONS = options_of_commands()


def words_of(command):
    """The words of a command line that docs/commands.md has as a command: qkv train lm."""
    words = command.split()
    return [" ".join(words[:n]) for n in (1, 2, 3) if " ".join(words[:n]) in OPTIONS][-1]


def unknown_of(command):
    """The command or the first option of a command line that the program lacks; None if it has all."""
    known, options = words_of(command), re.findall(r"(?<= )--?[a-z][\w-]*", command)
    if any(key.startswith(f"{known} ") for key in OPTIONS):  # a command of commands
        return f"the command {command}"
    return next((option for option in options if option not in OPTIONS[known]), None)


def commands(item):
    return [shown for shown in item["shown"] if not write_items.is_page(shown)]


def quick_commands(item):
    """The commands that need no file and take no training. They begin as those of QUICK, and have no word in capitals."""
    return [command for command in commands(item) if command.startswith(QUICK) and not re.search(r"\b[A-Z]+\b", command)]


def test_the_page_is_current():
    text = (ROOT / "docs/items.md").read_text(encoding="utf-8")
    assert text == write_items.page(), "run: python3 docs/site/write_items.py > docs/items.md"


def test_there_are_91_items_in_order():
    assert [item["number"] for item in ITEMS] == list(range(1, 92))
    assert len({item["what"] for item in ITEMS}) == 91


@pytest.mark.parametrize("item", ITEMS, ids=lambda item: str(item["number"]))
def test_an_item_is_complete(item):
    assert FIELDS <= set(item) <= FIELDS | {"prints"}
    assert ("prints" in item) == bool(quick_commands(item))
    assert item["what"] and "|" not in item["what"]
    assert item["formulas"] and set(item["formulas"]) <= heading_anchors(MATH)
    assert item["code"] and item["shown"] and item["tests"]
    assert [unknown_of(command) for command in commands(item)] == [None] * len(commands(item))
    for shown in filter(write_items.is_page, item["shown"]):
        path, _, anchor = shown.partition("#")
        assert (ROOT / path).is_file() and (not anchor or anchor in heading_anchors(ROOT / path)), shown


def test_a_command_that_does_not_exist_is_found():
    assert unknown_of("qkv explain --layer --backward") is None
    assert unknown_of("qkv train translate --key-width D") is None
    assert unknown_of("qkv explain --layers") == "--layers"
    assert unknown_of("qkv explode") == "the command qkv explode"
    assert unknown_of("qkv train boats") == "the command qkv train boats"


def test_references_are_cited():
    text = MATH.read_text(encoding="utf-8")
    before, _, after = text.partition("\n## References\n")
    rows = re.findall(r"^\| (\w+)\b[^|]*\[[^|]*\]\(https://[^|]*\)[^|]*\|[^|]*\w[^|]*\|$", after.partition("\n## ")[0], re.MULTILINE)
    assert rows == ["Vaswani", "Bahdanau", "He", "Ba", "Dufter", "Jurafsky", "Bishop", "Prince", "Fleuret", "Deisenroth",
                    "Alammar"]
    assert not [name for name in rows if not re.search(rf"\b{name}\b", before)]


def test_wrong_entries_are_refused():
    with pytest.raises(SystemExit, match="0 files of tests/ have Attention.Vanishes, expected 1"):
        write_items.place_of_test("Attention.Vanishes")
    with pytest.raises(SystemExit, match="0 files of src/ops/.*.h have 'no such line', expected 1"):
        write_items.file_with("src/ops/*.h", "no such line")
    with pytest.raises(SystemExit, match="docs/items.toml: docs/items.toml has 91 lines with"):
        write_items.the_line("docs/items.toml", "[[item" + "]]")
