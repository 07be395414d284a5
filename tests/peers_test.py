"""Checks that the comparisons of bench can be run from a clone: the scripts and options that commands name exist."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SCRIPTS = sorted((ROOT / "bench").rglob("*.py"))
PEERS = ROOT / "bench/peers"
INSTALL = (PEERS / "install.sh").read_text(encoding="utf-8")
TEXTS = {path: path.read_text(encoding="utf-8")
         for path in [*SCRIPTS, *(ROOT / "bench").rglob("*.sh"), *(ROOT / "bench").glob("*.md"),
                      *(ROOT / "docs").rglob("*.md"), ROOT / "README.md"]}
COMMAND = re.compile(r"(?<![\w/])(bench/(?:\w+/)*\w+\.(?:py|sh))((?:\\?\n {2,}(?=[-\[\"])|[^`\n#;)])*)")
COMMANDS = [(path, *match.groups()) for path, text in TEXTS.items() for match in COMMAND.finditer(text)]
# Comparisons whose own imports are all of Python's library: those of the other side are in a process of its own.
PLAIN = ["train", "decoder", "decode", "marian", "marian_decode", "llama", "llama_quality", "embed"]


def tracked_files():
    found = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True)
    if found.returncode != 0:
        pytest.skip("not a git repository")
    return [ROOT / name for name in found.stdout.split("\0") if name and (ROOT / name).is_file()]


def test_no_file_needs_peers_from_outside_the_repository():
    files = [path for path in tracked_files() if ROOT / "tests" not in path.parents]
    assert [path for path in files if b"shared/peers" in path.read_bytes()] == []


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_a_script_compiles(path):
    compile(path.read_text(encoding="utf-8"), path, "exec")


def test_commands_name_scripts_and_options_that_exist():
    assert len(COMMANDS) > 40
    for path, script, rest in COMMANDS:
        assert (ROOT / script).is_file(), f"{path}: {script} does not exist"
        source = TEXTS[ROOT / script] + (TEXTS[PEERS / "common.py"] if (ROOT / script).parent == PEERS else "")
        for option in re.findall(r"(?<![\w-])--[a-z][\w-]*", rest.split(" -- ")[0] if script.endswith(".py") else ""):
            assert f'"{option}"' in source, f"{path}: {script} has no {option}"


def test_scripts_call_scripts_that_exist():
    for path in PEERS.glob("*.py"):
        for name in re.findall(r'with_name\("(\w+\.py)"\)', TEXTS[path]):
            assert path.with_name(name).is_file(), f"{path}: {name}"


def test_the_packages_of_a_comparison_have_a_name():
    names = set(re.findall(r"^ +(\w+)\) packages", INSTALL, re.MULTILINE))
    assert names == set(re.findall(r"^#   (\w+) {2,}", INSTALL, re.MULTILINE))
    asked = {name for text in TEXTS.values() for name in re.findall(r"bench/peers/install\.sh VENV ([a-z]+)", text)}
    assert asked == names


@pytest.mark.parametrize("name", PLAIN)
def test_a_comparison_prints_its_help(name):
    found = subprocess.run([sys.executable, PEERS / f"{name}.py", "--help"], capture_output=True, text=True)
    assert found.returncode == 0 and "options:" in found.stdout, found.stderr
