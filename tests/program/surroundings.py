"""Shared by the tests of hostile surroundings: tiny commands, users without rights, and small file systems."""

import contextlib
import os
import pathlib
import shutil
import subprocess
import tempfile

import pytest

from conftest import QKV, ROOT

RUNS = ROOT / "tests/golden/runs"
TINY = ["--d-model", "8", "--heads", "2", "--ffn", "16", "--max-length", "24", "--batch-tokens", "96",
        "--decoder-layers", "1", "--learning-rate", "0.02", "--warmup-steps", "4", "--max-steps", "8", "--eval-every",
        "4", "--save-every", "2"]
LANGUAGE = ["train", "lm", "--text", RUNS / "text/train.en", *TINY]
NOBODY = 65534
ROOT_ONLY = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")


def run(*arguments, **settings):
    """Runs the program; returns (status, standard error)."""
    done = subprocess.run([QKV, *arguments], stdin=settings.pop("stdin", subprocess.DEVNULL), stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=600, **settings)
    return done.returncode, done.stderr


def error_of(*arguments, **settings):
    """The line of error of a command that must fail with one."""
    status, errors = run(*arguments, **settings)
    lines = errors.decode(errors="surrogateescape").splitlines()
    assert status == 1 and [line.startswith("qkv: ") for line in lines].count(True) == 1, (status, errors)
    assert lines[-1].startswith("qkv: "), errors
    return lines[-1]


def succeeds(*arguments, **settings):
    status, errors = run(*arguments, **settings)
    assert status == 0, errors
    return errors.decode(errors="surrogateescape")


def contents(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*"))
            if path.is_file() and path.name != "metrics.jsonl"}


def as_nobody(**settings):
    """Settings of a process of a user without rights; the tests may run as root."""
    return {**settings, **({"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.geteuid() == 0 else {})}


@pytest.fixture
def open_folder():
    """A folder that every user can reach, unlike those of pytest."""
    folder = pathlib.Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@contextlib.contextmanager
def mounted(folder, *options):
    folder.mkdir()
    if subprocess.run(["mount", *options, folder], capture_output=True).returncode != 0:
        pytest.skip("cannot mount a file system")
    try:
        yield folder
    finally:
        subprocess.run(["umount", folder], check=True)


def preloaded(folder, source):
    """Compiles a library of C; returns the environment in which processes load it first."""
    compiler = shutil.which("cc") or shutil.which("clang")
    if not compiler:
        pytest.skip("no C compiler")
    (folder / "library.c").write_text(source)
    subprocess.run([compiler, "-shared", "-fPIC", "-o", folder / "library.so", folder / "library.c", "-ldl"], check=True)
    return {**os.environ, "LD_PRELOAD": str(folder / "library.so")}
