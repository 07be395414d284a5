"""Fixtures of the module's tests: random arrays, and the trained runs of the program's tests."""

import importlib.util
import pathlib
import signal

import pytest

if importlib.util.find_spec("qkv") is None:  # only the program is tested
    collect_ignore_glob = ["*"]

PROGRAM = pathlib.Path(__file__).resolve().parent.parent / "program/conftest.py"
spec = importlib.util.spec_from_file_location("program_fixtures", PROGRAM)
program = importlib.util.module_from_spec(spec)
spec.loader.exec_module(program)
corpus, counting, films = program.corpus, program.counting, program.films
timed_run, trained = program.timed_run, program.trained


@pytest.fixture
def random():
    return pytest.importorskip("numpy").random.default_rng(7)


@pytest.fixture
def interruptible():
    """Handles SIGINT as a program in the foreground does: one that a script starts in the background ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="session")
def run_program():
    """Runs the program qkv; returns (status, standard output, standard error)."""
    return program.qkv
