"""Checks that links and paths in the documentation exist, and that linked lines hold the code and tests they name.

A link to a line of code names a piece of that line in its title, one that no other line of the file contains; a link to
a test is written with the test's name:
    [adam_reference.h](../src/ops/reference/adam_reference.h#L23 "m = f.beta1")
    [Ema.MovesTowardsTheWeights](../tests/ops/adam_test.cc#L89)
A link of a drawing (docs/*.svg) has the code in the attribute data-code.
`python3 tests/docs_test.py --fix` updates the line numbers after code has moved.
"""
import functools
import html
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted(
    page
    for page in ROOT.rglob("*.md")
    if not any(part.startswith(".") or part in ("build", "runs") for part in page.relative_to(ROOT).parts)
)
DRAWINGS = sorted((ROOT / "docs").glob("*.svg"))
LINK = re.compile(r'\[(?P<text>[^\[\]]*)\]\((?P<path>[^()\s#]*)(?:#(?P<anchor>[^()\s]*))?(?: "(?P<title>[^"]*)")?\)')
HTML_LINK = re.compile(r'<(?:a|img|source)\s[^>]*?(?:href|src|srcset)="(?P<path>[^"#]*)(?:#(?P<anchor>[^"]*))?"')
DRAWN_LINK = re.compile(
    r'<a href="(?P<path>[^"#]*)(?:#(?P<anchor>[^"]*))?"(?: data-code="(?P<title>[^"]*)")?(?: class="code")? aria-label="(?P<text>[^"]*)"')
LINE = re.compile(r"L(\d+)")
PATH = re.compile(r"`((?:apps|bench|cmake|docs|examples|include|src|tests)/[\w./*-]+)`")  # * and CAPITALS: any name


def without_code(text):
    """The page with its fenced blocks blanked out, at the same length."""
    return re.sub(r"^```.*?^```", lambda block: " " * len(block.group()), text, flags=re.MULTILINE | re.DOTALL)


def links(page, *kinds):
    """The relative links of a page or a drawing, of all kinds by default, as match objects."""
    text = without_code(page.read_text(encoding="utf-8"))
    if page.suffix == ".svg":
        kinds = (DRAWN_LINK,)
    found = [link for kind in kinds or (LINK, HTML_LINK) for link in kind.finditer(text)]
    return [link for link in found if not re.match(r"[a-z]+:", link["path"])]


def target_of(page, link):
    return (page.parent / link["path"]).resolve() if link["path"] else page


def headings(page):
    """The anchor that GitHub gives to each heading of a page -> its text."""
    titles = {}
    for heading in re.findall(r"^#+ +(.*?)\s*$", without_code(page.read_text(encoding="utf-8")), re.MULTILINE):
        words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        anchor = re.sub(r"[^\w\- ]", "", words.lower()).replace(" ", "-")
        number = next(n for n in range(1000) if (f"{anchor}-{n}" if n else anchor) not in titles)
        titles[f"{anchor}-{number}" if number else anchor] = words
    return titles


def heading_anchors(page):
    return set(headings(page))


def code_of(link):
    """The text that the linked line must contain, a test as TEST(Suite, Name); None if the link names none."""
    name = link["text"].strip("`")
    if link["title"] is None and re.fullmatch(r"[A-Z]\w+\.[A-Z]\w+", name):
        return "({}, {})".format(*name.split("."))
    return html.unescape(link["title"]) if link.re is DRAWN_LINK and link["title"] else link["title"]


def line_links(page):
    """Triples (link, target, line number) of the links to lines of files that exist."""
    found = [(link, target_of(page, link), LINE.fullmatch(link["anchor"] or "")) for link in links(page, LINK)]
    return [(link, target, int(line[1])) for link, target, line in found if line and target.is_file()]


@functools.cache
def lines_of(path):
    """The lines of a file of code, which many links name."""
    return path.read_text(encoding="utf-8").splitlines()


def lines_with(code, target):
    return [n for n, line in enumerate(lines_of(target), 1) if code in line]


