"""A `qkv serve` on a free port of this machine, and the requests of the tests of the server."""

import functools
import http.client
import json
import os
import re
import signal
import socket
import struct
import subprocess
import threading
import time
from dataclasses import dataclass

from conftest import QKV, ROOT

RUNS = ROOT / "tests/golden/runs"
TITLES = RUNS / "log/titles.csv"
# The runs by the names that the tests serve them with.
MODELS = {"mt": RUNS / "translator", "lm": RUNS / "language", "rec": RUNS / "recommender", "enc": RUNS / "encoder"}
ALL = [*(f"{name}={run}" for name, run in MODELS.items()), "--titles", f"rec={TITLES}"]
LANGUAGE = f"lm={MODELS['lm']}"

# One thread for each worker: the tests share the machine with others.
QUIET = {"OMP_NUM_THREADS": "1"}


@functools.cache
def known_options():
    """The options of this `qkv serve`."""
    helps = [subprocess.run([QKV, "serve", option], capture_output=True, text=True, timeout=60).stdout
             for option in ("--help", "--help-all")]
    return set(re.findall(r"^ +(?:-h,)?(--[a-z-]+)", "\n".join(helps), re.MULTILINE))


def has_option(name):
    return name in known_options()


def only_known(*pairs):
    """Returns the options of these (name, value) that this `qkv serve` has, as arguments."""
    return [str(word) for pair in pairs if has_option(pair[0]) for word in pair]


@dataclass
class Reply:
    status: int
    headers: dict  # names in lower case
    body: bytes

    def json(self):
        return json.loads(self.body)

    @property
    def text(self):
        return self.body.decode()

    def events(self):
        """The data of the events of a stream."""
        blocks = self.body.decode().split("\n\n")
        assert blocks[-1] == "", blocks[-1]
        return [block.removeprefix("data: ") for block in blocks[:-1] if not block.startswith(":")]


class ServeProcess:
    """A running server. `url` is its address. Used as a context manager, which ends it.

    reads_log: whether somebody reads what it logs.
    """

    def __init__(self, arguments, environment=None, reads_log=True):
        self.lines, self.process, self.reader = [], None, None
        command = [QKV, "serve", *map(str, arguments), "--listen", "127.0.0.1:0"]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, errors="replace",
                                        env={**os.environ, **QUIET, **(environment or {})})
        address = None
        for line in self.process.stderr:
            self.lines.append(line)
            address = re.match(r"qkv: serving \d+ models? on (https?)://([0-9.]+):(\d+)", line)
            if address:
                break
        if not address:
            raise RuntimeError(f"qkv serve ended with {self.process.wait(60)}: {''.join(self.lines)}")
        self.host, self.port = address[2], int(address[3])
        self.url = f"{address[1]}://{self.host}:{self.port}"
        if reads_log:
            self.reader = threading.Thread(target=lambda: self.lines.extend(self.process.stderr), daemon=True)
            self.reader.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(60)
        if self.reader:
            self.reader.join(10)
        self.process.stderr.close()

    @property
    def pid(self):
        return self.process.pid

    def stop(self, timeout=60):
        """Sends SIGTERM, and returns the exit status."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout)

    def connect(self, timeout=600):
        return http.client.HTTPConnection(self.host, self.port, timeout=timeout)

    def open_socket(self, timeout=600):
        return socket.create_connection((self.host, self.port), timeout=timeout)

    def request(self, method, path, body=None, headers=None, connection=None):
        """Sends a request, and returns the reply. body: bytes, text, or a value that is sent as JSON."""
        own = connection or self.connect()
        data, sent = encode(body)
        own.request(method, path, body=data, headers={**sent, **(headers or {})})
        found = own.getresponse()
        reply = Reply(found.status, {name.lower(): value for name, value in found.getheaders()}, found.read())
        if not connection:
            own.close()
        return reply

    def get(self, path, **options):
        return self.request("GET", path, **options)

    def post(self, path, body, **options):
        return self.request("POST", path, body, **options)

    def gauges(self, name, **options):
        """The sum of a metric over all its series; None if the server has no metrics."""
        reply = self.get("/metrics", **options)
        if reply.status != 200:
            return None
        values = [float(line.split()[-1]) for line in reply.text.splitlines() if re.match(rf"{name}[ {{]", line)]
        assert values, name
        return sum(values)

    def settled(self, name, **options):
        """The sum of a metric when it has not changed for half a second: a step is counted when it has ended, shortly after
        clients have its answers."""
        seen = []
        while len(seen) < 5 or len(set(seen[-5:])) > 1:
            seen.append(self.gauges(name, **options))
            time.sleep(0.1)
        return seen[-1]

    def busy_seconds(self, **options):
        return self.settled("qkv_compute_busy_seconds_total", **options)

    def steps(self, **options):
        """The number of steps that computed something."""
        return self.settled("qkv_step_seconds_count", **options)

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.pid}/fd"))

    def cpu_seconds(self):
        """The processor time that it has used."""
        with open(f"/proc/{self.pid}/stat") as file:
            fields = file.read().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def threads(self):
        return len(os.listdir(f"/proc/{self.pid}/task"))


def encode(body):
    """Returns the bytes of a body, and the headers that it needs."""
    if body is None or isinstance(body, bytes):
        return body, {} if body is None else {"Content-Type": "application/json"}
    text = body if isinstance(body, str) else json.dumps(body)
    return text.encode(), {"Content-Type": "application/json"}


def request_bytes(path, body, extra=""):
    """Returns a POST request as bytes, for tests that send parts of it."""
    data, _ = encode(body)
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n{extra}"
    return f"{head}Content-Length: {len(data)}\r\n\r\n".encode() + data


def reset(connection):
    """Closes a socket so that the peer gets a reset."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


def wait_for(holds, seconds=30):
    """Waits until the condition holds; returns whether it does."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if holds():
            return True
        time.sleep(0.02)
    return bool(holds())
