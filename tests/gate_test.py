"""CONTRIBUTING.md says of every test where it runs, and test.sh runs it there."""
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
STEPS = set(re.findall(r"\bstep (\w+) \1\b", (ROOT / "test.sh").read_text(encoding="utf-8")))


def rows():
    """Pairs of a step of test.sh and the patterns of its tests, from the table in CONTRIBUTING.md."""
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    table = page.partition("### What runs where")[2].partition("\n## ")[0]
    found = re.findall(r"^\| `(\w+)` \| ([^|]*) \|", table, re.MULTILINE)
    return [(step, re.findall(r"`([^`]+)`", patterns)) for step, patterns in found]


def all_tests():
    names = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard", "tests", "fuzz"], cwd=ROOT,
                           capture_output=True, text=True).stdout.split()
    if not names:
        pytest.skip("not a git repository")
    return [name for name in names if re.search(r"_test\.(cc|py)$", name) and (ROOT / name).exists()]


def matches(path, pattern):
    """Whether a path matches a pattern, in which * stands for a part of a name, and ** for one folder or more."""
    parts = (re.escape(part) for part in re.split(r"(\*+)", pattern))
    wanted = "".join({r"\*": "[^/]*", r"\*\*": ".+"}.get(part, part) for part in parts)
    return re.fullmatch(wanted, path) is not None


def steps_of(test):
    return [step for step, patterns in rows() if any(matches(test, pattern) for pattern in patterns)]


def test_the_table_has_the_steps_of_the_script():
    assert {step for step, _ in rows()} == STEPS - {"packages", "venv"}


def test_every_test_has_a_step():
    assert not [test for test in all_tests() if not steps_of(test)]


def test_no_pattern_is_without_a_test():
    names = all_tests()
    assert not [pattern for _, patterns in rows() for pattern in patterns if pattern.count("NAME") == 0
                if not any(matches(test, pattern) for test in names)]


def test_the_folders_of_the_table_are_those_that_are_built():
    """A folder of C++ tests that tests/CMakeLists.txt does not list is built by no step."""
    listed = (ROOT / "tests/CMakeLists.txt").read_text(encoding="utf-8")
    built = set(re.search(r"set\(folders ([^)]*)\)", listed)[1].split()) | {"allocation"}
    folders = {Path(test).parts[1] for test in all_tests() if test.startswith("tests/") and test.endswith(".cc")}
    assert folders == built
