"""Rows of bench/serve.py that compare the rate of a server with that of the command line."""

import http.client
import json
import subprocess
import time
from dataclasses import dataclass

from serve_load import Server, median, percentile, row


def offline(a, *command, text):
    """Texts per second of a command on lines of text, repeated until it takes a second or more, without its start."""
    def seconds(lines):
        begin = time.monotonic()
        subprocess.run([a.qkv, *map(str, command)], input="".join(f"{line}\n" for line in lines), text=True, check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return time.monotonic() - begin
    start, repeats, taken = seconds(text[:1]), 1, 0
    while taken < max(0.5, a.seconds / 5):
        repeats *= 4
        taken = seconds(text * repeats) - start
    return (len(text) * repeats - 1) / taken


@dataclass
class Comparison:
    """A closed loop of clients against a server, and commands that do the same offline."""

    what: str
    goal: str
    run: str  # that is served
    path: str
    bodies: list  # of requests, as JSON
    commands: list  # whose best counts
    texts: list  # lines of input of the commands
    clients: int = 64
    texts_of_body: int = 1

    def measure(self, a):
        here, there, latencies, failed = [], [], [], 0
        for _ in range(a.rounds):
            there.append(max(offline(a, *command, text=self.texts) for command in self.commands))
            with Server(a.qkv, [self.run], *a.server) as server:
                server.wrk(a.folder, self.path, self.bodies, self.clients, a.seconds)  # warms up
                figures = server.wrk(a.folder, self.path, self.bodies, self.clients, a.seconds)
            failed += figures["failed"]
            good = 1 - figures["failed"] / max(1, figures["requests"])
            # Little's law: long requests that end together would make their count coarse.
            rate = self.clients / figures["mean"] if figures["requests"] else 0
            here.append(rate * good * self.texts_of_body)
            latencies.append(figures["p99"])
        share = median([x / y for x, y in zip(here, there)])
        return self.what, self.goal, (f"{share:.0%} ({median(here):,.1f} of {median(there):,.1f} texts/s; "
                                      f"p99 {median(latencies) * 1e3:.0f} ms; {failed} requests failed)")


@row("translator", "sentences")
def translate(a):
    options = {"beam": a.beam} | ({"min_length": a.length, "max_length": a.length} if a.length else {})
    flags = [text for name, value in options.items() for text in (f"--{name.replace('_', '-')}", value)]
    return Comparison(
        f"64 clients, a sentence a request, beam {a.beam}", "≥ 90 % of `qkv translate`", a.translator, "/v1/translate",
        [json.dumps({"text": line, "alignment": False, **options}) for line in a.sentences],
        [("translate", a.translator, *flags, "--workers", n) for n in a.offline_workers], a.sentences,
    ).measure(a)


@row("language")
def generate(a):
    body = json.dumps({"prompt": a.prompt, "max_tokens": a.tokens, "stream": True})
    command = ("generate", a.language, "--prompts", "-", "--batch", 16, "--max-tokens", a.tokens, "--json")
    return Comparison(f"16 streams of {a.tokens} tokens", "≥ 90 % of `qkv generate --batch 16`", a.language,
                      "/v1/completions", [body], [command], [a.prompt] * 16, clients=16).measure(a)


@row("encoder", "sentences")
def embed(a):
    return Comparison("64 clients of an encoder", "≥ 90 % of `qkv embed`", a.encoder, "/embed",
                      [json.dumps({"inputs": line}) for line in a.sentences], [("embed", a.encoder)],
                      a.sentences).measure(a)


def recommender_row(a, size, goal):
    lines = [json.dumps({"history": a.items[i % len(a.items):][:10], "top": 10}) for i in range(256)]
    bodies = lines if size == 1 else [f"[{','.join(lines[i:i + size])}]" for i in range(0, len(lines), size)]
    clients = min(64, 256 // size)  # what waits fits into the queue
    return Comparison(f"recommender, {clients} clients, {size} histories a request", f"{goal} of the JSON lines",
                      a.recommender, "/v1/recommend", bodies, [("recommend", a.recommender)], lines, clients,
                      size).measure(a)


@row("recommender")
def recommend(a):
    return recommender_row(a, 1, "≥ 60 %")


@row("recommender")
def recommend_32(a):
    return recommender_row(a, 32, "≥ 90 %")


@row("recommender")
def latency(a):
    """One client on an idle machine. The time of the computation is that of the steps, on average."""
    figures = []
    for _ in range(a.rounds):
        with Server(a.qkv, [a.recommender], *a.server) as server:
            connection, times = http.client.HTTPConnection(server.host, server.port), []
            body, count = {"history": a.items[:10]}, max(50, int(100 * a.seconds))
            server.request("/v1/recommend", body, connection)
            before = server.metric("qkv_step_seconds_sum")
            for _ in range(count):
                begin = time.perf_counter()
                server.request("/v1/recommend", body, connection)
                times.append(time.perf_counter() - begin)
            busy = (server.metric("qkv_step_seconds_sum") - before) / count
            figures.append((busy, percentile(times, 0.5) - busy, percentile(times, 0.99) - busy))
            connection.close()
    busy, p50, p99 = (median(column) * 1e3 for column in zip(*figures))
    return ("one client, idle: time beyond the computation", "p50 ≤ 0.5 ms, p99 ≤ 2 ms",
            f"p50 {p50:.2f} ms, p99 {p99:.2f} ms (computation {busy:.2f} ms)")


@row("any")
def health(a):
    rates = []
    for _ in range(a.rounds):
        with Server(a.qkv, [a.any], *a.server) as server:
            rates.append(server.wrk(a.folder, "/health/live", [], 64, a.seconds)["rate"])
    return "GET /health/live, 64 connections", "≥ 30,000 a second", f"{median(rates):,.0f} a second"
