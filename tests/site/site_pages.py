"""Pages of the built site as they are parsed."""

import functools
import html.parser
import pathlib

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
VOID = {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"}
CODE = {"code", "pre", "math", "script", "style", "svg", "title", "footer"}


class Page(html.parser.HTMLParser):
    """The parts of a page that tests check: ids, targets of links, resources, headings, images and words of prose."""

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
