"""qkv embed: vectors of lines by imported encoders and trained models."""

import json
import shutil
import struct

import pytest
from conftest import ROOT, qkv

GOLDEN = ROOT / "tests/golden/bert"
TEXTS = (GOLDEN / "texts.txt").read_text()


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    run = tmp_path_factory.mktemp("encoder") / "run"
    _, out, _ = qkv("import", GOLDEN / "sentence", run, "--tokens")
    assert out == (f"{run}: BERT model, 2 + 0 layers of width 12, 2740 parameters\n"
                   "left out: pooler (not needed for hidden states)\n")
    return run


def vectors(out):
    return [[float(x) for x in line.split(" ")] for line in out.splitlines()]


def rounded(x):
    """To float32."""
    return struct.unpack("<f", struct.pack("<f", x))[0]


def test_a_line_has_one_vector_in_all_forms(encoder, tmp_path):
    _, out, err = qkv("embed", encoder, text=TEXTS)
    found = vectors(out)
    assert err == "" and len(found) == 6 and {len(v) for v in found} == {12}
    assert all(abs(sum(x * x for x in v) - 1) < 1e-5 for v in found)

    lines = [json.loads(line) for line in qkv("embed", encoder, "--json", "--file", GOLDEN / "texts.txt")[1].splitlines()]
    assert [line["text"] for line in lines] == TEXTS.splitlines()
    assert [line["vector"] for line in lines] == found

    assert qkv("embed", encoder, "--npy", tmp_path / "vectors.npy", text=TEXTS)[1] == ""
    npy = (tmp_path / "vectors.npy").read_bytes()
    assert npy.startswith(b"\x93NUMPY\x01\x00\x76\x00{'descr': '<f4', 'fortran_order': False, 'shape': (6, 12), }")
    assert npy[127:128] == b"\n" and len(npy) == 128 + 6 * 12 * 4
    numbers = struct.unpack("<72f", npy[128:])
    assert list(numbers) == [rounded(x) for v in found for x in v]
    assert [path.name for path in tmp_path.iterdir()] == ["vectors.npy"]


def test_word_pieces_of_a_text_are_the_tokens_it_is_cut_into(encoder, tmp_path):
    _, out, _ = qkv("import", GOLDEN / "sentence", tmp_path / "run")
    assert "BERT model" in out
    assert vectors(qkv("embed", tmp_path / "run", text="A b\n  c, d\n")[1]) == vectors(
        qkv("embed", encoder, text="a b\nc [UNK] d\n")[1])


def test_options_change_the_vectors(encoder):
    def embed(*options, text="a b\n"):
        return vectors(qkv("embed", encoder, *options, text=text)[1])

    plain = embed("--no-normalize")
    assert abs(sum(x * x for x in plain[0]) - 1) > 0.1
    assert embed("--normalize") == embed() != plain
    assert len({str(embed("--pooling", pooling)) for pooling in ("mean", "first", "last", "max", "weighted_mean")}) == 5
    assert embed("--prefix", "a ", text="b\n") == embed()
    assert embed("--batch-tokens", 1, "--threads", 1, text=TEXTS) == embed(text=TEXTS)


def test_an_empty_prefix_replaces_that_of_the_run(encoder, tmp_path):
    run = shutil.copytree(encoder, tmp_path / "run")
    config = json.loads((run / "embedding.json").read_text())
    (run / "embedding.json").write_text(json.dumps(config | {"prefix": "a "}))
    assert qkv("embed", run, text="b\n") == qkv("embed", encoder, text="a b\n")
    assert qkv("embed", run, "--prefix", "", text="b\n") == qkv("embed", encoder, text="b\n")


def test_long_lines_are_truncated_and_counted(encoder):
    _, out, err = qkv("embed", encoder, "--max-length", 4, text="a b\na b c\na b c d\n")
    first, second, third = vectors(out)
    assert first == second == third
    assert err == "qkv: 2 of 3 lines were truncated to 4 tokens\n"


def test_input_longer_than_a_window_is_complete(encoder):
    text = "".join("abcdefgh"[i % 8] + "\n" for i in range(5000))
    found = qkv("embed", encoder, text=text)[1].splitlines()
    assert len(found) == 5000 and found[4999] == found[7] and found[4096:4104] == found[:8]


