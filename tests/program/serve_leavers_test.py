"""Clients that leave at random bytes of their requests and at random moments of answers leave nothing behind.

QKV_LEAVERS sets how many leave in each of two runs of a server; ./test.sh takes a few hundred.
"""

import concurrent.futures
import os
import random

import pytest
from serving import ALL, ServeProcess, only_known, request_bytes, reset, wait_for

LEAVERS = int(os.environ.get("QKV_LEAVERS", "400"))
LONG = {"temperature": 0, "seed": 1, "slide": True, "max_tokens": 4096}  # never ends by itself
REQUESTS = [
    ("/v1/completions", {"prompt": "The", "stream": True, **LONG}),
    ("/v1/completions", {"prompt": ["A", "The", "red"], "n": 2, **LONG, "max_tokens": 200}),
    ("/v1/completions", {"prompt": "The", "stream": True, "seed": 2}),
    ("/v1/translate", {"text": ["A guest", "A red basket", "b"] * 8, "stream": True, "beam": 1}),
    ("/v1/translate", {"text": ["A guest", "A red basket", "b"] * 20}),
    ("/v1/embeddings", {"input": ["a b c", "h"] * 60}),
    ("/embed", {"inputs": ["a b c", "h"]}),
    ("/v1/recommend", [{"history": ["f0000", "f0001"], "explain": True}] * 20),
    ("/v1/attend", {"model": "lm", "text": "The red", "generate": 3}),
]
# The most texts that may wait for each model: refused if a single other one waits.
FULL = [("/v1/completions", {"prompt": ["A"] * 256, "max_tokens": 1, "seed": 1}), ("/v1/translate", {"text": ["b"] * 256, "beam": 1}),
        ("/v1/embeddings", {"input": ["b"] * 256}), ("/v1/recommend", [{"history": ["f0000"]}] * 256)]


def leave(server, seed):
    """Sends a request, or its beginning, and leaves before it is answered or at some byte of the answer."""
    choice = random.Random(seed)
    data = request_bytes(*choice.choice(REQUESTS), "Connection: close\r\n")
    connection = server.open_socket()
    sent = choice.choice([choice.randrange(len(data)), len(data), len(data), len(data)])
    connection.sendall(data[:sent])
    bytes_read = choice.choice([0, 1, 300, 3000, 60000]) if sent == len(data) else 0
    while bytes_read > 0:
        piece = connection.recv(bytes_read)
        bytes_read = bytes_read - len(piece) if piece else 0
    if choice.random() < 0.3:
        connection.settimeout(choice.random() / 20)
        try:
            connection.recv(1)
        except TimeoutError:
            pass
    reset(connection) if choice.random() < 0.5 else connection.close()


def is_idle(server):
    """Whether nothing waits or runs any more."""
    counts = [server.gauges(name) for name in ("qkv_requests_waiting", "qkv_requests_running", "qkv_waiting_tokens")]
    return counts == [0, 0, 0] if None not in counts else all(server.post(*full).status == 200 for full in FULL)


@pytest.mark.parametrize("rows, workers", [(256, 1), (8, 2)])
def test_nothing_is_left_of_clients_that_leave(rows, workers):
    with ServeProcess(ALL + only_known(("--rows", rows), ("--workers", workers), ("--log", "none"))) as server:
        for full in FULL:
            assert server.post(*full).status == 200
        for seed in range(20):
            leave(server, seed)
        assert wait_for(lambda: is_idle(server))
        threads, descriptors = server.threads(), server.descriptors()
        with concurrent.futures.ThreadPoolExecutor(16) as pool:
            list(pool.map(lambda seed: leave(server, seed), range(LEAVERS)))
        assert wait_for(lambda: is_idle(server))
        for full in FULL:
            assert wait_for(lambda full=full: server.post(*full).status == 200)  # a request that was left may come late
        with concurrent.futures.ThreadPoolExecutor(256) as pool:
            short = [("/v1/completions", {"prompt": "A", "max_tokens": 2, "seed": 1}), ("/v1/translate", {"text": "b", "beam": 1})]
            replies = list(pool.map(lambda i: server.post(*short[i % 2]), range(256)))
        assert [reply.body for reply in replies if reply.status != 200] == []
        assert wait_for(lambda: is_idle(server) and server.descriptors() <= descriptors), server.descriptors()
        assert server.threads() == threads
        assert server.stop() == 0


def test_a_client_that_stops_sending_counts_as_gone():
    with ServeProcess([*ALL, "--queue-tokens", 10**9]) as server:
        connection = server.open_socket()
        connection.sendall(request_bytes("/v1/completions", {"prompt": ["The"] * 16, "n": 16, **LONG}))
        connection.shutdown(1)
        assert connection.recv(1) == b""
        connection.close()
        assert wait_for(lambda: is_idle(server))


def test_others_are_not_touched_by_one_who_leaves():
    request = ("/v1/completions", {"prompt": "The", "seed": 4, "slide": True, "max_tokens": 400, "logprobs": 1})
    with ServeProcess(ALL) as server:
        wanted = server.post(*request).json()["choices"]
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            answers = [pool.submit(server.post, *request) for _ in range(4)]
            for seed in range(40):
                pool.submit(leave, server, 1000 + seed)
            assert [answer.result().json()["choices"] for answer in answers] == [wanted] * 4
