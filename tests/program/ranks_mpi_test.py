"""Jobs of several ranks that are started by mpirun, with Open MPI and with MPICH."""

import contextlib
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import time

import pytest

from conftest import QKV, SMALL, qkv
from ranks import LIMIT
from resume_test import contents

HOST = socket.gethostname()
FOLDER = pathlib.Path(os.environ.get("QKV_MPI_PLUGINS", pathlib.Path(QKV).resolve().parent))
OPEN_MPI = ["mpirun.openmpi", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none"]
IMPLEMENTATIONS = {"openmpi": (OPEN_MPI, "libqkv_mpi.so"), "mpich": (["mpiexec.mpich"], "libqkv_mpich.so")}
implementations = pytest.mark.parametrize("mpi", IMPLEMENTATIONS)


def command(corpus, run, *more):
    return ["train", "translate", *corpus, *SMALL, "--shards", 8, "--eval-every", 10, "--save-every", 7, "--max-steps",
            20, "--out", run, *more]


class Launched:
    """A job. `plugin` is the implementation that its plugin is built for, or the path of a plugin."""

    def __init__(self, mpi, size, arguments, plugin=None):
        launcher, _ = IMPLEMENTATIONS[mpi]
        library = FOLDER / IMPLEMENTATIONS[plugin or mpi][1] if (plugin or mpi) in IMPLEMENTATIONS else plugin
        if not shutil.which(launcher[0]):
            pytest.skip(f"{launcher[0]} is not installed")
        if plugin in (None, *IMPLEMENTATIONS) and not library.exists():
            pytest.skip(f"{library} was not built (QKV_MPI)")
        self.arguments = [QKV, *map(str, arguments)]
        # Containers may not read the memory of other processes.
        variables = {"QKV_TRANSPORT": str(library), "OMPI_MCA_btl_vader_single_copy_mechanism": "none"}
        self.process = subprocess.Popen([*launcher, "-n", str(size), *self.arguments], stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True, env={**os.environ, **variables})

    def wait(self):
        """Waits for the end of the launcher; returns (status, standard error)."""
        error = self.process.communicate(timeout=LIMIT)[1]
        return self.process.returncode, error

    def wait_for_step(self):
        for line in self.process.stderr:
            if line.startswith("step "):
                return
        raise AssertionError("the job ended before its first step")

    def processes(self):
        """Returns the processes of the ranks, by rank."""
        found = {}
        for entry in pathlib.Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if (entry / "cmdline").read_text().split("\0")[:-1] != self.arguments:
                    continue
                variables = dict(v.partition("=")[::2] for v in (entry / "environ").read_text().split("\0"))
                if rank := variables.get("OMPI_COMM_WORLD_RANK", variables.get("PMI_RANK")):
                    found[int(rank)] = int(entry.name)
        return found

    def expect_no_processes(self):
        end = time.monotonic() + LIMIT
        while self.processes() and time.monotonic() < end:
            time.sleep(0.05)
        assert not self.processes()


@contextlib.contextmanager
def launch(*arguments, **options):
    job = Launched(*arguments, **options)
    try:
        yield job
    finally:
        for process in (*job.processes().values(), job.process.pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        job.process.communicate()


def run(*arguments, **options):
    with launch(*arguments, **options) as job:
        return job.wait()


def errors(text):
    return [line for line in text.splitlines() if line.startswith("qkv: ")]


@pytest.fixture(scope="module")
def whole(corpus, tmp_path_factory):
    """The contents of a run that one process trained."""
    folder = tmp_path_factory.mktemp("whole") / "run"
    qkv(*command(corpus, folder))
    return contents(folder)


@implementations
def test_four_ranks_write_the_bytes_of_one(mpi, corpus, whole, tmp_path):
    status, error = run(mpi, 4, command(corpus, tmp_path / "run"))
    assert (status, errors(error)) == (0, []) and "ranks: 4 on 1 host" in error, error
    assert contents(tmp_path / "run") == whole


@pytest.mark.release
@implementations
def test_a_killed_rank_ends_the_job(mpi, corpus, tmp_path):
    with launch(mpi, 3, command(corpus, tmp_path / "run", "--max-steps", 100000)) as job:
        job.wait_for_step()
        os.kill(job.processes()[1], signal.SIGKILL)
        status, error = job.wait()
        assert status != 0 and not errors(error), error  # the launcher reports it
        job.expect_no_processes()


@pytest.mark.release
@implementations
def test_a_stopped_rank_is_named_and_killed(mpi, corpus, tmp_path):
    with launch(mpi, 3, command(corpus, tmp_path / "run", "--max-steps", 100000, "--rank-timeout", 4)) as job:
        job.wait_for_step()
        os.kill(job.processes()[1], signal.SIGSTOP)
        status, error = job.wait()
        assert status == 1 and len(errors(error)) == 1, error
        assert errors(error)[0].startswith(f"qkv: rank 1 ({HOST}): not heard for 4 s; step "), error
        job.expect_no_processes()


@implementations
def test_a_signal_to_one_rank_saves_the_state_and_ends_all(mpi, corpus, tmp_path):
    with launch(mpi, 3, command(corpus, tmp_path / "run", "--max-steps", 100000)) as job:
        job.wait_for_step()
        os.kill(job.processes()[2], signal.SIGUSR1)
        status, error = job.wait()
        assert status | 1 in (1, 1 | 128 + signal.SIGUSR1), error  # of the rank that ended first, or of all by bits
        assert not errors(error) and "repeat the command to resume" in error, error
    assert (tmp_path / "run/checkpoints/state.safetensors").exists()


@implementations
def test_an_error_is_printed_once(mpi, corpus, tmp_path):
    status, error = run(mpi, 3, command(corpus, tmp_path / "run", "--shards", 2))
    assert status == 1 and not (tmp_path / "run").exists()
    # The launcher stops the other ranks, which say so if they have not joined yet.
    found = [line for line in errors(error) if not line.startswith("qkv: stopped before the first step")]
    assert found == ["qkv: training: shards must be at least 3, the number of ranks (is 2): each rank computes some of them"]


@implementations
def test_the_plugin_of_another_implementation_is_refused(mpi, corpus, tmp_path):
    other, name, variable = {"openmpi": ("mpich", "MPICH ", "OMPI_COMM_WORLD_SIZE"),
                             "mpich": ("openmpi", "Open MPI v", "PMI_SIZE")}[mpi]
    status, error = run(mpi, 3, command(corpus, tmp_path / "run"), plugin=other)
    assert status == 1 and not (tmp_path / "run").exists()
    refused = [line for line in errors(error) if "stopped before the first step" not in line]  # by the launcher
    assert refused, error
    for line in refused:
        assert line.startswith(f"qkv: {name}") and f": has 1 ranks, but {variable} is 3; use the launcher" in line


@implementations
def test_a_missing_plugin_is_an_error(mpi, corpus, tmp_path):
    plugin = str(tmp_path / "libqkv_mpi.so")
    status, error = run(mpi, 2, command(corpus, tmp_path / "run"), plugin=plugin)
    assert status == 1 and not (tmp_path / "run").exists()
    assert errors(error)[0].startswith(f"qkv: {plugin}: the transport plugin cannot be loaded: "), error
