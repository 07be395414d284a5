"""Writes docs/items.md, the table of docs/items.toml with its links.

usage: write_items.py > docs/items.md
"""

import functools
import os
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.append(str(ROOT / "tests"))

from docs_test import headings, lines_with  # noqa: E402

HEAD = """# The Transformer in {all} items

Formulas, shapes, examples and claims of textbooks about the Transformer, and for each of them the command or page that
shows it, the section that derives it, the line that computes it, and the test that checks it.

This page is generated from [items.toml](items.toml): after a change there, or of a line that it names, run
`python3 docs/site/write_items.py > docs/items.md`. [A test](../tests/items_test.py) checks that every section, line,
test, command and page exists.

`RUN` is the directory of a trained model. `./demo.sh` trains a translator in a few minutes, from the files in
`examples/grammar`, as `runs/demo`; `./demo.sh recommend` a recommender, `runs/demo-films`. For example:

```
qkv attend runs/demo --text "The cat sat on the mat." --kind encoder
qkv heads runs/demo --data examples/grammar/test.en --target examples/grammar/test.de
qkv recommend runs/demo-films --titles runs/demo-films-log/titles.csv --history "Silent Harbour, Part 1"
```

| # | item | shown by | formulas | code | test |
|---:|---|---|---|---|---|
"""


@functools.cache
def files_of_tests():
    return sorted((ROOT / "tests").rglob("*_test.*"))


def items():
    return tomllib.loads((ROOT / "docs/items.toml").read_text(encoding="utf-8"))["item"]


def link(text, path, anchor="", title=""):
    target = os.path.relpath(ROOT / path, ROOT / "docs") + (f"#{anchor}" if anchor else "")
    return f"[{text}]({target}{f' {chr(34)}{title}{chr(34)}' if title else ''})"


def file_with(pattern, code):
    """The only file of a pattern that contains the code."""
    found = [path for path in sorted(ROOT.glob(pattern)) if lines_with(code, path)]
    if len(found) != 1:
        raise SystemExit(f"docs/items.toml: {len(found)} files of {pattern} have {code!r}, expected 1")
    return str(found[0].relative_to(ROOT))


def code_link(pattern, code):
    path = file_with(pattern, code)
    return link(path.rpartition("/")[2], path, f"L{the_line(path, code)}", code)


def the_line(path, code):
    """The number of the only line of a file that contains the code."""
    found = lines_with(code, ROOT / path)
    if len(found) != 1:
        raise SystemExit(f"docs/items.toml: {path} has {len(found)} lines with {code!r}, expected 1")
    return found[0]


def place_of_test(name):
    """The file of a test, and what its line contains."""
    file, _, function = name.partition("::")
    if function:
        code, files = f"def {function}(", [path for path in files_of_tests() if path.name == file]
    else:
        code, files = "({}, {})".format(*name.split(".")), [path for path in files_of_tests() if path.suffix == ".cc"]
    found = [path for path in files if lines_with(code, path)]
    if len(found) != 1:
        raise SystemExit(f"docs/items.toml: {len(found)} files of tests/ have {name}, expected 1")
    return found[0].relative_to(ROOT), code


def link_of_test(name):
    path, code = place_of_test(name)
    if "::" in name:
        return link(name.partition("::")[2], path, f"L{the_line(path, code)}", code)
    lines = lines_with(code, ROOT / path)
    title = f"TEST{code}" if len(lines) > 1 else ""
    return link(name, path, f"L{the_line(path, title) if title else lines[0]}", title)


def is_page(shown):
    return not shown.startswith("qkv ")


def shown_link(shown):
    if not is_page(shown):
        return "`{}`".format(shown.replace("|", r"\|"))
    path, _, anchor = shown.partition("#")
    return link(path.rpartition("/")[2], path, anchor)


def row(item, titles):
    if unknown := set(item["formulas"]) - set(titles):
        raise SystemExit(f"docs/items.toml: docs/math.md has no heading {unknown.pop()} (item {item['number']})")
    formulas = [link(titles[anchor], "docs/math.md", anchor) for anchor in item["formulas"]]
    code = [code_link(pattern, text) for pattern, text in item["code"]]
    shown, tests = map(shown_link, item["shown"]), map(link_of_test, item["tests"])
    cells = [str(item["number"]), item["what"], *map(", ".join, (shown, formulas, code, tests))]
    return "| " + " | ".join(cells) + " |\n"


def page():
    entries, titles = items(), headings(ROOT / "docs/math.md")
    return HEAD.format(all=len(entries)) + "".join(row(item, titles) for item in entries)


if __name__ == "__main__":
    sys.stdout.write(page())
