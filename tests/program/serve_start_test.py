"""How `qkv serve` starts."""

import re
import signal

import pytest
from conftest import qkv
from serving import ALL, MODELS, ServeProcess, wait_for


@pytest.mark.parametrize("arguments, text", [
    ([], "serve: no run to serve (usage: qkv serve [NAME=]RUN... [OPTIONS])"),
    (["--listen", "127.0.0.1:0"], "serve: no run to serve (usage: qkv serve [NAME=]RUN... [OPTIONS])"),
    (["a=x", "a=y"], "the name a stands for two models"),
    (["a b=x"], "\"a b\": a name must have 1 to 64"),
    (["a=x", "--titles", "b=y"], "titles: \"b=y\" must be NAME=VALUE with the name of a run"),
    (["a=x", "--bodies", "1M"], "bodies must be at least max_body, 2M (is 1M)"),
])
def test_wrong_usage_is_one_line_and_status_2(arguments, text):
    status, _, error = qkv("serve", *arguments, ok=False)
    assert (status, error.count("\n")) == (2, 1) and error.startswith(f"qkv: {text}"), error


def test_a_run_that_cannot_be_read_is_status_1(tmp_path):
    status, _, error = qkv("serve", f"a={tmp_path}/missing", "--listen", "127.0.0.1:0", ok=False)
    assert (status, error.count("\n")) == (1, 1) and f"{tmp_path}/missing" in error


def steps_of(server, name):
    return int(re.search(rf'^qkv_step_seconds_count{{model="{name}"}} (\d+)', server.get("/metrics").text, re.MULTILINE)[1])


def test_each_model_has_answered_a_request_when_the_server_is_ready():
    with ServeProcess([*ALL, "--embed", "--workers", 2]) as server:
        for name in MODELS:
            assert wait_for(lambda name=name: steps_of(server, name) > 0), name
        # It is no request of a client.
        text = server.get("/metrics").text
        assert not re.search(r"^qkv_(requests|input_tokens|output_tokens)_total{.*} [1-9]", text, re.MULTILINE)
        assert not re.search(r"^qkv_requests_(waiting|running){.*} [1-9]", text, re.MULTILINE)
        reply = server.post("/v1/completions", {"prompt": [0, 1, 2], "max_tokens": 1}).json()
        assert reply["usage"]["prompt_tokens_details"] == {"cached_tokens": 0}
        assert server.stop() == 0


def test_titles_that_fit_no_item_are_reported_at_the_start_and_by_a_reload(tmp_path):
    titles = tmp_path / "titles.csv"
    titles.write_text("id,title\nI1,Heat\nI2,Fargo\n")
    with ServeProcess([f"rec={MODELS['rec']}", "--titles", titles, "--log", "none"]) as server:
        def notes():
            return [line for line in server.lines if f"{titles}: none of the 3 ids is an item of the run (such as" in line]

        assert len(notes()) == 1, server.lines
        server.process.send_signal(signal.SIGHUP)
        assert wait_for(lambda: len(notes()) == 2)
        titles.write_text("id,title\nf0000,Heat\n")
        server.process.send_signal(signal.SIGHUP)
        assert wait_for(lambda: server.get("/v1/items?q=Heat").json()["items"])
        assert len(notes()) == 2 and server.stop() == 0
