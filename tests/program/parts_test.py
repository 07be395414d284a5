"""Jobs over many files: --in, --out and --worker."""

import os
import pathlib
import shutil
import signal
import socket
import subprocess

import pytest
from conftest import QKV, ROOT, TEXT, qkv
from serving import wait_for

GOLDEN = ROOT / "tests/golden"
LINES = (TEXT / "test.en").read_text().splitlines(keepends=True)
SEARCH = ["--sampling", "--seed", "1", "--max-length", "9"]  # text of a model that has learned little
LEFTOVER = ".tmp-0123456789abcdef"


@pytest.fixture
def parts(tmp_path):
    """A folder of seven parts with different numbers of lines, one of them without any."""
    folder = tmp_path / "parts"
    folder.mkdir()
    for i in range(7):
        (folder / f"{i}.txt").write_text("".join(LINES[10 * i:10 * i + i]))
    return folder


@pytest.fixture
def done(tmp_path):
    return tmp_path / "done"


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def job(run, parts, done, *options, command="translate", ok=True):
    """Runs a job; returns status and lines on standard error, without notes on single sentences."""
    search = SEARCH if command == "translate" else []
    status, out, err = qkv(command, run, "--in", parts, "--out", done, *search, *options, ok=ok)
    assert out == ""
    notes = ("split into 2 parts", "looks incomplete", "was too short")
    return status, [line for line in err.splitlines() if not any(note in line for note in notes)]


def refused(run, *options, status=1):
    found, out, err = qkv("translate", run, *options, ok=False)
    assert (found, out) == (status, "") and err.count("\n") == 1, err
    return err


@pytest.fixture(scope="module")
def whole(trained, tmp_path_factory):
    """The output of qkv translate for each part of `parts`."""
    folder = tmp_path_factory.mktemp("whole")
    for i in range(7):
        (folder / f"{i}.txt").write_text(
            qkv("translate", trained, *SEARCH, text="".join(LINES[10 * i:10 * i + i]))[1])
    found = contents(folder)
    assert len({*found.values()}) == 7
    return found


def test_each_output_has_the_bytes_of_the_command_on_its_part(trained, parts, done, whole):
    status, lines = job(trained, parts, done)
    assert lines[0] == f"1 of 7: {parts}/0.txt, 0 lines" and lines[6] == f"7 of 7: {parts}/6.txt, 6 lines"
    assert lines[7:] == ["7 parts: 7 written, 0 present, 0 failed"]
    assert contents(done) == whole


def test_outputs_that_exist_are_kept(trained, parts, done, whole):
    done.mkdir()
    (done / "3.txt").write_text("mine\n")
    assert job(trained, parts, done)[1][-1] == "7 parts: 6 written, 1 present, 0 failed"
    assert contents(done) == whole | {"3.txt": b"mine\n"}
    before = {path.name: path.stat().st_mtime_ns for path in done.iterdir()}
    assert job(trained, parts, done)[1] == ["7 parts: 0 written, 7 present, 0 failed"]
    assert {path.name: path.stat().st_mtime_ns for path in done.iterdir()} == before


def test_workers_share_the_parts_by_the_order_of_names(trained, parts, done, whole):
    for worker, mine in ((2, "14"), (3, "25")):
        assert len(job(trained, parts, done, "--worker", f"{worker}/3")[1]) == 1 + len(mine)
        assert {f"{i}.txt" for i in mine} <= set(contents(done))
    assert sorted(contents(done)) == [f"{i}.txt" for i in (1, 2, 4, 5)]
    job(trained, parts, done, "--worker", "1/3")
    assert contents(done) == whole
    for worker in ("9/9", "9/9223372036854775807"):
        assert job(trained, parts, done, "--worker", worker)[1] == ["0 parts: 0 written, 0 present, 0 failed"]


def test_workers_that_do_the_same_parts_at_once_write_the_same_bytes(trained, parts, done, whole):
    command = [QKV, "translate", trained, *SEARCH, "--in", parts, "--out", done, "--threads", "1"]
    workers = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for _ in range(4)]
    for worker in workers:
        assert "0 failed" in worker.communicate(timeout=300)[1] and worker.returncode == 0
    assert contents(done) == whole


def test_options_change_outputs_as_they_change_what_is_printed(trained, parts, done):
    for i, options in enumerate((["--json", "--word-scores"], ["--n-best", 2, "--beam", 2, "--alignment"],
                                 ["--prefix", "der", "--scores"], ["--sampling", "--seed", 7, "--n-best", 2])):
        options = [*options, "--threads", 1]
        assert qkv("translate", trained, "--in", parts, "--out", done / str(i), *options)[1] == ""
        expected = qkv("translate", trained, "--input", parts / "6.txt", *options)[1]
        assert (done / str(i) / "6.txt").read_text() == expected != ""


