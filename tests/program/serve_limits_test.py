"""Requests that `qkv serve` refuses: the status, in the form that the clients of each route expect."""

import contextlib
import re
import time

import pytest
from serving import ALL, LANGUAGE, ServeProcess, only_known, request_bytes, wait_for

ENDLESS = {"temperature": 0, "seed": 1, "slide": True, "max_tokens": 4096}
MANY = {"prompt": ["A"] * 16, "n": 16, **ENDLESS}  # fills the rows of a model for a while
UNLIMITED = ["--queue-tokens", 10**9]  # for such requests


@pytest.fixture(scope="module")
def server():
    with ServeProcess([*ALL, *UNLIMITED]) as process:
        yield process
        assert process.stop() == 0


@pytest.fixture
def busy():
    """A server with a language model that is busy with one request; at most 4 texts may wait."""
    with ServeProcess([LANGUAGE, *UNLIMITED, "--queue-items", 4, *only_known(("--rows", 8))]) as process:
        with contextlib.closing(process.open_socket()) as connection:
            connection.sendall(request_bytes("/v1/completions", {**MANY, "stream": True}))
            assert connection.recv(12) == b"HTTP/1.1 200"
            yield process
        assert wait_for(lambda: process.post("/v1/completions", {"prompt": "A", "max_tokens": 1}).status == 200)
        assert process.stop() == 0


def error_of(reply, status, kind, code=None):
    assert reply.status == status, (reply.status, reply.body)
    assert reply.headers["content-type"] == "application/json"
    error = reply.json()["error"]
    assert set(error) == {"message", "type", "param", "code"}
    assert (error["type"], error["code"]) == (kind, code), error
    assert error["message"] and "\n" not in error["message"]
    return error


def counter_of(server, series):
    return next(float(line.split()[-1]) for line in server.get("/metrics").text.splitlines() if line.startswith(series))


def answer_to_head(server, path, extra):
    """The beginning of the answer to a request whose body is not sent."""
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 1000000\r\n"
    with contextlib.closing(server.open_socket(30)) as connection:
        connection.sendall(f"{head}{extra}\r\n".encode())
        return connection.recv(16)


def test_the_line_of_a_refused_request_has_its_id_client_route_and_time(tmp_path):
    (tmp_path / "keys").write_text("alice 0123456789abcdef\n")
    key = {"X-API-Key": "0123456789abcdef"}
    with ServeProcess([LANGUAGE, "--api-keys", tmp_path / "keys", "--max-body", "1K"]) as server:
        cases = [("GET", "/v1/models", None, {}, 401, "127.0.0.1", "/v1/models"),
                 ("POST", "/v1/completions", "x" * 2000, key, 413, "alice", "/v1/completions"),
                 ("POST", "/v1/completions", "{", key, 400, "alice", "/v1/completions"),
                 ("GET", "/nowhere", None, key, 404, "127.0.0.1", None),
                 ("GET", "/health", None, {"Host": "elsewhere.org"}, 421, "127.0.0.1", "/health")]
        for i, (method, path, body, headers, status, *_) in enumerate(cases):
            reply = server.request(method, path, body, {**headers, "X-Request-Id": f"case-{i}"})
            assert (reply.status, reply.headers["x-request-id"]) == (status, f"case-{i}")
        with contextlib.closing(server.open_socket(30)) as connection:
            connection.sendall(b"GET /\r\n\r\n")
            malformed = re.search(rb"X-Request-Id: (\w+)", connection.recv(1 << 16))[1].decode()
        assert wait_for(lambda: len(server.lines) == 2 + len(cases))
        for i, (method, _, _, _, status, client, route) in enumerate(cases):
            line = dict(part.split("=", 1) for part in server.lines[1 + i].split())
            assert (line["id"], line["client"], line["method"]) == (f"case-{i}", client, method)
            assert (line["code"], line.get("route"), line["outcome"]) == (str(status), route, "failed")
        assert f"id={malformed} " in server.lines[-1] and "code=400 " in server.lines[-1]


