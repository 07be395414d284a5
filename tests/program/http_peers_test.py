"""Compares the server's reader of requests with h11 and httptools (llhttp, the parser of Node.js): requests that the server
takes, both take as the same ones.

QKV_HTTP_STREAMS sets the number of streams; FULL=1 .ci/run compares a few thousand.

Four differences are known:
- An empty line before a request: h11 refuses it, RFC 9112 (2.2) lets servers skip one.
- A request with a body that asks for another protocol by Upgrade: httptools leaves the body to that protocol. The
  server never changes the protocol, so it reads the body (RFC 9110, 7.8).
- A tab after `Transfer-Encoding: chunked`: httptools refuses it, although it is white space (RFC 9110, 5.5).
- A trailer Connection: httptools heeds it, the server drops it as RFC 9110 (6.5.1) asks.

After the last three, httptools is not compared for the rest of the stream.
"""

import json
import os
import re
import struct
import subprocess
from pathlib import Path
from urllib.parse import unquote_plus, unquote_to_bytes

import pytest
from conftest import QKV
from http_streams import stream_of

h11 = pytest.importorskip("h11", reason="h11 is not installed: FULL=1 .ci/run installs it from PyPI")
httptools = pytest.importorskip("httptools", reason="httptools is not installed: FULL=1 .ci/run installs it from PyPI")

pytestmark = pytest.mark.release
STREAMS = int(os.environ.get("QKV_HTTP_STREAMS", "5000"))
BATCH = 5000
READER = Path(QKV).parent / "tests/read_requests"


def read_by_server(streams):
    """Returns for each stream the status of the refusal that ended it, or 0, and the requests before it."""
    data = b"".join(struct.pack("<I", len(stream)) + stream for stream in streams)
    result = subprocess.run([READER], input=data, capture_output=True, check=True, timeout=600)
    return [(status, requests) for status, *requests in map(json.loads, result.stdout.splitlines())]


def same_target(target):
    """Returns the path and the fields of the query as the server reads them."""
    if target[:7].lower() == "http://" or target[:8].lower() == "https://":
        rest = target[target.index("//") + 2:]
        end = min((rest.index(mark) for mark in "/?" if mark in rest), default=len(rest))
        target = rest[end:] if rest[end:].startswith("/") else "/" + rest[end:]
    path, _, query = target.partition("?")
    path = unquote_to_bytes(path).decode(errors="replace")
    fields = [[unquote_plus(part) for part in field.partition("=")[::2]] for field in query.split("&") if field]
    return path.removesuffix("/") or "/", fields


def request_of(method, target, minor, headers, body):
    """Returns a request of a peer, whose parts are bytes."""
    headers = [(name.decode("latin1"), value.decode("latin1")) for name, value in headers]
    path, query = same_target(target.decode("latin1"))
    return [method.decode("latin1"), path, query, minor, same_headers(headers), body.decode("latin1")]


def same_headers(headers):
    """Only the order of headers of the same name counts, and h11 gives Transfer-Encoding in lower case."""
    fields = [[name.lower(), value.strip(" \t")] for name, value in headers]
    spelled = [[name, value.lower() if name == "transfer-encoding" else value] for name, value in fields]
    return sorted(spelled, key=lambda field: field[0])


class Messages:
    """The callbacks of httptools: collects the requests of a connection. `last`: how many it read before a trailer
    Connection, if there was one."""

    def __init__(self):
        self.requests, self.parser, self.last = [], httptools.HttpRequestParser(self), None

    def on_message_begin(self):
        self.target, self.headers, self.body, self.in_head = b"", [], b"", True

    def on_url(self, piece):
        self.target += piece

    def on_header(self, name, value):
        if self.in_head:
            self.headers.append((name, value))
        elif name.lower() == b"connection" and self.last is None:
            self.last = len(self.requests) + 1

    def on_headers_complete(self):
        self.in_head = False

    def on_body(self, piece):
        self.body += piece

    def on_message_complete(self):
        method, minor = self.parser.get_method(), int(self.parser.get_http_version()[-1])
        self.requests.append(request_of(method, self.target, minor, self.headers, self.body))

    def read(self, stream):
        """Reads what it takes. A request to change the protocol pauses it; the server does not change it."""
        while True:
            try:
                return self.parser.feed_data(stream)
            except httptools.HttpParserUpgrade as upgrade:
                stream = stream[upgrade.args[0]:]
                self.parser = httptools.HttpRequestParser(self)
            except httptools.HttpParserError:
                return


def read_by_h11(stream):
    requests = []
    while stream := stream.removeprefix(b"\r\n"):
        connection = h11.Connection(h11.SERVER)
        connection.receive_data(stream)
        try:
            head, body = connection.next_event(), b""
            if head is h11.NEED_DATA:
                break
            event = connection.next_event()
            while isinstance(event, h11.Data):
                body += bytes(event.data)
                event = connection.next_event()
        except h11.RemoteProtocolError:
            break
        if not isinstance(event, h11.EndOfMessage):
            break
        requests.append(request_of(head.method, head.target, int(head.http_version[-1:]), head.headers, body))
        stream = connection.trailing_data[0]
    return requests


def asks_for_upgrade(headers):
    connection = [value.lower() for name, value in headers if name == "connection"]
    return "upgrade" in dict(headers) and "upgrade" in ",".join(connection)


TAB_AFTER_CODING = re.compile(rb"\r\ntransfer-encoding:[ \t]*chunked *\t", re.IGNORECASE)


def known_by_httptools(stream, taken, messages):
    """Returns how many requests of a stream are compared: those before a difference that is known."""
    upgrades = [i for i, request in enumerate(taken) if request[-1] and asks_for_upgrade(request[-2])]
    ends = [len(taken), *upgrades[:1], *([messages.last] if messages.last else [])]
    return min(ends + [len(messages.requests)] if TAB_AFTER_CODING.search(stream) else ends)


def differences(stream, requests):
    """Returns the requests that a peer does not read as the server did."""
    taken = [[method, path, query, minor, same_headers(headers), body]
             for method, _, path, query, minor, _, headers, body in requests]
    messages = Messages()
    messages.read(stream)
    compared = taken[:known_by_httptools(stream, taken, messages)]
    readings = [("httptools", compared, messages.requests), ("h11", taken, read_by_h11(stream))]
    return [(peer, wanted, read) for peer, wanted, read in readings if read[:len(wanted)] != wanted]


def test_what_the_server_takes_others_take_as_the_same_requests():
    assert READER.exists(), f"{READER} is missing: build the target read_requests"
    taken = refused = 0
    for first in range(0, STREAMS, BATCH):
        streams = [stream_of(seed) for seed in range(first, min(first + BATCH, STREAMS))]
        verdicts = read_by_server(streams)
        assert len(verdicts) == len(streams)
        for stream, (status, requests) in zip(streams, verdicts):
            assert status in (0, 400, 413, 414, 417, 431, 501, 505)
            refused += status != 0
            taken += len(requests)
            assert requests == [] or differences(stream, requests) == [], stream
    print(f"{STREAMS} streams: {taken} requests taken, {refused} streams refused")
    assert taken > STREAMS / 2 and refused > STREAMS / 4
