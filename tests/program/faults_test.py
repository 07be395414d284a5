"""Calls to the system that fail, at a sample of the places that tests/faults/sweep.py tries."""

import pathlib
import sys

import pytest

from conftest import QKV, ROOT

sys.path.insert(0, str(ROOT / "tests/faults"))
from sweep import COMMANDS, sweep  # noqa: E402

LIBRARY = pathlib.Path(QKV).parent / "tests/libqkv_faults.so"
POINTS = 40  # of each command


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_survives_a_call_that_fails(command):
    if not LIBRARY.exists():
        pytest.skip(f"{LIBRARY} is not built")
    for _, points, wrong in sweep(QKV, LIBRARY, [command], most=POINTS):
        assert sum(points.values()) > 0 and not wrong, "\n".join(wrong)
