"""The drawings of docs/ are those that docs/site/write_drawings.py draws; each of their links is one of the table.

docs_test.py checks that the links lead to headings and lines of code.
"""
import re
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

ROOT = Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT / "docs/site"))

import write_drawings  # noqa: E402
from docs_test import DRAWINGS, LINK, links  # noqa: E402

SVG = "{http://www.w3.org/2000/svg}"
PAGE = (ROOT / "docs/math.md").read_text(encoding="utf-8")
BOXES = write_drawings.table_of_boxes(PAGE)
DRAWN = {drawing.name: (drawing.svg(), drawing) for drawing in write_drawings.drawings(BOXES)}
NAMES = sorted(DRAWN)


def test_the_page_shows_each_drawing():
    assert sorted(path.stem for path in DRAWINGS) == NAMES
    shown = [link["path"] for link in LINK.finditer(PAGE) if link["path"].endswith(".svg") and link["text"]]
    assert sorted(shown) == sorted(f"{name}.svg" for name in NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_a_drawing_is_current(name):
    text = (ROOT / f"docs/{name}.svg").read_text(encoding="utf-8")
    assert text == DRAWN[name][0], "run: python3 docs/site/write_drawings.py"


def test_each_box_of_the_table_is_drawn():
    assert set().union(*(drawing.used for _, drawing in DRAWN.values())) == set(BOXES)
    rows = re.search(r"^\| box \|.*\n\|-.*\n((?:\|.*\n)+)", PAGE, re.MULTILINE)[1]
    assert len(rows.splitlines()) == len(BOXES)


@pytest.mark.parametrize("name", NAMES)
def test_each_box_has_the_links_of_its_row(name):
    root = ElementTree.fromstring(DRAWN[name][0])
    found = [(link.get("href"), link.get("data-code")) for link in root.iter(f"{SVG}a")]
    assert len(found) == len(links(ROOT / f"docs/{name}.svg")) and len(found) > 20
    expected = set()
    for key in DRAWN[name][1].used:
        formulas, code = BOXES[key]
        expected |= {(f"math.md#{formulas['anchor']}", None), (f"{code['path']}#{code['anchor']}", code["title"])}
    assert set(found) == expected


@pytest.mark.parametrize("name", NAMES)
def test_a_drawing_has_a_title_a_description_and_named_links(name):
    root = ElementTree.fromstring(DRAWN[name][0])
    by_id = {part.get("id"): part for part in root.iter() if part.get("id")}
    assert root.get("role") == "graphics-document"
    assert by_id[root.get("aria-labelledby")].tag == f"{SVG}title"
    assert by_id[root.get("aria-describedby")].tag == f"{SVG}desc"
    for link in root.iter(f"{SVG}a"):
        assert link.get("aria-label") and [text.text for text in link.iter(f"{SVG}text")]


def channel(value):
    return value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4


def luminance(color):
    return sum(share * channel(int(color[at : at + 2], 16) / 255) for share, at in ((0.2126, 1), (0.7152, 3), (0.0722, 5)))


def contrast(*colors):
    low, high = sorted(map(luminance, colors))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("name", NAMES)
def test_colors_have_the_contrast_that_wcag_asks_for(name):
    """4.5 for text, 3 for the edges of boxes and lines, in both themes."""
    themes = [dict(re.findall(r"--([\w-]+): (#\w{6});", rule)) for rule in re.findall(r"\{ (--ink.*?)\}", DRAWN[name][0], re.DOTALL)]
    assert len(themes) == 3 and themes[1] == themes[2] != themes[0]
    for theme in themes:
        assert contrast(theme["link"], theme["page"]) >= 4.5 and contrast(theme["line"], theme["page"]) >= 3
        for kind in write_drawings.COLORS:
            assert contrast(theme["ink"], theme[kind]) >= 4.5, kind
            assert contrast(theme[f"{kind}-edge"], theme["page"]) >= 3, kind
