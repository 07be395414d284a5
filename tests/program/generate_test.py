"""qkv train lm and qkv generate."""

import json
import subprocess

import pytest
from conftest import QKV, qkv


@pytest.fixture(scope="module")
def model(counting):
    return counting


def generate(run, *arguments, **more):
    return qkv("generate", run, *arguments, **more)[1]


def test_text_continues_the_prompt(model):
    likely = ["--temperature", 0]
    assert generate(model, "--prompt", "45", "--max-tokens", 4, *likely) == "456789\n"
    assert generate(model, "--prompt", "45", "--max-tokens", 4, "--stream", *likely) == "456789\n"
    assert generate(model, "--prompt", "45", "--stop", "8", "--stop", "x", *likely) == "4567\n"
    assert generate(model, "--prompt", "45", "--stop", "8", "--stream", *likely) == "4567\n"
    assert generate(model, "--prompt", "0", "--max-tokens", 100, *likely).startswith("0123456789\n0123456789\n012345")
    assert len(generate(model, "--prompt", "0", "--max-tokens", 100, "--context", "stop", *likely)) == 33


def test_json_has_every_token_and_the_reason_for_the_end(model, tmp_path):
    (tmp_path / "prompts").write_text("45\n9\n")
    lines = generate(model, "--prompts", tmp_path / "prompts", "--max-tokens", 2, "--json", "--temperature", 0)
    first, second = [json.loads(line) for line in lines.splitlines()]
    assert first["prompt"] == "45" and first["text"] == "67" and first["end"] == "length"
    assert [token["text"] for token in first["tokens"]] == ["6", "7"]
    assert all(-0.5 < token["log_probability"] < 0 for token in first["tokens"])
    assert second["text"] == "\n0"
    assert generate(model, "--prompts", "-", "--max-tokens", 2, "--temperature", 0, text="45\n9\n") == "4567\n9\n0\n"


def test_explanations_show_the_most_probable_tokens(model):
    likely = ["--prompt", "89", "--max-tokens", 2, "--temperature", 0]
    lines = generate(model, *likely, "--explain", 2).split("\n")
    assert lines[:4] == ["89", "0", "", "    p  token         the most probable"]
    newline, zero = [line.split() for line in lines[4:6]]
    assert newline[1:3] == ["⏎", "⏎"] and newline[0] == newline[3] and len(newline) == 6
    assert zero[1:3] == ["0", "0"] and float(zero[0]) > 0.5
    tokens = json.loads(generate(model, *likely, "--explain", "--json"))["tokens"]
    for token in tokens:
        assert len(token["alternatives"]) == 5
        best = token["alternatives"][0]
        assert best == {"text": token["text"], "log_probability": token["log_probability"], "end": False}
    assert "alternatives" not in generate(model, *likely, "--json")


def test_a_batch_of_prompts_gives_the_same_texts_as_each_alone(model, tmp_path):
    prompts = ["0123", "", "012345", "9", "0123", "01"]
    (tmp_path / "prompts").write_text("\n".join(prompts) + "\n")
    drawn = ["--max-tokens", 40, "--temperature", 2, "--seed", 4]
    alone = "".join(generate(model, "--prompt", prompt, *drawn) for prompt in prompts)
    for options in (["--batch", 1], ["--batch", 4, "--threads", 1], ["--threads", 2], ["--stream"]):
        assert generate(model, "--prompts", tmp_path / "prompts", *drawn, *options) == alone, options
    assert generate(model, "--prompts", "-", text="") == ""


def test_attention_covers_the_text_and_its_continuation(model, tmp_path):
    _, shown, _ = qkv("attend", model, "45", "--generate", 3)
    lines = shown.splitlines()
    assert lines[0] == "678" and lines[1].startswith("decoder attention, layer 1 of 1, head 1 of 2")
    assert [line.split()[0] for line in lines[6:12]] == ["<s>"] + list("45678")
    assert qkv("attend", model, "--text", "45678")[1].splitlines() == lines[1:]
    qkv("attend", model, "--prompt", "45", "--html", tmp_path / "a.html", "--json", tmp_path / "a.json")
    found = json.loads((tmp_path / "a.json").read_text())
    assert (found["source"], found["target"]) == ("45", "") and len(found["attention"]) == 1
    decoder = found["attention"][0]
    assert decoder["kind"] == "decoder" and decoder["rows"] == decoder["columns"] == ["<s>", "4", "5"]
    for head in decoder["layers"][0]:
        assert all(abs(sum(row) - 1) < 1e-5 and not any(row[i + 1:]) for i, row in enumerate(head))
    assert "const data" in (tmp_path / "a.html").read_text()


