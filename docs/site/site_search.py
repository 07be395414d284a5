"""The index of the search: the sections of all pages, with their text. search.js reads it, also from a file: URL."""

import json
import re
from pathlib import Path

from docutils import nodes
from latex2mathml.symbols_parser import convert_symbol


def symbol(command):
    """The character that a command of LaTeX stands for, such as γ for \\gamma; a space for one without a character."""
    code = convert_symbol(command)
    return chr(int(code, 16)) if code else " "


def plain_formula(text):
    """A formula as a line of text: letters and symbols, without commands."""
    text = re.sub(r"\\[a-zA-Z]+", lambda match: symbol(match[0]), text)
    return re.sub(r"\\\\|\\.|[\\{}^_&]", " ", text)


def words_of(node):
    """The text of a node as the page shows it: without comments, and with the letters and symbols of formulas."""
    if isinstance(node, (nodes.comment, nodes.raw, nodes.math_block)):
        return ""
    if isinstance(node, nodes.math):
        return plain_formula(node.astext())
    if isinstance(node, nodes.Text) or not node.children:
        return node.astext()
    return ("" if isinstance(node, nodes.TextElement) else "\n").join(map(words_of, node.children))


def text_of(section):
    """The text of a section without that of its sections."""
    parts = [words_of(child) for child in section.children if not isinstance(child, (nodes.section, nodes.title))]
    return " ".join(" ".join(parts).split())


def sections(app):
    for name in sorted(app.env.all_docs):
        page = app.env.titles[name].astext()
        for section in app.env.get_doctree(name).findall(nodes.section):
            title = section.next_node(nodes.title).astext()
            url = app.builder.get_target_uri(name) + ("" if title == page else f"#{section['ids'][0]}")
            yield [page, title, url, text_of(section)]


def write_index(app, error):
    if error is None:
        index = json.dumps(list(sections(app)), ensure_ascii=False, separators=(",", ":"))
        Path(app.outdir, "_static/search_index.js").write_text(f"const sections = {index};\n", encoding="utf-8")
        for unused in ("searchindex.js", "objects.inv", "_static/searchtools.js", "_static/language_data.js"):
            Path(app.outdir, unused).unlink(missing_ok=True)


def setup(app):
    app.connect("build-finished", write_index)
