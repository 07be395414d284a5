"""The metrics of the server, read by the tools of Prometheus: promtool (Debian) and prometheus-client (PyPI)."""

import http.client
import shutil
import socket
import subprocess

import pytest
from serving import ALL, MODELS, ServeProcess

REQUESTS = [("/v1/translate", {"text": ["A guest", "zzz"]}), ("/v1/completions", {"prompt": "The", "max_tokens": 4}),
            ("/v1/recommend", {"history": ["f0000"]}), ("/embed", {"inputs": "a b c"}), ("/v1/translate", {"text": 1}),
            ("/v1/none", {}), ("/translate", {"q": "secret", "source": "en", "target": "xx"})]


@pytest.fixture(scope="module")
def text():
    """The metrics after some requests."""
    with ServeProcess(ALL) as server:
        for path, body in REQUESTS:
            server.post(path, body)
        server.request("GET", "/?secret", headers={"Host": "secret:80"})
        yield server.get("/metrics").text


@pytest.fixture(scope="module")
def families(text):
    parser = pytest.importorskip("prometheus_client.parser")
    return {family.name: family for family in parser.text_string_to_metric_families(text)}


@pytest.mark.release
@pytest.mark.skipif(not shutil.which("promtool"), reason="promtool (Debian: prometheus) is not installed")
def test_promtool_has_no_complaint(text):
    done = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


@pytest.mark.release
def test_every_family_has_a_type_and_a_help(families):
    assert len(families) > 30
    for family in families.values():
        assert family.type in ("counter", "gauge", "histogram") and family.documentation, family.name


@pytest.mark.release
def test_requests_are_counted_by_model_and_outcome(families):
    done = {sample.labels["model"]: sample.value for sample in families["qkv_requests"].samples
            if sample.labels["outcome"] == "done"}
    assert done == {name: 1 for name in MODELS}
    answers = families["qkv_http_requests"].samples
    assert sum(sample.value for sample in answers if sample.labels["code"] == "200") >= 4
    assert {"404", "421"} <= {sample.labels["code"] for sample in answers if sample.value}


@pytest.mark.release
def test_histograms_add_up(families):
    histograms = [family for family in families.values() if family.type == "histogram"]
    assert len(histograms) > 4
    for family in histograms:
        buckets, counts = {}, {}
        for sample in family.samples:
            labels = tuple(sorted((name, value) for name, value in sample.labels.items() if name != "le"))
            if sample.name.endswith("_bucket"):
                buckets.setdefault(labels, []).append(sample.value)
            elif sample.name.endswith("_count"):
                counts[labels] = sample.value
        assert buckets and all(row == sorted(row) for row in buckets.values()), family.name
        assert {labels: row[-1] for labels, row in buckets.items()} == counts, family.name


def test_labels_hold_nothing_that_clients_send(text):
    series = [line for line in text.splitlines() if not line.startswith("#")]
    assert len(series) <= 2000 and "secret" not in text and "127.0.0.1" not in text


def start_with_metrics_port(*options):
    """Starts a server whose metrics have a port of their own. Returns both."""
    for attempt in range(5):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        try:
            return ServeProcess([ALL[0], *options, "--metrics-listen", f"127.0.0.1:{port}"]), port
        except RuntimeError:  # another program may have taken the port
            if attempt == 4:
                raise


def test_metrics_have_a_listener_of_their_own(tmp_path):
    (tmp_path / "keys").write_text("alice 0123456789abcdef\n")
    server, port = start_with_metrics_port("--api-keys", tmp_path / "keys")
    with server:
        key = {"X-API-Key": "0123456789abcdef"}
        assert server.get("/metrics").status == 401 and server.get("/metrics", headers=key).status == 404
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        reply = server.get("/metrics", connection=connection)
        assert reply.status == 200 and reply.text.startswith("# HELP ")
        assert server.get("/v1/models", connection=connection, headers=key).status == 404
        connection.close()
