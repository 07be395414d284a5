"""Hostile surroundings: file systems, names, files that change, clocks and locales. All end well or with one line."""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import threading
import time

import pytest

from conftest import QKV
from surroundings import LANGUAGE, ROOT_ONLY, RUNS, as_nobody, contents, error_of, mounted, open_folder, preloaded
from surroundings import run, succeeds

LINES = b"The dog.\nHe sees.\n"
MIB = 1 << 20


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A language model that was trained without disturbance."""
    folder = tmp_path_factory.mktemp("whole") / "run"
    succeeds(*LANGUAGE, "--out", folder)
    return folder


@pytest.fixture
def translator(tmp_path):
    shutil.copytree(RUNS / "translator", tmp_path / "translator")
    return tmp_path / "translator"


def test_a_read_only_directory_is_an_error_of_writers_only(open_folder):
    translator = open_folder / "translator"
    shutil.copytree(RUNS / "translator", translator)
    for path in (open_folder, translator):
        path.chmod(0o555)
    user = as_nobody()
    for command, name in ((["train", "lm", "--text", RUNS / "text/train.en", "--out", open_folder / "run"], "run.partial"),
                          (["quantize", translator, "--int8"], "translator-int8.partial"),
                          (["attend", translator, "the dog", "--target", "der", "--json", translator / "a.json"], "a.json"),
                          (["embed", translator, "--npy", open_folder / "e.npy"], "e.npy")):
        line = error_of(*command, **user)
        assert name in line and "Permission denied" in line, line
    succeeds("translate", translator, "--beam", "1", **user)
    succeeds("inspect", translator, **user)
    open_folder.chmod(0o755)


@ROOT_ONLY
@pytest.mark.parametrize("system", ["tmpfs", "ext4"])
def test_a_full_file_system_is_an_error_until_there_is_room(system, whole, tmp_path):
    options = ["-t", "tmpfs", "-o", "size=1m", "none"]
    if system == "ext4":
        image = tmp_path / "image"
        with open(image, "wb") as file:
            file.truncate(4 * MIB)
        if not shutil.which("mkfs.ext4") or subprocess.run(["mkfs.ext4", "-q", image]).returncode != 0:
            pytest.skip("no mkfs.ext4")
        options = ["-o", "loop", image]
    with mounted(tmp_path / "disk", *options) as disk:
        filler = disk / "filler"
        for room in (0, 4096, 20000, 60000):
            with open(filler, "wb", buffering=0) as file:
                try:
                    while file.write(bytes(4096)):
                        pass
                except OSError:
                    pass
                file.truncate(max(0, file.tell() - room))
            status, errors = run(*LANGUAGE, "--out", disk / "run")
            assert status == 0 or (b"No space left" in errors and errors.splitlines()[-1].startswith(b"qkv: ")), errors
        filler.unlink()
        succeeds(*LANGUAGE, "--out", disk / "run")
        assert contents(disk / "run") == contents(whole)


def test_a_model_that_shrinks_while_it_is_read_ends_the_program_with_one_line(translator):
    with subprocess.Popen([QKV, "translate", translator], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE) as program:
        program.stdin.write(LINES)
        program.stdin.flush()
        for _ in range(2):
            program.stdout.readline()
        os.truncate(translator / "model.safetensors", 4096)
        _, errors = program.communicate(LINES, timeout=300)
    assert program.returncode == 1
    assert errors == f"qkv: {translator}/model.safetensors: was shortened while it was read, or cannot be read\n".encode()


def test_a_model_that_vanishes_while_it_is_read_is_read_on(translator):
    with subprocess.Popen([QKV, "translate", translator], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE) as program:
        program.stdin.write(LINES)
        program.stdin.flush()
        first = [program.stdout.readline() for _ in range(2)]
        shutil.rmtree(translator)
        second, errors = program.communicate(LINES, timeout=300)
    assert (program.returncode, errors, second) == (0, b"", b"".join(first))


def test_text_that_shrinks_while_it_is_trained_on_is_an_error_that_names_it(tmp_path):
    """It is read again when all that is in memory, 65,536 lines, was used."""
    text, dev = tmp_path / "text", tmp_path / "dev"
    dev.write_text("The dog.\tDer Hund.\n")
    text.write_text("The dog.\tDer Hund.\n" * 70000)
    command = [QKV, "train", "translate", "--train", text, "--dev", dev, "--source-tokenizer",
               RUNS / "text/tokenizer.model", "--encoder-layers", "1", *LANGUAGE[4:], "--batch-tokens", "4096",
               "--eval-every", "0", "--max-steps", "1000000", "--out", tmp_path / "run"]
    with subprocess.Popen(command, stderr=subprocess.PIPE) as program:
        for line in program.stderr:
            if line.startswith(b"step "):
                break
        os.truncate(text, 100)
        errors = program.stderr.read().decode().splitlines()
    assert program.returncode == 1 and errors[-1].startswith(f"qkv: {text}: lines "), errors
    assert "have changed since they were first read" in errors[-1]


def test_symbolic_links_in_a_loop_are_errors(tmp_path):
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    for command in (["translate", loop], ["translate", RUNS / "translator", "--input", loop], ["inspect", loop],
                    ["train", "lm", "--text", loop, "--out", tmp_path / "run"],
                    ["train", "lm", "--text", RUNS / "text/train.en", "--out", loop],
                    ["train", "recommend", "--data", loop, "--out", tmp_path / "run"],
                    ["import", loop, tmp_path / "run"], ["quantize", RUNS / "translator", "--int8", "--out", loop],
                    ["generate", RUNS / "language", "--prompts", loop], ["evaluate", loop],
                    ["score", "bleu", "--ref", loop, "--hyp", loop],
                    ["serve", loop, "--listen", "127.0.0.1:0"]):
        assert str(loop) in error_of(*command)


def test_named_pipes_are_read_as_text_and_refused_as_models(translator, tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)

    def through_the_pipe(content, *command):
        writer = threading.Thread(target=lambda: pipe.write_bytes(content))
        writer.start()
        result = run(*command)
        writer.join()
        return result

    text = (RUNS / "text/train.en").read_bytes()
    assert through_the_pipe(LINES, "translate", translator, "--input", pipe) == (0, b"")
    assert through_the_pipe(text, "train", "lm", "--text", pipe, *LANGUAGE[4:], "--out", tmp_path / "run")[0] == 0
    log = (RUNS / "log/log.csv").read_bytes()
    assert through_the_pipe(log, "train", "recommend", "--data", pipe, *LANGUAGE[4:], "--out", tmp_path / "r")[0] == 0
    (translator / "model.safetensors").unlink()
    os.mkfifo(translator / "model.safetensors")
    assert "model.safetensors: " in error_of("translate", translator)


def test_the_file_of_standard_input_is_read(whole, tmp_path):
    with open(RUNS / "text/train.en", "rb") as text:
        succeeds("train", "lm", "--text", "/dev/stdin", *LANGUAGE[4:], "--out", tmp_path / "run", stdin=text)
    assert contents(tmp_path / "run") == contents(whole)
    done = subprocess.run([QKV, "translate", RUNS / "translator", "--input", "/dev/stdin"], input=LINES,
                          capture_output=True, timeout=300)
    assert done.returncode == 0 and done.stdout.count(b"\n") == 2


def test_names_may_have_line_breaks_and_any_bytes(whole, tmp_path):
    folder = pathlib.Path(os.fsdecode(os.fsencode(tmp_path) + b"/a\nqkv: b\xff\x1b[31m"))
    folder.mkdir()
    text = folder / "text\n.txt"
    shutil.copy(RUNS / "text/train.en", text)
    run_of_it = folder / "run\n"
    succeeds("train", "lm", "--text", text, *LANGUAGE[4:], "--out", run_of_it)
    assert contents(run_of_it) == contents(whole)
    succeeds("generate", run_of_it, "--prompts", text, "--max-tokens", "1")
    succeeds("inspect", run_of_it, "--json")
    succeeds("quantize", run_of_it, "--int8")
    for command in (["translate", run_of_it], ["inspect", folder / "missing\n"], ["generate", run_of_it, "more\nwords"],
                    ["train", "lm", "--text", folder / "none", "--out", tmp_path / "run"]):
        status, errors = run(*command)
        assert status in (1, 2) and errors.count(b"\n") == 1 and errors.startswith(b"qkv: "), errors
        assert b"\x1b" not in errors


def test_paths_of_4000_bytes_are_read_and_longer_ones_refused(whole, tmp_path):
    folder = tmp_path
    while len(os.fsencode(folder)) < 3700:
        folder /= "d" * 200
    folder /= "d" * (3990 - len(os.fsencode(folder)))
    folder.mkdir(parents=True)
    run_of_it = folder / "run"
    succeeds(*LANGUAGE, "--out", run_of_it)
    assert contents(run_of_it) == contents(whole)
    succeeds("generate", run_of_it, "--prompt", "a", "--max-tokens", "1")
    line = error_of(*LANGUAGE, "--out", folder / ("d" * 100))
    assert "File name too long" in line
    assert "ddd" in error_of("inspect", folder / ("d" * 300))


CLOCK = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdatomic.h>
#include <sys/time.h>
#include <time.h>
// Each look at the clock on the wall shows an hour less than the one before.
static atomic_long looks;
static time_t now(void) { return 2000000000 - 3600 * ++looks; }
int clock_gettime(clockid_t clock, struct timespec* time) {
  int (*next)(clockid_t, struct timespec*) = (int (*)(clockid_t, struct timespec*))dlsym(RTLD_NEXT, "clock_gettime");
  const int result = next(clock, time);
  if (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE) time->tv_sec = now();
  return result;
}
time_t time(time_t* result) {
  const time_t value = now();
  if (result) *result = value;
  return value;
}
int gettimeofday(struct timeval* restrict time, void* restrict zone) {
  time->tv_sec = now();
  time->tv_usec = 0;
  return 0;
}
"""


