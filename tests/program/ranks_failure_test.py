"""A rank that differs, fails, dies or stops ends the job with one line, and no process waits for ever."""

import signal
import socket

from conftest import SMALL, head
from ranks import PLUGIN, job, run_job

HOST = socket.gethostname()


def command(corpus, run, *more):
    return ["train", "translate", *corpus, *SMALL, "--shards", 4, "--eval-every", 0, "--save-every", 0, "--max-steps",
            2, "--out", run, *more]


def wait_for_step(rank):
    for line in rank.stderr:
        if line.startswith("step "):
            return
    raise AssertionError("the job ended before its first step")


def expect_one_error(ended, expected):
    """All ranks fail, and one of them prints one line of error, that ends with the expected text."""
    lines = [line for _, error in ended for line in error.splitlines() if line.startswith("qkv: ")]
    assert [status for status, _ in ended] == [1] * len(ended), ended
    assert len(lines) == 1 and expected in lines[0], ended


def test_another_option_text_or_instruction_set_is_refused_before_anything_is_written(corpus, tmp_path):
    run = tmp_path / "run"
    dropout = lambda rank: command(corpus, run, "--dropout", "0.3" if rank == 1 else "0.2")
    expect_one_error(run_job(3, dropout),
                     f"rank 1 ({HOST}): dropout is 0.3, but 0.2 on rank 0; start all ranks with the same options")
    assert not run.exists()

    other = [*corpus]
    other[1:3] = [head(file, 390, tmp_path / file.name) for file in corpus[1:3]]
    text = lambda rank: command(other if rank == 2 else corpus, run)
    expect_one_error(run_job(3, text), f"rank 2 ({HOST}): has other training data than rank 0 ({HOST}): ")
    assert not run.exists()

    missing = [*corpus]
    missing[1] = tmp_path / "none.en"
    expect_one_error(run_job(2, lambda rank: command(missing if rank == 1 else corpus, run)),
                     f"rank 1 ({HOST}): {missing[1]}: cannot be opened")
    assert not run.exists()

    isa = lambda rank: {"QKV_ISA": "portable"} if rank == 1 else {}
    ended = run_job(2, command(corpus, run), environment=isa)
    if any(status for status, _ in ended):  # a machine may have no other set
        expect_one_error(ended, f"rank 1 ({HOST}): uses the instruction set portable, rank 0 ({HOST}) ")
        assert not run.exists()


def test_the_launcher_and_the_plugin_must_fit(corpus, tmp_path):
    run = tmp_path / "run"
    ended = run_job(2, command(corpus, run, "--shards", 1))
    expect_one_error(ended, "training: shards must be at least 2, the number of ranks (is 1)")

    missing = run_job(2, command(corpus, run), QKV_TRANSPORT=str(tmp_path / "none.so"))
    for status, error in missing:
        assert status == 1 and error.startswith(f"qkv: {tmp_path}/none.so: the transport plugin cannot be loaded: ")

    alone = {"QKV_TRANSPORT": str(PLUGIN), "OMPI_COMM_WORLD_SIZE": "4", "QKV_LOCAL_SIZE": "1"}
    (status, error), = run_job(1, command(corpus, run), **alone)
    assert status == 1
    assert error == ("qkv: qkv_local: has 1 ranks, but OMPI_COMM_WORLD_SIZE is 4; use the launcher of the library that "
                     "the plugin is built for\n")
    (status, error), = run_job(1, command(corpus, run), QKV_LOCAL_SIZE="two")
    assert (status, error) == (1, 'qkv: QKV_LOCAL_SIZE must be a number of ranks between 1 and 4096 (is "two")\n')
    assert not run.exists()
    assert run_job(1, command(corpus, run, "--distributed", "off"), **alone)[0][0] == 0


def test_a_rank_that_is_missing_ends_the_others(corpus, tmp_path):
    run = tmp_path / "run"
    ended = run_job(1, command(corpus, run), QKV_LOCAL_SIZE="3", QKV_LOCAL_SECONDS="1")
    assert ended == [(1, "qkv: qkv_local: 2 of the ranks above 0 were not started in time\n")]
    assert not run.exists()


def test_a_second_job_on_a_run_is_refused(corpus, tmp_path):
    run = tmp_path / "run"
    endless = command(corpus, run, "--max-steps", 100000)
    with job(2, endless) as first:
        wait_for_step(first.ranks[0])
        expect_one_error(run_job(2, endless), f"{run}: is being trained by process {first.ranks[0].pid} on host {HOST}")
        assert all(rank.poll() is None for rank in first.ranks)