def test_a_full_queue_says_when_to_come_back(busy):
    texts = {**ENDLESS, "max_tokens": 64}
    with contextlib.ExitStack() as waiting:
        # The rows of the busy model are taken, so these wait.
        for _ in range(300):
            one = waiting.enter_context(contextlib.closing(busy.open_socket()))
            one.sendall(request_bytes("/v1/completions", {"prompt": ["A"] * 4, "n": 4, **ENDLESS}))
            time.sleep(0.01)
            reply = busy.post("/v1/completions", {"prompt": "A", **texts}, headers={"X-Request-Timeout": "0.05"})
            if reply.status == 429:
                break
            assert reply.status in (200, 503, 504), reply.body
        error_of(reply, 429, "overloaded_error", "queue_full")
        seconds, milliseconds = int(reply.headers["retry-after"]), int(reply.headers["retry-after-ms"])
        assert 1 <= seconds <= 30 and seconds - 1 < milliseconds / 1000 <= seconds
        # No body is awaited, because no other model could answer.
        counter = 'qkv_requests_rejected_total{model="lm",reason="queue"}'
        before = counter_of(busy, counter)
        for extra in ("", "Expect: 100-continue\r\n"):
            assert answer_to_head(busy, "/v1/completions", extra).startswith(b"HTTP/1.1 429 ")
        assert counter_of(busy, counter) == before + 2


def test_a_body_that_chooses_among_models_is_read_although_a_queue_is_full():
    runs = [LANGUAGE, LANGUAGE.replace("lm=", "other=")]
    with ServeProcess([*runs, *UNLIMITED, "--queue-items", 1, "--rows", 8]) as server, contextlib.ExitStack() as waiting:
        for _ in range(2):  # one runs and one waits
            one = waiting.enter_context(contextlib.closing(server.open_socket()))
            one.sendall(request_bytes("/v1/completions", {"prompt": ["A"] * 16, "n": 16, "model": "lm", **ENDLESS}))
        assert wait_for(lambda: server.post("/v1/completions", {"prompt": "A", "model": "lm", "max_tokens": 1}).status == 429)
        assert answer_to_head(server, "/v1/completions", "Expect: 100-continue\r\n").startswith(b"HTTP/1.1 100 ")
        assert server.post("/v1/completions", {"prompt": "A", "model": "other", "max_tokens": 1}).status == 200


def test_a_deadline_that_passes_while_running_is_504_and_not_repeated(server):
    for deadline in ("0.1", "0.5", "2.5"):  # on a busy machine, it may not run before the first one
        reply = server.post("/v1/completions", MANY, headers={"X-Request-Timeout": deadline})
        if reply.status != 503:
            break
    assert f"deadline of {deadline} s passed" in error_of(reply, 504, "timeout", "deadline")["message"]
    assert reply.headers["x-should-retry"] == "false"


def test_a_deadline_of_a_millisecond_is_an_answer(server):
    for path, body in [("/v1/completions", MANY), ("/v1/translate", {"text": ["A red basket"] * 200, "beam": 16})]:
        reply = server.post(path, body, headers={"X-Request-Timeout": "0.001"})
        assert reply.status in (503, 504)
        error_of(reply, reply.status, *{503: ("unavailable_error", "expired"), 504: ("timeout", "deadline")}[reply.status])
        assert ("retry-after" in reply.headers) == (reply.status == 503)


def test_a_deadline_does_not_end_a_stream_that_has_begun(server):
    body = {"prompt": ["A"] * 16, "n": 4, **ENDLESS, "max_tokens": 500, "stream": True}
    for deadline in ("0.3", "1.5", "7.5"):  # on a busy machine, it may not begin before the first one
        with contextlib.closing(server.open_socket()) as connection:
            extra = f"X-Request-Timeout: {deadline}\r\nConnection: close\r\n"
            connection.sendall(request_bytes("/v1/completions", body, extra))
            received = b"".join(iter(lambda: connection.recv(1 << 16), b""))
        if not received.startswith(b"HTTP/1.1 50"):
            break
    assert received.startswith(b"HTTP/1.1 200") and b'"error"' not in received
    events = re.findall(rb"data: (.*)\n\n", received)
    assert events[-1] == b"[DONE]"
    assert sum(b'"finish_reason":"length"' in event for event in events) == 64


@pytest.mark.parametrize("path", ["/v1/translate", "/v1/completions", "/v1/embeddings", "/v1/recommend"])
def test_a_body_that_is_too_large_is_413(server, path):
    connection = server.open_socket(30)
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 2097153\r\n\r\n"
    connection.sendall(head.encode())
    assert connection.recv(1 << 16).startswith(b"HTTP/1.1 413 ")  # before the body is sent
    connection.close()
    connection = server.connect()
    # A few bytes too many: the server reads and drops 64 KiB more, so the client can send all of it.
    pieces = (b'{"text":"', *(b"a" * (1 << 16) for _ in range(32)), b'"}')
    connection.request("POST", path, body=iter(pieces), headers={"Content-Type": "application/json"}, encode_chunked=True)
    assert connection.getresponse().status == 413
    connection.close()


