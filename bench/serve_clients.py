"""Clients of the row soak-mixed of bench/serve.py: all kinds of requests, and faults."""

import asyncio
import random
import re
import socket
import time
from collections import Counter

from serve_load import post_bytes, read_answer

USERS = ("soak-1", "soak-2")  # few, so that the events that the server remembers reach their bound early
CLOSE = b"\r\nConnection: close\r\n\r\n"
# Requests that no model gets, with the statuses of their answers.
WRONG = [
    (post_bytes("/v1/translate", {"text": "a", "beem": 4}), 400),
    (post_bytes("/v1/translate", {"text": "a", "beam": 1000}), 400),
    (post_bytes("/v1/completions", {"model": "none", "prompt": "a"}), 404),
    (post_bytes("/v1/none", {}), 404),
    (post_bytes("/v1/translate", {}).replace(b"POST", b"GET", 1), 405),
    (post_bytes("/v1/translate", {}).replace(b"application/json", b"text/plain"), 415),
    (post_bytes("/translate", {"q": "a", "source": "xx", "target": "de"}), 400),
    (post_bytes("/embed", {"inputs": 1}), 422),
    (post_bytes("/api/feedback", {"UserId": "a"}), 400),
    (post_bytes("/v1/recommend", {}).replace(b"{}", b"{]"), 400),
    (b"POST /v1/translate HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n{}", 400),
    (b"GET /health HTTP/1.1\nHost: localhost\n\n", 400),
]


def end_of_stream(answer):
    """How an answer ended that is no complete stream: its status, the code of its error event, or its last bytes."""
    if not answer.startswith(b"HTTP/1.1 200"):
        return f"status {answer[9:12].decode()}" if answer else "closed without an answer"
    error = re.search(rb'"error":.*?"code":"?(\w+)', answer[-1000:])
    return f"error {error[1].decode()}" if error else f"ended with {answer[-40:]!r}"