def test_errors_of_a_line_name_its_number(encoder, tmp_path):
    (tmp_path / "text").write_bytes(b"a\n" * 4500 + b"b\xff\n")
    status, _, err = qkv("embed", encoder, "--file", tmp_path / "text", "--npy", tmp_path / "x.npy", ok=False)
    assert (status, err) == (1, "qkv: text 4501: byte 2 is not valid UTF-8\n")
    assert [path.name for path in tmp_path.iterdir()] == ["text"]
    status, _, err = qkv("embed", encoder, "--npy", tmp_path / "none/x.npy", text="a\n", ok=False)
    assert (status, err) == (1, f"qkv: {tmp_path}/none/x.npy: cannot be written: No such file or directory\n")
    assert qkv("embed", encoder, "--pooling", "sum", text="", ok=False)[0] == 2
    assert qkv("embed", encoder, text="")[1] == ""


def test_a_trained_translator_embeds(trained):
    found = vectors(qkv("embed", trained, text="the dog sees the cat\n\nthe dog sees the cat\n")[1])
    assert found[0] == found[2] != found[1] and len(found[0]) == 32


def test_attention_of_an_encoder_is_that_of_its_tokens(encoder, tmp_path):
    lines = qkv("attend", encoder, "a c b")[1].splitlines()
    assert lines[0].startswith("encoder attention, layer 2 of 2, head 1 of ")
    assert [line.split()[0] for line in lines[7:12]] == ["[CLS]", "a", "c", "b", "[SEP]"]
    qkv("attend", encoder, "--text", "a c b", "--html", tmp_path / "a.html", "--json", tmp_path / "a.json")
    found = json.loads((tmp_path / "a.json").read_text())
    assert (found["source"], found["target"]) == ("a c b", "") and [x["kind"] for x in found["attention"]] == ["encoder"]
    for layer in found["attention"][0]["layers"]:
        assert all(abs(sum(row) - 1) < 1e-5 for head in layer for row in head)
    for arguments, message in ((["--target", "a"], "--target: "), (["--generate", 1], "--generate: "),
                               (["--from", "en"], "--from and --to: "), (["--kind", "cross"], "--kind cross: ")):
        status, _, err = qkv("attend", encoder, "a", *arguments, ok=False)
        assert status == 1 and message in err and "encoder" in err and err.count("\n") == 1
    err = qkv("attend", encoder, " ".join("a" * 20), ok=False)[2]
    assert "text must have at most 16 tokens (has 22)" in err


def test_commands_for_other_models_refuse_an_encoder_in_one_line(encoder, tmp_path):
    for command, message in (("translate", "is an encoder; expected a translator"),
                             ("generate", "is an encoder; expected a language model")):
        status, _, err = qkv(command, encoder, text="a\n", ok=False)
        assert status == 1 and err.count("\n") == 1 and message in err
    info = json.loads(qkv("inspect", encoder, "--json")[1])
    assert info["parameter_count"] == 2740 and info["config"]["decoder_layers"] == 0
    qkv("quantize", encoder, "--int8", "--out", tmp_path / "int8")
    assert {path.name for path in (tmp_path / "int8").iterdir()} == {path.name for path in encoder.iterdir()}
    assert len(vectors(qkv("embed", tmp_path / "int8", text="a\n")[1])[0]) == 12


def test_prompts_of_the_model_are_chosen_by_name(tmp_path):
    run = tmp_path / "run"
    qkv("import", ROOT / "tests/golden/sentence_transformers/mean6", run)

    def embed(*options, **kinds):
        return qkv("embed", run, *options, text="the cat\n", **kinds)

    assert embed()[1] == embed("--prompt-name", "passage")[1] == embed("--prefix", "passage: ")[1]  # the default prompt
    assert embed("--prompt-name", "query")[1] == embed("--prefix", "query: ")[1] != embed()[1]
    assert embed("--prompt-name", "title", ok=False)[2] == (
        'qkv: prompt_name must be one of document, passage, query (is "title")\n')
