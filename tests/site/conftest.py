"""The site, built once by docs/site/build.sh with the Python of the tests, and its pages as they are parsed."""

import functools
import html.parser
import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests/program"))  # page_browser
VOID = {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"}
CODE = {"code", "pre", "math", "script", "style", "svg", "title", "footer"}


class Page(html.parser.HTMLParser):
    """What the tests ask of a page: its ids, targets of links, resources, headings, images and words of prose."""

    def __init__(self, path):
        super().__init__()
        self.path = path
        self.ids, self.links, self.resources, self.headings, self.images, self.tags = [], [], [], [], [], []
        self.texts, self.open = [], []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        self.tags.append((tag, values))
        if "id" in values:
            self.ids.append(values["id"])
        if tag == "a" and values.get("href"):
            self.links.append(values["href"])
        if tag in ("script", "img", "iframe", "source") and values.get("src"):
            self.resources.append(values["src"])
        if tag == "link" and values.get("rel") in ("stylesheet", "icon", "prefetch", "shortcut icon"):
            self.resources.append(values["href"])
        if tag == "img":
            self.images.append(values)
        if tag in ("h1", "h2", "h3", "h4", "h5", "h6"):
            self.headings.append(int(tag[1]))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        while self.open and self.open.pop() != tag:
            pass

    def handle_data(self, data):
        if "article" in self.open and not CODE.intersection(self.open):
            self.texts.append(data)


@functools.lru_cache(maxsize=None)
def parsed(path):
    return Page(path)


@pytest.fixture(scope="session")
def site(tmp_path_factory):
    """The folder of the built site; QKV_SITE names one that was built before."""
    if "QKV_SITE" in os.environ:
        return pathlib.Path(os.environ["QKV_SITE"]).resolve()
    for package in ("sphinx", "myst_parser", "furo", "latex2mathml", "griffe"):
        pytest.importorskip(package)
    done = subprocess.run([ROOT / "docs/site/build.sh"], env={**os.environ, "PYTHON": sys.executable},
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return ROOT / "build/site/html"


@pytest.fixture(scope="session")
def pages(site):
    """All pages except those of source files."""
    return [parsed(path) for path in sorted(site.rglob("*.html")) if (site / "source") not in path.parents]


@pytest.fixture(scope="session")
def sources(site):
    return [parsed(path) for path in sorted((site / "source").rglob("*.html"))]
