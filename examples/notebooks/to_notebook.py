"""Converts the scripts of this folder, whose cells begin with `# %%`, to notebooks of Jupyter.

usage: to_notebook.py SCRIPT... (writes SCRIPT with the ending .ipynb)
"""

import json
import re
import sys
from pathlib import Path


def cells(text):
    """Pairs (kind, text), where the kind is "markdown" or "code"."""
    for kind, body in re.findall(r"^# %%( \[markdown\])?\n(.*?)(?=^# %%|\Z)", text, re.MULTILINE | re.DOTALL):
        if kind:
            yield "markdown", re.sub(r"^# ?", "", body, flags=re.MULTILINE).strip()
        else:
            yield "code", body.strip()


def notebook(text):
    """The notebook of a script, without outputs, as JSON."""
    found = []
    for number, (kind, body) in enumerate(cells(text)):
        cell = {"cell_type": kind, "id": f"cell-{number}", "metadata": {}, "source": body.splitlines(keepends=True)}
        found.append({**cell, "execution_count": None, "outputs": []} if kind == "code" else cell)
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return json.dumps({"cells": found, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5},
                      ensure_ascii=False, indent=1) + "\n"


if __name__ == "__main__":
    if not sys.argv[1:]:
        sys.exit(__doc__.split("\n\n")[1])
    for script in map(Path, sys.argv[1:]):
        script.with_suffix(".ipynb").write_text(notebook(script.read_text(encoding="utf-8")), encoding="utf-8")
