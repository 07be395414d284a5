"""Includes point one way: each folder of src/ knows only those below it, apps/ and include/ know only the public API."""
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

# Folder of src/ -> the folders of src/ that it may include, besides itself and the public headers.
BELOW = {
    "core": set(),
    "text": {"core"},
    "data": {"core", "text"},
    "ops": {"core"},
    "layers": {"core", "ops"},
    "model": {"core", "ops", "layers", "data"},  # data/batch.h is where both sides meet
    "io": {"core", "ops", "layers", "model", "text", "data"},
    "import": {"core", "ops", "layers", "model", "text", "data", "io"},
    "export": {"core", "ops", "layers", "model", "text", "data", "io", "import"},
    "eval": {"core", "ops", "layers", "model", "text", "data", "io"},
    "decode": {"core", "ops", "layers", "model", "text", "data", "io"},
    "embed": {"core", "ops", "layers", "model", "text", "data", "io", "decode"},
    "recommend": {"core", "ops", "layers", "model", "text", "data", "io", "eval"},
    "train": {"core", "ops", "layers", "model", "text", "data", "io", "eval", "decode", "recommend"},
}
STANDARD = re.compile(r"[a-z_]+")  # <vector>: of this language, neither a path nor a .h


def includes(file):
    """Pairs of ("<" or '"', what is included)."""
    return re.findall(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', file.read_text(encoding="utf-8"), re.MULTILINE)


def sources(folder):
    return sorted(file for file in (ROOT / folder).rglob("*") if file.suffix in (".h", ".cc"))


def test_the_table_has_no_circle():
    assert all(folder not in BELOW[lower] for folder in BELOW for lower in BELOW[folder])


def test_every_folder_is_in_the_table():
    assert {folder.name for folder in (ROOT / "src").iterdir() if folder.is_dir()} <= set(BELOW)


@pytest.mark.parametrize("folder", BELOW)
def test_a_folder_includes_only_those_below_it(folder):
    allowed = BELOW[folder] | {folder, "qkv"}
    wrong = [
        f"{file.relative_to(ROOT)} includes {path}"
        for file in sources(f"src/{folder}")
        for mark, path in includes(file)
        if mark == '"' and path.split("/")[0] not in allowed
    ]
    assert not wrong


def test_the_model_meets_data_only_at_the_batch():
    wrong = [
        f"{file.relative_to(ROOT)} includes {path}"
        for file in sources("src/model")
        for _, path in includes(file)
        if path.startswith("data/") and path != "data/batch.h"
    ]
    assert not wrong


def test_public_headers_include_only_public_headers_and_the_standard_library():
    wrong = [
        f"{file.relative_to(ROOT)} includes {path}"
        for file in sources("include")
        for mark, path in includes(file)
        if not (path.startswith("qkv/") if mark == '"' else STANDARD.fullmatch(path))
    ]
    assert sources("include") and not wrong


def test_apps_include_nothing_of_src():
    inside = {f"{folder}/" for folder in BELOW}
    wrong = [
        f"{file.relative_to(ROOT)} includes {path}"
        for file in sources("apps")
        for _, path in includes(file)
        if any(path.startswith(folder) for folder in inside)
    ]
    assert not wrong
