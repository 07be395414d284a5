"""Only one training at a time may write a run. Readers see a whole one at any time."""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys

import pytest

from conftest import QKV, ROOT, SMALL, qkv

STEPS = ["--eval-every", "2", "--average", "0"]


@contextlib.contextmanager
def training(command, run, **environment):
    """A training process that has made a few steps; it is killed at the end."""
    arguments = [QKV, *map(str, command), "--max-steps", "100000", "--out", str(run)]
    process = subprocess.Popen(arguments, stderr=subprocess.PIPE, text=True, env={**os.environ, **environment})
    try:
        for line in process.stderr:
            if line.startswith("step ") and (run / "model.safetensors").exists():
                break
        assert process.poll() is None
        yield process
    finally:
        process.send_signal(signal.SIGKILL)
        process.communicate()


def test_a_second_training_is_refused_and_readers_are_not(corpus, tmp_path):
    run = tmp_path / "run"
    command = ["train", "translate", *corpus, *SMALL, *STEPS]
    with training(command, run) as first:
        refused = qkv(*command, "--out", run, ok=False)
        assert refused == (1, "", f"qkv: {run}: is being trained by process {first.pid} on host {socket.gethostname()}; "
                           "wait until it ends, or use another directory\n")
        assert qkv("translate", run, text="a\n")[1].count("\n") == 1
        assert "translator" in qkv("inspect", run)[1]
        assert first.poll() is None
    assert (run / "checkpoints/lock").read_text().startswith(f"process {first.pid} ")
    report = qkv(*command, "--max-steps", 1, "--out", run)[2]  # the lock of a killed process is no obstacle
    assert "resumed at step" in report
    assert (run / "checkpoints/lock").read_bytes() == b""


def test_a_file_system_without_locks_is_no_obstacle(corpus, tmp_path):
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    source, library = tmp_path / "flock.c", tmp_path / "flock.so"
    source.write_text("#include <errno.h>\nint flock(int file, int how) { errno = ENOLCK; return -1; }\n")
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, source], check=True)
    command = ["train", "translate", *corpus, *SMALL, *STEPS]
    run = tmp_path / "run"
    with training(command, run, LD_PRELOAD=str(library)):
        pass
    process = subprocess.run([QKV, *map(str, command), "--max-steps", "1", "--out", str(run)], capture_output=True,
                             env={**os.environ, "LD_PRELOAD": str(library)}, timeout=300)
    assert process.returncode == 0, process.stderr


RENAMES = """
import ctypes, sys, time
libc = ctypes.CDLL(None, use_errno=True)
for _ in range(int(sys.argv[3])):
    assert libc.renameat2(-100, sys.argv[1].encode(), -100, sys.argv[2].encode(), 2) == 0  # RENAME_EXCHANGE
    time.sleep(0.02)
"""


@pytest.mark.parametrize("times", [100, pytest.param(1000, marks=pytest.mark.release)])
def test_readers_see_a_whole_run_while_it_is_replaced(times, trained, tmp_path):
    run, other = tmp_path / "run", tmp_path / "other"
    shutil.copytree(trained, run)
    shutil.copytree(ROOT / "tests/golden/runs/translator", other)  # of another shape and vocabulary
    commands = (["inspect", run], ["translate", run, "--beam", 1])
    expected = {(i, qkv(command[0], folder, *command[2:], text="A dog.\n")[1])
                for i, command in enumerate(commands) for folder in (run, other)}
    found = set()
    with subprocess.Popen([sys.executable, "-c", RENAMES, run, other, str(times)]) as renames:
        while renames.poll() is None:
            found |= {(i, qkv(*command, text="A dog.\n")[1]) for i, command in enumerate(commands)}
    assert renames.returncode == 0 and len(expected) >= 3 and found <= expected
