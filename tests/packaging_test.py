"""qkv installed is found by find_package and links; as a subdirectory it brings only its library along."""

import os
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = pathlib.Path(os.environ.get("QKV", ROOT / "build/dev/qkv")).parent


def run(*command):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.skipif(not (BUILD / "CMakeCache.txt").exists(), reason="no build directory")
def test_an_installed_qkv_is_found_and_links(tmp_path):
    run("cmake", "--install", BUILD, "--prefix", tmp_path / "prefix")
    run("cmake", "-G", "Ninja", "-S", ROOT / "tests/packaging/find_package", "-B", tmp_path / "build",
        f"-DCMAKE_PREFIX_PATH={tmp_path / 'prefix'}")
    run("cmake", "--build", tmp_path / "build")
    output = run(tmp_path / "build/user")
    assert "qkv 0.1" in output and "is not a run directory" in output
    assert "qkv" in run(tmp_path / "prefix/bin/qkv", "--version")


def test_a_subdirectory_brings_only_the_library(tmp_path):
    run("cmake", "-G", "Ninja", "-S", ROOT / "tests/packaging/add_subdirectory", "-B", tmp_path / "build", f"-DQKV_SOURCE={ROOT}")
