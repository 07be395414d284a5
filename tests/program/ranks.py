"""Runs the program as several ranks on one machine, by the plugin qkv_local."""

import contextlib
import os
import pathlib
import signal
import subprocess
import tempfile

import pytest

from conftest import QKV

PLUGIN = pathlib.Path(os.environ.get("QKV_LOCAL_PLUGIN", pathlib.Path(QKV).resolve().parent / "libqkv_local.so"))
LIMIT = 600  # seconds; far more than any run takes, since the machine may be busy with other work


def require_plugin():
    if not PLUGIN.exists():
        pytest.skip(f"{PLUGIN} was not built (QKV_LOCAL_PLUGIN)")


class Job:
    """The processes of a job, each started with the same arguments, or `arguments(rank)`."""

    def __init__(self, size, arguments, environment=lambda rank: {}, **settings):
        self.directory = tempfile.TemporaryDirectory(prefix="qkv-job-")  # mode 0700
        self.ranks = []
        for rank in range(size):
            own = arguments(rank) if callable(arguments) else arguments
            variables = {"QKV_TRANSPORT": str(PLUGIN), "QKV_LOCAL_SIZE": str(size), "QKV_LOCAL_RANK": str(rank),
                         "QKV_LOCAL_DIRECTORY": self.directory.name, **settings, **environment(rank)}
            self.ranks.append(subprocess.Popen([QKV, *map(str, own)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                               text=True, env={**os.environ, **variables}))

    def wait(self):
        """Waits for all ranks; returns their (status, standard error)."""
        return [(rank.returncode, error) for rank, error in
                [(rank, rank.communicate(timeout=LIMIT)[1]) for rank in self.ranks]]

    def end(self):
        for rank in self.ranks:
            if rank.poll() is None:
                rank.send_signal(signal.SIGKILL)
            rank.communicate()
        self.directory.cleanup()


@contextlib.contextmanager
def job(size, arguments, **options):
    require_plugin()
    started = Job(size, arguments, **options)
    try:
        yield started
    finally:
        started.end()


def run_job(size, arguments, **options):
    """Runs a job to its end; returns the (status, standard error) of each rank."""
    with job(size, arguments, **options) as started:
        return started.wait()
