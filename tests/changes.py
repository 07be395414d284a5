"""Files that a submission changes, for checks that would take too long on all files."""
import io
import os
import re
import subprocess
import tarfile
from pathlib import Path
from tempfile import TemporaryDirectory

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


class Tree:
    """A state of the project's C++ files, in a folder."""

    def __init__(self, root):
        self.root, self.own, self.all = root, {}, {}

    def files_of(self, included):
        """The project's files that these pairs of includes() name."""
        found = (self.root / folder / path for mark, path in included if mark == '"' for folder in ("src", "include", "."))
        return {path for path in found if path.is_file()}

    def includes_of(self, file):
        """Files that a file includes, directly or not; also the names of headers that are not the project's."""
        if file not in self.all:
            reached, waiting = set(), [file]
            while waiting:
                pairs = includes(waiting.pop())
                files = self.files_of(pairs)
                waiting += files - reached
                reached |= files | {path for mark, path in pairs if mark == "<"}
            self.all[file] = reached
        return self.all[file]

    def names(self, included):
        """Names of what includes_of() returned, which are the same in every state."""
        return {str(path.relative_to(self.root)) if isinstance(path, Path) else path for path in included}

    def identifiers(self, included):
        """The identifiers in the text of those files of the project."""
        return set().union(*(self.own.get(file) or self.own.setdefault(file, identifiers(file))
                             for file in included if isinstance(file, Path)))


def identifiers(file):
    """The identifiers of a file, without those of comments and includes."""
    text = re.sub(r"//.*|^\s*#\s*include.*", "", file.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return set(re.findall(r"[A-Za-z_]\w*", text))


def affected_files(files, changed):
    """Those of `files` that may not compile alone any more, if they did at base().

    They changed, or a header that they include, directly or not, does not reach them any more, or they use an identifier
    that has gone from these headers. A header that only gained something affects no file that includes it.
    """
    with TemporaryDirectory() as folder:
        done = subprocess.run(["git", "archive", base()], cwd=ROOT, capture_output=True, check=True)
        with tarfile.open(fileobj=io.BytesIO(done.stdout)) as archive:
            archive.extractall(folder, [member for member in archive if Path(member.name).suffix in (".h", ".cc")])
        before, now = Tree(Path(folder)), Tree(ROOT)
        return [file for file in files if file in changed or now.includes_of(file) & changed and lacks(file, before, now)]


def lacks(file, before, now):
    """Whether a file includes less than it did, or uses what its headers do not have any more."""
    had, has = (tree.includes_of(tree.root / file.relative_to(now.root)) for tree in (before, now))
    if before.names(had) - now.names(has):
        return True
    return bool((before.identifiers(had) - now.identifiers(has)) & now.identifiers([file]))
