"""Sockets that `qkv serve` takes from systemd (LISTEN_FDS)."""

import contextlib
import fcntl
import os
import re
import socket
import subprocess
import sys

import pytest

from conftest import QKV
from serving import LANGUAGE, QUIET

# Becomes the server, whose descriptors from 3 on are those of the first argument. LISTEN_PID is by default its process.
BECOME = """
import os, sys
numbers, process, count, *command = sys.argv[1:]
for i, number in enumerate(numbers.split()):
    os.dup2(int(number), 3 + i)
os.environ.update(LISTEN_PID=process or str(os.getpid()), LISTEN_FDS=count)
os.execv(command[0], command)
"""


@contextlib.contextmanager
def serve(sockets, *arguments, process="", count=None):
    """Starts a server that is given these sockets."""
    high = [fcntl.fcntl(one.fileno(), fcntl.F_DUPFD, 100) for one in sockets]
    count = len(sockets) if count is None else count
    command = [QKV, "serve", LANGUAGE, *arguments]
    server = subprocess.Popen([sys.executable, "-c", BECOME, " ".join(map(str, high)), str(process), str(count), *command],
                              pass_fds=high, stderr=subprocess.PIPE, text=True, env={**os.environ, **QUIET})
    try:
        yield server
    finally:
        for number in high:
            os.close(number)
        server.kill()
        server.communicate(timeout=60)


def addresses_of(server, count):
    lines = [server.stderr.readline() for _ in range(count)]
    return [re.fullmatch(r"qkv: serving 1 model on http://(.*)\n", line)[1] for line in lines]


def error_of(*sockets, **options):
    """Returns the line of a server that does not start."""
    with serve(sockets, **options) as server:
        text = server.communicate(timeout=60)[1]
        assert server.returncode == 1 and text.count("\n") == 1, text
        return text.strip()


def health(address, family=socket.AF_INET):
    with socket.socket(family) as client:
        client.settimeout(60)
        client.connect(address)
        client.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        return b"".join(iter(lambda: client.recv(1 << 16), b"")).partition(b"\r\n")[0]


@pytest.fixture
def port():
    """A socket that listens on a free port."""
    with socket.create_server(("127.0.0.1", 0)) as one:
        yield one


def test_passed_sockets_come_first(port, tmp_path):
    path = str(tmp_path / "socket")
    with socket.socket(socket.AF_UNIX) as local:
        local.bind(path)
        local.listen()
        with serve([port, local], "--listen", "127.0.0.1:0") as server:
            first, second, third = addresses_of(server, 3)
            assert first == f"127.0.0.1:{port.getsockname()[1]}" and second == f"unix:{path}"
            assert third.startswith("127.0.0.1:") and third != first
            assert health(port.getsockname()) == health(path, socket.AF_UNIX) == b"HTTP/1.1 200 OK"
            server.terminate()
            assert server.wait(60) == 0
        assert os.path.exists(path)  # systemd has made it, and keeps it for the next start


def test_the_default_address_is_not_used_as_well(port):
    with socket.create_server(("::1", 0), family=socket.AF_INET6) as second:
        with serve([second, port]) as server:
            assert addresses_of(server, 2) == [f"[::1]:{second.getsockname()[1]}",
                                               f"127.0.0.1:{port.getsockname()[1]}"]
            server.terminate()
            assert "serving" not in server.communicate(timeout=60)[1] and server.returncode == 0


def test_sockets_of_another_process_are_left_alone(port):
    with serve([port], "--listen", "127.0.0.1:0", process=1) as server:
        assert addresses_of(server, 1) != [f"127.0.0.1:{port.getsockname()[1]}"]


def test_a_socket_that_does_not_listen_is_an_error(port, tmp_path):
    wanted = "must be a stream socket of TCP or a path that listens"
    with socket.socket() as idle, socket.socket(type=socket.SOCK_DGRAM) as datagrams, open(tmp_path / "file", "w") as file:
        for one in (idle, datagrams, file):
            assert error_of(one) == f"qkv: descriptor 3: {wanted}"
        assert error_of(port, idle) == f"qkv: descriptor 4: {wanted}"
    for count in ("x", -1, 1025, ""):
        error = error_of(port, count=count)
        assert error == f'qkv: LISTEN_FDS must be an integer between 0 and 1024 (is "{count}")'
