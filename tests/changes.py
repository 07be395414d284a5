"""Files that a submission changes, for checks that would take too long on all files."""
import os
import re
import subprocess
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CHECKED = 6 * 60 * 60  # on the main branch itself, what is older than the last commit by these seconds was checked


def git(*arguments):
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else ""


def base():
    """The commit that the changes are counted from, or "" if there is none: all files then count as changed.

    QKV_BASE names it. Otherwise it is the merge base with origin/main. If that is the last commit itself, it is the
    newest commit that is CHECKED older than the last one.
    """
    if os.environ.get("FULL"):
        return ""
    if "QKV_BASE" in os.environ:
        return os.environ["QKV_BASE"]
    head = git("rev-parse", "HEAD")
    merged = git("merge-base", "HEAD", "origin/main")
    if merged and merged != head:
        return merged
    time = git("log", "-1", "--format=%ct")
    return git("rev-list", "-1", f"--before={int(time) - CHECKED}", "HEAD") if time else ""


def changed_files():
    """The paths of files that were changed or added since base(), also without a commit; None if there is no base."""
    since = base()
    if not since:
        return None
    if not git("rev-parse", "--verify", f"{since}^{{commit}}"):
        raise ValueError(f'QKV_BASE is "{since}", expected a commit')
    names = git("diff", "--name-only", "--no-renames", since) + "\n" + git("ls-files", "--others", "--exclude-standard")
    return {ROOT / name for name in names.split("\n") if name}


def includes(file):
    """Pairs of ("<" or '"', what is included)."""
    return re.findall(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', file.read_text(encoding="utf-8"), re.MULTILINE)


def files_of(included):
    """The project's files that these pairs of includes() name."""
    found = (folder / path for mark, path in included if mark == '"' for folder in (ROOT / "src", ROOT / "include", ROOT))
    return {path for path in found if path.is_file()}


@cache
def included_files(file):
    """The project's files that a file includes itself."""
    return files_of(includes(file))


def affected_files(files, changed):
    """Those of `files` that were changed, or include one that was, directly or not."""
    affected = set(changed)
    everything = {*files, *(path for folder in ("src", "include", "apps", "fuzz", "tests") for path in (ROOT / folder).rglob("*.h"))}
    while more := {file for file in everything - affected if included_files(file) & affected}:
        affected |= more
    return [file for file in files if file in affected]