def complaint(link, target, line):
    """Why a link does not name the linked line of code, and that line only; None if it does."""
    code = code_of(link)
    lines = lines_with(code, target) if code is not None else []
    if code is None:
        return f"{link.group()} names no code in its title"
    if len(lines) > 1:
        return f"{link['path']}: {code!r} is ambiguous, it occurs on the lines {', '.join(map(str, lines))}"
    if line not in lines:
        return f"{link['path']}#L{line} does not hold {code!r} (try: python3 tests/docs_test.py --fix)"
    return None


def complaints(check):
    return [f"{page.relative_to(ROOT)}: {word}" for page in PAGES + DRAWINGS for word in check(page)]


def test_links_lead_to_files():
    assert PAGES
    assert not complaints(lambda page: [link["path"] for link in links(page) if not target_of(page, link).exists()])


def test_paths_in_the_text_are_of_files():
    def check(page):
        for path in PATH.findall(without_code(page.read_text(encoding="utf-8"))):
            if not any(ROOT.glob(re.sub(r"[A-Z]{3,}", "*", path))):
                yield path

    assert not complaints(check)


def test_anchors_are_headings():
    def check(page):
        for link in links(page):
            target = target_of(page, link)
            if link["anchor"] and target.suffix == ".md" and target.exists():
                if link["anchor"] not in heading_anchors(target):
                    yield f"{link['path']}#{link['anchor']}"

    assert not complaints(check)


def test_each_page_has_one_place_on_the_site():
    import tomllib

    contents = tomllib.loads((ROOT / "docs/site/contents.toml").read_text(encoding="utf-8"))
    patterns = [contents["home"], "examples/notebooks/README.md"]  # the second is generated
    patterns += [name for section in contents["section"] for name in section["pages"] if not name.startswith("@")]
    placed = [page for pattern in patterns for page in ROOT.glob(pattern)]
    assert sorted(placed) == PAGES, "docs/site/contents.toml has one entry for each page"


def test_no_page_holds_the_marks_of_a_merge():
    marks = re.compile(r"^(<<<<<<<|>>>>>>>) ", re.MULTILINE)
    assert not [str(page.relative_to(ROOT)) for page in PAGES if marks.search(page.read_text(encoding="utf-8"))]


def test_linked_lines_hold_what_the_link_names():
    assert not complaints(lambda page: filter(None, (complaint(*found) for found in line_links(page))))


def test_a_title_that_is_ambiguous_missing_or_elsewhere_is_refused(tmp_path):
    code = tmp_path / "a.cc"
    code.write_text("f(a)\nf(b)\ng()\nTEST(Flow, Works)\n")

    def word(text, line):
        return complaint(LINK.fullmatch(text), code, line)

    assert "ambiguous" in word('[a](a.cc#L1 "f(")', 1)
    assert "names no code" in word("[a](a.cc#L1)", 1)
    assert "does not hold" in word('[a](a.cc#L2 "g(")', 2)
    assert word('[a](a.cc#L3 "g(")', 3) is None
    assert word("[Flow.Works](a.cc#L4)", 4) is None


def fix_lines(page):
    """Sets every line number to the line that holds the link's code. Returns what was not found, or more than once."""
    text, missing = page.read_text(encoding="utf-8"), []
    for link, target, _ in sorted(line_links(page), key=lambda found: -found[0].start("anchor")):
        code = code_of(link)
        lines = lines_with(code, target) if code is not None else []
        if len(lines) != 1:
            missing.append(f"{page.relative_to(ROOT)}: {link['path']} has {len(lines)} lines with {code!r}")
            continue
        text = text[: link.start("anchor")] + f"L{lines[0]}" + text[link.end("anchor") :]
    page.write_text(text, encoding="utf-8")
    return missing


if __name__ == "__main__":
    if sys.argv[1:] != ["--fix"]:
        sys.exit("usage: python3 tests/docs_test.py --fix")
    not_found = [word for page in PAGES + DRAWINGS for word in fix_lines(page)]
    sys.exit("\n".join(not_found) or None)
