"""The checks of packaging/checklist.sh, on a copy of the repository that is made ready for a release, and then broken."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.release
ROOT = Path(__file__).resolve().parent.parent
PROJECT = (ROOT / "CMakeLists.txt").read_text(encoding="utf-8")
VERSION = re.search(r"project\(qkv VERSION ([\d.]+)", PROJECT)[1]
DATE = re.search(r"^date-released: (.*)$", (ROOT / "CITATION.cff").read_text(encoding="utf-8"), re.MULTILINE)[1]
FILES = ("CHANGELOG.md", "CITATION.cff", "CMakeLists.txt", "CODE_OF_CONDUCT.md", "LICENSE", "README.md", "SECURITY.md",
         "docs/install.md", "docs/reliability.md", "src/serve/api/assets/openapi.json", "tests/policy_test.py")
COMMIT = ["git", "-c", "user.name=Test", "-c", "user.email=test@example.org", "commit", "-q", "-a", "-m", "Test"]


def run(folder, *command):
    return subprocess.run(command, cwd=folder, capture_output=True, text=True)


def replace(path, pattern, text):
    before = path.read_text(encoding="utf-8")
    after = re.sub(pattern, text, before, count=1)
    assert after != before
    path.write_text(after, encoding="utf-8")


@pytest.fixture(scope="module")
def ready(tmp_path_factory):
    """A repository of one commit that may be released: the files that the checks read."""
    pytest.importorskip("yaml", reason="python3-yaml is not installed")
    folder = tmp_path_factory.mktemp("ready")
    for name in ("packaging", ".github", "debian"):
        shutil.copytree(ROOT / name, folder / name)
    for name in FILES:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, folder / name)
    replace(folder / "CHANGELOG.md", r"\n## .*", f"\n## [{VERSION}] - {DATE}")
    for name in ("control", "changelog"):
        text = (folder / "debian" / name).read_text(encoding="utf-8")
        (folder / "debian" / name).write_text(re.sub(r"<\S+@\S+>", "<qkv@example.org>", text), encoding="utf-8")
    kept = folder / f"tests/golden/releases/{VERSION}/expected.json"
    kept.parent.mkdir(parents=True)
    kept.write_text("{}")
    run(folder, "git", "init", "-q")
    run(folder, "git", "add", ".")
    run(folder, *COMMIT)
    return folder


@pytest.fixture
def copy(ready, tmp_path):
    return Path(shutil.copytree(ready, tmp_path / "copy"))


def failures(folder):
    done = run(folder, "packaging/checklist.sh", "--check")
    failed = [line.partition("FAILED  ")[2] for line in done.stdout.splitlines() if line.startswith("FAILED")]
    assert done.returncode == bool(failed) and len(re.findall("^(?:ok|FAILED) ", done.stdout, re.MULTILINE)) == 6, done.stderr
    return failed


def test_a_commit_that_is_ready_passes(ready):
    assert failures(ready) == []


@pytest.mark.parametrize("path, pattern, text, message", [
    ("CHANGELOG.md", r"\n## .*", "\n## [Unreleased]", 'the changelog has this version: CHANGELOG.md begins with "## [Unr'),
    ("CITATION.cff", r"\nversion: .*", "\nversion: 9.9.9", "files for users are valid and state one version: 1 failed"),
    ("debian/control", r"<\S+@\S+>", "<qkv@nowhere.example>", "the maintainers can be reached: debian/control and"),
])
def test_a_file_that_is_not_ready_is_named(copy, path, pattern, text, message):
    replace(copy / path, pattern, text)
    run(copy, *COMMIT)
    found = failures(copy)
    assert any(line.startswith(message) for line in found), found


def test_changes_missing_runs_and_another_tag_are_named(copy):
    run(copy, "git", "tag", f"v{VERSION}")
    shutil.rmtree(copy / "tests/golden")
    assert [line.partition(":")[0] for line in failures(copy)] == ["everything is committed", "runs of this version are kept"]
    run(copy, *COMMIT)
    assert [line.partition(":")[0] for line in failures(copy)] == ["runs of this version are kept", "the tag is free"]


def test_changes_of_the_interfaces_are_printed(tmp_path):
    pytest.importorskip("griffe", reason="griffelib is not installed")
    for name in ("include/qkv", "python/qkv", "packaging"):
        shutil.copytree(ROOT / name, tmp_path / name)
    run(tmp_path, "git", "init", "-q")
    run(tmp_path, "git", "add", ".")
    run(tmp_path, *COMMIT)
    command = [sys.executable, "packaging/interface_changes.py", "HEAD"]
    assert run(tmp_path, *command).stdout == ""
    replace(tmp_path / "include/qkv/system.h", r"version\(\)", "release()")
    replace(tmp_path / "python/qkv/_score.py", r"lowercase: bool", "lower: bool")
    printed = run(tmp_path, *command).stdout
    assert "lowercase" in printed and "-std::string version();" in printed
