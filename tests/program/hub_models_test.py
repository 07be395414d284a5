"""Model directories as the hub has them, imported by path and by name: both translate as transformers does."""

import json

import pytest
from conftest import ROOT, qkv
from hub_server import Hub, Repository
from hub_test import User

GOLDEN = ROOT / "tests/golden"
OURS = {"expected.json", "expected.safetensors", "settings.json"}
OPUS = {"config.json", "generation_config.json", "metadata.json", "pytorch_model.bin", "source.spm", "target.spm",
        "tokenizer_config.json", "vocab.json"}


def directory(name, weights):
    """The files of a golden model, with its weights in one format."""
    other = {"model.safetensors", "pytorch_model.bin"} - {weights}
    files = {path.name: path.read_bytes() for path in (GOLDEN / "encoder_decoders" / name).iterdir()
             if path.name not in OURS | other}
    assert weights in files
    return files


def import_both(name, files, folder):
    """The runs of an import by path and of one by name, from a server."""
    (folder / "model").mkdir()
    for file, content in files.items():
        (folder / "model" / file).write_bytes(content)
    by_path = folder / "by_path"
    qkv("import", folder / "model", by_path)
    hub = Hub()
    try:
        hub.add(name, Repository({**files, "README.md": b"# A model\n"},
                                 large={file for file in files if file.endswith((".bin", ".safetensors", ".npz"))}))
        by_name, _ = User(hub, folder).fetch(f"hf:{name}")
        assert not hub.asked("GET", "README.md")
    finally:
        hub.close()
    return by_path, by_name


def same_runs(a, b):
    names = {path.name for path in a.iterdir()}
    assert names == {path.name for path in b.iterdir()}
    return all((a / name).read_bytes() == (b / name).read_bytes() for name in names)


@pytest.mark.parametrize("name, weights", [("opus", "pytorch_model.bin"), ("opus", "model.safetensors"),
                                           ("nllb", "model.safetensors"), ("t5", "model.safetensors")])
def test_a_directory_of_the_hub_translates_as_transformers_does(name, weights, tmp_path):
    files = directory(name, weights)
    if weights == "pytorch_model.bin":
        assert set(files) == OPUS
    by_path, by_name = import_both(f"someone/{name}", files, tmp_path)
    assert same_runs(by_path, by_name)
    known = json.loads((GOLDEN / "encoder_decoders" / name / "expected.json").read_text(encoding="utf-8"))
    languages = [known["texts"][0][side] for side in ("source_language", "target_language")]
    options = ["--from", languages[0], "--to", languages[1]] if languages[0] else []
    _, out, _ = qkv("translate", by_name, "--beam", 1, "--max-length", known["max_tokens"], *options,
                    text="".join(text["text"] + "\n" for text in known["texts"]))
    assert out.splitlines() == [text["translation"] for text in known["texts"]]


def test_a_repository_of_marian_is_imported_by_name(tmp_path):
    files = {path.name: path.read_bytes() for path in (GOLDEN / "marian/spm").iterdir() if path.name not in OURS}
    by_path, by_name = import_both("someone/marian", files, tmp_path)
    assert same_runs(by_path, by_name)
    assert qkv("translate", by_name, text="a b\n")[1].count("\n") == 1
