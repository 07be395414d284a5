"""qkv quantize: runs with 8-bit weights, and errors."""

import json
import shutil

import pytest
from conftest import SMALL, qkv

TEXT = "The dog sees the cat.\n\nHe sleeps.\n"


@pytest.fixture(scope="module")
def quantized(trained):
    """An 8-bit run at the default path next to the run."""
    _, output, _ = qkv("quantize", f"{trained}/", "--int8")
    run = trained.with_name("small-int8")
    assert output.startswith(f"{run}: ") and " matrices in 8 bits, " in output and output.count("\n") == 1
    yield run
    shutil.rmtree(run)


def test_only_the_weights_of_the_new_run_differ(trained, quantized):
    files = {path.name for path in quantized.iterdir()}
    assert files == {"config.json", "translation.json", "tokenizer.model", "model.safetensors"}
    for name in files - {"model.safetensors"}:
        assert (quantized / name).read_bytes() == (trained / name).read_bytes()


def test_it_translates_scores_and_shows_attention(quantized):
    _, translations, _ = qkv("translate", quantized, "--beam", 3, text=TEXT)
    assert translations.count("\n") == 3 and translations.split("\n")[1] == ""
    assert qkv("translate", quantized, "--beam", 3, "--batch-tokens", 1, "--threads", 1, text=TEXT)[1] == translations
    assert qkv("attend", quantized, "The dog sees the cat.")[1].count("\n") > 3


def test_inspect_shows_8_bit_parameters_and_counts_their_bytes(trained, quantized):
    before, info = (json.loads(qkv("inspect", run, "--json")[1]) for run in (trained, quantized))
    assert {p["type"] for p in before["parameters"]} == {"float32"}
    assert before["serving_bytes"] == 4 * before["parameter_count"]
    assert all(p["type"] == ("int8" if len(p["shape"]) == 2 else "float32") for p in info["parameters"])
    assert info["serving_bytes"] == sum(p["count"] + 8 * p["shape"][0] if p["type"] == "int8" else 4 * p["count"]
                                        for p in info["parameters"])
    assert info["parameter_count"] == before["parameter_count"] and info["training_bytes"] == 0
    assert " int8\n" in qkv("inspect", quantized)[1]


def test_4_bits_of_a_language_model(tmp_path):
    text = tmp_path / "text.txt"
    text.write_text("To be, or not to be, that is the question.\n" * 60)
    run = tmp_path / "run"
    qkv("train", "lm", "--text", text, "--out", run, "--unit", "bytes", "--d-model", 64, "--ffn", 128,
        "--decoder-layers", 2, "--batch-tokens", 256, "--max-steps", 30, "--threads", 1)
    _, output, _ = qkv("quantize", run, "--int4")
    small = tmp_path / "run-int4"
    assert output.startswith(f"{small}: ") and " matrices in 4 bits, " in output and output.count("\n") == 1
    info = json.loads(qkv("inspect", small, "--json")[1])
    assert {p["type"] for p in info["parameters"] if "layers" in p["name"] and len(p["shape"]) == 2} == {"int4"}
    assert {p["type"] for p in info["parameters"]} == {"int4", "int8", "float32"}
    assert info["serving_bytes"] == sum(p["count"] * 9 // 16 if p["type"] == "int4" else p["count"] + 8 * p["shape"][0]
                                        if p["type"] == "int8" else 4 * p["count"] for p in info["parameters"])
    command = ["generate", small, "--prompt", "To be", "--max-tokens", 40, "--temperature", 0]
    texts = [qkv(*command, "--threads", threads)[1] for threads in (1, 2)]
    assert texts[0] == texts[1] and texts[0].strip()


def test_without_a_layer_for_4_bits_nothing_is_written(trained):
    status, output, error = qkv("quantize", trained, "--int4", ok=False)
    assert (status, output) == (1, "")
    assert error == (f"qkv: {trained}/model.safetensors: has no linear layer of which the outputs are a multiple of 16 "
                     "and the inputs of 64\n")
    assert not trained.with_name("small-int4").exists()


def test_existing_and_8_bit_runs_are_refused(trained, quantized, tmp_path):
    status, output, error = qkv("quantize", trained, "--int8", ok=False)
    assert (status, output, error) == (1, "", f"qkv: {quantized}: already exists\n")
    out = tmp_path / "again"
    status, output, error = qkv("quantize", quantized, "--int8", "--out", out, ok=False)
    assert (status, output, error) == (1, "", f"qkv: {quantized}/model.safetensors: is quantized already\n")
    assert not list(tmp_path.iterdir())


def test_a_broken_run_leaves_nothing_behind(trained, tmp_path):
    broken = tmp_path / "broken"
    shutil.copytree(trained, broken)
    model = (broken / "model.safetensors").read_bytes()
    (broken / "model.safetensors").write_bytes(model[:-4])
    status, output, error = qkv("quantize", broken, "--int8", ok=False)
    assert (status, output) == (1, "") and error.count("\n") == 1 and "model.safetensors" in error
    assert [path.name for path in tmp_path.iterdir()] == ["broken"]


def test_training_cannot_resume_it(corpus, quantized):
    status, _, error = qkv("train", "translate", *corpus, *SMALL, "--out", quantized, "--max-steps", 50, ok=False)
    assert status == 1
    assert error == (f"qkv: {quantized}: exists but has no training.json; expected a run that training started, "
                     "or a new directory\n")


@pytest.mark.parametrize("arguments", [[], ["run"], ["--int8"], ["run", "--int3"], ["run", "--int8", "--int4"],
                                       ["run", "--int8=false"],
                                       ["run", "--int8", "--out"]])
def test_wrong_usage_is_one_line_and_status_2(arguments):
    status, output, error = qkv("quantize", *arguments, ok=False)
    assert status == 2 and output == "" and error.count("\n") == 1 and error.startswith("qkv: ")
