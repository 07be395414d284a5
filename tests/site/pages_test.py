"""The built site: links, resources, valid HTML, headings, images, and that every public name is there."""

import ast
import collections
import json
import os
import re
from urllib.parse import unquote

import pytest

from site_pages import ROOT, parsed


def broken_links(page):
    for link in page.links + page.resources:
        if re.match(r"(?:[a-z]+:)?//|mailto:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.path.parent / unquote(path.partition("?")[0])).resolve() if path else page.path
        if not target.is_file():
            yield f"{page.path}: {link}"
        elif anchor and target.suffix == ".html" and unquote(anchor) not in parsed(target).ids:
            yield f"{page.path}: {link} has no such anchor"


def test_links_lead_to_files_and_anchors(pages, sources):
    assert not [link for page in pages + sources for link in broken_links(page)]


def test_nothing_is_loaded_from_elsewhere(site, pages, sources):
    assert not [(page.path, found) for page in pages + sources for found in page.resources if ":" in found]
    styles = list(site.rglob("*.css"))
    assert styles
    for style in styles:
        text = style.read_text(encoding="utf-8")
        assert "@import" not in text and not re.search(r"url\(\s*['\"]?(?:https?:)?//", text), style


def test_pages_are_valid_html(pages, sources):
    html5lib = pytest.importorskip("html5lib")
    for page in pages + sources[::40]:
        parser = html5lib.HTMLParser(strict=False)
        parser.parse(page.path.read_text(encoding="utf-8"))
        errors = [(position, code) for position, code, _ in parser.errors]
        assert not errors, (page.path, errors[:5])


def test_ids_are_unique(pages, sources):
    for page in pages + sources:
        twice = [name for name, count in collections.Counter(page.ids).items() if count > 1]
        assert not twice, (page.path, twice)


def test_pages_have_one_title_and_headings_without_gaps(pages, sources):
    for page in pages + sources:
        assert page.headings.count(1) == 1 and page.headings[0] == 1, page.path
        gaps = [level for before, level in zip(page.headings, page.headings[1:]) if level > before + 1]
        assert not gaps, (page.path, page.headings)


def test_pages_state_language_and_landmarks_and_describe_images(pages, sources):
    for page in pages + sources:
        assert ("html", "en") in [(tag, values.get("lang")) for tag, values in page.tags], page.path
        roles = [values.get("role") or tag for tag, values in page.tags]
        assert "main" in roles, page.path
        assert all(image.get("alt") for image in page.images), page.path


def test_each_formula_is_mathml(site):
    text = (site / "explanation/math.html").read_text(encoding="utf-8")
    formulas = re.findall(r"<math\b.*?</math>", text, re.DOTALL)
    assert len(formulas) > 500
    assert not re.search(r"\\[a-zA-Z]", re.sub(r"<[^>]*>", "", "".join(formulas)))


def section_titles(site):
    index = (site / "_static/search_index.js").read_text(encoding="utf-8")
    return [(page, title) for page, title, _, _ in json.loads(index.partition("= ")[2].rstrip(";\n"))]


def test_every_python_name_has_a_section(site):
    titles = {title for _, title in section_titles(site)}
    for module, prefix in (("__init__", "qkv"), ("layers/__init__", "qkv.layers"), ("batch", "qkv.batch"),
                           ("torch", "qkv.torch")):
        tree = ast.parse((ROOT / f"python/qkv/{module}.py").read_text(encoding="utf-8"))
        names = next(ast.literal_eval(node.value) for node in tree.body
                     if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__")
        assert names
        assert {f"{prefix}.{name}" for name in names} - {"qkv.__version__"} <= titles


def test_data_classes_show_their_fields_with_comments(site):
    text = re.sub(r"<[^>]*>", "", (site / "reference/python-names/qkv.html").read_text(encoding="utf-8"))
    assert "hypotheses: list[Hypothesis]" in text
    assert "line: int  # from 0" in text


def test_every_header_has_a_page_with_its_names(site):
    titles = section_titles(site)
    for header in (ROOT / "include/qkv").glob("*.h"):
        text = header.read_text(encoding="utf-8")
        found = {title for page, title in titles if page == f"qkv/{header.name}"}
        assert found, header
        for name in re.findall(r"^(?:struct|class|enum class) (\w+)(?: |:)", text, re.MULTILINE):
            assert name in found, (header, name)


def test_every_route_of_the_server_is_described(site):
    document = json.loads((ROOT / "src/serve/api/assets/openapi.json").read_text(encoding="utf-8"))
    titles = {title for page, title in section_titles(site) if page == "HTTP routes"}
    for path, methods in document["paths"].items():
        for method in methods:
            assert f"{method.upper()} {path}" in titles


def test_the_site_is_small(site):
    size = sum(os.path.getsize(path) for path in site.rglob("*") if path.is_file())
    assert size < 40 << 20
