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
CODE = ("include", "src", "apps", "tests", "bench", "fuzz", "python")
# What a header declares outside of classes: types, constants and functions whose names have more than one word.
NAME = r"(?:struct|class|enum class|using|typename)(?: \[\[\w+\]\])? (\w+)|constexpr [\w:<>* ]*?\b(k[A-Z]\w*)"
FUNCTION = r"[\w>&*] (?<!return )(?<!else )[&*]?([a-z]\w*_\w+)\("
DECLARED = re.compile(rf"^(?:template <.*> )?(?:inline )?(?:(?:{NAME})(?!;|\w)|[\w:<>&*, ]*{FUNCTION})", re.MULTILINE)
# What a file may call by such a name: its own, a test, another library's.
OWN = re.compile(rf"{NAME}|{FUNCTION}|TEST\w*\((\w+)|\b(?!qkv\b)\w+::([A-Z]\w*)|[\w>*&] (\w+_\w+)(?:;| =)")
USED = re.compile(r"(?<!void )\b(k?[A-Z]\w*)|(?<![.>:\w])(?:qkv::)?([a-z]\w*_\w+)\(")
WORDS = re.compile(r'R"\w*\(.*?\)\w*"|"(?:\\.|[^"\\\n])*"|//[^\n]*', re.DOTALL)  # literals and comments
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


def names(pattern, text):
    return {name for found in pattern.findall(text) for name in ([found] if isinstance(found, str) else found) if name}


def test_a_file_includes_what_declares_the_names_it_uses():
    """The compiler does not see that an include is missing where it takes a folder as one file (the preset `ci`)."""
    files = [file for folder in CODE for file in sources(folder)]
    code = {file: WORDS.sub("", file.read_text(encoding="utf-8")) for file in files}
    own = {file: names(OWN, text) for file, text in code.items()}
    headers = {}
    for file, text in code.items():
        for name in names(DECLARED, text) if file.suffix == ".h" else ():
            headers.setdefault(name, set()).add(file)

    def included(file):
        places = (ROOT / "include", ROOT / "src", ROOT, file.parent)
        return [place / path for _, path in includes(file) for place in places if place / path in code]

    below = {file: included(file) for file in files}

    def reached(file, seen):
        if file not in seen:
            seen.add(file)
            for other in below[file]:
                reached(other, seen)
        return seen

    wrong = []
    for file, text in code.items():
        seen = reached(file, set())
        known = set().union(*(own[other] for other in seen))
        wrong += [
            f"{file.relative_to(ROOT)} names {name}, of {min(headers[name]).relative_to(ROOT)}"
            for name in (names(USED, text) & headers.keys()) - known
            if len(headers[name]) == 1 and not headers[name] & seen
        ]
    assert headers and not wrong
