"""Pages of the notebooks, from their scripts."""

import re
import sys

from prose import fence

FOLDER = "examples/notebooks"


def page(script, cells):
    (_, head), *rest = cells
    source = f"[{FOLDER}/{script.name}]({FOLDER}/{script.name}) is the source of this page."
    parts = [text if kind == "markdown" else fence(text, "python") for kind, text in rest]
    return "\n\n".join([head, source, *parts]) + "\n"


def pages(root):
    """Triples (name, text, file that it shows): the list of notebooks, and a page for each."""
    sys.path.append(str(root / FOLDER))
    from to_notebook import cells

    readme = root / FOLDER / "README.md"
    text = readme.read_text(encoding="utf-8")
    scripts = [root / FOLDER / name for name in re.findall(r"^\| \[(\w+\.py)\]", text, re.MULTILINE)]
    text = re.sub(r"\]\((?=\w+\.py\))", f"]({FOLDER}/", text.replace("](../../", "]("))
    found = [("notebooks/index", text, readme)]
    for script in scripts:
        name = f"notebooks/{script.stem.replace('_', '-')}"
        found.append((name, page(script, cells(script.read_text(encoding="utf-8"))), script))
    return found
