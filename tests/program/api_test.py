"""The public surfaces are those that were accepted last (tests/api)."""

import importlib.util
import pathlib
import shutil
import sys

import pytest

from conftest import QKV, ROOT, kept_releases

sys.path.append(str(ROOT / "tests/api"))
import surfaces  # noqa: E402

NEEDS = {"symbols": pathlib.Path(QKV).with_name("libqkv.so").exists() and shutil.which("nm"),
         "cpp": importlib.util.find_spec("clang")}


OF_CPP = {"cpp", "symbols"}  # which packages of a release promise


@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.release] if name in OF_CPP else [])
                                  for name in surfaces.SURFACES if name != "python"])
def test_a_surface_is_the_one_that_was_accepted(name, request):
    if not NEEDS.get(name, True):
        pytest.skip("no shared library next to the program" if name == "symbols" else "python3-clang is not installed")
    runs = request.getfixturevalue("fresh_runs") if name in ("json", "files") else None
    now = surfaces.SURFACES[name](str(pathlib.Path(QKV).resolve()), runs, kept_releases())
    differences = surfaces.differences(name, surfaces.accepted(name), now)
    assert not differences, "\n".join(differences)


def test_a_removal_a_change_and_an_addition_are_named():
    before = ["qkv a --b  INT", "qkv a --c  TEXT", "qkv d  command"]
    now = ["qkv a --b  FLOAT", "qkv d  command", "qkv e  command"]
    assert surfaces.differences("command-line", before, now) == [
        'command-line: removed "qkv a --c  TEXT"', 'command-line: changed "qkv a --b  INT" to "FLOAT"',
        'command-line: added "qkv e  command"', surfaces.ACCEPT.format("command-line")]
    assert surfaces.differences("command-line", now, now) == []


def test_every_surface_has_lines_and_no_name_twice():
    for name in surfaces.SURFACES:
        lines = surfaces.accepted(name)
        assert len(lines) > 100 and lines == sorted(set(lines)), name
    for name in ("cpp", "command-line", "http", "python"):
        names = [line.partition("  ")[0] for line in surfaces.accepted(name)]
        assert len(names) == len(set(names)), name
