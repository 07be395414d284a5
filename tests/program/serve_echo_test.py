"""/v1/completions with echo and logprobs: the log-probabilities of a prompt."""

import json
import re

import pytest
from serving import LANGUAGE, ServeProcess, wait_for

GREEDY = {"temperature": 0, "logprobs": 2}


@pytest.fixture(scope="module")
def server():
    with ServeProcess([LANGUAGE]) as process:
        yield process
        assert process.stop() == 0


def choices_of(server, **body):
    reply = server.post("/v1/completions", {**GREEDY, **body})
    assert reply.status == 200, reply.body
    return reply.json()["choices"]


def close(found, wanted):
    return len(found) == len(wanted) and all(a == pytest.approx(b, abs=1e-4) for a, b in zip(found, wanted))


@pytest.fixture(scope="module")
def generated(server):
    """A text that the model continues the prompt "A" with, and its log-probabilities."""
    return choices_of(server, prompt="A", max_tokens=8)[0]


def test_a_prompt_has_the_probabilities_with_which_it_would_be_generated(server, generated):
    prompt = "A" + generated["text"]
    choice = choices_of(server, prompt=prompt, max_tokens=0, echo=True)[0]
    found, wanted = choice["logprobs"], generated["logprobs"]
    assert choice["text"] == prompt == "".join(found["tokens"])
    assert found["tokens"] == ["A", *wanted["tokens"]]
    assert found["token_logprobs"][0] is found["top_logprobs"][0] is None
    assert close(found["token_logprobs"][1:], wanted["token_logprobs"])
    assert all(close(sorted(a.values()), sorted(b.values())) and a.keys() == b.keys()
               for a, b in zip(found["top_logprobs"][1:], wanted["top_logprobs"], strict=True))
    assert found["text_offset"] == [0, *wanted["text_offset"]][:1] + [offset + 1 for offset in wanted["text_offset"]]


def test_the_continuation_follows(server, generated):
    choice = choices_of(server, prompt="A" + generated["text"][:3], max_tokens=5, echo=True)[0]
    assert choice["text"] == "A" + generated["text"]
    assert close(choice["logprobs"]["token_logprobs"][1:], generated["logprobs"]["token_logprobs"])


def test_prompts_and_choices_are_scored_each(server):
    prompts = ["A", "A red", "red A"]
    alone = [choices_of(server, prompt=prompt, max_tokens=2, echo=True)[0] for prompt in prompts]
    together = choices_of(server, prompt=prompts, max_tokens=2, echo=True, n=2)
    assert [choice["logprobs"] for choice in together] == [one["logprobs"] for one in alone for _ in range(2)]


def test_scoring_the_prompts_counts_no_text(server):
    body = {**GREEDY, "prompt": ["A", "A red"], "max_tokens": 2, "n": 2}
    for name, echo in (("plain", False), ("scored", True)):
        assert server.post("/v1/completions", {**body, "echo": echo}, headers={"X-Request-Id": name}).status == 200
        counts = r".* texts=4 input_tokens=16 output_tokens=8 "
        assert wait_for(lambda name=name: any(re.search(f" id={name} {counts}", line) for line in server.lines)), server.lines


def test_a_stream_begins_with_the_prompt(server):
    body = {**GREEDY, "prompt": "A r", "max_tokens": 3, "echo": True}
    whole = server.post("/v1/completions", body).json()["choices"][0]
    chunks = [json.loads(data)["choices"][0] for data in server.post("/v1/completions", {**body, "stream": True}).events()[:-1]]
    assert chunks[0]["text"] == "A r" and chunks[0]["logprobs"]["token_logprobs"][0] is None
    assert "".join(chunk["text"] for chunk in chunks) == whole["text"]
    for name, values in whole["logprobs"].items():
        assert [value for chunk in chunks if chunk["logprobs"] for value in chunk["logprobs"][name]] == values


def test_a_prompt_fills_the_model(server):
    length = server.get("/v1/models/lm").json()["max_length"] - 1  # without the start token
    assert len(choices_of(server, prompt="A" * length, max_tokens=0, echo=True)[0]["logprobs"]["tokens"]) == length
    for prompt, more in (("A" * (length + 1), {}), ("A" * (length + 2), {"slide": True}), ([10**6], {})):
        reply = server.post("/v1/completions", {**GREEDY, "prompt": prompt, "max_tokens": 0, "echo": True, **more})
        assert reply.status == 400, reply.body
    assert choices_of(server, prompt="", max_tokens=1, echo=True)[0]["text"]
