"""Writes the sources of the site: the pages of contents.toml, whose links are set to the places of their targets.

usage: build_pages.py FOLDER
"""

import os
import re
import shutil
import sys
import tomllib
from pathlib import Path
from urllib.parse import quote

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path += [str(HERE), str(ROOT / "tests")]

import cpp_pages  # noqa: E402
import http_pages  # noqa: E402
import notebook_pages  # noqa: E402
import python_pages  # noqa: E402
from docs_test import DRAWN_LINK, LINE, LINK, without_code  # noqa: E402

GENERATED = {"@cpp": cpp_pages.pages, "@http": http_pages.pages, "@notebooks": notebook_pages.pages,
             "@python": python_pages.pages}
IMAGES = (".png",)


def contents():
    return tomllib.loads((HERE / "contents.toml").read_text(encoding="utf-8"))


def repository_pages(pattern):
    return sorted(ROOT.glob(pattern))


def name_of(page):
    """The name of a page in the folder of its section."""
    parts = page.relative_to(ROOT).with_suffix("").parts
    return parts[-1] if parts[0] == "docs" else "-".join(parts).lower().removesuffix("-readme")


def relative(path, place):
    return os.path.relpath(path, os.path.dirname(place) or ".")


class Site:
    """texts: place on the site -> (text, folder of the repository that its links start from)."""

    def __init__(self):
        self.texts, self.places, self.sections = {}, {}, []
        table = contents()
        self.add("index", ROOT / table["home"])
        self.places["@home"] = "index"
        for section in table["section"]:
            before = len(self.texts)
            for pattern in section["pages"]:
                self.add_pages(section["folder"], pattern)
            self.sections.append((section["title"], list(self.texts)[before:]))

    def add(self, place, page):
        assert place not in self.texts, f"two pages have the place {place}"
        self.texts[place] = (page.read_text(encoding="utf-8"), page.parent)
        self.places[page] = place

    def add_pages(self, folder, pattern):
        if pattern in GENERATED:
            for name, text, file in GENERATED[pattern](ROOT):
                self.texts[f"{folder}/{name}"] = (text, ROOT)
                self.places[f"@{name}"] = self.places[file] = f"{folder}/{name}"
            return
        found = repository_pages(pattern)
        assert found, f"contents.toml: there is no page {pattern}"
        for page in found:
            self.add(f"{folder}/{name_of(page)}", page)

    def target(self, link, place, folder):
        """The link of the site: to a page, to an image, or else to the source, which site_sources.py shows."""
        path, anchor = link["path"], f"#{link['anchor']}" if link["anchor"] else ""
        if not path or re.match(r"[a-z]+:", path):
            return link.group()
        file = path if path in self.places else (folder / path).resolve()
        page = self.places.get(file)
        if page and page != place and not LINE.fullmatch(link["anchor"] or ""):
            return f"[{self.link_text(link['text'], page)}]({relative(page + '.md', place)}{anchor})"
        if file.suffix in IMAGES:
            return f"[{link['text']}]({relative(f'images/{file.name}', place)})"
        return f"[{link['text']}](source:{quote(str(file.relative_to(ROOT)))}{anchor})"

    def drawing(self, file, place):
        """A drawing as a part of the page, so that its links work, with the links of the site."""
        text = file.read_text(encoding="utf-8")
        for link in reversed(list(DRAWN_LINK.finditer(text))):
            page, anchor = self.places.get((file.parent / link["path"]).resolve()), f"#{link['anchor']}"
            path = f"source:{quote(str((file.parent / link['path']).resolve().relative_to(ROOT)))}"
            if page:
                path = "" if page == place else relative(page + ".html", place)
            text = text[: link.start("path")] + path + anchor + text[link.end("anchor") :]
        return f"<figure>\n{text}</figure>"

    def link_text(self, text, page):
        """The title of the page instead of the name of its file, which the site does not have."""
        title = re.search(r"^# (.+)", self.texts[page][0], re.MULTILINE)
        return title[1] if title and re.fullmatch(r"[\w\\/.-]+\.md", text) else text

    def page(self, place):
        """The text of a page with the links of the site."""
        text, folder = self.texts[place]
        for link in reversed(list(LINK.finditer(without_code(text)))):
            begin, target = link.start(), self.target(link, place, folder)
            if link["path"].endswith(".svg") and text[begin - 1] == "!":
                begin, target = begin - 1, self.drawing((folder / link["path"]).resolve(), place)
            text = text[:begin] + target + text[link.end() :]
        return text + self.toctree(place)

    def toctree(self, place):
        """The navigation: of the home page all sections, of an index the pages of its folder."""
        if place == "index":
            trees = [(title, [p for p in pages if p.count("/") == 1 or p.endswith("/index")])
                     for title, pages in self.sections]
        elif place.endswith("/index"):
            folder = place.removesuffix("index")
            trees = [("", [p for p in self.texts if p.startswith(folder) and p != place])]
        else:
            return ""
        options = ":hidden:\n:maxdepth: 2\n"
        return "".join(f"\n```{{toctree}}\n{options}" + (f":caption: {title}\n" if title else "") + "\n" +
                       "".join(f"/{page}\n" for page in pages) + "```\n" for title, pages in trees)

    def write(self, folder):
        shutil.rmtree(folder, ignore_errors=True)
        for place in self.texts:
            file = folder / f"{place}.md"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(self.page(place), encoding="utf-8")
        (folder / "images").mkdir()
        for image in (file for suffix in IMAGES for file in ROOT.glob(f"docs/*{suffix}")):
            shutil.copy(image, folder / "images")


if __name__ == "__main__":
    Site().write(Path(sys.argv[1]))
