"""The routes of tokens, and embeddings of token ids."""

import base64
import struct

import pytest
from conftest import ROOT
from serving import ALL, ServeProcess


@pytest.fixture(scope="module")
def server():
    with ServeProcess(ALL) as process:
        yield process


def answer(server, path, body):
    reply = server.post(path, body)
    assert reply.status == 200, reply.body
    return reply.json()


def test_a_text_has_the_same_tokens_in_every_form(server):
    text = "a b c"
    (tei,), = [answer(server, "/tokenize", {"model": "enc", "inputs": text})]
    ids = [token["id"] for token in tei]
    assert [token["special"] for token in tei] == [True] + [False] * (len(ids) - 2) + [True]
    assert [token["text"] for token in tei] == ["[CLS]", "a", "b", "c", "[SEP]"]
    assert answer(server, "/tokenize", {"model": "enc", "content": text, "add_special": True}) == {"tokens": ids}
    assert answer(server, "/tokenize", {"model": "enc", "content": text}) == {"tokens": ids[1:-1]}
    vllm = answer(server, "/tokenize", {"model": "enc", "prompt": text, "return_token_strs": True})
    assert (vllm["count"], vllm["tokens"], vllm["max_model_len"]) == (len(ids), ids, 16)
    assert vllm["token_strs"][0] == "[CLS]" and len(vllm["token_strs"]) == len(ids)
    without = answer(server, "/tokenize", {"model": "enc", "inputs": [text, "d"], "add_special_tokens": False})
    assert [token["id"] for token in without[0]] == ids[1:-1] and len(without) == 2
    for path in ("/decode", "/detokenize"):
        assert answer(server, path, {"model": "enc", "ids": ids}) == [text]
        assert answer(server, path, {"model": "enc", "ids": [ids, ids[1:2]]}) == [text, "a"]
    assert answer(server, "/detokenize", {"model": "enc", "tokens": ids[1:-1]}) == {"content": text, "prompt": text}


def test_a_translator_has_the_tokens_of_its_source(server):
    text = "A dog runs"
    (tokens,) = answer(server, "/tokenize", {"model": "mt", "inputs": text})
    assert [text[t["start"]:t["stop"]] for t in tokens if not t["special"]] == [t["text"] for t in tokens if not t["special"]]
    assert tokens[-1]["text"] == "</s>" and tokens[-1]["special"]
    ids = answer(server, "/tokenize", {"model": "mt", "content": text})["tokens"]
    assert ids == [t["id"] for t in tokens][:-1]
    assert answer(server, "/detokenize", {"model": "mt", "tokens": ids})["content"] == text


def test_places_of_tokens_are_counted_in_characters(server):
    text = "The dog, A"
    (tokens,) = answer(server, "/tokenize", {"model": "lm", "inputs": text})
    spelled = [token for token in tokens if not token["special"]]
    assert "".join(token["text"] for token in spelled) == text
    assert [text[token["start"]:token["stop"]] for token in spelled] == [token["text"] for token in spelled]
    assert all(token["start"] is None for token in tokens if token["special"])
    pieces = answer(server, "/tokenize", {"model": "lm", "content": text, "with_pieces": True})["tokens"]
    assert [piece["piece"] for piece in pieces] == list(text)
    ids = [piece["id"] for piece in pieces]
    assert answer(server, "/detokenize", {"model": "lm", "tokens": ids})["content"] == text


@pytest.mark.parametrize("path, body, param", [
    ("/tokenize", {}, "inputs"), ("/tokenize", {"inputs": "a", "content": "a"}, "inputs"), ("/tokenize", {"inputs": []}, "inputs"),
    ("/tokenize", {"content": 5}, "content"), ("/tokenize", {"inputs": ["a"] * 2049}, "inputs"),
    ("/detokenize", {}, "tokens"), ("/detokenize", {"tokens": "a"}, "tokens"), ("/detokenize", {"tokens": [-1]}, "tokens"),
    ("/detokenize", {"tokens": [10 ** 9]}, "tokens"), ("/detokenize", {"tokens": [1.5]}, "tokens"), ("/detokenize", {"ids": [[1], "a"]}, "ids"),
    ("/v1/embeddings", {"input": [1, 10 ** 9]}, "input"), ("/v1/embeddings", {"input": [[1], []]}, "input"),
    ("/v1/embeddings", {"input": [[1], "a"]}, "input"), ("/v1/embeddings", {"input": [1, "a"]}, "input"), ("/v1/embeddings", {"input": [-1]}, "input"),
    ("/v1/embeddings", {"input": ["a"] * 2049}, "input"), ("/v1/embeddings", {"input": "a", "dimensions": 10 ** 6}, "dimensions"),
    ("/v1/embeddings", {"input": "a", "dimensions": 0}, "dimensions")])
def test_a_member_that_will_not_do_is_named(server, path, body, param):
    reply = server.post(path, {"model": "enc", **body})
    assert reply.status == 400 and reply.json()["error"]["param"] == param, reply.body


def test_ids_of_another_tokenizer_are_explained(server):
    size = 10 ** 6
    message = server.post("/v1/embeddings", {"model": "enc", "input": [[1, size]]}).json()["error"]["message"]
    assert "must have token ids of the model, from 0 to" in message
    assert f"(has {size}); with another tokenizer send texts" in message


def test_a_recommender_has_no_tokens(server):
    assert server.post("/tokenize", {"model": "rec", "content": "a"}).status == 404


def vectors(server, **body):
    return [entry["embedding"] for entry in answer(server, "/v1/embeddings", {"model": "enc", **body})["data"]]


def test_token_ids_are_embedded_like_their_text(server):
    texts = ["a b c", "d", "h g f e"]
    with_edges = [[token["id"] for token in tokens] for tokens in answer(server, "/tokenize", {"model": "enc", "inputs": texts})]
    expected = vectors(server, input=texts)
    assert vectors(server, input=with_edges) == expected
    assert vectors(server, input=[ids[1:-1] for ids in with_edges]) == expected
    assert vectors(server, input=with_edges[0]) == expected[:1]
    (as_bytes,) = vectors(server, input=with_edges[0][1:-1], encoding_format="base64")
    assert list(struct.unpack(f"<{len(expected[0])}f", base64.b64decode(as_bytes))) == pytest.approx(expected[0], rel=1e-6)


def test_dimensions_keep_the_first_numbers_with_length_1(server):
    (whole,) = vectors(server, input="a b c")
    for width in range(1, len(whole) + 1):
        (cut,) = vectors(server, input="a b c", dimensions=width)
        length = sum(x * x for x in whole[:width]) ** 0.5
        expected = whole if width == len(whole) else [x / length for x in whole[:width]]
        assert cut == pytest.approx(expected, rel=1e-5)


def test_as_many_texts_are_embedded_as_openai_allows(server):
    texts = [" ".join("abcdefgh"[(i + k) % 8] for k in range(i % 7 + 1)) for i in range(2048)]
    found = vectors(server, input=texts)
    assert len(found) == 2048 and found[2000:2004] == vectors(server, input=texts[2000:2004])


def test_a_long_text_is_limited_by_its_tokens(server):
    assert len(vectors(server, input="a" * 100_000)) == 1
    assert server.post("/embed", {"model": "enc", "inputs": "a " * 20_000}).status == 200
    error = server.post("/v1/completions", {"model": "lm", "prompt": "A" * 20_000}).json()["error"]
    assert error["code"] == "context_length_exceeded" and "20001 tokens" in error["message"]