def test_attention_of_a_missing_part_is_refused(model, trained):
    for run, arguments, message in [(model, ["--target", "4"], "is a language model; use --generate"),
                                    (model, ["--kind", "cross"], "--kind cross: this model has only decoder attention"),
                                    (model, ["--generate", 100], ""),
                                    (trained, ["--generate", 1], "is a translator; use --target")]:
        status, output, error = qkv("attend", run, "45", *arguments, ok=message == "")
        assert (status == 0) == (message == "") and message in error and error.count("\n") <= 1
    assert "text must have at most 32 tokens, the start token included (has 41)" in qkv("attend", model, "4" * 40, ok=False)[2]


def test_a_full_disk_is_an_error(model):
    with open("/dev/full", "w") as full:
        done = subprocess.run([QKV, "generate", model, "--prompt", "45"], stdout=full, stderr=subprocess.PIPE)
    assert done.returncode == 1 and done.stderr == b"qkv: standard output: No space left on device\n"


def test_the_seed_determines_the_samples(model):
    hot = ["--prompt", "0", "--temperature", 3, "--max-tokens", 30]
    first = generate(model, *hot, "--seed", 1)
    assert first == generate(model, *hot, "--seed", 1) != generate(model, *hot, "--seed", 2)
    assert generate(model, *hot, "--top-k", 1, "--seed", 5) == generate(model, *hot, "--min-p", 1, "--seed", 6)


def test_8_bit_weights_generate_the_same_text(model, tmp_path):
    qkv("quantize", model, "--int8", "--out", tmp_path / "int8")
    likely = ["--prompt", "45", "--max-tokens", 8, "--temperature", 0]
    assert generate(tmp_path / "int8", *likely) == generate(model, *likely)


def test_the_benchmark_reports_its_share_of_the_bandwidth(model):
    sizes = ["--prompt", 4, "--tokens", 4, "--json"]
    found = json.loads(qkv("bench", "generate", model, "--batch", 2, *sizes)[1])
    assert found["batch"] == 2 and found["tokens_per_s"] > 0 and found["first_token_ms"] > 0
    used = found["tokens_per_s"] / 2 * found["weight_bytes"] / (1e9 * found["read_gbytes_per_s"])
    assert abs(found["bandwidth_share"] - used) < 1e-6 * used
    shape = ["--preset", "lm-small", "--vocab", 100]
    plain, int8 = [json.loads(qkv("bench", "generate", *shape, *sizes, *more)[1]) for more in ([], ["--bits", 8])]
    assert plain["parameters"] == int8["parameters"] and plain["weight_bytes"] > 3 * int8["weight_bytes"]
    assert "% of that limit\n" in qkv("bench", "generate", *shape, "--tokens", 3, "--prompt", 2, "--profile")[1]
    assert qkv("bench", "generate", model, "--preset", "gpt2", ok=False)[0] == 2


def test_errors_are_one_line(model, trained):
    for arguments, message in [(["--prompt", "x"], 'prompt: the character "x" is not in the vocabulary of 11 characters'),
                               (["--stop", ""], "stop: a text is empty"),
                               (["--prompt", "0" * 40, "--context", "stop"], "must have fewer than 32 tokens")]:
        status, output, error = qkv("generate", model, *arguments, ok=False)
        assert (status, output) == (1, "") and error.count("\n") == 1 and message in error, arguments
    for arguments, message in [(["--temperature", -1], "--temperature: must be at least 0 (is -1)"),
                               (["--typical-p", 0], "--typical-p: must be above 0 and at most 1 (is 0)"),
                               (["--top-p", 0], "--top-p: must be above 0 and at most 1 (is 0)")]:
        status, output, error = qkv("generate", model, *arguments, ok=False)
        assert (status, output) == (2, "") and message in error
    assert "is a translator; expected a language model" in qkv("generate", trained, ok=False)[2]
    assert qkv("generate", model, "--context", "grow", ok=False)[0] == 2