def test_a_body_of_the_largest_size_is_read(server):
    body = b'{"text":"' + b"a" * ((2 << 20) - 11) + b'"}'
    assert len(body) == 2 << 20
    error = error_of(server.post("/v1/translate", body), 400, "invalid_request_error")
    assert error["param"] == "text" and "at most 16384 characters" in error["message"]


@pytest.mark.parametrize("method, path, allowed", [
    ("GET", "/v1/translate", "POST"), ("DELETE", "/v1/models", "GET"), ("PUT", "/embed", "POST"), ("POST", "/v1/models", "GET"),
    ("PATCH", "/v1/completions", "POST"), ("POST", "/health", "GET"), ("GET", "/v1/recommend", "POST")])
def test_a_wrong_method_is_405_with_the_methods_of_the_route(server, method, path, allowed):
    reply = server.request(method, path, headers={"Content-Length": "0"})
    assert reply.status == 405
    assert allowed in re.split(", ", reply.headers["allow"])
    assert method not in reply.headers["allow"]


def test_a_wrong_content_type_is_415(server):
    for kind in ("text/plain", "application/x-www-form-urlencoded", "application/jsonp", "multipart/form-data; boundary=a", ""):
        reply = server.post("/v1/translate", b'{"text":"A"}', headers={"Content-Type": kind})
        error_of(reply, 415, "invalid_request_error")
    for kind in ("application/json", "application/json; charset=utf-8", "Application/JSON;charset=UTF-8"):
        assert server.post("/v1/translate", b'{"text":"A"}', headers={"Content-Type": kind}).status == 200
    assert server.post("/v1/translate", b"{}", headers={"Content-Encoding": "gzip"}).status == 415


def test_an_unknown_model_is_404(server):
    for path, body in [("/v1/completions", {"prompt": "A"}), ("/v1/embeddings", {"input": "a"}), ("/v1/translate", {"text": "a"}),
                       ("/v1/recommend", {"history": []}), ("/v1/attend", {"text": "a"})]:
        error = error_of(server.post(path, {**body, "model": "gpt-9"}), 404, "invalid_request_error", "model_not_found")
        assert error["param"] == "model" and '"gpt-9"' in error["message"]
    error_of(server.get("/v1/models/gpt-9"), 404, "invalid_request_error", "model_not_found")
    # The route does not serve models of another kind.
    error_of(server.post("/v1/completions", {"prompt": "A", "model": "mt"}), 404, "invalid_request_error", "model_not_found")
    assert server.post("/embed", {"inputs": "a", "model": "gpt-9"}).json()["error_type"] == "Validation"


@pytest.mark.parametrize("name, ends", [("length_penalty", (-10, 10)), ("coverage_penalty", (0, 1000)), ("repetition_penalty", (1e-9, 1000))])
def test_scores_are_numbers_within_the_ranges_of_the_penalties(server, name, ends):
    for value in ends:
        reply = server.post("/v1/translate", {"text": "A red basket", "beam": 3, "n_best": 3, name: value})
        assert reply.status == 200, reply.body
        assert all(isinstance(found["score"], float) for found in reply.json()["translations"][0]["hypotheses"])
    for value in (1e300, -1e300, 1000.5, -10.5):
        error = error_of(server.post("/v1/translate", {"text": "A", name: value}), 400, "invalid_request_error")
        assert error["param"] == name and f"{ends[1]} (is " in error["message"], error


@pytest.mark.parametrize("value", [True, False, None, "auto", "true", "false", "never"])
def test_a_choice_is_a_text_or_true_or_false(server, value):
    reply = server.post("/v1/translate", {"text": "A red basket", "beam": 3, "early_stopping": value})
    assert reply.status == 200, reply.body


def test_an_unknown_route_is_404(server):
    error_of(server.post("/v2/translate", {}), 404, "invalid_request_error")
    error_of(server.post("/v1//translate", {"text": "a"}), 404, "invalid_request_error")


