"""--device: a device plugin computes translations, texts, vectors, labels and recommendations. The plugin is the host
device of the tests (tests/host_device), whose memory nothing else can touch."""
import os
import re
import subprocess
from pathlib import Path

import pytest
from conftest import QKV, ROOT, TEXT, qkv

HOST = Path(QKV).resolve().parent / "tests/libqkv_host_device.so"
ON_DEVICE = ["--device", "cuda", "--precision", "float32"]


def run(*arguments, text=None, plugin=HOST):
    done = subprocess.run([QKV, *map(str, arguments)], input=text, capture_output=True, text=True, timeout=300,
                          env={**os.environ, "QKV_DEVICE": str(plugin)})
    return done.returncode, done.stdout, done.stderr


def words_and_scores(out):
    parts = re.split(r"(-?\d+\.\d+)", out)
    return parts[::2], [float(score) for score in parts[1::2]]


def check_same(*arguments, text=None):
    """The device gives the words of the CPU, and computes something: without the plugin there is an error."""
    status, expected, notes = run(*arguments, text=text)
    assert status == 0 and expected
    status, found, notes_of_device = run(*arguments, *ON_DEVICE, text=text)
    assert (status, notes_of_device) == (0, notes)
    (words, scores), (words_of_device, scores_of_device) = words_and_scores(expected), words_and_scores(found)
    assert words_of_device == words
    assert scores_of_device == pytest.approx(scores, rel=1e-5)  # float32, in other orders of summation
    missing = run(*arguments, *ON_DEVICE, text=text, plugin="/nowhere.so")
    assert missing[0] == 1 and missing[1] == ""
    assert ": device cuda: the plugin /nowhere.so does not exist" in missing[2] and missing[2].count("\n") == 1


@pytest.fixture(scope="module")
def lines():
    return "\n".join((TEXT / "dev.en").read_text().splitlines()[:12]) + "\n"


@pytest.mark.parametrize("options", [["--beam", 1], ["--beam", 4, "--n-best", 2], ["--sampling", "--n-best", 2, "--seed", 3]],
                         ids=["greedy", "beam", "sampling"])
def test_translations(trained, lines, options):
    check_same("translate", trained, *options, text=lines)


def test_translations_of_an_ensemble_and_of_given_words(trained, lines):
    check_same("translate", trained, "--ensemble", trained, "--beam", 2, text=lines)
    check_same("translate", trained, "--prefix", "der", text=lines)
    check_same("translate", trained, trained, "--beam", 1, text=lines)  # a chain


def test_bfloat16_is_the_default(trained, lines):
    status, out, _ = run("translate", trained, "--device", "cuda", "--beam", 1, text=lines)
    assert status == 0 and len(out.splitlines()) == 12
    assert run("translate", trained, "--device", "auto", "--beam", 1, text=lines)[1] == out
    cpu = run("translate", trained, "--precision", "bfloat16", text=lines)
    assert cpu[0] == 1 and cpu[2] == f"qkv: {trained}: precision bfloat16 requires a device (device is cpu)\n"


@pytest.mark.parametrize("options", [["--temperature", 0], ["--temperature", 1, "--seed", 5]], ids=["greedy", "sampling"])
def test_texts(counting, options):
    check_same("generate", counting, "--prompt", "456", "--max-tokens", 12, *options)


def test_vectors_and_labels(trained, lines, tmp_path):
    vectors = [run("embed", trained, *on, text=lines)[1] for on in ([], ON_DEVICE)]
    cpu, device = ([[float(x) for x in line.split()] for line in out.splitlines()] for out in vectors)
    assert len(cpu) == 12
    for a, b in zip(cpu, device, strict=True):
        assert max(abs(x - y) for x, y in zip(a, b, strict=True)) <= 1e-5 * max(map(abs, a))
    qkv("import", ROOT / "tests/golden/classify/bert", tmp_path / "classifier")
    labels = [[line.split("\t")[0] for line in run("classify", tmp_path / "classifier", *on, text="a b\nc\n")[1].splitlines()]
              for on in ([], ON_DEVICE)]
    assert len(labels[0]) == 2 and labels[0] == labels[1]


def test_recommendations(films, timed_run):
    for model in (films / "run", timed_run):
        expected, found = (run("recommend", model, "--user", "u0007", *on)[1] for on in ([], ON_DEVICE))
        items = [[line.split("\t")[-1] for line in out.splitlines()] for out in (expected, found)]
        assert items[0] and items[0] == items[1]


def test_weights_of_8_bits_are_for_the_cpu(trained, lines, tmp_path):
    qkv("quantize", trained, "--int8", "--out", tmp_path / "int8")
    status, out, err = run("translate", tmp_path / "int8", "--device", "cuda", text=lines)
    assert (status, out) == (1, "")
    assert err == f"qkv: {tmp_path / 'int8'}: device cuda: weights of 8 or 4 bits are for the CPU; use device cpu\n"
