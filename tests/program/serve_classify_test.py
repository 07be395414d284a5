"""The routes of classifiers: /predict and /classify, /rerank and /v1/rerank. Scores are those of transformers."""

import json
import math

import pytest
from conftest import ROOT, qkv
from serving import ServeProcess

GOLDEN = ROOT / "tests/golden/classify"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("classifiers")
    for name in ("bert", "cross"):
        qkv("import", GOLDEN / name, folder / name)
    (folder / "plain").mkdir()
    for file in (folder / "cross").iterdir():
        (folder / "plain" / file.name).write_bytes(file.read_bytes())
    settings = json.loads((folder / "plain/classification.json").read_text())
    (folder / "plain/classification.json").write_text(json.dumps({**settings, "scores": "none"}))
    with ServeProcess([f"bert={folder}/bert", f"cross={folder}/cross", f"plain={folder}/plain"]) as process:
        process.folder = folder
        yield process


def golden(name):
    expected = json.loads((GOLDEN / name / "expected.json").read_text())
    return expected["labels"], [entry for entry in expected["inputs"] if len(entry["ids"]) < 14]  # those not truncated


def answer(server, path, body):
    reply = server.post(path, body)
    assert reply.status == 200, reply.body
    return reply.json()


def scores(predictions):
    assert [p["score"] for p in predictions] == sorted((p["score"] for p in predictions), reverse=True)
    return {p["label"]: p["score"] for p in predictions}


@pytest.mark.parametrize("path", ["/predict", "/classify"])
def test_texts_and_pairs_have_the_scores_of_transformers(server, path):
    labels, inputs = golden("bert")
    batch = [[entry["text"]] if entry["pair"] is None else [entry["text"], entry["pair"]] for entry in inputs]
    for member, raw in (("scores", False), ("logits", True)):
        found = answer(server, path, {"model": "bert", "inputs": batch, "raw_scores": raw})
        for predictions, entry in zip(found, inputs, strict=True):
            assert scores(predictions) == pytest.approx(dict(zip(labels, entry[member])), rel=1e-5, abs=1e-6)


def test_a_list_of_strings_is_a_pair_as_for_tei(server):
    def ask(inputs):
        return answer(server, "/predict", {"model": "bert", "inputs": inputs})

    assert ask(["a b", "c"]) == ask([["a b", "c"]])[0] != ask("a b")
    assert ask(["a b"]) == ask("a b") == ask([["a b"]])[0]
    assert ask(["a b", ["c", "d"]]) == [ask("a b"), ask(["c", "d"])]


def test_input_has_the_answer_of_vllm(server):
    labels, inputs = golden("bert")
    texts = [entry for entry in inputs if entry["pair"] is None]
    found = answer(server, "/classify", {"model": "bert", "input": [entry["text"] for entry in texts]})
    assert (found["object"], found["model"]) == ("list", "bert")
    tokens = sum(len(entry["ids"]) for entry in texts)
    assert found["usage"] == {"prompt_tokens": tokens, "total_tokens": tokens, "completion_tokens": 0}
    for i, (entry, data) in enumerate(zip(texts, found["data"], strict=True)):
        assert (data["index"], data["num_classes"]) == (i, 3)
        assert data["probs"] == pytest.approx(entry["scores"], rel=1e-5)
        assert data["label"] == labels[data["probs"].index(max(data["probs"]))]


@pytest.mark.parametrize("path", ["/rerank", "/v1/rerank"])
def test_texts_are_ranked_in_the_forms_of_tei_and_jina(server, path):
    _, inputs = golden("cross")
    query = next(entry["text"] for entry in inputs if entry["pair"])
    pairs = [entry for entry in inputs if entry["pair"] is not None and entry["text"] == query]
    texts = [entry["pair"] for entry in pairs] + ["a", "b c", "a"]
    singles = answer(server, "/predict", {"model": "cross", "inputs": [[query, text] for text in texts]})
    expected = [found[0]["score"] for found in singles]
    assert expected[:len(pairs)] == pytest.approx([entry["scores"][0] for entry in pairs], rel=1e-5)
    order = sorted(range(len(texts)), key=lambda i: -expected[i])
    tei = answer(server, path, {"model": "cross", "query": query, "texts": texts, "return_text": True})
    assert tei == [{"index": i, "score": expected[i], "text": texts[i]} for i in order]
    documents = [text if i % 2 else {"text": text} for i, text in enumerate(texts)]
    jina = answer(server, path, {"model": "cross", "query": query, "documents": documents, "top_n": 2, "return_documents": True})
    assert jina["results"] == [{"index": i, "relevance_score": expected[i], "document": {"text": texts[i]}} for i in order[:2]]
    assert (jina["model"], jina["object"]) == ("cross", "list")
    assert jina["usage"]["prompt_tokens"] == jina["usage"]["total_tokens"] > len(texts)
    assert "text" not in answer(server, path, {"model": "cross", "query": query, "texts": texts})[0]


