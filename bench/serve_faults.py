"""Rows of bench/serve.py in which clients leave, are slow or too many, or the server ends."""

import asyncio
import http.client
import json
import socket
import threading
import time

from serve_load import Server, median, open_loop, percentile, post_bytes, row, stream_gaps

MIB = 1 << 20


@row("any")
def start(a):
    times = []
    for _ in range(a.rounds):
        with Server(a.qkv, [a.any], *a.server) as server:
            times.append(server.started)
    return "start to ready", "≤ 1 s `tiny`, ≤ 2 s 500 MB", f"{median(times):.2f} s"


@row("any")
def idle(a):
    with Server(a.qkv, [a.any], "--max-connections", 2 * a.connections, *a.server) as server:
        server.request("/health")
        before = server.resident()
        open_ones = [socket.create_connection((server.host, server.port)) for _ in range(a.connections)]
        server.request("/health")
        grown = server.resident() - before
        for connection in open_ones:
            connection.close()
    return f"{a.connections:,} idle connections", "≤ 10 MiB", f"{grown / MIB:.1f} MiB"


@row("translator", "sentences")
def overload(a):
    """Ten times what a closed loop of 64 clients gets done, in an open loop."""
    length = {"min_length": a.length, "max_length": a.length} if a.length else {}
    bodies = [json.dumps({"text": line, "beam": a.beam, **length}) for line in a.sentences]
    figures = []
    for _ in range(a.rounds):
        with Server(a.qkv, [a.translator], "--max-connections", 20000, *a.server) as server:
            capacity = server.wrk(a.folder, "/v1/translate", bodies, 64, a.seconds)["rate"]
            if not capacity:
                raise SystemExit("overload: no request was done in --seconds")
            request = post_bytes("/v1/translate", json.loads(bodies[0]))
            samples, stop = [], threading.Event()

            def sample():
                while not stop.wait(0.5):
                    samples.append((time.monotonic(), server.resident()))

            sampler = threading.Thread(target=sample)
            sampler.start()
            begin = time.monotonic()
            results, lag = asyncio.run(open_loop(server, request, 10 * capacity, 3 * a.seconds))
            stop.set()
            sampler.join()
            after = [size for at, size in samples if at > begin + min(5, a.seconds)] or [server.resident()]
            refused = [latency for _, latency, status in results if status == 429]
            done = sum(status == 200 for *_, status in results) / (3 * a.seconds + lag)
            late = sum(status in (503, 504) for *_, status in results)
            lost = sum(status == 0 for *_, status in results)
            figures.append((percentile(refused, 0.99), done / capacity, late, lost, max(after) / min(after) - 1, lag))
    p99, share, late, lost, growth, lag = (median(column) for column in zip(*figures))
    return (f"10 × capacity, open loop, {3 * a.seconds:g} s",
            "refusals p99 ≤ 5 ms; done ≥ 90 %; none late; memory within 5 %",
            f"refusals p99 {p99 * 1e3:.1f} ms; done {share:.0%}; {late:.0f} late, {lost:.0f} lost; memory {growth:+.1%}"
            f" (the client lagged {lag:.1f} s behind)")


@row("language")
def leave(a):
    """How long a text runs on after its client has closed the connection."""
    times = []
    with Server(a.qkv, [a.language], *a.server) as server:
        for _ in range(10 * a.rounds):
            with socket.create_connection((server.host, server.port)) as client:
                body = {"prompt": a.prompt, "max_tokens": 4096, "stream": True, "slide": True}
                client.sendall(post_bytes("/v1/completions", body))
                client.recv(4096)
            begin = time.monotonic()
            while server.metric("qkv_requests_running"):
                if time.monotonic() - begin > 10:
                    return "a client leaves", "rows free in ≤ 50 ms", "not within 10 s"
            times.append(time.monotonic() - begin)
    found = f"p50 {median(times) * 1e3:.0f} ms, max {max(times) * 1e3:.0f} ms"
    return "a client leaves", "rows free in ≤ 50 ms", found


@row("language")
def prompt(a):
    """Gaps between the events of 16 streams, alone and while a long prompt is read."""
    async def gaps(server, with_prompt):
        ended = asyncio.Event()
        body = {"prompt": a.prompt, "max_tokens": a.tokens, "stream": True, "logprobs": 0}
        readers = [asyncio.ensure_future(stream_gaps(server, post_bytes("/v1/completions", body), ended))
                   for _ in range(16)]
        await asyncio.sleep(min(1, a.seconds / 4))
        begin = asyncio.get_running_loop().time()
        if with_prompt:
            reader, writer = await asyncio.open_connection(server.host, server.port)
            long_one = {"prompt": [7] * a.long_prompt, "max_tokens": 1}
            writer.write(post_bytes("/v1/completions", long_one))
            head = await reader.readuntil(b"\r\n\r\n")
            writer.close()
            if b" 200 " not in head[:20]:
                raise SystemExit(f"the long prompt is refused: give a language model that reads it ({head[:40]})")
        else:
            await asyncio.sleep(a.seconds)
        end = asyncio.get_running_loop().time()
        ended.set()
        found = [gap for reader in await asyncio.gather(*readers) for at, gap in reader if begin <= at <= end]
        return percentile(found, 0.99)

    def time_of_prompt(server, token):
        begin = time.monotonic()
        server.request("/v1/completions", {"prompt": [token] * 512, "max_tokens": 1})
        return time.monotonic() - begin

    alone, together, read = [], [], []
    for _ in range(a.rounds):
        with Server(a.qkv, [a.language], *a.server) as server:
            read += [time_of_prompt(server, token) for token in (8, 9, 10)]  # none begins like another
            alone.append(asyncio.run(gaps(server, False)))
            together.append(asyncio.run(gaps(server, True)))
    return (f"a prompt of {a.long_prompt:,} tokens next to 16 streams", "p99 gap ≤ 2 × (step + 512 prompt tokens)",
            f"p99 gap {median(together) * 1e3:.0f} ms, without it {median(alone) * 1e3:.0f} ms; 512 prompt tokens "
            f"{median(read) * 1e3:.0f} ms")


