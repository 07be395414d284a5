"""Pages of the source files that pages link to, with an anchor for each line."""

import posixpath
import re
from html import escape
from pathlib import Path
from urllib.parse import unquote

from docutils import nodes
from pygments import highlight
from pygments.filter import simplefilter
from pygments.formatters import HtmlFormatter
from pygments.lexers import TextLexer, get_lexer_for_filename
from pygments.token import Name, Punctuation, Text, Whitespace
from pygments.util import ClassNotFound

ROOT = Path(__file__).resolve().parent.parent.parent
SCHEME = "source:"


def page_of_source(app, link, docname):
    """The page of a link source:PATH#LINE, whose path is remembered."""
    path, _, line = link.removeprefix(SCHEME).partition("#")
    app.linked_sources.add(unquote(path).rstrip("/"))
    page = posixpath.relpath(f"source/{path.rstrip('/')}.html", posixpath.dirname(docname) or ".")
    return page + (f"#{line}" if line else "")


def set_targets(app, doctree, docname):
    """Sets the links source:PATH#LINE to pages of sources, also in drawings."""
    for node in doctree.findall(nodes.reference):
        if node.get("refuri", "").startswith(SCHEME):
            node["refuri"] = page_of_source(app, node["refuri"], docname)
            node["internal"] = True
    for node in list(doctree.findall(nodes.raw)):
        text = re.sub(rf'(?<=href="){SCHEME}[^"]*', lambda link: page_of_source(app, link[0], docname), node.astext())
        node.replace_self(nodes.raw(node.rawsource, text, **node.attributes))


@simplefilter
def without_plain_spans(self, lexer, stream, options):
    """White space, names and punctuation without a <span>, whose colour is that of the text: half of the pages."""
    for kind, value in stream:
        yield Text if kind in Whitespace or kind in (Name, Punctuation) else kind, value


def code_of(path):
    try:
        lexer = get_lexer_for_filename(path.name)
    except ClassNotFound:
        lexer = TextLexer()
    lexer.add_filter(without_plain_spans())
    text = path.read_text(encoding="utf-8", errors="replace")
    numbers = HtmlFormatter(linenos="inline", lineanchors="L", anchorlinenos=True, wrapcode=True)
    page = re.sub(r' name="L-\d+"', "", highlight(text, lexer, numbers))
    page = re.sub(r'((?:id="|href="#)L)-(?=\d)', r"\1", page)
    return page.replace("<pre>", '<pre tabindex="0">')  # so that a keyboard can scroll it


def listing(path):
    names = sorted(child.name + "/" * child.is_dir() for child in path.iterdir() if child.name[0] not in "._")
    return "<ul>" + "".join(f"<li>{escape(name)}</li>" for name in names) + "</ul>"


def write_pages(app, error):
    """Writes the pages without the theme, whose navigation takes most of the time of a page."""
    for name in sorted(app.linked_sources) if error is None else ():
        path = ROOT / name
        body = listing(path) if path.is_dir() else code_of(path)
        page = Path(app.outdir, f"source/{name}.html")
        page.parent.mkdir(parents=True, exist_ok=True)
        values = {"root": "../" * (name.count("/") + 1), "site": app.config.html_title, "title": name or "files"}
        page.write_text(app.builder.templates.render("source.html", {**values, "source": body}), encoding="utf-8")


def setup(app):
    app.linked_sources = set()
    app.connect("doctree-resolved", set_targets)
    app.connect("build-finished", write_pages)
