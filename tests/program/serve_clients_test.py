"""Clients of others against `qkv serve`. FULL=1 .ci/run installs them."""

import asyncio
import importlib.util
import json
import math
import shutil
import subprocess
from pathlib import Path

import pytest
from conftest import ROOT, qkv
from serving import ALL, MODELS, ServeProcess, has_option

pytestmark = pytest.mark.release

KEY = "none"  # clients insist on one
LONG = {"temperature": 0, "seed": 1, "max_tokens": 4096, "extra_body": {"slide": True}}


@pytest.fixture(scope="module")
def server(chat_run):
    chat = ["--chat-template", "chat=plain"] if has_option("--chat-template") else []
    with ServeProcess([f"chat={chat_run}", *ALL, *chat]) as process:
        yield process
        assert process.stop() == 0


@pytest.fixture(scope="module")
def vectors():
    """The vectors of "a b c" and "h", as qkv embed prints them."""
    return [json.loads(line)["vector"] for line in qkv("embed", MODELS["enc"], "--json", text="a b c\nh\n")[1].splitlines()]


FAMILY = ROOT / "tests/golden/chat/families/qwen2.5"
CLASSIFIERS = ROOT / "tests/golden/classify"


@pytest.fixture(scope="module")
def imported(tmp_path_factory):
    """A server of imported models: a chat model whose template reads tools, a classifier and a cross-encoder."""
    folder = tmp_path_factory.mktemp("imported")
    shutil.copytree(FAMILY / "published", folder / "model")
    shutil.copy(FAMILY / "model.safetensors", folder / "model")
    sources = {"qwen": folder / "model", "labels": CLASSIFIERS / "bert", "cross": CLASSIFIERS / "cross"}
    for name, source in sources.items():
        qkv("import", source, folder / name)
    with ServeProcess([*(f"{name}={folder / name}" for name in sources), f"enc={MODELS['enc']}"]) as process:
        process.folder = folder
        yield process
        assert process.stop() == 0


@pytest.fixture(scope="module")
def with_tools():
    """A conversation with tools, and the number of its tokens."""
    cases = json.loads((FAMILY / "expected.json").read_text(encoding="utf-8"))
    (found,) = [case for case in cases if "tools" in case["options"]]
    return found["messages"], found["options"]["tools"], len(found["ids"])


def near(found, wanted):
    assert len(found) == len(wanted)
    assert all(math.isclose(a, b, abs_tol=1e-7) for a, b in zip(found, wanted))


# ---- openai

@pytest.fixture(scope="module", params=[0, 2], ids=["no_retries", "default_retries"])
def client(server, request):
    openai = pytest.importorskip("openai")
    with openai.OpenAI(base_url=server.url + "/v1", api_key=KEY, max_retries=request.param) as found:
        yield found


def test_openai_lists_models(client):
    assert [model.id for model in client.models.list()] == ["chat", "mt", "lm", "rec", "enc"]
    assert client.models.retrieve("lm").owned_by == "qkv"


def test_openai_completes(client):
    text = json.loads(qkv("generate", MODELS["lm"], "--json", "--prompt", "The", "--max-tokens", 6, "--seed", 3)[1])["text"]
    found = client.completions.create(model="lm", prompt="The", max_tokens=6, seed=3, logprobs=2)
    assert found.choices[0].text == text and found.object == "text_completion"
    assert found.choices[0].finish_reason in ("stop", "length")
    assert found.usage.total_tokens == found.usage.prompt_tokens + found.usage.completion_tokens
    assert len(found.choices[0].logprobs.tokens) == found.usage.completion_tokens
    assert found.usage.prompt_tokens_details.cached_tokens >= 0
    several = client.completions.create(model="lm", prompt=["The", "A"], max_tokens=2, n=2, seed=3)
    assert [choice.index for choice in several.choices] == [0, 1, 2, 3]


def test_openai_streams_completions(client):
    wanted = client.completions.create(model="lm", prompt="The", max_tokens=9, seed=5)
    *chunks, last = client.completions.create(model="lm", prompt="The", max_tokens=9, seed=5, stream=True,
                                              stream_options={"include_usage": True})
    assert "".join(chunk.choices[0].text for chunk in chunks) == wanted.choices[0].text
    assert [c.choices[0].finish_reason for c in chunks if c.choices[0].finish_reason] == [wanted.choices[0].finish_reason]
    assert last.choices == [] and last.usage.completion_tokens == wanted.usage.completion_tokens


