"""Limits on the work, memory and time of others that one request or one client costs; files that would block a server."""

import contextlib
import http.client
import json
import os
import re
import shutil
import signal
import socket
import stat
import threading
import time

import pytest

from serving import ALL, LANGUAGE, MODELS, ServeProcess, request_bytes, wait_for

KEYS = {"attacker": "a" * 20, "user": "u" * 20}
TRANSLATOR = f"mt={MODELS['mt']}"
ENCODER = f"enc={MODELS['enc']}"


def key(name):
    return {"Authorization": f"Bearer {KEYS[name]}"}


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hostile")
    (folder / "keys").write_text("".join(f"{name} {value}\n" for name, value in KEYS.items()))
    with ServeProcess([*ALL, "--api-keys", folder / "keys", "--events", folder / "events",
                       "--suggestions", folder / "suggestions", "--log", "none"]) as running:
        running.folder = folder
        yield running
        assert running.stop() == 0


def rss(server):
    """Bytes of memory that it uses, and the most that it has used."""
    status = open(f"/proc/{server.pid}/status").read()
    return [1024 * int(re.search(rf"{name}:\s+(\d+)", status)[1]) for name in ("VmRSS", "VmHWM")]


def refused(reply, status, *words):
    assert reply.status == status, reply.body[:300]
    message = reply.json()["error"]["message"]
    assert all(word in message for word in words), message


def test_attention_weights_are_limited_before_decoding(server):
    long_text = "the red basket is near the old house and " * 60
    for stream in (False, True):
        reply = server.post("/v1/translate", {"text": [long_text] * 30, "attention": True, "stream": stream, "beam": 8,
                                              "n_best": 8, "max_length": 0}, headers=key("attacker"))
        refused(reply, 400, "attention", "weights, more than 2097152")
    reply = server.post("/v1/translate", {"text": ["a red basket"] * 3, "attention": True}, headers=key("user"))
    assert reply.status == 200
    for translation in reply.json()["translations"]:
        hypothesis = translation["hypotheses"][0]
        assert len(hypothesis["attention"]) == len(hypothesis["tokens"])


def test_a_request_that_needs_more_tokens_than_may_wait_is_refused(server):
    text = "red basket " * 1400
    reply = server.post("/v1/translate", {"text": [text] * 100, "beam": 16}, headers=key("attacker"))
    refused(reply, 400, "more than 131072 (queue_tokens)")


def metric(server, series):
    """The value of a series of the metrics, labels included; 0 if there is none yet."""
    text = server.request("GET", "/metrics", headers=key("user")).text
    return next((float(line.split()[-1]) for line in text.splitlines() if line.startswith(series)), 0)


def test_a_client_that_fills_its_queue_does_not_keep_others_from_theirs(server):
    """The others start when a request of the attacker was refused: the server reads requests while more are sent."""
    body = {"text": ["a red basket " * 300] * 8, "beam": 16}
    extra = f"Authorization: Bearer {KEYS['attacker']}\r\n"
    refusals = 'qkv_http_requests_total{code="429",method="POST",route="/v1/translate"}'
    before = metric(server, refusals)
    with contextlib.ExitStack() as stack:
        for _ in range(60):
            connection = stack.enter_context(contextlib.closing(server.open_socket()))
            connection.sendall(request_bytes("/v1/translate", body, extra))
        assert wait_for(lambda: metric(server, refusals) > before)
        for _ in range(3):
            reply = server.post("/v1/translate", {"text": "a red basket", "beam": 2}, headers=key("user"))
            assert reply.status == 200, reply.body
        assert metric(server, 'qkv_requests_running{model="mt"}') > 0


def test_a_body_of_combining_marks_does_not_delay_others(server):
    """2 MB of marks took 6 seconds of the thread that prepares all requests; a short request then waited for it."""
    text = "e" + "\u0301\u0316" * 8190
    body = json.dumps({"input": [text] * 60}, ensure_ascii=False).encode()
    done = []

    def attack():
        reply = server.post("/v1/embeddings", body, headers=key("attacker"))
        done.append(reply.status)

    threads = [threading.Thread(target=attack) for _ in range(2)]
    for thread in threads:
        thread.start()
    answers = 0
    while any(thread.is_alive() for thread in threads):
        assert server.post("/v1/embeddings", {"input": "a dog"}, headers=key("user")).status == 200
        answers += 1
    for thread in threads:
        thread.join()
    assert set(done) <= {200, 400} and answers > 0


