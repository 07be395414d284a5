"""Checks the cut of src/ and plugins/ into folders and files: CONTRIBUTING.md, Style."""
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


def types_of(text):
    """The structs and classes that a file defines outside of others and of unnamed namespaces, with their namespaces."""
    opened = []
    for line in text.splitlines():
        if found := re.match(r"namespace (?:\[\[.*?\]\] )?([\w:]*) ?\{", line):
            opened.append(found[1])
        elif line.startswith("}  // namespace"):
            opened.pop()
        elif (found := re.match(r"(?:template <.*> )?(?:struct|class) (\w+)(?: final)?(?: :[^:].*)? \{", line)) and "" not in opened:
            yield "::".join([*opened, found[1]])


# A program may have one type of a name: functions of two types with one name become one, and work on both.
def test_a_type_has_a_name_of_its_own():
    files = defaultdict(set)
    for file in [*(ROOT / "include").rglob("*.h"), *(ROOT / "src").rglob("*.h"), *(ROOT / "src").rglob("*.cc")]:
        for name in types_of(file.read_text(encoding="utf-8")):
            files[name].add(str(file.relative_to(ROOT)))
    assert len(files) > 700 and "qkv::layers::Linear" in files and "qkv::Linear" in files
    assert not {name: sorted(found) for name, found in files.items() if len(found) > 1}


def test_every_layer_exists_for_elements_that_the_host_cannot_read():
    files = [*(ROOT / "src/model/layers").glob("*.cc"), ROOT / "src/model/stack.cc", ROOT / "src/model/transformer.cc"]
    layers = {file.name: file.read_text(encoding="utf-8") for file in files}
    layers = {name: text for name, text in layers.items() if "template <class Real>" in text}
    assert len(layers) > 10
    assert not [name for name, text in layers.items() if not re.search(r"^QKV_FOR_(EACH_)?ELEMENT", text, re.MULTILINE)]
    assert not [name for name, text in layers.items() if re.search(r"^template (class|struct) .*<(float|double)>;", text, re.MULTILINE)]


def test_a_folder_needs_no_scrolling():
    folders = [folder for root in ("src", "plugins") for folder in (ROOT / root).rglob("*") if folder.is_dir()]
    counts = {str(folder.relative_to(ROOT)): sum(path.is_file() for path in folder.iterdir()) for folder in folders}
    assert not {folder: count for folder, count in counts.items() if count > MOST_FILES}


def test_no_kernel_of_a_gpu_adds_in_an_order_that_changes():
    files = [file for file in (ROOT / "plugins/cuda").rglob("*") if file.suffix in (".cu", ".h")]
    assert len(files) > 10
    assert not [file.name for file in files if re.search(r"atomic[A-Z]|\batomic_", file.read_text(encoding="utf-8"))]


def test_kernels_name_nothing_that_the_emulator_lacks():
    """Only gpu/ includes CUDA, so that the same files compile for the host."""
    files = [file for file in (ROOT / "plugins/cuda").iterdir() if file.suffix in (".cu", ".h")]
    assert not [file.name for file in files if re.search(r"<<<|#include <cu|#if", file.read_text(encoding="utf-8"))]
