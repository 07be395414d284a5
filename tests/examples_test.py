"""The programs of examples/cpp are built against an installed qkv, and run with few steps."""

import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent
QKV = pathlib.Path(os.environ.get("QKV", ROOT / "build/dev/qkv"))
GRAMMAR = ROOT / "examples/grammar"


def run(*command, **options):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def build(tmp_path_factory):
    if not (QKV.parent / "CMakeCache.txt").exists():
        pytest.skip("no build directory")
    folder = tmp_path_factory.mktemp("examples")
    run("cmake", "--install", QKV.parent, "--prefix", folder / "prefix")
    run("cmake", "-G", "Ninja", "-S", ROOT / "examples/cpp", "-B", folder / "build", "-DCMAKE_BUILD_TYPE=Debug",
        f"-DCMAKE_PREFIX_PATH={folder / 'prefix'}", "-DCMAKE_CXX_FLAGS=-Wall -Wextra -Werror")
    run("cmake", "--build", folder / "build")
    return folder / "build"


def test_attention_measures_its_gradient(build):
    words = run(build / "attention").splitlines()[1].replace(",", "").split()  # gradient of one number: X, measured Y
    assert abs(float(words[4]) - float(words[6])) < 1e-3


def test_the_encoder_learns(build):
    losses = [float(line.split()[-1]) for line in run(build / "encoder", 60).splitlines()]
    assert len(losses) == 2 and losses[1] < losses[0]


def test_translate_shows_alternatives_and_alignments(build, tmp_path):
    run(QKV, "train", "translate", "--train", GRAMMAR / "dev.en", GRAMMAR / "dev.de", "--dev", GRAMMAR / "dev.en",
        GRAMMAR / "dev.de", "--out", tmp_path / "run", "--preset", "tiny", "--encoder-layers", 1, "--decoder-layers", 1,
        "--vocab-size", 300, "--batch-tokens", 512, "--max-steps", 2, "--eval-every", 0)
    output = run(build / "translate", tmp_path / "run", input="The dog sleeps.\n")
    assert output.startswith("The dog sleeps.\n  ") and " <- " in output


def test_films_trains_and_recommends(build, tmp_path):
    run(sys.executable, "-B", ROOT / "examples/films/generate.py", "--out", tmp_path)
    lines = (tmp_path / "log.csv").read_text(encoding="utf-8").splitlines(keepends=True)
    (tmp_path / "small.csv").write_text("".join(lines[:3000]), encoding="utf-8")
    output = run(build / "films", tmp_path / "small.csv", tmp_path / "titles.csv", tmp_path / "run", "u0042", 1)
    assert ", Part " in output


def test_the_language_model_trains_and_writes(build, tmp_path):
    output = run(build / "language_model", GRAMMAR / "dev.de", tmp_path / "run", "Der Hund", 2)
    assert "Der Hund" in output


def test_a_missing_run_is_one_line(build):
    done = subprocess.run([build / "translate", "nowhere"], capture_output=True, text=True, input="")
    assert done.returncode == 1 and done.stderr.startswith("translate: nowhere") and done.stderr.count("\n") == 1