def test_embeddings_are_text_json_or_arrays(trained, parts, done, tmp_path):
    for options, suffix in (([], ""), (["--json"], ""), (["--npy"], ".npy")):
        folder = done / f"{options}"
        job(trained, parts, folder, *options, command="embed")
        assert sorted(contents(folder)) == [f"{i}.txt{suffix}" for i in range(7)]
        for i in (0, 5):
            if suffix:
                qkv("embed", trained, "--file", parts / f"{i}.txt", "--npy", tmp_path / "one.npy")
                expected = (tmp_path / "one.npy").read_bytes()
            else:
                expected = qkv("embed", trained, "--file", parts / f"{i}.txt", *options)[1].encode()
            assert (folder / f"{i}.txt{suffix}").read_bytes() == expected
    assert "--npy" in qkv("embed", trained, "--in", parts, "--out", done / "x", "--npy", "a.npy", ok=False)[2]
    assert qkv("embed", trained, "--npy", ok=False, text="a\n")[2] == "qkv: --npy: requires a file\n"


def test_a_recommender_answers_requests(films, done, tmp_path):
    folder = tmp_path / "parts"
    folder.mkdir()
    (folder / "a").write_text('{"history": ["f0000"], "id": 1}\n{"similar": "f0001"}\nnone\n')
    (folder / "b").write_text('{"user": "u0000", "top": 2}\n')
    job(films / "run", folder, done, "--top", 3, command="recommend")
    for name in "ab":
        expected = qkv("recommend", films / "run", "--top", 3, "--input", folder / name)[1]
        assert (done / name).read_text() == expected
    assert "line 3: not valid JSON" in (done / "a").read_text()
    assert qkv("recommend", films / "run", "--in", folder, "--out", done, "--user", "u0000", ok=False)[0] == 2


def test_texts_are_classified_and_continued(counting, parts, done, tmp_path):
    qkv("import", GOLDEN / "classify/bert", tmp_path / "classifier")
    folder = tmp_path / "texts"
    folder.mkdir()
    (folder / "a").write_text("a b c\nd e\tf\n")
    job(tmp_path / "classifier", folder, done / "labels", "--json", command="classify")
    assert (done / "labels/a").read_text() == qkv("classify", tmp_path / "classifier", "--json", "--file",
                                                  folder / "a")[1]
    (folder / "a").write_text("012\n345\n")
    options = ["--max-tokens", 9, "--temperature", 0.8, "--seed", 3]
    job(counting, folder, done / "text", *options, command="generate")
    assert (done / "text/a").read_text() == qkv("generate", counting, "--prompts", folder / "a", *options)[1]


def test_parts_that_fail_are_named_and_the_others_are_done(trained, parts, done, whole):
    (parts / "1.txt").write_bytes(b"the dog\nthe \xff cat\n")
    (parts / "2.txt").unlink()
    (parts / "2.txt").symlink_to("nowhere")
    os.mkfifo(parts / "3.fifo")
    with socket.socket(socket.AF_UNIX) as server:
        os.chdir(parts)  # the path of a socket is short
        server.bind("3.socket")
    (parts / "4.txt").write_bytes(b"x" * (17 << 20))
    status, lines = job(trained, parts, done, ok=False)
    failed = [line for line in lines if line.startswith("qkv: ")]
    assert status == 1 and len(failed) == 6 and failed[-1] == "qkv: 5 of 9 parts failed"
    for name, message in (("1.txt", "line 2: byte 5 is not valid UTF-8"),
                          ("2.txt", "cannot be opened: No such file or directory"),
                          ("3.fifo", "is not a regular file"), ("3.socket", "cannot be opened: "),
                          ("4.txt", "line 1 is longer than 16777216 bytes")):
        assert sum(line.startswith(f"qkv: {parts}/{name}: ") and message in line for line in failed) == 1, failed
    assert contents(done) == {name: whole[name] for name in ("0.txt", "3.txt", "5.txt", "6.txt")}


def test_symbolic_links_to_files_are_parts_and_hidden_files_are_not(trained, parts, done, whole):
    (parts / "1.txt").rename(parts.parent / "elsewhere")
    (parts / "1.txt").symlink_to(parts.parent / "elsewhere")
    (parts / ".hidden").write_text("the dog\n")
    (parts / ".git").mkdir()
    (parts.parent / "link").symlink_to(parts)
    job(trained, parts.parent / "link", done)
    assert contents(done) == whole


