"""qkv train lm and qkv generate."""

import json

import pytest
from conftest import qkv


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A model of a text that counts from 0 to 9 again and again."""
    folder = tmp_path_factory.mktemp("lm")
    (folder / "text.txt").write_text("0123456789\n" * 200)
    train = ["train", "lm", "--text", folder / "text.txt", "--out", folder / "run", "--d-model", 32, "--heads", 2, "--ffn", 64,
             "--decoder-layers", 1, "--max-length", 32, "--batch-tokens", 256, "--max-steps", 120, "--warmup-steps", 10,
             "--learning-rate", 0.01, "--eval-every", 60, "--threads", 1]
    _, _, report = qkv(*train)
    assert "12 kinds of tokens" in report and "bits/byte 0.0" in report
    assert "resumed at step 120" in qkv(*train)[2]
    return folder / "run"


def generate(run, *arguments, **more):
    return qkv("generate", run, *arguments, **more)[1]


def test_text_goes_on_from_the_prompt(model):
    likely = ["--temperature", 0]
    assert generate(model, "--prompt", "45", "--max-tokens", 4, *likely) == "456789\n"
    assert generate(model, "--prompt", "45", "--max-tokens", 4, "--stream", *likely) == "456789\n"
    assert generate(model, "--prompt", "45", "--stop", "8", "--stop", "x", *likely) == "4567\n"
    assert generate(model, "--prompt", "45", "--stop", "8", "--stream", *likely) == "4567\n"
    assert generate(model, "--prompt", "0", "--max-tokens", 100, *likely).startswith("0123456789\n0123456789\n012345")
    assert len(generate(model, "--prompt", "0", "--max-tokens", 100, "--context", "stop", *likely)) == 33


def test_json_has_every_token_and_why_it_ended(model, tmp_path):
    (tmp_path / "prompts").write_text("45\n9\n")
    lines = generate(model, "--prompts", tmp_path / "prompts", "--max-tokens", 2, "--json", "--temperature", 0)
    first, second = [json.loads(line) for line in lines.splitlines()]
    assert first["prompt"] == "45" and first["text"] == "67" and first["end"] == "length"
    assert [token["text"] for token in first["tokens"]] == ["6", "7"]
    assert all(-0.5 < token["log_probability"] < 0 for token in first["tokens"])
    assert second["text"] == "\n0"
    assert generate(model, "--prompts", "-", "--max-tokens", 2, "--temperature", 0, text="45\n9\n") == "4567\n9\n0\n"


def test_the_seed_decides_what_is_drawn(model):
    hot = ["--prompt", "0", "--temperature", 3, "--max-tokens", 30]
    first = generate(model, *hot, "--seed", 1)
    assert first == generate(model, *hot, "--seed", 1) != generate(model, *hot, "--seed", 2)
    assert generate(model, *hot, "--top-k", 1, "--seed", 5) == generate(model, *hot, "--min-p", 1, "--seed", 6)


def test_weights_in_8_bits_go_on_alike(model, tmp_path):
    qkv("quantize", model, "--int8", "--out", tmp_path / "int8")
    likely = ["--prompt", "45", "--max-tokens", 8, "--temperature", 0]
    assert generate(tmp_path / "int8", *likely) == generate(model, *likely)


def test_errors_are_one_line(model, trained):
    for arguments, message in [(["--prompt", "x"], 'prompt: the character "x" is none of the model\'s 11'),
                               (["--temperature", -1], "generate: temperature is -1, wanted at least 0"),
                               (["--top-p", 0], "search: top_p is 0, wanted above 0 and at most 1"),
                               (["--stop", ""], "generate: a stop text is empty"),
                               (["--prompt", "0" * 40, "--context", "stop"], "wanted fewer than the model's max_length")]:
        status, output, error = qkv("generate", model, *arguments, ok=False)
        assert (status, output) == (1, "") and error.count("\n") == 1 and message in error, arguments
    assert "holds no language.json" in qkv("generate", trained, ok=False)[2]
    assert qkv("generate", model, "--context", "grow", ok=False)[0] == 2
