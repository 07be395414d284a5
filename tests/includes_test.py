"""Checks includes: a folder of src/ includes only those below it, include/ only the public API, apps/ also src/program.

Every file must also compile by itself.
"""
import json
import os
import re
import shlex
import subprocess
from multiprocessing.pool import ThreadPool
from pathlib import Path

import pytest

import changes
from changes import includes

ROOT = Path(__file__).resolve().parent.parent
BUILD = Path(os.environ.get("QKV", ROOT / "build/dev/qkv")).resolve().parent

# Folder of src/ -> the folders of src/ that it may include, in addition to itself and the public headers. A folder stands
# for its subfolders, too, but for those that have a row of their own.
BELOW = {
    "core": set(),
    "text": {"core"},
    "chat": {"core", "text"},
    "ranks": {"core"},
    "ops": {"core"},
    "device": {"core", "ops"},
    "data": {"core", "ranks", "text"},
    "model/layers": {"core", "ops"},
    "model": {"core", "ops", "model/layers"},
    "model/inference": {"core", "device", "ops", "model/layers", "model"},
    "model/api": {"core", "ops", "model/layers", "model"},
    "io": {"core", "text", "data", "ops", "model/layers", "model"},
    "analysis": {"core", "text", "ops", "model/layers", "model"},
    "eval": {"core", "text", "ranks", "data", "ops", "io"},
    "decode": {"core", "text", "chat", "ops", "model/layers", "model", "model/inference", "io", "analysis"},
    "analysis/heads": {"core", "text", "data", "ops", "model/layers", "model", "io", "analysis", "eval", "decode"},
    "recommend": {"core", "text", "data", "ops", "model", "model/inference", "io", "analysis", "eval"},
    "convert/hub": {"core", "io"},
    "convert": {"core", "text", "chat", "model", "io", "convert/hub"},
    "convert/export": {"core", "text", "ops", "model", "io", "convert"},
    "train": {
        "core", "text", "ranks", "data", "device", "ops", "model/layers", "model", "model/inference", "io", "eval", "decode",
        "recommend", "convert/export",
    },
    "documents": {"core", "text"},
    "program": {"core", "text", "ranks", "data", "device", "ops", "io", "convert/hub", "documents"},
    "program/bench": {
        "core", "ranks", "data", "ops", "model", "io", "decode", "recommend", "train", "program",
    },
    "program/experiments": {"core", "text", "ops", "model/layers", "model", "io", "program"},
    "serve/http": {"core", "text"},
    "serve/metrics": {"core", "serve/http"},
    "serve/engine": {"core", "text", "io", "decode", "documents", "program", "serve/http", "serve/metrics"},
    "serve/api": {"core", "text", "data", "io", "eval", "documents", "program", "serve/http", "serve/engine"},
    "serve": {"core", "serve/http", "serve/engine", "serve/api"},
}
STANDARD = re.compile(r"[a-z_]+")  # <vector>: no path and no .h
C_HEADERS = {f"include/qkv/{name}.h": {"stddef.h", "stdint.h"} for name in ("device", "transport")}  # which plugins in C include


def sources(folder):
    return sorted(file for file in (ROOT / folder).rglob("*") if file.suffix in (".h", ".cc"))


def row_of(path):
    """The folder of the table that a path below src/ belongs to."""
    rows = [row for row in BELOW if path.startswith(f"{row}/")]
    return max(rows, key=len, default=path.split("/")[0])


def test_the_table_has_no_cycle():
    assert all(folder not in reachable(lower) for folder in BELOW for lower in BELOW[folder])


def reachable(folder):
    """The folders that a folder includes, directly or not."""
    return BELOW[folder].union(*(reachable(lower) for lower in BELOW[folder]))


def test_every_folder_is_in_the_table():
    assert {row_of(str(file.relative_to(ROOT / "src"))) for file in sources("src")} == set(BELOW)


@pytest.mark.parametrize("folder", BELOW)
def test_a_folder_includes_only_those_below_it(folder):
    wrong = [
        f"{file.relative_to(ROOT)} includes {path}"
        for file in sources(f"src/{folder}")
        if row_of(str(file.relative_to(ROOT / "src"))) == folder
        for mark, path in includes(file)
        if mark == '"' and not path.startswith("qkv/") and row_of(path) not in BELOW[folder] | {folder}
    ]
    assert not wrong