@pytest.mark.parametrize("name", ["two\nlines", "a b", "-", "--in", "q'\"$x", "täß", os.fsdecode(b"\xff\xfe"), "\x1b[31m"])
def test_any_name_is_a_part(trained, tmp_path, done, name):
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / name).write_bytes(b"the dog\n")
    assert len(job(trained, tmp_path / "parts", done)[1]) == 2
    assert list(contents(done)) == [name]
    (done / name).unlink()
    (tmp_path / "parts" / name).write_bytes(b"\xff\n")
    lines = job(trained, tmp_path / "parts", done, ok=False)[1]
    assert len(lines) == 3 and not any(c < " " for line in lines for c in line) and not contents(done)


def test_a_name_that_is_too_long_fails_alone(trained, parts, done, whole):
    (parts / ("n" * 240)).write_text("the dog\n")
    (parts / ("n" * 233)).write_text("the dog\n")
    lines = job(trained, parts, done, ok=False)[1]
    assert sum("must have at most 233 bytes (has 240)" in line for line in lines) == 1
    assert set(contents(done)) == {*whole, "n" * 233}


def test_folders_that_do_not_fit_are_refused(trained, parts, done, tmp_path):
    (tmp_path / "same").symlink_to(parts)
    for other in (parts, tmp_path / "same", parts / "done", tmp_path, f"{parts}/", f"{parts}/../parts/x/y"):
        assert "outputs require a separate folder" in refused(trained, "--in", parts, "--out", other)
    assert sorted(os.listdir(parts)) == [f"{i}.txt" for i in range(7)]
    assert "nowhere: is not a folder" in refused(trained, "--in", tmp_path / "nowhere", "--out", done)
    assert "0.txt: is not a folder" in refused(trained, "--in", parts / "0.txt", "--out", done)
    (tmp_path / "file").write_text("")
    (tmp_path / "loop").symlink_to("loop")
    assert "loop: cannot be opened: " in refused(trained, "--in", parts, "--out", tmp_path / "loop")
    assert "file: directory cannot be created" in refused(trained, "--in", parts, "--out", tmp_path / "file")
    (tmp_path / "empty").mkdir()
    assert "empty: contains no parts" in refused(trained, "--in", tmp_path / "empty", "--out", done)
    (parts / "more").mkdir()
    for folders in (["--in", "", "--out", done], ["--in", parts, "--out", ""]):
        assert refused(trained, *folders) == 'qkv: "": is not a folder\n'
    assert f"{parts}/more: is a folder; parts must be files" in refused(trained, "--in", parts, "--out", done)
    assert contents(done) == {}


def test_options_that_do_not_fit_are_refused(trained, parts, done):
    for options in (["--in", parts], ["--out", done], ["--worker", "1/2"],
                    ["--in", parts, "--out", done, "--input", "-"],
                    ["--in", parts, "--out", done, "--prefix-file", parts / "0.txt"],
                    *(["--in", parts, "--out", done, "--worker", worker]
                      for worker in ("0/2", "3/2", "1", "/", "1/2/3", "-1/2", "a/b", "1/", "99999999999999999999/2"))):
        refused(trained, *options, status=2)
    assert "n_best" in refused(trained, "--in", parts, "--out", done, "--n-best", 3, "--beam", 2)
    assert not done.exists() or contents(done) == {}


def test_an_output_that_is_no_file_fails_and_is_not_replaced(trained, parts, done, whole):
    done.mkdir()
    (done / "1.txt").mkdir()
    (done / "2.txt").symlink_to("nowhere")
    lines = job(trained, parts, done, ok=False)[1]
    assert sum("exists, and is not a regular file" in line for line in lines) == 2
    assert (done / "1.txt").is_dir() and (done / "2.txt").is_symlink()
    assert (done / "6.txt").read_bytes() == whole["6.txt"]


def test_temporary_files_of_dead_workers_are_removed_when_their_part_is_done(trained, parts, done, whole):
    done.mkdir()
    kept = ["other.tmp-0123456789abcdef", ".x.txt" + LEFTOVER, ".3.txt.tmp-0123456789ABCDEF", ".3.txt.tmp-01"]
    for name in kept + [f".3.txt{LEFTOVER}", ".3.txt.tmp-ffffffffffffffff"]:
        (done / name).write_text("half")
    job(trained, parts, done, "--worker", "1/7")
    assert f".3.txt{LEFTOVER}" in contents(done)  # another worker may be writing it
    job(trained, parts, done)
    assert contents(done) == whole | {name: b"half" for name in kept}