def test_openai_leaves_a_stream(client):
    with client.completions.create(model="lm", prompt="A", stream=True, **LONG) as stream:
        assert next(iter(stream)).choices[0].text is not None
    assert client.completions.create(model="lm", prompt="A", max_tokens=1).choices


@pytest.mark.skipif(not has_option("--chat-template"), reason="no --chat-template")
def test_openai_chats(client):
    request = {"model": "chat", "messages": [{"role": "user", "content": "A"}], "max_tokens": 3, "seed": 2}
    found = client.chat.completions.create(**request, logprobs=True, top_logprobs=2)
    assert found.object == "chat.completion" and found.choices[0].message.role == "assistant"
    assert len(found.choices[0].logprobs.content) == found.usage.completion_tokens
    chunks = list(client.chat.completions.create(**request, stream=True))
    assert chunks[0].choices[0].delta.role == "assistant"
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == found.choices[0].message.content
    assert chunks[-1].choices[0].finish_reason == found.choices[0].finish_reason


def test_openai_chats_with_tools_and_streams_usage(imported, with_tools):
    openai = pytest.importorskip("openai")
    messages, tools, count = with_tools
    request = {"model": "qwen", "messages": messages, "tools": tools, "max_tokens": 5, "seed": 2}
    with openai.OpenAI(base_url=imported.url + "/v1", api_key=KEY) as client:
        found = client.chat.completions.create(**request, tool_choice="auto")
        *chunks, last = client.chat.completions.create(**request, stream=True, stream_options={"include_usage": True})
    assert found.usage.prompt_tokens == count and found.choices[0].message.tool_calls is None
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == found.choices[0].message.content
    assert chunks[-1].choices[0].finish_reason == found.choices[0].finish_reason
    assert all(chunk.usage is None for chunk in chunks) and last.choices == []
    assert last.usage.model_dump(exclude={"prompt_tokens_details"}) == found.usage.model_dump(exclude={"prompt_tokens_details"})


def test_openai_embeds(client, vectors):
    # The client asks for base64 by default.
    for options in ({}, {"encoding_format": "float"}, {"encoding_format": "base64"}, {"dimensions": 12}):
        found = client.embeddings.create(model="enc", input=["a b c", "h"], **options)
        assert [one.index for one in found.data] == [0, 1] and found.usage.prompt_tokens > 0
        if options.get("encoding_format") != "base64":
            for one, wanted in zip(found.data, vectors):
                near(one.embedding, wanted)


def test_openai_raises_its_exceptions(client, server):
    openai = pytest.importorskip("openai")
    with pytest.raises(openai.NotFoundError) as caught:
        client.completions.create(model="gpt-9", prompt="A")
    assert (caught.value.code, caught.value.param) == ("model_not_found", "model")
    with pytest.raises(openai.BadRequestError) as caught:
        client.completions.create(model="lm", prompt="A" * 40)
    assert caught.value.code == "context_length_exceeded" and caught.value.type == "invalid_request_error"
    with pytest.raises(openai.BadRequestError):
        client.completions.create(model="lm", prompt="A", temperature=-1)
    with pytest.raises(openai.InternalServerError) as caught:  # 504, which the client does not repeat
        client.completions.create(model="lm", prompt=["A"] * 16, extra_headers={"X-Request-Timeout": "0.05"}, **LONG)
    assert caught.value.status_code == 504 and caught.value.response.headers["x-should-retry"] == "false"


def test_openai_is_asynchronous(server):
    openai = pytest.importorskip("openai")

    async def ask():
        async with openai.AsyncOpenAI(base_url=server.url + "/v1", api_key=KEY) as client:
            one = [client.completions.create(model="lm", prompt="The", max_tokens=4, seed=i) for i in range(20)]
            found = await asyncio.gather(*one)
            stream = await client.completions.create(model="lm", prompt="The", max_tokens=4, seed=7, stream=True)
            return found, "".join([chunk.choices[0].text async for chunk in stream])

    found, text = asyncio.run(ask())
    assert found[7].choices[0].text == text


# ---- others