def test_public_headers_include_only_public_headers_and_the_standard_library():
    wrong = [
        f"{file.relative_to(ROOT)} includes {path}"
        for file in sources("include")
        for mark, path in includes(file)
        if not (path.startswith("qkv/") if mark == '"' else STANDARD.fullmatch(path))
        and path not in C_HEADERS.get(str(file.relative_to(ROOT)), ())
    ]
    assert sources("include") and not wrong


def test_apps_include_of_src_only_the_program():
    inside = {f"{folder.split('/')[0]}/" for folder in BELOW} - {"program/"}
    wrong = [
        f"{file.relative_to(ROOT)} includes {path}"
        for file in sources("apps")
        for _, path in includes(file)
        if any(path.startswith(folder) for folder in inside)
    ]
    assert not wrong


def commands():
    """The compile commands of the library, the program and the tests, by file; united files have that of their folder."""
    database = BUILD / "compile_commands.json"
    found = {}
    for command in json.loads(database.read_text()) if database.exists() else []:
        parts = re.findall(r'^#include "(/.*\.cc)"', Path(command["file"]).read_text(), re.MULTILINE)
        for part in map(Path, parts or [command["file"]]):
            if any(part.is_relative_to(ROOT / folder) for folder in ("src", "apps", "tests")):
                found[part] = command
    return found


def files_with_commands():
    """Compile commands by file of the library and the program. A header has that of a source of its folder."""
    found = {file: command for file, command in commands().items() if not file.is_relative_to(ROOT / "tests")}
    of_folder = {file.parent: command for file, command in found.items()}
    headers = [file for folder in ("src", "include", "apps") for file in (ROOT / folder).rglob("*.h")
               if not file.name.endswith("-inl.h")]
    public = next((command for file, command in found.items() if file.parent == ROOT / "src/core"), None)
    return found | {file: of_folder.get(file.parent, public) for file in headers}


def commands_of_tests():
    """Compile commands by file of the tests. The build may lack folders of tests; these have the command of another."""
    found = commands()
    other = next((command for file, command in found.items() if file.is_relative_to(ROOT / "tests/ops")), None)
    return {file: found.get(file, other) for file in (ROOT / "tests").glob("*/*_test.cc")}


def first_includes(sources):
    """The headers that come first in one of these files, which compiles them without other headers before them."""
    return {header for source in sources for header in changes.Tree(ROOT).files_of(includes(source)[:1])}


def syntax_errors(file, command):
    """The compiler's messages on one file alone, with the options of the build."""
    arguments = shlex.split(command["command"])
    del arguments[arguments.index("-o"):]
    if "/ops/" in str(file):  # one instruction set is enough
        arguments += ["-DHWY_COMPILE_ONLY_STATIC", "-UHWY_DISABLED_TARGETS"]
    done = subprocess.run([*arguments, "-w", "-fsyntax-only", "-x", "c++", file], cwd=command["directory"], capture_output=True,
                          text=True)
    return done.stderr if done.returncode else ""


def test_a_file_compiles_without_the_others_of_its_folder():
    """A build that compiles a folder as one file (CMAKE_UNITY_BUILD) does not notice a missing include."""
    if "CI" not in os.environ:
        pytest.skip("takes minutes; .ci/run runs it, and so does CI=1")
    files, tests = files_with_commands(), commands_of_tests()
    assert files and tests, f"{BUILD} has no compile_commands.json"
    changed = changes.changed_files()
    chosen = sorted(files) if changed is None else changes.affected_files(sorted(files), changed)
    # A header of the tests takes long to compile, and many include it, so only tests that changed themselves count.
    chosen += sorted(file for file in tests if changed is None or file in changed)
    compiled = first_includes(file for file in files if file.suffix == ".cc")  # they are chosen if their headers are
    chosen = [file for file in chosen if file not in compiled]
    files |= tests
    chosen = [file for file in chosen if files[file]["file"] != str(file)]  # the build has compiled the others
    with ThreadPool(os.cpu_count()) as pool:
        errors = pool.starmap(syntax_errors, [(file, files[file]) for file in chosen])
    assert not any(errors), "\n".join(filter(None, errors))
