"""The files for users of the repository: the citation, the templates of issues, the address, one version everywhere."""

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PROJECT = (ROOT / "CMakeLists.txt").read_text(encoding="utf-8")
VERSION = re.search(r"project\(qkv VERSION ([\d.]+)", PROJECT)[1]
TEMPLATES = sorted((ROOT / ".github/ISSUE_TEMPLATE").glob("*.yml"))
KINDS = {"markdown", "input", "textarea", "dropdown", "checkboxes"}


def load(path):
    return pytest.importorskip("yaml", reason="python3-yaml is not installed").safe_load(path.read_text(encoding="utf-8"))


def text(name):
    return (ROOT / name).read_text(encoding="utf-8")


def test_the_citation_is_of_this_version():
    citation = load(ROOT / "CITATION.cff")
    assert {"cff-version", "message", "title", "authors"} <= set(citation)  # which the format requires
    assert str(citation["version"]) == VERSION and re.fullmatch(r"\d{4}-\d\d-\d\d", str(citation["date-released"]))
    assert citation["license"] == "Apache-2.0" and "Apache License" in text("LICENSE")
    people = [*citation["authors"], *citation["references"][0]["authors"]]
    assert all(set(person) in ({"name"}, {"family-names", "given-names"}) for person in people)


@pytest.mark.parametrize("path", [path for path in TEMPLATES if path.name != "config.yml"], ids=lambda path: path.stem)
def test_a_template_of_issues_is_a_form(path):
    form = load(path)
    assert {"name", "description", "body"} <= set(form) and isinstance(form["body"], list)
    fields = [part for part in form["body"] if part["type"] != "markdown"]
    assert {part["type"] for part in form["body"]} <= KINDS and all(part["attributes"]["label"] for part in fields)
    ids = [part["id"] for part in fields]
    assert len(ids) == len(set(ids)) and any(part.get("validations", {}).get("required") for part in fields)


def test_each_kind_of_issue_has_a_template():
    assert {path.stem for path in TEMPLATES} == {"bug", "config", "feature", "import"}
    assert isinstance(load(ROOT / ".github/ISSUE_TEMPLATE/config.yml")["blank_issues_enabled"], bool)


def test_the_version_is_the_same_everywhere():
    assert text("debian/changelog").startswith(f"qkv ({VERSION})")
    assert json.loads(text("src/serve/api/assets/openapi.json"))["info"]["version"] == VERSION
    for page in ("README.md", "docs/install.md"):
        assert set(re.findall(r"qkv[-_](\d+\.\d+\.\d+)", text(page))) == {VERSION}, page
    minor = VERSION.rpartition(".")[0]
    assert re.search(r"^Package: (libqkv[\d.]+)$", text("debian/control"), re.MULTILINE)[1] == f"libqkv{minor}"


def test_the_address_of_the_maintainers_stands_in_debian_only():
    """One place to change: SECURITY.md and CODE_OF_CONDUCT.md refer to it."""
    address = re.search(r"^Maintainer: .*<(\S+@\S+)>$", text("debian/control"), re.MULTILINE)[1]
    assert f"<{address}>" in text("debian/changelog")
    for page in ("SECURITY.md", "CODE_OF_CONDUCT.md"):
        assert "debian/control" in text(page) and not re.search(r"[\w.]+@[\w.]+", text(page)), page


def test_each_promise_names_its_test():
    head = text("docs/reliability.md").partition("\n## ")[0]
    rows = [line.split(" | ") for line in head.splitlines() if line.startswith("| ") and "| test |" not in line]
    assert len(rows) > 20
    for promise, test in rows:
        assert re.search(r"\(\.\./tests/\S+\)|\(#fuzzing\)|^the same", test), promise