def test_langchain_embeds_and_completes(server, vectors):
    langchain = pytest.importorskip("langchain_openai")
    embeddings = langchain.OpenAIEmbeddings(model="enc", base_url=server.url + "/v1", api_key=KEY, check_embedding_ctx_length=False)
    for found, wanted in zip(embeddings.embed_documents(["a b c", "h"]), vectors):
        near(found, wanted)
    near(embeddings.embed_query("h"), vectors[1])
    model = langchain.OpenAI(model="lm", base_url=server.url + "/v1", api_key=KEY, max_tokens=5, seed=3, temperature=1)
    assert "".join(model.stream("The")) == model.invoke("The")


@pytest.mark.skipif(not has_option("--chat-template"), reason="no --chat-template")
def test_langchain_chats(server):
    langchain = pytest.importorskip("langchain_openai")
    model = langchain.ChatOpenAI(model="chat", base_url=server.url + "/v1", api_key=KEY, max_tokens=3, seed=3)
    assert "".join(chunk.content for chunk in model.stream("A")) == model.invoke("A").content


def test_langchain_embeds_token_ids_by_default(server, monkeypatch):
    """Its default sends the ids of OpenAI's tokenizer. A model with another vocabulary says what it needs."""
    langchain = pytest.importorskip("langchain_openai")
    openai = pytest.importorskip("openai")
    litellm = importlib.util.find_spec("litellm")  # which brings that tokenizer
    if not litellm:
        pytest.skip("litellm is not installed")
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(Path(litellm.origin).parent / "litellm_core_utils/tokenizers"))
    embeddings = langchain.OpenAIEmbeddings(model="enc", base_url=server.url + "/v1", api_key=KEY)
    with pytest.raises(openai.BadRequestError) as caught:
        embeddings.embed_query("hello")
    assert caught.value.param == "input"
    assert "must have token ids of the model" in caught.value.message and "with another tokenizer send texts" in caught.value.message
    assert len(embeddings.client.create(input=[[1, 2], [3]], model="enc").data) == 2


def test_langchain_chats_with_tools_and_usage(imported, with_tools):
    langchain = pytest.importorskip("langchain_openai")
    _, tools, _ = with_tools
    model = langchain.ChatOpenAI(model="qwen", base_url=imported.url + "/v1", api_key=KEY, max_tokens=5, seed=3, stream_usage=True)
    found, with_bound = model.invoke("Hello"), model.bind_tools(tools).invoke("Hello")
    chunks = list(model.stream("Hello"))
    assert "".join(chunk.content for chunk in chunks) == found.content
    assert [chunk.usage_metadata for chunk in chunks if chunk.usage_metadata][-1]["input_tokens"] == found.usage_metadata["input_tokens"]
    assert with_bound.usage_metadata["input_tokens"] > found.usage_metadata["input_tokens"] + 100
    assert found.usage_metadata["output_tokens"] <= 5
    batch = model.batch([[("system", "Brief."), ("human", "A")], [("human", "B"), ("ai", "C"), ("human", "D")]])
    assert len(batch) == 2 and all(isinstance(answer.content, str) for answer in batch)


def test_litellm_completes_embeds_and_ranks(imported, with_tools, vectors):
    litellm = pytest.importorskip("litellm")
    messages, tools, count = with_tools
    base = {"api_base": imported.url + "/v1", "api_key": KEY}
    request = {"model": "openai/qwen", "messages": messages, "tools": tools, "max_tokens": 5, "seed": 2, **base}
    found = litellm.completion(**request)
    assert found.usage.prompt_tokens == count and found.usage.completion_tokens <= 5
    chunks = list(litellm.completion(**request, stream=True, stream_options={"include_usage": True}))
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices) == (found.choices[0].message.content or "")
    assert [chunk.usage.prompt_tokens for chunk in chunks if getattr(chunk, "usage", None)] == [count]
    text = litellm.text_completion(model="text-completion-openai/qwen", prompt="A", max_tokens=3, **base)
    assert text.usage.completion_tokens <= 3
    for options in ({}, {"encoding_format": "float"}):
        embedded = litellm.embedding(model="openai/enc", input=["a b c", "h"], **options, **base)
        for one, wanted in zip(embedded.data, vectors):
            near(one["embedding"], wanted)
    ranked = litellm.rerank(model="hosted_vllm/cross", query="a b", documents=["c", "a b", "d e"], top_n=2, **base)
    wanted = imported.post("/v1/rerank", {"model": "cross", "query": "a b", "documents": ["c", "a b", "d e"], "top_n": 2}).json()
    assert [(one["index"], one["relevance_score"]) for one in ranked.results] == [
        (one["index"], one["relevance_score"]) for one in wanted["results"]]
    with pytest.raises(litellm.NotFoundError):
        litellm.completion(model="openai/other", messages=messages, **base)
    with pytest.raises(litellm.BadRequestError):
        litellm.completion(model="openai/qwen", messages=messages, temperature=-1, **base)