class Clients:
    """Clients of one server. `counts` has the requests by kind, those that reached a model and those that were refused
    because the server was busy; `unexpected` has answers that are wrong."""

    def __init__(self, a, server):
        self.a, self.server, self.choice = a, server, random.Random(1)
        self.counts, self.unexpected, self.idle = Counter(), Counter(), []
        self.kinds = {self.translate: 20, self.libre: 6, self.translate_stream: 8, self.complete: 8,
                      self.complete_stream: 6, self.openai_embeddings: 6, self.tei: 4, self.recommend: 14,
                      self.gorse: 6, self.feedback: 5, self.health: 3, self.wrong: 6, self.leave_stream: 4,
                      self.leave_at_once: 2, self.cut_body: 2, self.slow_reader: a.slow_readers}

    def line(self):
        return self.choice.choice(self.a.sentences)

    def history(self):
        return self.choice.choices(self.a.items, k=self.choice.randint(1, 20))

    # ---- Requests that are answered

    async def ask(self, request, reaches=1, wanted=200):
        """Sends a request on a connection that is kept, and checks the status of the answer."""
        self.counts["reached"] += reaches
        while self.idle and self.idle[-1][0].at_eof():
            self.idle.pop()[1].close()
        pair = self.idle.pop() if self.idle else await asyncio.open_connection(self.server.host, self.server.port)
        pair[1].write(request)
        status, stays = await read_answer(pair[0])
        self.idle.append(pair) if stays and len(self.idle) < 16 else pair[1].close()
        if status in (429, 503):
            self.counts["refused"] += 1
        elif status != wanted:
            self.unexpected[f"status {status} for {wanted}"] += 1

    async def translate(self):
        text = self.line() if self.choice.random() < 0.8 else [self.line() for _ in range(self.choice.randint(2, 8))]
        more = self.choice.choice([{}, {"n_best": 3}, {"attention": True}, {"sampling": True, "n_best": 2}])
        await self.ask(post_bytes("/v1/translate", {"text": text, "beam": self.a.beam, **more}))

    async def libre(self):
        text = self.choice.choice([self.line(), f"<p>{self.line()}<br><b>{self.line()}</b></p>"])
        await self.ask(post_bytes("/translate", {"q": text, "source": "en", "target": "de", "format": "html"}))

    async def complete(self):
        body = {"prompt": self.a.prompt, "max_tokens": self.choice.randint(1, 48), "n": self.choice.choice([1, 1, 3])}
        await self.ask(post_bytes("/v1/completions", body))

    async def openai_embeddings(self):
        form = self.choice.choice(["float", "base64"])
        body = {"model": "encoder", "input": [self.line(), self.line()], "encoding_format": form}
        await self.ask(post_bytes("/v1/embeddings", body))

    async def tei(self):
        await self.ask(post_bytes("/embed", {"inputs": self.line()}))

    async def recommend(self):
        many = [{"history": self.history(), "top": 10, "explain": True} for _ in range(self.choice.randint(1, 8))]
        await self.ask(post_bytes("/v1/recommend", many if len(many) > 1 else many[0]))

    async def gorse(self):
        path = f"/api/recommend/{self.choice.choice(USERS)}?n=10"
        await self.ask(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())

    async def feedback(self):
        events = [{"FeedbackType": "view", "UserId": self.choice.choice(USERS), "ItemId": item, "Value": 1,
                   "Timestamp": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())} for item in self.history()[:4]]
        await self.ask(post_bytes("/api/feedback", events), reaches=0)

    async def health(self):
        path = self.choice.choice(["/health/ready", "/metrics", "/v1/models", "/languages", "/"])
        await self.ask(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode(), reaches=0)

    async def wrong(self):
        request, status = self.choice.choice(WRONG)
        await self.ask(request, reaches=0, wanted=status)

    # ---- Streams

    async def stream(self, path, body):
        """Reads a stream to its end."""
        self.counts["reached"] += 1
        reader, writer = await asyncio.open_connection(self.server.host, self.server.port)
        writer.write(post_bytes(path, {**body, "stream": True}).replace(b"\r\n\r\n", CLOSE, 1))
        answer = await reader.read(-1)
        writer.close()
        if answer[9:12] in (b"429", b"503"):
            self.counts["refused"] += 1
        elif not answer.startswith(b"HTTP/1.1 200") or b"data: [DONE]\n\n\r\n0\r\n\r\n" not in answer[-40:]:
            self.unexpected[f"stream of {path}: {end_of_stream(answer)}"] += 1

    async def translate_stream(self):
        await self.stream("/v1/translate", {"text": [self.line(), self.line()], "beam": self.choice.choice([1, 4])})

    async def complete_stream(self):
        body = {"prompt": self.a.prompt, "max_tokens": self.choice.randint(8, 48), "logprobs": 3}
        await self.stream("/v1/completions", {**body, "stream_options": {"include_usage": True}})

    # ---- Faults

    def endless(self):
        body = {"prompt": self.a.prompt, "max_tokens": 4096, "stream": True, "slide": True, "logprobs": 5}
        return post_bytes("/v1/completions", body)

    async def leave_stream(self):
        """Leaves a text in the middle, half of the times with a reset."""
        self.counts["reached"] += 1
        reader, writer = await asyncio.open_connection(self.server.host, self.server.port)
        writer.write(self.endless())
        await reader.readuntil(b"data: ")
        await asyncio.sleep(self.choice.random() / 4)
        self.reset_or_close(writer)

    async def leave_at_once(self):
        """Leaves before the answer."""
        self.counts["reached"] += 1
        _, writer = await asyncio.open_connection(self.server.host, self.server.port)
        writer.write(post_bytes("/v1/translate", {"text": [self.line() for _ in range(8)], "beam": 8}))
        await asyncio.sleep(0.02)  # a reset would discard what the server has not read yet
        self.reset_or_close(writer)

    async def cut_body(self):
        """Leaves within the body."""
        _, writer = await asyncio.open_connection(self.server.host, self.server.port)
        request = post_bytes("/v1/translate", {"text": self.line()})
        writer.write(request[:-self.choice.randint(1, 20)])
        await asyncio.sleep(self.choice.random() / 4)
        self.reset_or_close(writer)

    async def slow_reader(self):
        """Reads little of a long stream, or nothing until the server gives up."""
        self.counts["reached"] += 1
        client = socket.socket()
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.setblocking(False)
        loop, piece = asyncio.get_running_loop(), self.choice.choice([0, 200])
        await loop.sock_connect(client, (self.server.host, self.server.port))
        await loop.sock_sendall(client, self.endless())
        for _ in range(self.choice.randint(4, 16)):
            await asyncio.sleep(1)
            if piece and not await loop.sock_recv(client, piece):
                break
        client.close()

    def reset_or_close(self, writer):
        writer.transport.abort() if self.choice.random() < 0.5 else writer.close()

    # ---- Course

    async def one(self, kind):
        try:
            await asyncio.wait_for(kind(), 120)
        except (OSError, EOFError, asyncio.TimeoutError, asyncio.LimitOverrunError) as error:
            if kind != self.slow_reader:  # which the server may cut
                self.unexpected[f"{kind.__name__}: {type(error).__name__}"] += 1

    async def run(self, end):
        """Sends requests at random times, --rate a second, until the time `end`; whatever the answers do."""
        tasks, due = set(), time.monotonic()
        while due < end:
            await asyncio.sleep(max(0, due - time.monotonic()))
            kind = self.choice.choices(list(self.kinds), list(self.kinds.values()))[0]
            self.counts["sent"] += 1
            self.counts[kind.__name__] += 1
            tasks.add(task := asyncio.ensure_future(self.one(kind)))
            task.add_done_callback(tasks.discard)
            due += self.choice.expovariate(self.a.rate)
        await asyncio.gather(*tasks)
        for _, writer in self.idle:
            writer.close()
