"""Prints what changed in the public interfaces since a release: the choice of the next version, and the changelog.

usage: interface_changes.py TAG        needs git, and griffelib of docs/site/requirements.txt

The commands and options, the C++ headers and the HTTP routes are shown as git diff shows them. Of Python, only changes
that break callers are shown.
"""

import subprocess
import sys
from pathlib import Path

import griffe

ROOT = Path(__file__).resolve().parent.parent
FILES = ("docs/commands.md", "include/qkv", "src/serve/api/assets/openapi.json")


def main(tag):
    before = griffe.load_git("qkv", ref=tag, repo=ROOT, search_paths=["python"])
    now = griffe.load("qkv", search_paths=[ROOT / "python"])
    for breakage in griffe.find_breaking_changes(before, now):
        print(breakage.explain(griffe.ExplanationStyle.MARKDOWN))
    sys.stdout.flush()
    subprocess.run(["git", "diff", "--unified=0", tag, "--", *FILES], cwd=ROOT, check=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