def test_a_killed_rank_is_named(corpus, tmp_path):
    for victim in (0, 1, 2):
        with job(3, command(corpus, tmp_path / str(victim), "--max-steps", 100000)) as started:
            wait_for_step(started.ranks[0])
            started.ranks[victim].send_signal(signal.SIGKILL)
            ended = started.wait()
        del ended[victim]
        lines = [line for _, error in ended for line in error.splitlines() if line.startswith("qkv: ")]
        assert [status for status, _ in ended] == [1, 1], ended
        assert len(lines) == (1 if victim > 0 else 2), ended
        assert all(line.startswith(f"qkv: rank {victim} ({HOST}): the connection was lost") for line in lines), ended
        if victim > 0:
            assert "; step " in lines[0] and lines[0].endswith(", no saved state"), ended


def test_a_rank_that_fails_at_a_message_ends_the_job(corpus, tmp_path):
    for fault, status in (("kill:1", -signal.SIGKILL), ("kill:40", -signal.SIGKILL), ("stop:25", -signal.SIGKILL)):
        environment = lambda rank: {"QKV_LOCAL_FAULT": fault} if rank == 2 else {}
        options = command(corpus, tmp_path / fault, "--max-steps", 100000, "--rank-timeout", 10)
        ended = run_job(3, options, environment=environment)
        assert [status for status, _ in ended] == [1, 1, status], (fault, ended)
        lines = [line for _, error in ended for line in error.splitlines() if line.startswith("qkv: ")]
        what = "not heard for 10 s" if fault.startswith("stop") else "the connection was lost"
        assert len(lines) == 1 and lines[0].startswith(f"qkv: rank 2") and what in lines[0], (fault, ended)


def test_invalid_settings_of_a_link_are_refused(corpus, tmp_path):
    invalid = (("DELAY", "-1"), ("BANDWIDTH", "fast"), ("FAULT", "kill"), ("FAULT", "kill:0"), ("FAULT", "x:1"))
    for name, value in invalid:
        (status, error), = run_job(1, command(corpus, tmp_path / "run"), QKV_LOCAL_SIZE="2",
                                   **{f"QKV_LOCAL_{name}": value})
        assert status == 1 and error.startswith(f"qkv: qkv_local: QKV_LOCAL_{name} must be ") and value in error, error


def test_a_stopped_rank_is_found_and_killed(corpus, tmp_path):
    with job(3, command(corpus, tmp_path / "run", "--max-steps", 100000, "--rank-timeout", 10)) as started:
        wait_for_step(started.ranks[0])
        started.ranks[1].send_signal(signal.SIGSTOP)
        ended = started.wait()
    assert [status for status, _ in ended] == [1, -signal.SIGKILL, 1], ended
    lines = [line for _, error in ended for line in error.splitlines() if line.startswith("qkv: ")]
    assert len(lines) == 1 and lines[0].startswith(f"qkv: rank 1 ({HOST}): not heard for 10 s; step "), ended


def test_a_rank_that_is_lost_while_all_evaluate_is_named(corpus, tmp_path):
    """The dev text is the training text, so that nearly all of the time is spent on evaluations."""
    for victim, number in ((1, signal.SIGKILL), (2, signal.SIGSTOP)):
        options = ["--dev", *corpus[1:3], "--eval-every", 1, "--max-steps", 100000, "--rank-timeout", 10]
        with job(3, command(corpus[:3], tmp_path / str(victim), *options)) as started:
            wait_for_step(started.ranks[0])
            started.ranks[victim].send_signal(number)
            ended = started.wait()
        assert [status for status, _ in ended] == [-signal.SIGKILL if rank == victim else 1 for rank in range(3)], ended
        lines = [line for _, error in ended for line in error.splitlines() if line.startswith("qkv: ")]
        what = "the connection was lost" if number == signal.SIGKILL else "not heard for 10 s"
        assert len(lines) == 1 and lines[0].startswith(f"qkv: rank {victim} ({HOST}): {what}; step "), ended


def test_an_interrupt_of_any_rank_saves_the_state(corpus, tmp_path):
    for rank, number in ((0, signal.SIGINT), (1, signal.SIGINT), (1, signal.SIGTERM), (0, signal.SIGUSR1)):
        run = tmp_path / f"{rank}-{number}"
        with job(2, command(corpus, run, "--max-steps", 100000)) as started:
            wait_for_step(started.ranks[0])
            started.ranks[rank].send_signal(number)
            ended = started.wait()
        assert [status for status, _ in ended] == [128 + number if i == rank else 1 for i in range(2)], ended
        assert "repeat the command to resume" in ended[0][1] and ended[1][1] == "", ended
        assert (run / "checkpoints/state.safetensors").exists()


def test_standard_input_is_refused(corpus, tmp_path):
    run = tmp_path / "run"
    expect_one_error(run_job(2, command(["--train", "-", "--dev", *corpus[4:]], run)),
                     "standard input (-): must be a regular file, because each rank reads it")
    assert not run.exists()
