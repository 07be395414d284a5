"""The row soak-mixed of bench/serve.py: requests of all kinds, and faults, at a fixed rate for a time."""

import asyncio
import json
import os
import signal
import statistics
import sys
import time

from serve_clients import Clients
from serve_load import Server, row

MIB = 1 << 20


def descriptors(server):
    return len(os.listdir(f"/proc/{server.process.pid}/fd"))


async def sample(server, clients, samples):
    """Adds a sample (seconds, requests, bytes of memory) every 10 s, and sends SIGHUP once a minute."""
    begin = time.monotonic()
    for n in range(1, 1 << 30):
        await asyncio.sleep(max(0, begin + 10 * n - time.monotonic()))
        samples.append((time.monotonic() - begin, clients.counts["sent"], server.resident()))
        seconds, sent, size = samples[-1]
        print(f"{seconds:.0f} s: {sent:,} requests, {size / MIB:.2f} MiB, {descriptors(server)} descriptors",
              file=sys.stderr, flush=True)
        if n % 6 == 3:
            server.process.send_signal(signal.SIGHUP)
            clients.counts["SIGHUP"] += 1


async def load(server, clients, minutes):
    """Runs the clients; returns the samples."""
    samples = []
    sampler = asyncio.ensure_future(sample(server, clients, samples))
    await clients.run(time.monotonic() + 60 * minutes)
    sampler.cancel()
    return samples


def slope(points):
    """The slope of the line of least squares."""
    xs, ys = zip(*points)
    x, y = sum(xs) / len(xs), sum(ys) / len(ys)
    return sum((p - x) * (q - y) for p, q in points) / sum((p - x) ** 2 for p in xs)


def sixths(samples):
    """The mean time in seconds and the median size in MiB of each sixth: a model that SIGHUP replaces is there twice for
    a moment, which a median leaves out."""
    if len(samples) < 12:
        raise SystemExit("soak-mixed: too few samples for a slope: raise --minutes")
    parts = [samples[len(samples) * i // 6:len(samples) * (i + 1) // 6] for i in range(6)]
    return [(statistics.mean(at for at, *_ in part), statistics.median(size for *_, size in part) / MIB)
            for part in parts]


def settle(server):
    """Waits until nothing is left of the last clients; returns what waits or runs, and the descriptors."""
    for _ in range(100):
        left = server.metric("qkv_requests_waiting") + server.metric("qkv_requests_running")
        if not left:
            break
        time.sleep(0.1)
    time.sleep(1)
    return int(left), descriptors(server)


@row("translator", "language", "encoder", "recommender", "sentences")
def soak_mixed(a):
    """Memory, descriptors and counters over --minutes of all kinds of requests and faults."""
    names = [f"{name}={getattr(a, name)}" for name in ("translator", "language", "encoder", "recommender")]
    with Server(a.qkv, names, "--languages", "translator=en-de", "--events", a.folder / "events.tsv",
                "--write-timeout", "5s", *a.server) as server:
        clients = Clients(a, server)
        server.request("/health")
        _, before = settle(server)
        counted = server.metric("qkv_requests_total")
        samples = asyncio.run(load(server, clients, a.minutes))
        left, after = settle(server)
        counted = int(server.metric("qkv_requests_total") - counted)
        status, _ = server.stop()
    counts, unexpected = clients.counts, clients.unexpected
    print(json.dumps({**counts, "unexpected": unexpected}), file=sys.stderr)
    medians = sixths(samples)
    per_hour = slope(medians[2:]) * 3600
    sizes = ", ".join(f"{size:.1f}" for _, size in medians)
    return (f"{counts['sent']:,} mixed requests with faults in {a.minutes:g} minutes, SIGHUP {counts['SIGHUP']} times",
            "≤ 1 MiB per 100,000; descriptors as before; every request counted; nothing left; exit 0",
            f"median of each sixth {sizes} MiB, after the second {per_hour:+.2f} MiB per hour and "
            f"{per_hour * a.minutes / 60 / counts['sent'] * 1e5:+.2f} per 100,000; {before} descriptors, then {after}; "
            f"{counted:,} of "
            f"{counts['reached']:,} counted; {left} left; exit {status}; {counts['refused']} refused, "
            f"{sum(unexpected.values())} unexpected answers")
