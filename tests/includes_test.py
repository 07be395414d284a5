"""Checks includes: a folder of src/ includes only those below it, apps/ and include/ only the public API.

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

ROOT = Path(__file__).resolve().parent.parent
BUILD = Path(os.environ.get("QKV", ROOT / "build/dev/qkv")).resolve().parent

# Folder of src/ -> the folders of src/ that it may include, in addition to itself and the public headers.
BELOW = {
    "core": set(),
    "text": {"core"},
    "dist": {"core"},
    "data": {"core", "dist", "text"},
    "ops": {"core"},
    "layers": {"core", "ops"},
    "model": {"core", "ops", "layers", "data"},  # only data/batch.h, which both sides share
    "modules": {"core", "ops", "layers", "model"},
    "io": {"core", "dist", "ops", "layers", "model", "text", "data"},
    "hub": {"core", "io"},
    "doctor": {"core", "dist", "hub"},
    "corpus": {"core", "text", "data", "io"},
    "plot": {"core", "io"},
    "import": {"core", "ops", "layers", "model", "text", "data", "io", "hub"},
    "export": {"core", "ops", "layers", "model", "text", "data", "io", "import"},
    "explain": {"core", "ops", "text"},
    "eval": {"core", "dist", "ops", "layers", "model", "text", "data", "io"},
    "decode": {"core", "ops", "layers", "model", "text", "data", "io"},
    "embed": {"core", "ops", "layers", "model", "text", "data", "io", "decode"},
    "classify": {"core", "ops", "layers", "model", "text", "data", "io", "decode", "embed"},
    "recommend": {"core", "ops", "layers", "model", "text", "data", "io", "eval"},
    "jobs": {"core", "io", "text"},
    "results": {"core"},
    "serve": {"core", "text", "data", "io", "results", "decode", "eval"},
    "train": {
        "core", "dist", "ops", "layers", "model", "text", "data", "io", "eval", "decode", "recommend", "import", "export",
    },
}
STANDARD = re.compile(r"[a-z_]+")  # <vector>: no path and no .h
C_HEADERS = {"include/qkv/transport.h": {"stddef.h", "stdint.h"}}  # which plugins in C include


def includes(file):
    """Pairs of ("<" or '"', what is included)."""
    return re.findall(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', file.read_text(encoding="utf-8"), re.MULTILINE)


def sources(folder):
    return sorted(file for file in (ROOT / folder).rglob("*") if file.suffix in (".h", ".cc"))


def test_the_table_has_no_cycle():
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


def test_the_model_includes_only_the_batch_of_data():
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
        and path not in C_HEADERS.get(str(file.relative_to(ROOT)), ())
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


def united_files():
    """Pairs of a compile command and a file, for each file that the build compiles together with others."""
    database = BUILD / "compile_commands.json"
    commands = json.loads(database.read_text()) if database.exists() else []
    for command in commands:
        parts = re.findall(r'^#include "(/.*\.cc)"', Path(command["file"]).read_text(), re.MULTILINE)
        if str(ROOT / "tests") not in " ".join(parts):
            yield from ((command, part) for part in parts)


def syntax_errors(command, file):
    """The compiler's messages on one file, with the options and the precompiled header of the build."""
    arguments = shlex.split(command["command"])
    arguments = [file if argument == command["file"] else argument for argument in arguments]
    del arguments[arguments.index("-o"):arguments.index("-o") + 2]
    arguments.append("-fsyntax-only")
    if "-include" not in arguments:  # one instruction set is enough, but a precompiled header is made for all
        arguments += ["-DHWY_COMPILE_ONLY_STATIC", "-UHWY_DISABLED_TARGETS"]
    done = subprocess.run(arguments, cwd=command["directory"], capture_output=True, text=True)
    return done.stderr if done.returncode else ""


def test_a_file_compiles_without_the_others_of_its_folder():
    """A build that compiles a folder as one file (CMAKE_UNITY_BUILD) does not notice a missing include."""
    if "CI" not in os.environ:
        pytest.skip("takes minutes; .ci/run runs it, and so does CI=1")
    files = list(united_files())
    if not files:
        pytest.skip("the build compiles each file by itself")
    with ThreadPool(os.cpu_count()) as pool:
        errors = pool.starmap(syntax_errors, files)
    assert not any(errors), "\n".join(filter(None, errors))