def test_threads_that_compute_convert_no_text_to_tokens(server):
    """Steps of long texts take as long as those of short ones that are as many tokens.

    A step that converted the texts, as it did, took a hundred times as long; ten times allows for noise.
    """
    def busy_seconds(path, body):
        before = busy(server)
        reply = server.post(path, json.dumps(body, ensure_ascii=False).encode(), headers=key("attacker"))
        assert reply.status == 200, reply.body[:300]
        return busy(server) - before

    for path, name in (("/v1/embeddings", "input"), ("/embed", "inputs")):
        pairs = ([busy_seconds(path, {name: [text] * 60}) for text in ("e", "e" + "\u0301\u0316" * 8190)] for _ in range(10))
        assert any(long < 10 * max(short, 1e-3) for short, long in pairs), path
    steps = server.steps(headers=key("user"))
    for body in ({"content": "a b " * 100_000}, {"inputs": ["a b " * 1000] * 100}, {"prompt": "a b " * 100_000}):
        assert server.post("/tokenize", {"model": "enc", **body}, headers=key("attacker")).status == 200
    assert server.post("/detokenize", {"model": "enc", "tokens": [5] * 400_000}, headers=key("attacker")).status == 200
    assert server.steps(headers=key("user")) == steps


def test_a_text_that_is_too_long_for_its_attention_is_not_translated(server):
    text, times = "red basket " * 1400, []
    for path in ("/v1/translate", "/v1/attend"):
        before = busy(server)
        reply = server.post(path, {"model": "mt", "text": text}, headers=key("attacker"))
        times.append(busy(server) - before)
    refused(reply, 400, "must have at most 24 tokens (has 12600)")
    assert times[1] < times[0] / 5, times


def busy(server):
    return server.busy_seconds(headers=key("user"))


def test_an_answer_that_describes_tokens_has_a_limit(server):
    for body in ({"inputs": ["a" * 300_000] * 2}, {"content": "a" * 600_000, "with_pieces": True},
                 {"prompt": "a" * 600_000, "return_token_strs": True}):
        reply = server.post("/tokenize", {"model": "lm", **body}, headers=key("attacker"))
        refused(reply, 400, "must have at most 524288 tokens in an answer that describes each of them (has 60000")
    reply = server.post("/tokenize", {"model": "lm", "content": "a" * 600_000}, headers=key("attacker"))
    assert reply.status == 200 and len(reply.json()["tokens"]) == 600_000


def test_prompts_are_refused_before_all_are_read(server):
    """The last prompt is wrong, which is found only if all before it have been converted to tokens."""
    for name in ("attacker", "user"):
        reply = server.post("/v1/completions", {"prompt": ["a" * 16_384] * 20 + [[-1]], "max_tokens": 1, "slide": True},
                            headers=key(name))
        refused(reply, 400, "more than 131072 (queue_tokens)")
        reply = server.post("/v1/completions", {"prompt": ["a" * 100_000, [-1]], "max_tokens": 1}, headers=key(name))
        refused(reply, 400, "the prompt has 100")
        assert reply.json()["error"]["code"] == "context_length_exceeded"
        reply = server.post("/v1/completions", {"prompt": ["A"] * 20 + [[-1]], "n": 16}, headers=key(name))
        refused(reply, 400, "the prompts must be at most 256 texts (are 336)")


def test_log_probabilities_of_prompts_are_computed_in_steps_of_their_own(server):
    """Others are computed between them; one step for all prompts would keep them waiting."""
    def steps():
        return metric(server, 'qkv_step_seconds_count{model="lm"}')

    before = steps()
    reply = server.post("/v1/completions", {"prompt": ["The dog", "A", "The"] * 10, "max_tokens": 0, "echo": True,
                                            "logprobs": 0}, headers=key("attacker"))
    assert reply.status == 200, reply.body[:300]
    choices = reply.json()["choices"]
    assert [choice["logprobs"] for choice in choices] == [choice["logprobs"] for choice in choices[:3]] * 10
    assert wait_for(lambda: steps() - before >= 30)


def test_the_events_of_a_stream_of_translations_repeat_a_limited_text(server):
    text = "red basket " * 1400
    stream = {"text": [text] * 12, "beam": 1, "stream": True}
    refused(server.post("/v1/translate", stream, headers=key("attacker")), 400, "stream", "more than 67108864", "max_length")
    reply = server.post("/v1/translate", {**stream, "text": [text[:1100]] * 2}, headers=key("attacker"))
    assert reply.status == 200 and reply.events()[-1] == "[DONE]"
    *events, answer = map(json.loads, reply.events()[:-1])
    for line, translation in enumerate(answer["translations"]):
        assert [event["text"] for event in events if event["line"] == line][-1] == translation["hypotheses"][0]["text"]


def test_bodies_of_one_client_leave_room_for_others(tmp_path):
    with ServeProcess([ENCODER, "--max-body", "1M", "--bodies", "4M", "--trust-proxy", "127.0.0.1", "--log", "none"]) as server:
        with contextlib.ExitStack() as stack:
            for i in range(8):
                connection = stack.enter_context(contextlib.closing(server.open_socket()))
                connection.sendall(b"POST /embed HTTP/1.1\r\nHost: localhost\r\nX-Forwarded-For: 10.0.0.1\r\n"
                                   b"Content-Type: application/json\r\nContent-Length: 1048576\r\n\r\n")
            assert wait_for(lambda: server.post("/embed", {"inputs": "a"}, headers={"X-Forwarded-For": "10.0.0.1"}).status == 429)
            assert server.post("/embed", {"inputs": "a"}, headers={"X-Forwarded-For": "10.0.0.2"}).status == 200


