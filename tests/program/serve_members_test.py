"""Members of requests for completions: penalties and biases, values that stand for none, and those that are not served."""

import collections

import pytest
from serving import LANGUAGE, ServeProcess

MANY = {"model": "lm", "prompt": "A", "max_tokens": 20, "temperature": 0}


@pytest.fixture(scope="module")
def server(chat_run):
    with ServeProcess([LANGUAGE, f"chat={chat_run}", "--chat-template", "chat=plain"]) as process:
        yield process


def completion(server, **body):
    reply = server.post("/v1/completions", {**MANY, **body})
    assert reply.status == 200, reply.body
    return reply.json()["choices"][0]


def token_ids(server, text):
    return server.post("/tokenize", {"model": "lm", "content": text}).json()["tokens"]


def log_probabilities(server, text):
    """The most probable next tokens after a text, by the model alone."""
    found = completion(server, prompt=text, max_tokens=1, logprobs=20)["logprobs"]["top_logprobs"][0]
    return {token: value for token, value in found.items() if token != "<end>"}


@pytest.mark.parametrize("penalties", [{"presence_penalty": 2}, {"frequency_penalty": 0.7}, {"presence_penalty": -1, "frequency_penalty": 0.5},
                                       {"frequency_penalty": 2, "presence_penalty": 2}])
def test_penalties_are_those_of_openai(server, penalties):
    text = completion(server, **penalties, max_tokens=15)["text"]
    assert text != completion(server, max_tokens=15)["text"]
    for i, character in enumerate(text):
        counts = collections.Counter(text[:i])  # of the answer, not of the prompt
        values = log_probabilities(server, MANY["prompt"] + text[:i])
        for token, count in counts.items():
            if token in values:
                values[token] -= penalties.get("presence_penalty", 0) + count * penalties.get("frequency_penalty", 0)
        best = sorted(values.values())[-1]
        assert values[character] == pytest.approx(best, abs=1e-5), (i, text)


def test_a_bias_is_added_to_the_logit(server):
    first = completion(server, max_tokens=1)["text"]
    (banned,) = token_ids(server, first)
    without = completion(server, max_tokens=20, logit_bias={str(banned): -100})["text"]
    assert first not in without
    (wanted,) = token_ids(server, "z")
    assert completion(server, max_tokens=8, logit_bias={str(wanted): 100})["text"] == "z" * 8
    values = log_probabilities(server, "A")
    (best, one), (second, two) = sorted(values.items(), key=lambda entry: -entry[1])[:2]
    (id_of_second,) = token_ids(server, second)
    for bias, expected in ((one - two + 0.01, second), (one - two - 0.01, best)):
        found = completion(server, max_tokens=1, logit_bias={str(id_of_second): bias}, logprobs=1)
        assert found["text"] == expected
        assert found["logprobs"]["token_logprobs"][0] == values[expected]  # of the model, without the bias


def test_values_that_stand_for_none_are_as_absent(server):
    base = {"model": "lm", "prompt": "A", "max_tokens": 8, "seed": 5}
    plain = server.post("/v1/completions", base).json()["choices"]
    for member in ({"top_k": -1}, {"presence_penalty": 0, "frequency_penalty": None, "logit_bias": {}}, {"logit_bias": None}):
        assert server.post("/v1/completions", {**base, **member}).json()["choices"] == plain, member
    seeds = {server.post("/v1/completions", {**base, "seed": -1}).json()["seed"] for _ in range(3)}
    assert len(seeds) == 3
    greedy = completion(server, max_tokens=8)["text"]
    assert server.post("/v1/completions", {**base, "top_p": 0}).json()["choices"][0]["text"] == greedy
    whole = completion(server, max_tokens=-1)
    assert len(whole["text"]) + 1 <= 24 and whole["text"].startswith(greedy)
    two = server.post("/v1/completions", {**MANY, "prompt": ["A", "The dog"], "max_tokens": -1}).json()["choices"]
    assert two[0]["text"] == whole["text"] and two[1]["finish_reason"] in ("stop", "length")
    for name in ("max_tokens", "max_completion_tokens"):
        message = {"model": "chat", "messages": [{"role": "user", "content": "A"}], "temperature": 0}
        absent = server.post("/v1/chat/completions", message).json()["choices"]
        assert server.post("/v1/chat/completions", {**message, name: -1}).json()["choices"] == absent


@pytest.mark.parametrize("member, value", [
    ("guided_json", {"type": "object"}), ("guided_choice", ["a"]), ("guided_regex", "a+"), ("grammar", "root ::= 'a'"), ("json_schema", {"type": "object"}),
    ("structured_outputs", {"json": {}}), ("response_format", {"type": "json_schema", "json_schema": {}}), ("response_format", {"type": "json_object"}),
    ("min_tokens", 3), ("ignore_eos", True), ("stop_token_ids", [1]), ("bad_words", ["a"]), ("prompt_logprobs", 1), ("n_probs", 3),
    ("use_beam_search", True), ("mirostat", 2), ("repeat_penalty", 1.1), ("tfs_z", 0.9), ("skip_special_tokens", False), ("add_special_tokens", False), ("suffix", "b"),
    ("n", 17), ("presence_penalty", 2.5), ("frequency_penalty", "a"), ("logit_bias", {"a": 1}), ("logit_bias", {"-1": 1}),
    ("logit_bias", {"1": 101}), ("logit_bias", {"99999": 1}), ("logit_bias", [1]), ("logit_bias", {"1": None}), ("seed", 1.5), ("top_k", -2),
    ("top_p", -1), ("max_tokens", -2), ("top_logprobs", 3), ("logprobs", True)])
def test_what_would_change_the_answer_is_refused_by_name(server, member, value):
    reply = server.post("/v1/completions", {**MANY, member: value})
    assert reply.status == 400 and reply.json()["error"]["param"] == member, reply.body


def test_chat_without_a_template_names_the_option(server):
    error = server.post("/v1/chat/completions", {"model": "lm", "messages": [{"role": "user", "content": "A"}]}).json()["error"]
    assert error["param"] == "messages" and "--chat-template lm=TEMPLATE" in error["message"]


def test_chat_log_probabilities_need_to_be_switched_on(server):
    body = {"model": "chat", "messages": [{"role": "user", "content": "A"}], "max_tokens": 2}
    assert server.post("/v1/chat/completions", {**body, "top_logprobs": 3}).json()["error"]["param"] == "logprobs"
    reply = server.post("/v1/chat/completions", {**body, "top_logprobs": 3, "logprobs": True})
    assert len(reply.json()["choices"][0]["logprobs"]["content"][0]["top_logprobs"]) == 3


@pytest.mark.parametrize("member", [{"user": "u"}, {"metadata": {"a": "b"}}, {"store": False}, {"guided_json": None}, {"min_tokens": 0}, {"ignore_eos": False},
                                    {"repeat_penalty": 1.0}, {"grammar": ""}, {"stop_token_ids": []}, {"skip_special_tokens": True}, {"unknown": 5}])
def test_what_would_not_is_ignored(server, member):
    assert completion(server, **member) == completion(server)


def test_a_text_may_be_as_long_as_the_context():
    with ServeProcess([LANGUAGE, "--max-tokens", 4]) as server:
        assert completion(server, max_tokens=4)["finish_reason"] == "length"
        assert server.post("/v1/completions", {**MANY, "max_tokens": 5}).json()["error"]["param"] == "max_tokens"
        assert len(completion(server, max_tokens=-1)["text"]) == 4