@pytest.mark.parametrize("path, body, param", [
    ("/v1/translate", {}, "text"), ("/v1/translate", {"text": 5}, "text"), ("/v1/translate", {"text": ["a", 5]}, "text"),
    ("/v1/translate", {"text": "a", "beam": 0}, "beam"), ("/v1/translate", {"text": "a", "beam": 17}, "beam"),
    ("/v1/translate", {"text": "a", "beam": 1.5}, "beam"), ("/v1/translate", {"text": "a", "seed": -1}, "seed"),
    ("/v1/translate", {"text": "a", "beem": 3}, "\"beem\""), ("/v1/translate", {"text": ["a"], "prefix": ["a", "b"]}, "prefix"),
    ("/v1/translate", {"text": "a", "early_stopping": "soon"}, "early_stopping"), ("/v1/translate", {"text": "a", "early_stopping": 1}, "early_stopping"),
    ("/v1/translate", {"text": ["a"] * 257}, "text"), ("/v1/translate", {"text": "a" * 16385}, "text"),
    ("/v1/translate", {"text": ["a"] * 100, "sampling": True, "n_best": 3}, "text"),
    ("/v1/completions", {"prompt": {}}, "prompt"), ("/v1/completions", {"prompt": []}, "prompt"),
    ("/v1/completions", {"prompt": [[1], "a", 3]}, "prompt"), ("/v1/completions", {"prompt": [-1]}, "prompt"),
    ("/v1/completions", {"prompt": [1e9]}, "prompt"), ("/v1/completions", {"prompt": "a", "n": 17}, "n"),
    ("/v1/completions", {"prompt": "a", "max_tokens": 5000}, "max_tokens"),
    ("/v1/completions", {"prompt": "a", "logprobs": 21}, "logprobs"), ("/v1/completions", {"prompt": "a", "top_p": -1}, "top_p"),
    ("/v1/completions", {"prompt": "a", "stop": ["a"] * 17}, "stop"), ("/v1/completions", {"prompt": "a", "stop": 5}, "stop"),
    ("/v1/completions", {"prompt": "a", "temperature": -0.5}, "temperature"),
    ("/v1/completions", {"prompt": "a", "best_of": 3}, "best_of"), ("/v1/completions", {"prompt": "a", "suffix": "b"}, "suffix"),
    ("/v1/completions", {"prompt": "a", "seed": 2 ** 64}, "seed"), ("/v1/completions", {"prompt": ["a"] * 20, "n": 16}, "n"),
    ("/v1/embeddings", {}, "input"), ("/v1/embeddings", {"input": []}, "input"), ("/v1/embeddings", {"input": "a", "dimensions": 3000}, "dimensions"),
    ("/v1/embeddings", {"input": "a", "encoding_format": "int8"}, "encoding_format"),
])
def test_a_member_that_will_not_do_is_named(server, path, body, param):
    error = error_of(server.post(path, body), 400, "invalid_request_error")
    assert error["param"] == param, error


@pytest.mark.parametrize("prompt", [[1000], [2 ** 31 - 1], [[1, 2], [49]], [[]]])
def test_any_ids_of_tokens_are_an_answer(server, prompt):
    assert server.post("/v1/completions", {"prompt": prompt, "max_tokens": 2}).status in (200, 400)


def test_a_prompt_that_is_too_long_is_refused_as_openai_does(server):
    reply = server.post("/v1/completions", {"prompt": "A" * 30, "max_tokens": 4})
    error = error_of(reply, 400, "invalid_request_error", "context_length_exceeded")
    assert error["param"] == "max_tokens"
    assert server.post("/v1/completions", {"prompt": "A" * 30, "max_tokens": 4, "slide": True}).status == 200


def test_tei_names_what_is_wrong(server):
    for body, status, kind in [({"inputs": []}, 400, "Empty"), ({}, 400, "Empty"), ({"inputs": ["a"] * 2049}, 422, "Validation"),
                               ({"inputs": "a " * 40, "truncate": False}, 422, "Validation"), ({"inputs": 5}, 422, "Validation")]:
        reply = server.post("/embed", body)
        assert (reply.status, reply.json()["error_type"]) == (status, kind), reply.body


def test_a_small_max_beam_is_the_beam_of_requests_without_one():
    with ServeProcess([*ALL, "--max-beam", 2, "--languages", "mt=en-de"]) as server:
        reply = server.post("/v1/translate", {"text": "A dog"})
        assert reply.status == 200 and len(reply.json()["translations"]) == 1
        error = error_of(server.post("/v1/translate", {"text": "A dog", "beam": 3}), 400, "invalid_request_error")
        assert error["message"] == '"beam" must be at most 2 (is 3)'
        form = {"q": "A dog", "source": "en", "target": "de", "format": "text"}
        assert server.post("/translate", form).status == 200
        reply = server.post("/translate", {**form, "alternatives": 1})
        assert reply.status == 200 and len(reply.json()["alternatives"]) == 1
        reply = server.post("/translate", {**form, "alternatives": 2})
        assert (reply.status, reply.json()["error"]) == (400, "Invalid request: alternatives parameter must be <= 1")
        assert server.stop() == 0