def test_a_clock_that_is_set_back_changes_nothing(whole, tmp_path):
    environment = preloaded(tmp_path, CLOCK)
    succeeds(*LANGUAGE, "--out", tmp_path / "run", env=environment)
    assert contents(tmp_path / "run") == contents(whole)
    records = [json.loads(line) for line in (tmp_path / "run/metrics.jsonl").read_text().splitlines()]
    assert all(0 <= record["seconds"] < 3600 for record in records)


LOCALE = """
#include <locale.h>
static __attribute__((constructor)) void begin(void) { setlocale(LC_ALL, ""); }
"""


def test_a_locale_with_decimal_commas_changes_nothing(whole, tmp_path):
    made = subprocess.run(["localedef", "-i", "de_DE", "-f", "UTF-8", tmp_path / "de_DE.UTF-8"], capture_output=True)
    if made.returncode != 0:
        pytest.skip("the locale de_DE.UTF-8 cannot be made")
    german = {"LC_ALL": "de_DE.UTF-8", "LOCPATH": str(tmp_path)}
    succeeds(*LANGUAGE, "--out", tmp_path / "run", env={**os.environ, **german})
    # A program that uses the library may set the locale of its environment, which qkv does not.
    host = {**preloaded(tmp_path, LOCALE), **german}
    python = [sys.executable, "-c", "import locale; print(locale.localeconv()['decimal_point'])"]
    assert subprocess.run(python, env=host, capture_output=True, text=True).stdout == ",\n"
    config = tmp_path / "config.json"
    config.write_text('{"learning_rate": 0.02, "warmup_steps": 4}')
    options = [o for o in LANGUAGE if o not in ("--learning-rate", "0.02", "--warmup-steps")]
    options.remove("4")
    succeeds(*options, "--config", config, "--out", tmp_path / "hosted", env=host)
    assert contents(tmp_path / "run") == contents(whole) == contents(tmp_path / "hosted")
    for command in (["inspect", RUNS / "translator", "--json"], ["evaluate", RUNS / "recommender", "--json"],
                    ["translate", RUNS / "translator", "--input", RUNS / "text/dev.en", "--json"],
                    ["recommend", RUNS / "recommender", "--user", "u0005"], ["explain"]):
        both = [subprocess.run([QKV, *command], env=env, capture_output=True, timeout=300).stdout
                for env in (os.environ, host)]
        assert both[0] == both[1] != b""


def test_the_time_zone_changes_nothing(tmp_path):
    log = (RUNS / "log/log.csv").read_text().splitlines()
    dated = [log[0]] + [",".join([*line.split(",")[:2], time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(int(line.split(",")[2])))])
                        for line in log[1:]]
    (tmp_path / "log.csv").write_text("\n".join(dated) + "\n")
    command = ["train", "recommend", "--data", tmp_path / "log.csv", *LANGUAGE[4:]]
    for name, zone in (("a", "UTC"), ("b", "Asia/Kathmandu"), ("c", "America/St_Johns")):
        succeeds(*command, "--out", tmp_path / name, env={**os.environ, "TZ": zone})
    assert contents(tmp_path / "a") == contents(tmp_path / "b") == contents(tmp_path / "c")