@row("language")
def slow_readers(a):
    """200 clients that do not read their streams, and the health route next to them."""
    with Server(a.qkv, [a.language], "--queue-items", 1000, *a.server) as server:
        server.request("/v1/completions", {"prompt": a.prompt, "max_tokens": 4})
        before, clients = server.resident(), []
        for _ in range(200):
            client = socket.socket()
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            client.connect((server.host, server.port))
            client.sendall(post_bytes("/v1/completions", {"prompt": a.prompt, "max_tokens": a.tokens, "stream": True}))
            clients.append(client)
        times = timed_health(server, a.seconds)
        grown = server.resident() - before
        for client in clients:
            client.close()
    return ("200 streams that nobody reads", "≤ 64 KiB each; health p99 ≤ 10 ms",
            f"{grown / 200 / 1024:.0f} KiB each, keys and values included; "
            f"health p99 {percentile(times, 0.99) * 1e3:.1f} ms")


def timed_health(server, seconds):
    """Latencies of /health/live on a connection, one at a time."""
    connection, times, end = http.client.HTTPConnection(server.host, server.port), [], time.monotonic() + seconds
    while time.monotonic() < end:
        begin = time.perf_counter()
        server.request("/health/live", connection=connection)
        times.append(time.perf_counter() - begin)
        time.sleep(0.002)
    connection.close()
    return times


@row("any")
def slowloris(a):
    """Connections that send a head byte by byte: when they are cut, and the health route next to them."""
    timeout = 5
    with Server(a.qkv, [a.any], "--header-timeout", f"{timeout}s", "--max-connections", 2 * a.connections,
                *a.server) as server:
        before = server.resident()
        begin = time.monotonic()
        clients = [socket.create_connection((server.host, server.port)) for _ in range(a.connections)]
        for client in clients:
            client.sendall(b"GET /health/live HTTP/1.1\r\nHost: ")
        opened = time.monotonic() - begin
        times = timed_health(server, 1)
        grown = server.resident() - before
        first = clients[0].recv(100)
        cut = time.monotonic() - begin
        for client in clients:
            client.close()
    return (f"{a.connections:,} connections that do not finish a head, --header-timeout {timeout}s",
            "≤ 64 KiB each; health p99 ≤ 10 ms; cut at the timeout ± 1 s",
            f"{grown / a.connections / 1024:.1f} KiB each; health p99 {percentile(times, 0.99) * 1e3:.1f} ms; first cut"
            f" after {cut:.1f} s ({first[9:12].decode()}), opened in {opened:.1f} s")


@row("any")
def drain(a):
    """SIGTERM under 64 clients that stop when the server is not ready."""
    path, body = busy_request(a)
    failed = done = bad_exits = 0
    longest = 0.0
    for _ in range(a.drains):
        with Server(a.qkv, [a.any], "--drain-delay", "1s", *a.server) as server:
            stop, outcomes = threading.Event(), []

            def watch():
                while not stop.wait(0.1):
                    try:
                        if server.request("/health/ready")[0] != 200:
                            stop.set()
                    except OSError:
                        stop.set()

            def client():
                while not stop.is_set():
                    try:
                        outcomes.append(server.request(path, body)[0] == 200)
                    except (OSError, http.client.HTTPException):
                        outcomes.append(False)

            threads = [threading.Thread(target=f) for f in [watch] + [client] * 64]
            for thread in threads:
                thread.start()
            time.sleep(min(2, a.seconds))
            status, seconds = server.stop()
            stop.set()
            for thread in threads:
                thread.join()
            failed, done = failed + outcomes.count(False), done + outcomes.count(True)
            bad_exits += status != 0
            longest = max(longest, seconds)
    return (f"SIGTERM under 64 clients, {a.drains} times, --drain-delay 1s",
            "0 failed; exit 0; ≤ longest request + 2 s",
            f"{failed} of {done + failed:,} failed; {bad_exits} other exits; at most {longest:.1f} s")


def busy_request(a):
    """A request of the first model that is given."""
    if a.translator:
        return "/v1/translate", {"text": a.sentences[0] if a.sentences else "A dog runs.", "beam": a.beam}
    if a.language:
        return "/v1/completions", {"prompt": a.prompt, "max_tokens": 16}
    return ("/embed", {"inputs": "A dog runs."}) if a.encoder else ("/v1/recommend", {"history": a.items[:10]})


@row("any")
def soak(a):
    """Memory over many requests, in ten parts."""
    path, body = busy_request(a)
    sizes, done = [], 0
    with Server(a.qkv, [a.any], *a.server) as server:
        server.wrk(a.folder, path, [json.dumps(body)], 64, max(1, a.seconds / 10))
        while done < a.requests:
            done += server.wrk(a.folder, path, [json.dumps(body)], 64, a.seconds)["requests"]
            sizes.append((done, server.resident()))
    if len(sizes) < 2:
        return f"{done:,} requests", "≤ 1 MiB per 100,000", "too few for a slope: raise --requests"
    xs, ys = zip(*sizes)
    x, y = sum(xs) / len(xs), sum(ys) / len(ys)
    slope = sum((p - x) * (q - y) for p, q in sizes) / sum((p - x) ** 2 for p in xs)
    return f"{done:,} requests", "≤ 1 MiB per 100,000", f"{slope * 1e5 / MIB:+.2f} MiB per 100,000"
