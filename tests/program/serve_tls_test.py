"""HTTPS of `qkv serve`: --tls-cert and --tls-key."""

import contextlib
import http.client
import os
import re
import shutil
import signal
import socket
import ssl
import subprocess
import time
import warnings

import pytest

from conftest import qkv
from serving import LANGUAGE, MODELS, ServeProcess, request_bytes, reset, wait_for

if not shutil.which("openssl"):
    pytest.skip("openssl is not installed", allow_module_level=True)

HEALTH = b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"


def make_certificate(folder, name="cert", key="ec"):
    """Writes a certificate of localhost, signed by itself, and its key; returns their paths."""
    files = folder / f"{name}.pem", folder / f"{name}.key"
    kind = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"] if key == "ec" else ["-newkey", "rsa:2048"]
    subprocess.run(["openssl", "req", "-x509", *kind, "-nodes", "-out", files[0], "-keyout", files[1], "-days", "2",
                    "-subj", f"/CN={name}", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"],
                   check=True, capture_output=True, timeout=60)
    return files


def options_of(files):
    return ["--tls-cert", files[0], "--tls-key", files[1]]


def context_of(certificate, **versions):
    context = ssl.create_default_context(cafile=certificate)
    for name, value in versions.items():
        setattr(context, name, value)
    return context


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return make_certificate(tmp_path_factory.mktemp("tls"))


@pytest.fixture(scope="module")
def server(files):
    with ServeProcess([LANGUAGE, f"mt={MODELS['mt']}", *options_of(files)]) as process:
        yield process
        assert process.stop() == 0


def wrapped(server, context, timeout=60):
    """A connection with TLS."""
    return contextlib.closing(context.wrap_socket(server.open_socket(timeout), server_hostname="localhost"))


def read_all(connection):
    return b"".join(iter(lambda: connection.recv(1 << 16), b""))


def subject_of(server, certificates):
    """The name in the certificate that the server shows."""
    context = ssl.create_default_context()
    for certificate in certificates:
        context.load_verify_locations(certificate)
    with wrapped(server, context) as connection:
        return dict(pair[0] for pair in connection.getpeercert()["subject"])["commonName"]


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_requests_are_answered(server, files, version):
    context = context_of(files[0], minimum_version=version, maximum_version=version)
    with contextlib.closing(http.client.HTTPSConnection("localhost", server.port, context=context, timeout=60)) as client:
        for _ in range(3):
            assert server.request("GET", "/health", connection=client).json() == {"status": "ok"}
        assert client.sock.version() == version.name.replace("_", ".")
        body = {"prompt": "A", "max_tokens": 20, "stream": True}
        assert server.request("POST", "/v1/completions", body, connection=client).events()[-1] == "[DONE]"
        reply = server.request("POST", "/v1/completions", {"prompt": "A" * 20000}, connection=client)
        assert reply.status == 400 and "20001 tokens" in reply.text  # more than a record of TLS


def test_the_ready_line_and_addresses_of_files_are_https(server, files):
    assert server.url.startswith("https://") and server.lines[0] == f"qkv: serving 2 models on {server.url}\n"
    head = "Content-Type: multipart/form-data; boundary=b"
    form = "".join(f'--b\r\nContent-Disposition: form-data; name="{name}"{file}\r\n\r\n{text}\r\n'
                   for name, file, text in [("source", "", "und"), ("target", "", "und"),
                                            ("file", '; filename="a.txt"', "A\n")]) + "--b--\r\n"
    with contextlib.closing(http.client.HTTPSConnection("localhost", server.port, context=context_of(files[0]))) as client:
        reply = server.request("POST", "/translate_file", form.encode(), dict([head.split(": ")]), connection=client)
        address = reply.json()["translatedFileUrl"]
        assert address.startswith(f"https://localhost:{server.port}/download_file/")
        assert server.request("GET", address.partition(str(server.port))[2], connection=client).status == 200


def test_old_versions_are_refused(server, files):
    context = context_of(files[0])
    context.minimum_version = ssl.TLSVersion.MINIMUM_SUPPORTED
    context.set_ciphers("DEFAULT:@SECLEVEL=0")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        context.maximum_version = ssl.TLSVersion.TLSv1_1
    with pytest.raises(ssl.SSLError, match="ALERT_PROTOCOL_VERSION"), wrapped(server, context):
        pass


def test_plain_text_and_rubbish_get_no_answer(server, files):
    for sent in (HEALTH, os.urandom(200), b"\x16\x03\x01\x02\x00\x01", b""):
        with contextlib.closing(server.open_socket(30)) as connection, contextlib.suppress(ConnectionResetError):
            connection.sendall(sent)
            if len(sent) < 10:
                connection.shutdown(socket.SHUT_WR)
            assert b"HTTP" not in read_all(connection)
    with wrapped(server, context_of(files[0])) as connection:
        connection.sendall(HEALTH)
        assert read_all(connection).startswith(b"HTTP/1.1 200 ")


def test_failed_handshakes_are_counted_and_logged(files):
    with ServeProcess([LANGUAGE, "--header-timeout", "2s", *options_of(files)]) as server:
        for sent in (b"", HEALTH, b"", b"\x16\x03\x01\x02\x00\x01"):
            with contextlib.closing(server.open_socket(30)) as connection, contextlib.suppress(ConnectionResetError):
                connection.sendall(sent)
                read_all(connection)  # ends after the timeout, or at once if it is not TLS
        with pytest.raises(ssl.SSLError), wrapped(server, ssl.create_default_context()):  # trusts others
            pass
        with contextlib.closing(server.open_socket()):  # a probe, which leaves at once
            pass
        with wrapped(server, context_of(files[0])) as connection:
            connection.sendall(HEALTH.replace(b"/health", b"/metrics"))
            assert b'qkv_http_malformed_total{reason="tls"} 3\n' in read_all(connection)
        assert wait_for(lambda: len(server.lines) == 5)  # the first one says that the server is ready
        failed = [line for line in server.lines if " code=525 " in line]
        assert len(failed) == 3 and all(" client=127.0.0.1 " in line and " outcome=failed" in line for line in failed)
        assert server.stop() == 0


def test_tls_to_a_plain_port_is_refused(files):
    with ServeProcess([LANGUAGE]) as plain:
        with pytest.raises((ssl.SSLError, ConnectionError)), wrapped(plain, context_of(files[0])):
            pass
        assert plain.get("/health").status == 200


def test_a_client_that_stalls_in_the_handshake_is_cut(files):
    with ServeProcess([LANGUAGE, "--header-timeout", "2s", *options_of(files)]) as server:
        for sent in (b"", b"\x16\x03\x01\x02\x00\x01\x00"):
            begin = time.monotonic()
            with contextlib.closing(server.open_socket(30)) as connection:
                connection.sendall(sent)
                assert read_all(connection) == b""
                assert 1.9 < time.monotonic() - begin < 60
        with wrapped(server, context_of(files[0])) as connection:  # idle afterwards
            time.sleep(3)
            connection.sendall(HEALTH)
            assert read_all(connection).startswith(b"HTTP/1.1 200 ")
        with contextlib.closing(server.open_socket(30)):  # in a handshake
            assert server.stop() == 0


def test_sockets_with_a_path_are_not_encrypted(files, tmp_path):
    path = str(tmp_path / "socket")
    with ServeProcess([LANGUAGE, "--listen", f"unix:{path}", *options_of(files)]) as server:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(path)
            connection.sendall(HEALTH)
            assert read_all(connection).startswith(b"HTTP/1.1 200 ")
        assert f"qkv: serving 1 model on http://unix:{path}\n" in server.lines


def test_a_large_answer_arrives_whole_and_ends_properly(server, files):
    context = context_of(files[0])
    context.options &= ~getattr(ssl, "OP_IGNORE_UNEXPECTED_EOF", 0)  # an end without close_notify is an error
    with wrapped(server, context) as connection:
        connection.sendall(b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n" * 40 + HEALTH)
        time.sleep(0.5)  # the socket is full
        answer = read_all(connection)
    length = int(re.search(rb"Content-Length: (\d+)", answer)[1])
    assert length > 30000 and answer.count(b"HTTP/1.1 200 OK") == 41 and len(answer) > 40 * length
    assert answer.endswith(b'{"status":"ok"}')


@pytest.mark.parametrize("leave", ["close", "reset", "close_notify"])
def test_a_client_that_leaves_is_noticed(server, files, leave):
    connection = context_of(files[0]).wrap_socket(server.open_socket(), server_hostname="localhost")
    body = {"prompt": "A", "n": 16, "max_tokens": 4096, "slide": True, "temperature": 0, "stream": True}
    connection.sendall(request_bytes("/v1/completions", body))
    assert connection.recv(12) == b"HTTP/1.1 200"
    if leave == "close_notify":
        connection.setblocking(False)
        with contextlib.suppress(ssl.SSLWantReadError, ssl.SSLError):
            connection.unwrap()
    else:
        connection.close() if leave == "close" else reset(connection)

    def running():
        with contextlib.closing(http.client.HTTPSConnection("localhost", server.port, context=context_of(files[0]))) as client:
            text = server.request("GET", "/metrics", connection=client).text
        return float(re.search(r'^qkv_requests_running\{model="lm"\} (\S+)', text, re.MULTILINE)[1])
    assert wait_for(lambda: running() == 0)
    connection.close()


def test_a_new_certificate_is_used_after_sighup(tmp_path):
    first, second = make_certificate(tmp_path, "first"), make_certificate(tmp_path, "second", "rsa")
    used = tmp_path / "used.pem", tmp_path / "used.key"
    both = [first[0], second[0]]

    def use(certificate, key):
        shutil.copy(certificate, used[0])
        shutil.copy(key, used[1])
        server.process.send_signal(signal.SIGHUP)

    for source, target in zip(first, used, strict=True):
        shutil.copy(source, target)
    with ServeProcess([LANGUAGE, *options_of(used)]) as server, wrapped(server, context_of(first[0])) as old:
        assert subject_of(server, both) == "first"
        use(*second)
        assert wait_for(lambda: subject_of(server, both) == "second")
        use(first[0], second[1])  # do not belong together
        assert wait_for(lambda: any(f"{used[1]}: must be the key of {used[0]}" in line for line in server.lines))
        assert subject_of(server, both) == "second"
        old.sendall(HEALTH)  # a connection keeps its certificate
        assert read_all(old).startswith(b"HTTP/1.1 200 ")
        assert server.stop() == 0


def test_what_is_wrong_with_a_certificate_is_one_line(files, tmp_path):
    other = make_certificate(tmp_path, "other")
    locked, empty, missing = tmp_path / "locked.key", tmp_path / "empty", tmp_path / "missing"
    subprocess.run(["openssl", "ec", "-in", files[1], "-out", locked, "-aes256", "-passout", "pass:secret"],
                   check=True, capture_output=True, timeout=60)
    empty.write_text("")
    for pair, status, begin in [
            ((missing, files[1]), 1, f"qkv: {missing}: must be a certificate in PEM: "),
            ((empty, files[1]), 1, f"qkv: {empty}: must be a certificate in PEM: "),
            ((files[0], missing), 1, f"qkv: {missing}: must be the key of {files[0]} in PEM, without a password: "),
            ((files[0], locked), 1, f"qkv: {locked}: must be the key of {files[0]} in PEM, without a password: "),
            ((files[0], other[1]), 1, f"qkv: {other[1]}: must be the key of {files[0]} in PEM, without a password: ")]:
        found, _, error = qkv("serve", LANGUAGE, "--listen", "127.0.0.1:0", *options_of(pair), ok=False)
        assert (found, error.count("\n")) == (status, 1) and error.startswith(begin), error
    for option in (0, 2):
        found, _, error = qkv("serve", LANGUAGE, *options_of(files)[option:option + 2], ok=False)
        assert (found, error.count("\n")) == (2, 1) and "tls_cert and tls_key must be given together" in error