def test_the_addresses_of_a_v6_network_are_one_client():
    """A host may use all addresses of its /64 network."""
    def of(address):
        return {"X-Forwarded-For": address}

    with ServeProcess([ENCODER, "--max-body", "1M", "--bodies", "4M", "--trust-proxy", "127.0.0.1", "--log", "json"]) as server:
        with contextlib.ExitStack() as stack:
            for i in range(8):
                connection = stack.enter_context(contextlib.closing(server.open_socket()))
                connection.sendall(b"POST /embed HTTP/1.1\r\nHost: localhost\r\nX-Forwarded-For: 2001:db8::%d\r\n"
                                   b"Content-Type: application/json\r\nContent-Length: 1048576\r\n\r\n" % i)
            assert wait_for(lambda: server.post("/embed", {"inputs": "a"}, headers=of("2001:db8::abcd")).status == 429)
            assert server.post("/embed", {"inputs": "a"}, headers=of("2001:db8:0:1::1")).status == 200
        # The log has the whole address.
        assert wait_for(lambda: any('"2001:db8::abcd"' in line for line in server.lines))


def test_connections_of_one_address_leave_room_for_others():
    with ServeProcess([ENCODER, "--max-connections", 8, "--log", "none"]) as server, contextlib.ExitStack() as stack:
        for _ in range(8):
            stack.enter_context(contextlib.closing(server.open_socket()))
        time.sleep(0.2)
        other = http.client.HTTPConnection(server.host, server.port, timeout=30, source_address=("127.0.0.2", 0))
        other.request("GET", "/health")
        assert other.getresponse().status == 200


def test_answers_that_nobody_reads_are_limited():
    """A client may have 16 MB of answers unread. One of 6 MB and another that may have 38 MB are more."""
    attention = {"text": "the red basket is near the old house and " * 40, "attention": True, "beam": 1}
    with ServeProcess([TRANSLATOR, "--bodies", "16M", "--log", "none"]) as server, contextlib.ExitStack() as stack:
        assert len(server.post("/v1/translate", attention).body) > 5 << 20
        lazy = stack.enter_context(contextlib.closing(socket.socket()))
        lazy.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        lazy.connect((server.host, server.port))
        lazy.sendall(request_bytes("/v1/translate", attention))
        assert lazy.recv(1, socket.MSG_PEEK)
        reply = server.post("/v1/translate", attention)
        assert reply.status == 429 and reply.json()["error"]["code"] == "answers", reply.body[:300]
        lazy.close()
        assert wait_for(lambda: server.post("/v1/translate", attention).status == 200)


def test_files_of_clients_are_for_the_server_alone(server):
    for name in ("events", "suggestions"):
        assert stat.S_IMODE((server.folder / name).stat().st_mode) == 0o600


@pytest.mark.parametrize("name", ["config.json", "vocabulary.json", "model.safetensors"])
def test_a_named_pipe_in_a_run_does_not_stop_a_server_from_ending(name, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(MODELS["lm"], run)
    file = run / name if (run / name).exists() else run / "config.json"
    with ServeProcess([f"lm={run}", "--log", "none"]) as server:
        file.unlink()
        os.mkfifo(file)
        server.process.send_signal(signal.SIGHUP)
        assert wait_for(lambda: any(str(run) in line for line in server.lines))
        assert server.post("/v1/completions", {"prompt": "A", "max_tokens": 1}).status == 200
        assert server.stop() == 0


def test_a_server_ends_while_a_file_of_its_reload_gives_nothing(tmp_path):
    """The keys come from a pipe that nobody writes to: the reload waits, and signals are heeded all the same."""
    keys = tmp_path / "keys"
    keys.write_text(f"user {KEYS['user']}\n")
    reading, writing = os.pipe()
    with ServeProcess([LANGUAGE, "--api-keys", keys, "--log", "none"]) as server:
        keys.unlink()
        keys.symlink_to(f"/proc/{os.getpid()}/fd/{reading}")
        server.process.send_signal(signal.SIGHUP)
        time.sleep(0.2)
        assert server.post("/v1/completions", {"prompt": "A", "max_tokens": 1}, headers=key("user")).status == 200
        assert server.stop() == 0
    os.close(writing)
    os.close(reading)


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGINT])
def test_a_server_ends_in_the_middle_of_hostile_requests(end):
    text = "e" + "\u0301\u0316" * 8190
    with ServeProcess([*ALL, "--drain-timeout", "1s", "--log", "none"]) as server, contextlib.ExitStack() as stack:
        for path, body in [("/v1/embeddings", {"input": [text] * 8}),
                           ("/v1/translate", {"text": ["a red basket " * 200] * 8, "beam": 16}),
                           ("/v1/completions", {"prompt": ["A"] * 16, "n": 16, "max_tokens": 4000, "slide": True})] * 4:
            stack.enter_context(contextlib.closing(server.open_socket())).sendall(request_bytes(path, body))
        time.sleep(0.3)
        server.process.send_signal(end)
        assert server.process.wait(60) in (0, 1)