def test_huggingface_hub_classifies(imported):
    """The client of TEI names no model, so that one is served alone. Of TEI's list for one text it returns the best."""
    hub = pytest.importorskip("huggingface_hub")
    expected = json.loads((CLASSIFIERS / "bert/expected.json").read_text())
    with ServeProcess([f"labels={imported.folder / 'labels'}"]) as alone:
        client = hub.InferenceClient(model=alone.url)
        for entry in [entry for entry in expected["inputs"] if entry["pair"] is None and len(entry["ids"]) < 14]:
            found = client.text_classification(entry["text"])
            assert found["label"] == expected["labels"][entry["scores"].index(max(entry["scores"]))]
            assert found["score"] == pytest.approx(max(entry["scores"]), rel=1e-5)


def test_huggingface_hub_extracts_features(server, vectors):
    hub = pytest.importorskip("huggingface_hub")
    client = hub.InferenceClient(model=server.url)
    near(client.feature_extraction("a b c").tolist()[0], vectors[0])
    for found, wanted in zip(client.feature_extraction(["a b c", "h"]).tolist(), vectors):
        near(found, wanted)


def test_httpx_reads_streams_and_keeps_connections(server):
    httpx = pytest.importorskip("httpx")
    request = {"text": "A guest", "beam": 1, "stream": True}
    with httpx.Client(base_url=server.url) as client:
        for _ in range(3):
            with client.stream("POST", "/v1/translate", json=request) as reply:
                lines = [line for line in reply.iter_lines() if line]
            assert lines[-1] == "data: [DONE]" and json.loads(lines[-2][6:])["translations"]
        assert client.post("/v1/translate", content=iter([b'{"text":', b'"A"}']),
                           headers={"Content-Type": "application/json"}).status_code == 200
        assert client.head("/v1/models").content == b""


def test_aiohttp_reads_streams(server):
    aiohttp = pytest.importorskip("aiohttp")

    async def ask():
        async with aiohttp.ClientSession(server.url) as session:
            async with session.post("/v1/completions", json={"model": "lm", "prompt": "The", "stream": True, "seed": 1}) as reply:
                stream = await reply.text()
            async with session.get("/v1/models") as reply:
                return stream, await reply.json()

    stream, models = asyncio.run(ask())
    assert stream.endswith("data: [DONE]\n\n") and len(models["data"]) == 5


@pytest.mark.skipif(not shutil.which("curl"), reason="no curl")
def test_curl_posts_and_streams(server):
    def curl(*arguments):
        return subprocess.run(["curl", "-sS", "--fail-with-body", "--max-time", "60", *arguments], capture_output=True, text=True)

    kind = ["-H", "Content-Type: application/json"]
    assert json.loads(curl(*kind, "-d", '{"text":"A"}', server.url + "/v1/translate").stdout)["translations"]
    stream = curl("-N", "--json", '{"model":"lm","prompt":"The","stream":true,"seed":1}', server.url + "/v1/completions").stdout
    assert stream.endswith("data: [DONE]\n\n")
    # A body over 1 MiB is announced with Expect: 100-continue.
    large = subprocess.run(["curl", "-sS", "-H", kind[1], "--data-binary", "@-", server.url + "/v1/translate"],
                           input='{"text":"' + "a" * 1500000 + '"}', capture_output=True, text=True, timeout=60)
    assert json.loads(large.stdout)["error"]["param"] == "text"
    refused = curl("--json", "{", server.url + "/v1/translate")
    assert refused.returncode == 22 and json.loads(refused.stdout)["error"]["type"] == "invalid_request_error"