def slow_parts(parts):
    """Makes parts that take a while."""
    for i in range(7):
        (parts / f"{i}.txt").write_text("".join(LINES[:400]))


def start(run, parts, done):
    command = [QKV, "translate", run, *SEARCH, "--in", parts, "--out", done, "--threads", "1", "--batch-tokens", "64"]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True)


def stopped_in(part, run, parts, done):
    """Starts a worker, and returns it stopped (SIGSTOP) in the middle of a part."""
    def is_in_part():
        return done.exists() and any(name.startswith(f".{part}.txt") for name in os.listdir(done))

    while True:
        worker = start(run, parts, done)
        assert wait_for(lambda: worker.poll() is not None or is_in_part(), 240)
        worker.send_signal(signal.SIGSTOP)
        if worker.poll() is None:
            os.waitid(os.P_PID, worker.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
        if is_in_part():
            return worker
        worker.kill()  # this test waited for longer than the part took
        worker.communicate()
        shutil.rmtree(done)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_job_without_a_half_output_and_it_continues(trained, parts, done, number):
    slow_parts(parts)
    worker = stopped_in(1, trained, parts, done)
    worker.send_signal(number)
    worker.send_signal(signal.SIGCONT)
    _, err = worker.communicate(timeout=240)
    assert worker.returncode == 128 + number and "failed" not in err
    assert all(not name.startswith(".") for name in os.listdir(done)) and (done / "0.txt").exists()
    assert len(os.listdir(done)) < 7
    job(trained, parts, done)
    assert len({*contents(done).values()}) <= 2 and len(contents(done)) == 7


def test_a_killed_worker_loses_one_part(trained, parts, done):
    slow_parts(parts)
    worker = stopped_in(1, trained, parts, done)
    worker.kill()
    worker.communicate(timeout=240)
    assert [name for name in sorted(os.listdir(done)) if not name.startswith(".")] == ["0.txt"]
    assert start(trained, parts, done).wait(240) == 0
    assert sorted(os.listdir(done)) == [f"{i}.txt" for i in range(7)] and len({*contents(done).values()}) == 1


def test_a_worker_whose_temporary_file_is_gone_finds_the_output_of_the_other(trained, parts, done):
    slow_parts(parts)
    worker = stopped_in(1, trained, parts, done)
    assert start(trained, parts, done).wait(240) == 0
    assert sorted(os.listdir(done)) == [f"{i}.txt" for i in range(7)]
    worker.send_signal(signal.SIGCONT)
    assert "0 failed" in worker.communicate(timeout=240)[1] and worker.returncode == 0
    assert sorted(os.listdir(done)) == [f"{i}.txt" for i in range(7)]


def test_a_part_that_changes_while_it_is_read_fails(trained, parts, done):
    slow_parts(parts)
    worker = stopped_in(1, trained, parts, done)
    with open(parts / "1.txt", "a") as file:
        file.write("the dog\n")
    worker.send_signal(signal.SIGCONT)
    _, err = worker.communicate(timeout=240)
    assert worker.returncode == 1 and f"qkv: {parts}/1.txt: was changed while it was read\n" in err
    assert sorted(os.listdir(done)) == [f"{i}.txt" for i in (0, 2, 3, 4, 5, 6)]


def test_a_part_that_vanishes_fails(trained, parts, done):
    slow_parts(parts)
    worker = stopped_in(0, trained, parts, done)
    (parts / "5.txt").unlink()
    worker.send_signal(signal.SIGCONT)
    _, err = worker.communicate(timeout=240)
    assert worker.returncode == 1 and f"qkv: {parts}/5.txt: cannot be opened: No such file or directory\n" in err
    assert len(os.listdir(done)) == 6


def test_a_full_disk_ends_the_job(trained, parts, tmp_path):
    full = pathlib.Path("/dev/shm/qkv-parts-test")
    if os.geteuid() != 0 or shutil.which("mount") is None:
        pytest.skip("mounts a small file system")
    full.mkdir(exist_ok=True)
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4k", "none", full], capture_output=True).returncode:
        full.rmdir()
        pytest.skip("mounts are not allowed")
    try:
        (parts / "6.txt").write_text("".join(LINES[:200]))
        (parts / "7.txt").write_text("the dog\n")
        status, lines = job(trained, parts, full / "done", "--json", ok=False)
        assert status == 1 and "cannot be written: No space left on device" in lines[-1]
        assert not (full / "done/7.txt").exists()
    finally:
        subprocess.run(["umount", full], check=True)
        full.rmdir()


def test_help_describes_the_options():
    text = qkv("translate", "--help-all")[1]
    assert "Many files:" in text and "--worker I/N" in text