def test_scores_are_probabilities_unless_they_are_asked_for_raw(server):
    body = {"query": "a b", "texts": ["c", "d e"]}
    for name in ("cross", "plain"):  # plain: the run's own scores are logits
        raw = {entry["index"]: entry["score"] for entry in answer(server, "/rerank", {**body, "model": name, "raw_scores": True})}
        for entry in answer(server, "/rerank", {**body, "model": name}):
            assert entry["score"] == pytest.approx(1 / (1 + math.exp(-raw[entry["index"]])), rel=1e-6)


def test_a_model_with_several_labels_is_ranked_by_one_of_them(server):
    body = {"model": "bert", "query": "a", "texts": ["b", "c d"]}
    error = server.post("/v1/rerank", body).json()["error"]
    assert error["param"] == "label" and "negative, neutral, positive" in error["message"]
    for entry in answer(server, "/v1/rerank", {**body, "label": "neutral"}):
        pair = answer(server, "/predict", {"model": "bert", "inputs": ["a", body["texts"][entry["index"]]]})
        assert entry["score"] == scores(pair)["neutral"]


def test_many_texts_are_ranked_as_few_are(server):
    texts = [" ".join("abcdefgh"[(i + k) % 8] for k in range(i % 5 + 1)) for i in range(2048)]
    found = answer(server, "/rerank", {"model": "cross", "query": "a b", "texts": texts})
    assert sorted(entry["index"] for entry in found) == list(range(2048))
    few = answer(server, "/rerank", {"model": "cross", "query": "a b", "texts": texts[2000:2010]})
    assert {texts[e["index"] + 2000]: e["score"] for e in few}.items() <= {texts[e["index"]]: e["score"] for e in found}.items()


@pytest.mark.parametrize("path, body, status", [
    ("/predict", {}, 400), ("/predict", {"inputs": []}, 400), ("/predict", {"inputs": 5}, 422), ("/predict", {"inputs": [5]}, 422),
    ("/predict", {"inputs": ["a", "b", "c"]}, 422), ("/predict", {"inputs": [["a", "b", "c"]]}, 422),
    ("/predict", {"inputs": [[]]}, 422), ("/predict", {"inputs": [["a"]] * 2049}, 422), ("/predict", {"inputs": "a", "input": "a"}, 422),
    ("/predict", {"inputs": "a", "truncation_direction": "Left"}, 422), ("/predict", {"inputs": "a " * 40, "truncate": False}, 422),
    ("/rerank", {"texts": ["a"]}, 422), ("/rerank", {"query": "a"}, 422), ("/rerank", {"query": "a", "texts": []}, 400),
    ("/rerank", {"query": "a", "texts": [5]}, 422), ("/rerank", {"query": "a", "texts": ["a"] * 2049}, 422)])
def test_requests_that_will_not_do_are_refused_as_tei_does(server, path, body, status):
    reply = server.post(path, {"model": "cross", **body})
    assert reply.status == status, reply.body
    assert reply.json()["error_type"] == ("Empty" if status == 400 else "Validation")


RERANK = ["/rerank", "/v1/rerank", "/reranking", "/v1/reranking"]


@pytest.mark.parametrize("path", RERANK)
@pytest.mark.parametrize("body", [
    {"documents": []}, {"documents": None}, {"documents": 123}, {"documents": [1, 2, 3]}, {"documents": ["a"] * 2049},
    {"documents": [{"image": "a"}]}, {"documents": ["a"], "top_n": 0}, {"documents": ["a"], "texts": ["a"]},
    {"documents": ["a"], "query": None}, {"documents": ["a " * 40], "truncate": False}])
def test_documents_that_will_not_do_are_refused_as_llama_cpp_does(server, path, body):
    reply = server.post(path, {"model": "cross", "query": "a", **body})
    assert reply.status == 400 and reply.json()["error"], reply.body


