"""Short requests of one client while another one sends the most expensive requests that a server takes.

    QKV=build/release/qkv python3 bench/serve_hostile.py [--seconds 10] [--only attention,marks] [RUN...]

For each hostile request: four connections of the attacker repeat it, and a client with another key sends short requests
one after the other. A row has the latencies of the short requests, how many failed, the most memory, and the time from
SIGTERM to the end of the server. Ends with status 1 if a short request failed, the 99th percentile is over 100 ms, the
memory is over the bound of docs/serve.md, or the server does not end. RUN: by default the runs of tests/golden/runs.
"""

import argparse
import contextlib
import http.client
import json
import multiprocessing
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
QKV = os.environ.get("QKV", str(ROOT / "build/release/qkv"))
RUNS = {"mt": "translator", "lm": "language", "rec": "recommender", "enc": "encoder"}
KEYS = {"attacker": "a" * 20, "user": "u" * 20}
LONGEST = 16_384   # characters of a text
MOST_MS = 100      # of the 99th percentile of short requests
MEMORY = 1 << 30   # bytes beyond those of the idle server: answers, bodies, and the texts that are being read

MARKS = "e" + "\u0301\u0316" * (LONGEST // 2 - 1)
ATTENDED = "the red basket is near the old house and " * 40  # whose weights are nearly as many as may be
HOSTILE = {
    "attention": ("/v1/translate", {"text": ["the red basket is near the old house " * 60] * 10, "attention": True}),
    "attention-short": ("/v1/translate", {"text": ["a red basket"] * 100, "attention": True}),
    "stream": ("/v1/translate", {"text": ATTENDED, "attention": True, "beam": 1, "stream": True}),
    "marks": ("/v1/embeddings", {"input": [MARKS] * 60}),
    "marks-tei": ("/embed", {"inputs": [MARKS] * 60}),
    "tokenize": ("/tokenize", {"model": "enc", "inputs": [MARKS] * 60}),
    "detokenize": ("/detokenize", {"model": "lm", "tokens": [5] * 600_000}),
    "attend": ("/v1/attend", {"model": "mt", "text": "red basket " * 1400}),
    "unknown": ("/v1/translate", {"text": ["\u4e00\u4e8c" * (LONGEST // 2)] * 40}),
    "spaces": ("/v1/translate", {"text": [" " * LONGEST] * 120}),
    "letter": ("/v1/completions", {"prompt": ["a" * LONGEST] * 120, "max_tokens": 1, "slide": True}),
    "no-spaces": ("/v1/translate", {"text": ["xyzzy" * (LONGEST // 5)] * 120}),
    "nested-html": ("/translate", {"q": "<b>" * 2500 + "a" + "</b>" * 2500, "source": "auto", "target": "und", "format": "html"}),
    "beams": ("/v1/translate", {"text": ["a red basket " * 250] * 8, "beam": 16}),
    "many-texts": ("/v1/translate", {"text": ["red basket " * 1400] * 100, "beam": 16}),
    "choices": ("/v1/completions", {"prompt": ["A"] * 16, "n": 16, "max_tokens": 200, "slide": True}),
    "logprobs": ("/v1/completions", {"prompt": ["A"] * 8, "n": 8, "max_tokens": 400, "logprobs": 20, "slide": True}),
    "echo": ("/v1/completions", {"prompt": ["A" * 20] * 250, "max_tokens": 0, "echo": True, "logprobs": 0}),
    "histories": ("/v1/recommend", [{"history": ["x" * 200] * 20, "top": 10_000, "explain": True}] * 200),
    "items": ("/v1/recommend", [{"history": ["i1"], "top": 1_000} for _ in range(250)]),
    "json": ("/v1/embeddings", '{"input": [' + ",".join(["[" * 60 + "]" * 60] * 15_000) + "]}"),
    "unread": ("/v1/translate", {"text": ATTENDED, "attention": True, "beam": 1}),
    "gone": ("/v1/translate", {"text": ["a red basket"] * 100, "beam": 16, "attention": True}),
}
SHORT = [("/v1/embeddings", {"input": "a dog"}), ("/v1/recommend", {"history": ["i1"], "top": 3}),
         ("/v1/translate", {"text": "a red basket", "beam": 1, "max_length": 4}),
         ("/v1/completions", {"prompt": "A", "max_tokens": 2}), ("/v1/info", None)]


def encoded(body):
    return (body if isinstance(body, str) else json.dumps(body, ensure_ascii=False)).encode()


class Server:
    def __init__(self, runs, folder):
        keys = Path(folder) / "keys"
        keys.write_text("".join(f"{name} {value}\n" for name, value in KEYS.items()))
        self.process = subprocess.Popen([QKV, "serve", *runs, "--api-keys", keys, "--listen", "127.0.0.1:0", "--log", "none",
                                         "--drain-timeout", "1s"], stderr=subprocess.PIPE, text=True)
        self.port = next(int(found[1]) for line in self.process.stderr if (found := re.search(r"http://[\d.]+:(\d+)", line)))

    def memory(self, name="VmHWM"):
        return 1024 * int(re.search(rf"{name}:\s+(\d+)", Path(f"/proc/{self.process.pid}/status").read_text())[1])

    def send(self, path, body, name, connection):
        data = None if body is None else encoded(body)
        headers = {"Authorization": f"Bearer {KEYS[name]}", **({"Content-Type": "application/json"} if data else {})}
        connection.request("POST" if data else "GET", path, data, headers)
        answer = connection.getresponse()
        return answer.status, answer.read()

    def end(self):
        begin = time.monotonic()
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
        return time.monotonic() - begin


def attack(server, name):
    """Repeats a hostile request on one connection; `unread` reads no answer, and `gone` leaves before it."""
    path, body = HOSTILE[name]
    data = encoded(body)
    head = (f"POST {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {KEYS['attacker']}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(data)}\r\n\r\n").encode()
    kept = []
    while True:
        with contextlib.suppress(OSError, http.client.HTTPException):
            if name in ("unread", "gone"):
                connection = socket.create_connection(("127.0.0.1", server.port), timeout=10)
                connection.sendall(head + data)
                time.sleep(0.05)
                kept.append(connection) if name == "unread" else connection.close()
                if len(kept) > 60:
                    kept.pop(0).close()
            else:
                connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
                while True:
                    server.send(path, body, "attacker", connection)


def measure(runs, name, seconds):
    with tempfile.TemporaryDirectory() as folder:
        server = Server(runs, folder)
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
        short = [request for request in SHORT if server.send(*request, "user", connection)[0] == 200]
        idle = server.memory("VmRSS")
        times, failed = [], 0
        # Processes of their own, so that what they read takes no time of the other client.
        attackers = [multiprocessing.Process(target=attack, args=(server, name), daemon=True) for _ in range(4)]
        for attacker in attackers:
            attacker.start()
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            for path, body in short:
                begin = time.monotonic()
                try:
                    failed += server.send(path, body, "user", connection)[0] != 200
                except (OSError, http.client.HTTPException):
                    failed += 1
                    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
                times.append(time.monotonic() - begin)
            time.sleep(0.01)
        memory = server.memory() - idle
        ended = server.end()
        for attacker in attackers:
            attacker.terminate()
            attacker.join()
    times.sort()
    p50, p99 = (1000 * times[int(part * (len(times) - 1))] for part in (0.5, 0.99))
    sound = failed == 0 and p99 <= MOST_MS and memory <= MEMORY and server.process.returncode in (0, 1) and ended < 10
    print(f"{name:16} {len(times):6} requests  p50 {p50:6.1f} ms  p99 {p99:6.1f} ms  max {1000 * times[-1]:6.0f} ms  "
          f"{failed} failed  {memory / 2**20:6.0f} MiB  ended in {ended:.1f} s  {'' if sound else 'NOT SOUND'}", flush=True)
    return sound


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="*", default=[f"{name}={ROOT}/tests/golden/runs/{run}" for name, run in RUNS.items()])
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--only", default=",".join(HOSTILE))
    options = parser.parse_args()
    results = [measure(options.runs, name, options.seconds) for name in options.only.split(",")]
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
