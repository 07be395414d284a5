"""Streams of HTTP requests, changed at random: the same ones for the same seed."""

import random

HOST = b"Host: localhost:8080\r\n"
JSON = b"Content-Type: application/json\r\n"
REQUESTS = [
    b"GET / HTTP/1.1\r\n" + HOST + b"\r\n",
    b"GET /api/recommend/42/?n=10&offset=%30 HTTP/1.1\r\n" + HOST + b"X-API-Key: a-b_c\r\nAccept: */*\r\n\r\n",
    b"GET http://localhost/health?a=b+c&d HTTP/1.1\r\n" + HOST + b"Connection: keep-alive\r\n\r\n",
    b"HEAD /%C3%A9 HTTP/1.0\r\n\r\n",
    b"HEAD /ping HTTP/1.0\r\nConnection: keep-alive\r\nContent-Length: 0\r\n\r\n",
    b"OPTIONS * HTTP/1.1\r\n" + HOST + b"Origin: https://example.org\r\nAccess-Control-Request-Method: POST\r\n\r\n",
    b"POST /v1/translate HTTP/1.1\r\n" + HOST + JSON + b"Content-Length: 12\r\n\r\n{\"text\":\"a\"}",
    b"POST /v1/completions HTTP/1.1\r\n" + HOST + JSON + b"Expect: 100-continue\r\nContent-Length: 4\r\n\r\n{  }",
    b"POST /translate HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\n"
    b"3;n=\"v\"\r\nabc\r\nA\r\n0123456789\r\n0\r\nT: u\r\n\r\n",
    b"PUT /api/feedback HTTP/1.1\r\n" + HOST + JSON + b"transfer-encoding: Chunked\r\nTrailer: T\r\n\r\n"
    b"2\r\n[]\r\n0\r\n\r\n",
    b"POST /embed HTTP/1.0\r\nContent-Length: 2\r\nConnection: close, x\r\n\r\n{}",
    b"DELETE /x HTTP/1.1\r\n" + HOST + b"Connection: upgrade\r\nUpgrade: h2c\r\nContent-Length: 1\r\n\r\nx",
    b"\r\nPATCH /y HTTP/1.1\r\n" + HOST + b"X-Empty:\r\nX-Wide: \xc3\xa9 \t\r\nCookie: a=b; c=\"d\"\r\n\r\n",
    b"CONNECT localhost:443 HTTP/1.1\r\n" + HOST + b"\r\n",
]
# Bytes on which readers of HTTP are known to disagree.
PARTS = [
    b"\r\n", b"\n", b"\r", b" ", b"\t", b":", b",", b";", b"\0", b"\x0b", b"\x7f", b"\x80", b"\xff", b"%", b"%00",
    b"/../", b"//", b"#", b"@", b"0", b"1", b"f", b"F", b"+", b"-", b"0x", b"\"", b"\\", b"5, 5",
    b"Content-Length: 3\r\n", b"Content-Length: 0\r\n", b"Content-Length: 00000000000000000003\r\n",
    b"Content-Length: 9223372036854775808\r\n", b"Content-Length : 3\r\n", b"Transfer-Encoding: chunked\r\n",
    b"Transfer-Encoding: chunked, chunked\r\n", b"Transfer-Encoding: gzip, chunked\r\n",
    b"Transfer-Encoding: identity\r\n", b"Transfer-Encoding:\r\n chunked\r\n", b"Transfer-Encoding: xchunked\r\n",
    b"Transfer-Encoding: chunked \r\n", b"Host: other\r\n", b"Host:\r\n", b"Host: a:b\r\n", b" continued\r\n",
    b": no name\r\n", b"Connection: close\r\n", b"Connection: keep-alive, close\r\n",
    b"Connection: Upgrade\r\nUpgrade: websocket\r\n", b"Expect: other\r\n", b"0\r\n\r\n", b"1\r\na\r\n",
    b"ffffffffffffffff\r\n", b"0000000000000003\r\nabc\r\n", b"3 \r\nabc\r\n", b"HTTP/1.1", b"HTTP/1.0", b"HTTP/2.0",
    b"http/1.1", b"HTTP/1.10",
]


def changed(stream, choice):
    """Returns a stream with a part inserted, removed, repeated, moved or replaced."""
    place = choice.randrange(len(stream) + 1)
    length = choice.choice([1, 1, 2, 4, 16])
    kind = choice.randrange(7)
    if kind < 2:
        return stream[:place] + choice.choice(PARTS) + stream[place:]
    if kind == 2:
        return stream[:place] + stream[place + length:]
    if kind == 3:
        return stream[:place] + stream[place:place + length] + stream[place:]
    if kind == 4:
        return stream[:place] + bytes([choice.randrange(256)]) + stream[place + 1:]
    lines = stream.split(b"\r\n")
    line = choice.randrange(len(lines))
    if kind == 5:
        lines.insert(choice.randrange(len(lines) + 1), lines[line])
    else:
        lines[line] = lines[line].swapcase() if choice.random() < 0.3 else choice.choice(PARTS).removesuffix(b"\r\n")
    return b"\r\n".join(lines)


def stream_of(seed):
    """A connection's bytes: one to three requests, in most of which something has been changed."""
    choice = random.Random(seed)
    requests = [choice.choice(REQUESTS) for _ in range(choice.choice([1, 1, 2, 3]))]
    stream = b"".join(requests)
    for _ in range(choice.choice([0, 1, 1, 1, 2, 3])):
        stream = changed(stream, choice)
    return stream
