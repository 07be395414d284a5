"""The files of JSONTestSuite as bodies of every route of `qkv serve` that takes JSON (../shared/cases/json)."""

import tarfile

import pytest
from conftest import ROOT
from serving import ALL, ServeProcess, only_known

SUITE = ROOT.parent / "shared/cases/json/json.tar.gz"
ROUTES = ["/v1/translate", "/v1/attend", "/v1/recommend", "/v1/completions", "/v1/chat/completions", "/v1/embeddings",
          "/embed", "/", "/translate", "/detect", "/suggest", "/api/session/recommend", "/api/feedback"]
TWICE = {"y_object_duplicated_key.json", "y_object_duplicated_key_and_value.json"}  # which the reader refuses
pytestmark = pytest.mark.skipif(not SUITE.exists(), reason="no ../shared/cases")


@pytest.fixture(scope="module")
def bodies():
    with tarfile.open(SUITE) as archive:
        found = {name.rsplit("/", 1)[1]: archive.extractfile(name).read() for name in archive.getnames() if name.endswith(".json")}
    assert len(found) == 318
    return found


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("written")
    written = only_known(("--suggestions", folder / "suggestions.jsonl"), ("--events", folder / "events.jsonl"))
    with ServeProcess(ALL + written) as process:
        yield process
        assert process.get("/health").json() == {"status": "ok"}
        assert process.stop() == 0


def is_refused_by_the_reader(reply, body):
    """Whether the server has refused the body as JSON. LibreTranslate's clients get the same line for what is no object."""
    words = ["not valid JSON", "stands twice", "levels", *(["Invalid JSON"] if body.strip().startswith(b"{") else [])]
    return reply.status == 400 and any(word in reply.text for word in words)


@pytest.mark.parametrize("route", ROUTES)
def test_bodies_are_refused_if_they_are_not_json(server, bodies, route):
    if server.post(route, {}).status == 404:
        pytest.skip(f"no {route}")
    connection = server.connect()
    for name, body in sorted(bodies.items()):
        reply = server.post(route, body, connection=connection)
        assert reply.status < 500, (name, reply.status, reply.body)
        if name.startswith("n_"):
            assert reply.status == 400, (name, reply.status, reply.body)
        if name.startswith("y_"):
            assert is_refused_by_the_reader(reply, body) == (name in TWICE), (name, reply.status, reply.body)
        assert connection.sock, name  # it stays open
