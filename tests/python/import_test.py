"""qkv.import_model: local models, and downloads from a server on this machine."""

import os
import pathlib
import sys

import pytest

import qkv

TESTS = pathlib.Path(__file__).resolve().parent.parent
MODEL = TESTS / "golden/bert/sentence"
sys.path.append(str(TESTS / "program"))
from hub_server import COMMIT, Hub, Repository  # noqa: E402


@pytest.fixture
def hub(monkeypatch, tmp_path):
    for name in list(os.environ):
        if name.startswith(("HF_", "http", "HTTP")):
            monkeypatch.delenv(name)
    server = Hub()
    files = {str(path.relative_to(MODEL)): path.read_bytes() for path in MODEL.rglob("*") if path.is_file()}
    server.add("a/b", Repository(files, large={"model.safetensors"}))
    monkeypatch.setenv("HF_ENDPOINT", server.url)
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    yield server
    server.close()


def test_a_directory_is_imported(tmp_path):
    report = qkv.import_model(MODEL, tmp_path / "run", tokens=True)
    assert report.kind == "BERT" and report.parameters > 0
    assert qkv.Embedder(tmp_path / "run").width == 12


def test_errors_are_raised(tmp_path):
    with pytest.raises(qkv.Error, match="the name is not valid"):
        qkv.import_model("hf:a/..", tmp_path / "run")
    with pytest.raises(TypeError, match=r"import_model\(\) got an unexpected keyword argument 'token'"):
        qkv.import_model(MODEL, tmp_path / "run", token=True)


def test_a_download_is_reported(hub, tmp_path):
    seen = []
    report = qkv.import_model("hf:a/b", tmp_path / "run", tokens=True,
                              on_download=lambda p: seen.append((p.file, p.received, p.size, p.complete)))
    assert report.notes[0] == f"hf:a/b at commit {COMMIT}"
    size = (MODEL / "model.safetensors").stat().st_size
    assert ("model.safetensors", size, size, True) in seen
    assert ("1_Pooling/config.json", True) in {(file, complete) for file, _, _, complete in seen}


def test_an_exception_ends_a_download(hub, tmp_path):
    def stop(progress):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        qkv.import_model("hf:a/b", tmp_path / "run", tokens=True, on_download=stop)
    assert not (tmp_path / "run").exists()
