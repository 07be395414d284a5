"""Checks the cut of src/ into folders and files: CONTRIBUTING.md, Style."""
import re
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MOST_FILES = 32  # about 30, so that a folder needs no scrolling
# The name of a member function that is defined outside of its class, with all classes around it, in the first column.
MEMBER = re.compile(r"^(?:template <[^\n]*>\n)?(?!using |namespace |return |static |[ }#/])[^\n;{}=(]*?((?:[A-Z]\w*(?:<\w+>)?::)+)(?:~?\w+|operator[^(\n]*)\(",
                    re.MULTILINE)


def classes_of(file):
    """The classes whose member functions a file defines, with the namespace of the file."""
    text = file.read_text(encoding="utf-8")
    space = re.search(r"^namespace ([\w:]+) \{", text, re.MULTILINE)
    return {f"{space[1] if space else ''}::{re.sub(r'<.*?>', '', name)[:-2]}" for name in MEMBER.findall(text)}


def test_a_class_is_defined_in_one_file():
    files = defaultdict(set)
    for file in (ROOT / "src").rglob("*.cc"):
        for name in classes_of(file):
            files[name].add(str(file.relative_to(ROOT)))
    assert len(files) > 200
    assert not {name: sorted(found) for name, found in files.items() if len(found) > 1}


def test_every_layer_is_compiled_for_elements_that_the_host_cannot_read():
    included = re.findall(r'#include "(model/layers/\w+\.cc)"', (ROOT / "tests/device_elements.cc").read_text())
    layers = {f"model/layers/{file.name}" for file in (ROOT / "src/model/layers").glob("*.cc")
              if "template <class Real>" in file.read_text()}
    assert layers and set(included) == layers


def test_a_folder_needs_no_scrolling():
    folders = [folder for folder in (ROOT / "src").rglob("*") if folder.is_dir()]
    counts = {str(folder.relative_to(ROOT)): sum(path.is_file() for path in folder.iterdir()) for folder in folders}
    assert not {folder: count for folder, count in counts.items() if count > MOST_FILES}
