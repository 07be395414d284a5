"""How `qkv serve` starts."""

import re

from serving import ALL, MODELS, ServeProcess, wait_for


def steps_of(server, name):
    return int(re.search(rf'^qkv_step_seconds_count{{model="{name}"}} (\d+)', server.get("/metrics").text, re.MULTILINE)[1])


def test_each_model_has_answered_a_request_when_the_server_is_ready():
    with ServeProcess([*ALL, "--embed", "--workers", 2]) as server:
        for name in MODELS:
            assert wait_for(lambda name=name: steps_of(server, name) > 0, 5), name
        # It is no request of a client.
        text = server.get("/metrics").text
        assert not re.search(r"^qkv_(requests|input_tokens|output_tokens)_total{.*} [1-9]", text, re.MULTILINE)
        assert not re.search(r"^qkv_requests_(waiting|running){.*} [1-9]", text, re.MULTILINE)
        reply = server.post("/v1/completions", {"prompt": [0, 1, 2], "max_tokens": 1}).json()
        assert reply["usage"]["prompt_tokens_details"] == {"cached_tokens": 0}
        assert server.stop() == 0