@pytest.mark.parametrize("path", RERANK)
@pytest.mark.parametrize("top, count", [(None, 4), (2, 2), (4, 4), (99, 4)])
def test_top_n_counts_in_both_forms(server, path, top, count):
    body = {"model": "cross", "query": "a b", "top_n": top}
    texts = ["c", "d e", "a", "b c d"]
    tei, jina = answer(server, path, {**body, "texts": texts}), answer(server, path, {**body, "documents": texts})["results"]
    assert len(tei) == count
    assert [(entry["index"], entry["score"]) for entry in tei] == [(entry["index"], entry["relevance_score"]) for entry in jina]


def test_the_description_names_the_labels(server):
    labels = ["negative", "neutral", "positive"]
    assert server.get("/info?model=bert").json()["model_type"] == {
        "classifier": {"id2label": {str(i): label for i, label in enumerate(labels)}, "label2id": {label: i for i, label in enumerate(labels)}}}
    assert list(server.get("/info?model=cross").json()["model_type"]) == ["reranker"]


def test_the_root_answers_as_the_model_does(server, tmp_path):
    labels, ranking = {"model": "bert", "inputs": "a b"}, {"model": "cross", "query": "a b", "texts": ["c", "d e"]}
    assert answer(server, "/", labels) == answer(server, "/predict", labels)
    assert answer(server, "/", ranking) == answer(server, "/rerank", ranking)
    assert server.post("/", {"inputs": "a b"}).status == 422  # several classifiers
    for name in ("bert", "cross"):
        qkv("import", GOLDEN / name, tmp_path / name)
    with ServeProcess([f"bert={tmp_path}/bert"]) as alone:
        assert answer(alone, "/", {"inputs": "a b"}) == answer(server, "/predict", labels)
        assert alone.post("/", {"inputs": 5}).status == 422
    with ServeProcess([f"cross={tmp_path}/cross"]) as alone:
        assert answer(alone, "/", {"query": "a b", "texts": ["c", "d e"]}) == answer(server, "/rerank", ranking)
    with ServeProcess([f"bert={tmp_path}/bert", f"enc={ROOT}/tests/golden/runs/encoder"]) as both:
        assert answer(both, "/", {"inputs": "a b"}) == answer(both, "/embed", {"inputs": "a b"})
        assert answer(both, "/", labels) == answer(server, "/predict", labels)
        assert both.post("/", {"model": "other", "inputs": "a"}).status == 404


def test_other_models_have_none_of_these_routes():
    with ServeProcess([f"enc={ROOT}/tests/golden/runs/encoder"]) as server:
        for path in ("/predict", "/classify", *RERANK):
            reply = server.post(path, {"inputs": "a", "query": "a", "texts": ["a"]})
            assert reply.status == 404 and "no classifier is served" in reply.text
        assert server.get("/info").json()["model_type"] == {"embedding": {}}


def test_a_long_query_is_converted_once(server):
    """A query of 1 MB was copied and converted for each of 2,000 texts, which took gigabytes of memory."""
    query, texts = "a b " * 250_000, ["c"] * 2000
    for path, names in (("/rerank", "texts"), ("/v1/rerank", "documents")):
        reply = server.post(path, {"model": "cross", "query": query, names: texts})
        assert reply.status == 200, reply.body[:300]
    with open(f"/proc/{server.pid}/status") as file:
        status = file.read()
    assert int(status.partition("VmHWM:")[2].split()[0]) < 512 * 1024  # KiB


def test_inputs_that_may_not_be_truncated_are_refused_before_they_are_computed(server):
    before = server.steps()
    reply = server.post("/predict", {"model": "bert", "inputs": [["a " * 20]] * 3, "truncate": False})
    assert reply.status == 422 and "3 are longer" in reply.text
    assert server.steps() == before


def test_inputs_of_more_tokens_than_may_wait_are_refused(server):
    """28,672 tokens are fewer than the 131,072 that may wait by default."""
    inputs = [["a " * 20]] * 2048
    assert server.post("/predict", {"model": "bert", "inputs": inputs}).status == 200
    with ServeProcess([f"bert={server.folder}/bert", "--queue-tokens", 8192, "--log", "none"]) as small:
        reply = small.post("/predict", {"model": "bert", "inputs": inputs})
        assert reply.status in (400, 422) and "8192 (queue_tokens)" in reply.text, reply.text
