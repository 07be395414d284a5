"""qkv.Embedder with an imported encoder, compared with the program."""

import pathlib
import threading

import pytest

import qkv

np = pytest.importorskip("numpy")
GOLDEN = pathlib.Path(__file__).resolve().parent.parent / "golden/bert"
TEXTS = (GOLDEN / "texts.txt").read_text().split("\n")[:-1]


@pytest.fixture(scope="module")
def run(run_program, tmp_path_factory):
    run = tmp_path_factory.mktemp("embedder") / "run"
    run_program("import", GOLDEN / "sentence", run, "--tokens")
    return run


@pytest.fixture(scope="module")
def embedder(run):
    return qkv.Embedder(run)


def test_vectors_match_the_program(embedder, run, run_program, tmp_path):
    run_program("embed", run, "--file", GOLDEN / "texts.txt", "--npy", tmp_path / "vectors.npy")
    found = embedder.embed(iter(TEXTS))
    assert found.dtype == np.float32 and found.shape == (len(TEXTS), embedder.width)
    assert (found == np.load(tmp_path / "vectors.npy")).all()
    assert np.allclose(np.linalg.norm(found, axis=1), 1, atol=1e-6)
    assert embedder.embed([]).shape == (0, 12)


def test_options_match_the_program(embedder, run, run_program, tmp_path):
    options = ["--pooling", "first", "--no-normalize", "--prefix", "a ", "--max-length", 9, "--batch-tokens", 1]
    run_program("embed", run, "--file", GOLDEN / "texts.txt", "--npy", tmp_path / "vectors.npy", *options)
    with pytest.warns(UserWarning, match="2 of 6 texts had more than 9 tokens and were truncated"):
        found = embedder.embed(TEXTS, pooling="first", normalize=False, prefix="a ", max_length=9, batch_tokens=1)
    assert (found == np.load(tmp_path / "vectors.npy")).all()


def test_concurrent_calls_match_a_single_thread(embedder):
    texts = [" ".join("abcdefgh"[i * k % 8] for k in range(i % 12)) for i in range(600)]
    wanted = embedder.embed(texts)
    found = {}
    threads = [threading.Thread(target=lambda i=i: found.update({i: embedder.embed(texts[i::4])})) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all((found[i] == wanted[i::4]).all() for i in range(4))


@pytest.mark.parametrize("call, message", [
    (lambda e: e.embed("a"), "texts must be a list of str (is 'a')"),
    (lambda e: e.embed(["a", "\ud800"]), "texts[1] is not valid Unicode"),
    (lambda e: e.embed(["a"], pooling="max"), "pooling must be one of mean, first, last (is 'max')"),
    (lambda e: e.embed(["a"], normalize=3), "normalize must be True or False (is 3)"),
    (lambda e: e.embed(["a"], prefix=3), "prefix must be a str (is 3)"),
    (lambda e: e.embed(["a"], max_length=2), "max_length must be between 3 and 16 (is 2)"),
    (lambda e: e.embed(["a"], batch_tokens=0), "batch_tokens must be between 1 and 16777216 (is 0)"),
    (lambda e: qkv.Embedder("nowhere"), "nowhere: is not a run directory"),
])
def test_errors_name_the_invalid_argument(embedder, call, message):
    with pytest.raises(qkv.Error) as error:
        call(embedder)
    assert str(error.value).startswith(message)
