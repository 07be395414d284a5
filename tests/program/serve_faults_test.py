"""Faults of the machine that `qkv serve` runs on: no descriptors, a log that blocks, a run that is replaced while it is
read, a clock that goes back. Requests are answered all the same, and the server ends as it should. serve_gorse_test.py
has the disk that is full."""

import concurrent.futures
import contextlib
import fcntl
import json
import resource
import shutil
import signal
import socket
import subprocess
import threading
import time

import pytest
from conftest import qkv
from serving import ALL, LANGUAGE, MODELS, ServeProcess, wait_for

TEXT = {"text": "A guest", "beam": 1}
CLOCK = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <time.h>

// Each look at the clock of the day shows an hour less than the one before.
static long hours;

int clock_gettime(clockid_t clock, struct timespec* time) {
  static int (*real)(clockid_t, struct timespec*);
  if (!real) real = (int (*)(clockid_t, struct timespec*))dlsym(RTLD_NEXT, "clock_gettime");
  const int result = real(clock, time);
  if (clock == CLOCK_REALTIME) time->tv_sec -= 3600 * __atomic_add_fetch(&hours, 1, __ATOMIC_RELAXED);
  return result;
}

time_t time(time_t* place) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (place) *place = now.tv_sec;
  return now.tv_sec;
}
"""


def test_without_descriptors_it_pauses_and_then_accepts_again():
    with ServeProcess([LANGUAGE]) as server, contextlib.ExitStack() as open_ones:
        resource.prlimit(server.pid, resource.RLIMIT_NOFILE, (64, 64))
        kept = server.connect()
        assert server.request("GET", "/health", connection=kept).status == 200
        clients = [open_ones.enter_context(socket.create_connection((server.host, server.port))) for _ in range(80)]
        assert wait_for(lambda: server.descriptors() == 64)
        before = server.cpu_seconds()
        time.sleep(1)
        assert server.cpu_seconds() - before < 0.2  # it does not spin
        assert server.request("GET", "/health", connection=kept).status == 200
        for client in clients:
            client.close()
        assert server.post("/v1/completions", {"prompt": "A", "max_tokens": 2}).status == 200
        kept.close()
        assert server.stop() == 0


def test_a_log_that_blocks_holds_up_neither_requests_nor_the_end(tmp_path):
    keys = tmp_path / "keys"
    keys.write_text("ann " + "k" * 16 + "\n")
    key = {"X-API-Key": "k" * 16}
    with ServeProcess([LANGUAGE, "--api-keys", keys], reads_log=False) as server:
        fcntl.fcntl(server.process.stderr, fcntl.F_SETPIPE_SZ, 4096)
        with contextlib.closing(server.connect()) as connection:
            for _ in range(300):
                assert server.request("GET", "/health", connection=connection).status == 200
        keys.write_text("no key\n")
        for _ in range(3):  # each is reported in the log
            server.process.send_signal(signal.SIGHUP)
        assert server.post("/v1/completions", {"prompt": "A", "max_tokens": 2}, headers=key).status == 200
        assert server.stop() == 0


def exchange(first, second):
    """Gives each of two directories the other's name."""
    away = first.with_name("away")
    first.rename(away)
    second.rename(first)
    away.rename(second)


@contextlib.contextmanager
def asking(server):
    """Translates all the time, on two connections. Gives the replies, which are complete when it ends."""
    replies, ends = [], threading.Event()

    def ask():
        while not ends.is_set():
            replies.append(server.post("/v1/translate", TEXT))

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        asked = [pool.submit(ask) for _ in range(2)]
        try:
            yield replies
        finally:
            ends.set()
    for each in asked:
        each.result()


def test_a_run_that_is_replaced_while_it_is_read_takes_over_whole_or_not_at_all(tmp_path):
    served, other = tmp_path / "served", tmp_path / "other"
    shutil.copytree(MODELS["mt"], served)
    qkv("quantize", MODELS["mt"], "--int8", "--out", other)
    with ServeProcess([f"mt={served}"]) as server:
        def takes_over():
            server.process.send_signal(signal.SIGHUP)
            return server.post("/v1/translate", TEXT).json()["translations"]

        first = takes_over()
        with asking(server) as replies:
            for i in range(150):
                server.process.send_signal(signal.SIGHUP)
                time.sleep(i % 8 / 1000)  # the run is read at the same time
                exchange(served, other)
            assert wait_for(lambda: takes_over() == first)
            exchange(served, other)
            assert wait_for(lambda: takes_over() != first)
            second = takes_over()
            (served / "config.json").write_text("{}")
            for _ in range(3):
                assert takes_over() == second
        assert len(replies) > 20 and {reply.status for reply in replies} == {200}
        answers = {json.dumps(reply.json()["translations"]) for reply in replies}
        assert answers == {json.dumps(first), json.dumps(second)}
        assert wait_for(lambda: any("config.json" in line for line in server.lines))
        assert server.stop() == 0


def test_a_clock_that_goes_back_ends_no_request_early_or_late(tmp_path):
    compiler = shutil.which("cc") or shutil.which("clang")
    if not compiler:
        pytest.skip("no C compiler, which makes a clock that goes back")
    (tmp_path / "clock.c").write_text(CLOCK)
    library = tmp_path / "clock.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, tmp_path / "clock.c", "-ldl"], check=True, timeout=60)
    began = time.monotonic()
    with ServeProcess([*ALL, "--queue-tokens", 10**9], environment={"LD_PRELOAD": str(library)}) as server:
        dates = [server.post("/v1/translate", TEXT).headers["date"] for _ in range(2)]
        assert dates[0] != dates[1]  # the clock is the one that goes back
        for path, body in [("/v1/translate", {**TEXT, "stream": True}), ("/v1/embeddings", {"input": "a b"}),
                           ("/v1/completions", {"prompt": "A", "max_tokens": 8, "stream": True}),
                           ("/v1/recommend", {"history": ["f0001"]})]:
            assert server.post(path, body, headers={"X-Request-Timeout": "50"}).status == 200
        endless = {"prompt": ["A"] * 16, "n": 16, "temperature": 0, "seed": 1, "slide": True, "max_tokens": 4096}
        deadlines = (0.1, 0.5, 2.5)  # on a busy machine, it may not run before the first one: 503
        late = (server.post("/v1/completions", endless, headers={"X-Request-Timeout": str(s)}).status for s in deadlines)
        assert next(status for status in late if status != 503) == 504
        spent = time.monotonic() - began
        for name in ("qkv_http_request_duration_seconds_sum", "qkv_queue_seconds_sum", "qkv_step_seconds_sum"):
            assert 0 <= server.gauges(name) <= 20 * spent
        assert wait_for(lambda: server.gauges("qkv_requests_running") == 0)
        assert server.stop() == 0
