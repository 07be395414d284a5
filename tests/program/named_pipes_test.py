"""Named pipes and devices in the place of files of runs, models and options: refused by their name, never waited for."""

import os
import shutil
import subprocess

import pytest

from conftest import QKV, ROOT

RUNS = ROOT / "tests/golden/runs"
COMMANDS = {"translator": ["translate"], "language": ["generate", "--prompt", "A"], "recommender": ["recommend", "--history", "f0001"],
            "encoder": ["embed"]}
FILES = [(run, file.relative_to(RUNS / run).as_posix()) for run in COMMANDS for file in sorted((RUNS / run).rglob("*"))
         if file.is_file()]


def ended(*command, **options):
    """Status and errors of a command, which must not wait for anything."""
    done = subprocess.run([QKV, *map(str, command)], input=b"", capture_output=True, timeout=60, **options)
    return done.returncode, done.stderr.decode()


@pytest.mark.parametrize("kind", ["pipe", "device"])
@pytest.mark.parametrize("run,name", FILES, ids=lambda value: value.replace("/", "_"))
def test_a_file_of_a_run_that_is_none_is_refused_by_its_name(run, name, kind, tmp_path):
    copy = tmp_path / "run"
    shutil.copytree(RUNS / run, copy)
    (copy / name).unlink()
    os.mkfifo(copy / name) if kind == "pipe" else (copy / name).symlink_to("/dev/zero")
    command, *arguments = COMMANDS[run]
    for used in ([command, copy, *arguments], ["inspect", copy]):
        status, errors = ended(*used)
        assert status in (0, 1) and errors.count("\n") <= 1 + (status == 0)
        if status == 1:
            assert str(copy) in errors
        elif used[0] == command:
            assert name not in ("config.json", "model.safetensors"), name


@pytest.mark.parametrize("arguments", [
    ["recommend", RUNS / "recommender", "--history", "f0001", "--titles", "FILE"],
    ["serve", f"rec={RUNS / 'recommender'}", "--titles", "rec=FILE"],
    ["serve", f"lm={RUNS / 'language'}", "--api-keys", "FILE"],
    ["serve", f"lm={RUNS / 'language'}", "--config", "FILE"],
    ["serve", f"lm={RUNS / 'language'}", "--tls-cert", "FILE", "--tls-key", "FILE"],
    ["serve", f"lm={RUNS / 'language'}", "--events", "FILE"],
    ["train", "translate", "--config", "FILE", "--train", "a", "b", "--dev", "a", "b", "--out", "run"],
    ["import", "FILE", "run"],
    ["explain", "--json", "FILE"],
], ids=lambda arguments: " ".join(str(word) for word in arguments[:1] + arguments[-2:]).replace("/", "_"))
def test_the_file_of_an_option_that_is_a_named_pipe_is_refused(arguments, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "zero").symlink_to("/dev/zero")
    for name in ("pipe", "zero"):
        used = [str(word).replace("FILE", str(tmp_path / name)) for word in arguments]
        status, errors = ended(*used, cwd=tmp_path)
        assert status in (1, 2) and name in errors, errors


def test_the_file_of_an_option_may_be_a_pipe_of_a_shell(tmp_path):
    titles = RUNS / "log/titles.csv"
    command = f"{QKV} recommend {RUNS}/recommender --history f0001 --titles <(cat {titles})"
    through_pipe = subprocess.run(["bash", "-c", command], capture_output=True, timeout=60, check=True).stdout
    direct = subprocess.run([QKV, "recommend", RUNS / "recommender", "--history", "f0001", "--titles", titles],
                            capture_output=True, timeout=60, check=True).stdout
    assert through_pipe == direct
