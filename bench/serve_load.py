"""A server under load, for bench/serve.py: the process, wrk, and clients that do what wrk cannot."""

import asyncio
import http.client
import json
import re
import resource
import shutil
import signal
import statistics
import subprocess
import time
from pathlib import Path

# wrk sends the bodies of a file in turn, and prints its result as JSON.
WRK_SCRIPT = """
local requests, place = {}, 0
function init(args)
  for line in io.lines(args[2]) do
    requests[#requests + 1] = wrk.format("POST", args[1], {["Content-Type"] = "application/json"}, line)
  end
end
function request()
  if #requests == 0 then return wrk.format("GET") end
  place = place % #requests + 1
  return requests[place]
end
function done(summary, latency)
  local e = summary.errors
  io.write(string.format('{"requests": %d, "seconds": %f, "mean": %f, "p50": %f, "p99": %f, "failed": %d}\\n',
    summary.requests, summary.duration / 1e6, latency.mean / 1e6, latency:percentile(50) / 1e6,
    latency:percentile(99) / 1e6, e.connect + e.read + e.write + e.status + e.timeout))
end
"""


ROWS = {}  # name -> (function, the options that it needs)


def row(*needs):
    """Registers a row: a function of the options that returns (what, figure to reach, figure measured)."""
    def add(function):
        ROWS[function.__name__.replace("_", "-")] = (function, needs)
        return function
    return add


def percentile(values, share):
    """The smallest value that at least this share of all does not exceed; NaN without values."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else float("nan")


class Server:
    """A running `qkv serve`, as a context manager. `started` is the time in seconds until it was ready."""

    def __init__(self, qkv, runs, *options):
        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))  # of this process and the server
        begin = time.monotonic()
        command = [qkv, "serve", *runs, "--listen", "127.0.0.1:0", "--log", "none", *map(str, options)]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        lines = []
        for line in self.process.stderr:
            lines.append(line)
            if address := re.search(r"http://([\d.]+):(\d+)", line):
                break
        else:
            raise SystemExit(f"qkv serve: {''.join(lines)}")
        self.started = time.monotonic() - begin
        self.host, self.port = address[1], int(address[2])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.process.stderr.close()

    def stop(self):
        """Sends SIGTERM; returns the exit status and the seconds until the exit."""
        begin = time.monotonic()
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(120), time.monotonic() - begin

    def resident(self):
        """Bytes of memory."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return 1024 * int(re.search(r"VmRSS:\s+(\d+)", status)[1])

    def request(self, path, body=None, connection=None):
        """Sends a request; returns the status and the text of the answer."""
        own = connection or http.client.HTTPConnection(self.host, self.port, timeout=120)
        headers = {"Content-Type": "application/json"} if body is not None else {}
        own.request("GET" if body is None else "POST", path, None if body is None else json.dumps(body), headers)
        answer = own.getresponse()
        status, text = answer.status, answer.read().decode()
        if not connection:
            own.close()
        return status, text

    def metric(self, name):
        """The sum of the series of a metric."""
        text = self.request("/metrics")[1]
        return sum(float(line.split()[-1]) for line in text.splitlines() if re.match(rf"{name}[ {{]", line))

    def wrk(self, folder, path, bodies, clients, seconds):
        """Closed loop of wrk. bodies: JSON texts that are sent in turn; none: GET. Returns what WRK_SCRIPT prints."""
        if not shutil.which("wrk"):
            raise SystemExit("wrk is not installed (apt-get install wrk)")
        (folder / "wrk.lua").write_text(WRK_SCRIPT)
        (folder / "bodies").write_text("".join(f"{body}\n" for body in bodies))
        command = ["wrk", "-t1", f"-c{clients}", f"-d{max(1, round(seconds))}s", "--timeout", "120s", "-s", folder / "wrk.lua",
                   f"http://{self.host}:{self.port}{path}", "--", path, folder / "bodies"]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        figures = json.loads(done.stdout.splitlines()[-1])
        figures["rate"] = figures["requests"] / figures["seconds"]
        return figures


def post_bytes(path, body):
    data = json.dumps(body).encode()
    return (f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(data)}\r\n\r\n").encode() + data


async def read_answer(reader):
    """Reads an answer with Content-Length; returns its status, and whether the connection stays."""
    head = await reader.readuntil(b"\r\n\r\n")
    length = re.search(rb"\r\nContent-Length: (\d+)", head)
    await reader.readexactly(int(length[1]) if length else 0)
    return int(head[9:12]), b"\r\nConnection: close" not in head


async def open_loop(server, request, rate, seconds):
    """Sends requests at a fixed rate, whatever the answers do. Returns (start, latency, status) of each; status 0 is a
    lost connection."""
    loop, idle, results = asyncio.get_running_loop(), [], []

    async def send():
        begin, status, pair = loop.time(), 0, None
        try:
            pair = idle.pop() if idle else await asyncio.open_connection(server.host, server.port)
            begin = loop.time()
            pair[1].write(request)
            status, stays = await read_answer(pair[0])
            idle.append(pair) if stays else pair[1].close()
        except (OSError, asyncio.IncompleteReadError):
            if pair:
                pair[1].close()
        results.append((begin, loop.time() - begin, status))

    tasks, begin = [], loop.time()
    for i in range(int(rate * seconds)):
        await asyncio.sleep(max(0, begin + i / rate - loop.time()))
        tasks.append(asyncio.ensure_future(send()))
    lag = loop.time() - begin - seconds
    await asyncio.gather(*tasks)
    for _, writer in idle:
        writer.close()
    return [(start - begin, *rest) for start, *rest in results], lag


async def stream_gaps(server, request, ended):
    """Reads a stream until the event `ended` is set; starts another one when it ends. Returns (time, gap) of events."""
    loop, gaps = asyncio.get_running_loop(), []
    while not ended.is_set():
        reader, writer = await asyncio.open_connection(server.host, server.port)
        writer.write(request)
        await reader.readuntil(b"\r\n\r\n")
        last = None
        while not ended.is_set():
            line = await reader.readline()
            if line.startswith(b"data: [DONE]") or not line:
                break
            if line.startswith(b"data: "):
                now = loop.time()
                gaps += [(now, now - last)] if last else []
                last = now
        writer.close()
    return gaps


def median(values):
    return statistics.median(values) if values else float("nan")
