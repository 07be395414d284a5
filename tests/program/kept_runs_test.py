"""Runs of all releases serve and resume with the same bytes. tests/golden/releases/make.py wrote them."""

import json
import re
import shutil

import pytest

from conftest import QKV, ROOT, kept_releases

KEPT = kept_releases()
RELEASES = sorted(file.parent for file in KEPT.HERE.glob("*/expected.json"))
VERSION = re.search(r"project\(qkv VERSION ([\d.]+)", (ROOT / "CMakeLists.txt").read_text(encoding="utf-8"))[1]
TABLES = {folder: json.loads((folder / "expected.json").read_text(encoding="utf-8")) for folder in RELEASES}


def cases(part):
    return [pytest.param(folder, name, id=f"{folder.name}-{name}") for folder in RELEASES for name in TABLES[folder][part]]


@pytest.mark.parametrize("folder, file", cases("outputs"))
def test_a_kept_run_gives_the_same_output(folder, file):
    found = KEPT.run(QKV, TABLES[folder]["outputs"][file], folder)
    assert found == (folder / "expected" / file).read_text(encoding="utf-8")


@pytest.mark.parametrize("folder, name", cases("resumed"))
def test_a_kept_training_resumes_to_the_same_bytes(folder, name, tmp_path):
    shutil.copytree(folder, tmp_path / "kept")
    expected = TABLES[folder]["resumed"][name]
    KEPT.run(QKV, expected["command"], tmp_path / "kept")
    assert KEPT.sums(tmp_path / "kept" / name) == expected["sha256"]


@pytest.mark.parametrize("folder, command", cases("reports"))
def test_a_report_on_a_kept_run_has_the_same_members(folder, command):
    missing = set(TABLES[folder]["reports"][command]) - set(KEPT.report(QKV, command, folder))
    assert not missing, f"qkv {command} prints no more: {sorted(missing)}"


def files(folder):
    """Path -> bytes of the files of all runs; metrics.jsonl holds times."""
    found = [file for file in folder.rglob("*") if file.is_file() and file.name != "metrics.jsonl"]
    return {str(file.relative_to(folder)): file.read_bytes() for file in found}


def test_the_runs_of_this_version_are_those_that_it_writes(fresh_runs):
    folder = KEPT.HERE / VERSION
    if not folder.exists():
        pytest.skip(f"no runs of {VERSION} are kept yet")
    kept = {path: data for path, data in files(folder).items() if not path.startswith("expected")}
    written = files(fresh_runs)
    changed = sorted(path for path in kept.keys() | written.keys() if kept.get(path) != written.get(path))
    assert not changed, (
        f"qkv writes other files than those kept of {VERSION}. If {VERSION} is released, increase the version in "
        f"CMakeLists.txt; if not, remove {folder} and run make.py next to it")
