"""Which files count as changed, in a repository of a few commits."""

import os
import subprocess

import pytest

import changes


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """A repository with src/a.h, src/b.h that includes it and src/c.cc that includes b.h; one commit for each, a day apart."""
    monkeypatch.setattr(changes, "ROOT", tmp_path)
    for name in ("FULL", "QKV_BASE"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "src").mkdir()
    git(tmp_path, "init", "-q", "-b", "main")
    for day, (name, text) in enumerate({"a.h": "", "b.h": '#include "a.h"\n', "c.cc": '#include "b.h"\n'}.items(), 1):
        (tmp_path / "src" / name).write_text(text)
        git(tmp_path, "add", ".")
        git(tmp_path, "commit", "-q", "-m", name, date=f"2026-01-0{day}T12:00:00Z")
    return tmp_path


def git(folder, *arguments, date="2026-01-04T12:00:00Z"):
    times = {"GIT_AUTHOR_DATE": date, "GIT_COMMITTER_DATE": date}
    subprocess.run(["git", "-c", "user.name=T", "-c", "user.email=t@example.org", *arguments], cwd=folder, check=True,
                   env={**os.environ, **times}, capture_output=True)


def changed(folder):
    return {str(path.relative_to(folder)) for path in changes.changed_files()}


def test_on_the_main_branch_it_is_what_the_last_hours_brought(repository):
    assert changed(repository) == {"src/c.cc"}


def test_on_a_branch_it_is_what_the_branch_brought(repository):
    git(repository, "update-ref", "refs/remotes/origin/main", "HEAD~2")
    assert changed(repository) == {"src/b.h", "src/c.cc"}


def test_what_is_not_committed_counts(repository):
    (repository / "src/a.h").write_text("int a;\n")
    (repository / "src/d.h").write_text("")
    assert changed(repository) == {"src/a.h", "src/c.cc", "src/d.h"}


def test_everything_counts_in_a_release_and_without_a_base(repository, monkeypatch):
    monkeypatch.setenv("FULL", "1")
    assert changes.changed_files() is None
    monkeypatch.delenv("FULL")
    git(repository, "checkout", "-q", "HEAD~2")
    assert changes.changed_files() is None


def affected(folder):
    files = [folder / "src" / name for name in ("a.h", "b.h", "c.cc")]
    return [file.name for file in changes.affected_files(files, changes.changed_files())]


@pytest.mark.parametrize("header, found", [
    ('#include <string>\n#include <vector>\nint a, more;\n', ["a.h"]),
    ('#include <vector>\nint a;  // a comment\n', ["a.h"]),
    ('#include <string>\nint a;\n', ["a.h", "b.h", "c.cc"]),
    ('#include <vector>\nint renamed;\n', ["a.h", "c.cc"]),
])
def test_a_file_is_affected_by_what_its_headers_lose(repository, monkeypatch, header, found):
    (repository / "src/a.h").write_text('#include <vector>\nint a;\n')
    (repository / "src/c.cc").write_text('#include "b.h"\nint c() { return a; }\n')
    git(repository, "commit", "-qam", "declare")
    monkeypatch.setenv("QKV_BASE", "HEAD")
    assert affected(repository) == []
    (repository / "src/a.h").write_text(header)
    assert affected(repository) == found


def test_a_name_that_another_header_of_a_file_has_is_not_lost(repository, monkeypatch):
    (repository / "src/a.h").write_text('int a;\n')
    (repository / "src/c.cc").write_text('#include "b.h"\nint c() { return a; }\n')
    git(repository, "commit", "-qam", "declare")
    monkeypatch.setenv("QKV_BASE", "HEAD")
    (repository / "src/a.h").write_text('#include "moved.h"\n')
    (repository / "src/moved.h").write_text('int a;\n')
    assert affected(repository) == ["a.h"]
    (repository / "src/a.h").write_text('')
    assert affected(repository) == ["a.h", "c.cc"]


def test_a_base_that_is_no_commit_is_an_error(repository, monkeypatch):
    monkeypatch.setenv("QKV_BASE", "HEAD~2")
    assert changed(repository) == {"src/b.h", "src/c.cc"}
    monkeypatch.setenv("QKV_BASE", "nowhere")
    with pytest.raises(ValueError, match='QKV_BASE is "nowhere", expected a commit'):
        changes.changed_files()
