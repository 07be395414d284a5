"""The package brings the program: python -m qkv, and the command qkv of its environment."""

import pathlib
import subprocess
import sys

import qkv


def output(*command, status=0):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    assert done.returncode == status, done.stderr
    return done.stdout + done.stderr


def test_the_module_runs_the_program_of_its_version():
    assert output(sys.executable, "-m", "qkv", "--version").startswith(f"qkv {qkv.__version__} (")


def test_the_command_runs_the_program_and_returns_its_status():
    command = pathlib.Path(sys.executable).with_name("qkv")
    assert output(command, "--version") == output(sys.executable, "-m", "qkv", "--version")
    assert "nowhere" in output(command, "inspect", "nowhere", status=1)


def test_without_a_program_the_error_says_what_to_install(tmp_path):
    package = pathlib.Path(qkv.__file__).parent
    (tmp_path / "__main__.py").write_text((package / "__main__.py").read_text())
    done = subprocess.run([sys.executable, tmp_path / "__main__.py"], capture_output=True, text=True, env={"PATH": ""})
    assert done.returncode == 1 and done.stderr == f"qkv: no program in {tmp_path} or on the path; install the package qkv\n"
