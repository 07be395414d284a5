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


def test_every_layer_exists_for_elements_that_the_host_cannot_read():
    files = [*(ROOT / "src/model/layers").glob("*.cc"), ROOT / "src/model/stack.cc", ROOT / "src/model/transformer.cc"]
    layers = {file.name: file.read_text(encoding="utf-8") for file in files}
    layers = {name: text for name, text in layers.items() if "template <class Real>" in text}
    assert len(layers) > 10
    assert not [name for name, text in layers.items() if not re.search(r"^QKV_FOR_(EACH_)?ELEMENT", text, re.MULTILINE)]
    assert not [name for name, text in layers.items() if re.search(r"^template (class|struct) .*<(float|double)>;", text, re.MULTILINE)]


def test_a_folder_needs_no_scrolling():
    folders = [folder for folder in (ROOT / "src").rglob("*") if folder.is_dir()]
    counts = {str(folder.relative_to(ROOT)): sum(path.is_file() for path in folder.iterdir()) for folder in folders}
    assert not {folder: count for folder, count in counts.items() if count > MOST_FILES}
