"""The OpenAPI description of the server (src/serve/api/assets/openapi.json) and the tables of routes (src/serve/api/*.cc)."""

import http.client
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import QKV, ROOT
from serving import ALL, ServeProcess

FILE = ROOT / "src/serve/api/assets/openapi.json"
OPENAPI = json.loads(FILE.read_text(encoding="utf-8"))
ROUTE = re.compile(r'\{"(GET|POST|PUT|DELETE)",\s*"(/[^"]*)",\s*Family::(\w+)')
METHODS = {"get", "put", "post", "delete"}


def table_routes():
    """Triples (method, path, family) of the entries of all tables; "{}" stands for one segment of a path."""
    sources = sorted((ROOT / "src/serve").rglob("*.cc"))
    return {route for source in sources for route in ROUTE.findall(source.read_text(encoding="utf-8"))}


def operations():
    """(method, path) -> operation, for all operations of the description."""
    return {(method.upper(), re.sub(r"\{\w+\}", "{}", path)): operation for path, item in OPENAPI["paths"].items()
            for method, operation in item.items() if method in METHODS}


def routes_of(sources):
    return {(method, path) for method, path, _ in sources}


def refs(value):
    """All references of the description."""
    if isinstance(value, dict):
        return {value["$ref"]} if "$ref" in value else set().union(*map(refs, value.values()), set())
    return set().union(*map(refs, value), set()) if isinstance(value, list) else set()


def test_the_tables_are_found():
    assert len(table_routes()) > 15 and ("POST", "/v1/translate", "native") in table_routes()


def test_every_route_is_described_and_nothing_else():
    assert set(operations()) == routes_of(table_routes())


def test_every_path_names_its_segments():
    for path, item in OPENAPI["paths"].items():
        for operation in (item[method] for method in METHODS & set(item)):
            named = {p["name"] for p in operation.get("parameters", []) if p.get("in") == "path"}
            assert named == set(re.findall(r"\{(\w+)\}", path)), path


def test_routes_that_need_no_key_are_marked():
    text = "".join(source.read_text(encoding="utf-8") for source in sorted((ROOT / "src/serve").rglob("*.cc")))
    for entry in re.findall(r'\{"(?:GET|POST|PUT|DELETE)",\s*"/[^}]*\}', text.replace("{}", "<>")):
        method, path = re.match(r'\{"(\w+)",\s*"([^"]+)"', entry).groups()
        is_open = bool(re.search(r"BodyType::\w+,\s+ModelUse::\w+,\s+true", entry))
        assert (operations()[method, path.replace("<>", "{}")].get("security") == []) == is_open, (method, path)


def test_every_reference_and_every_component_is_used():
    defined = {f"#/components/{kind}/{name}" for kind, named in OPENAPI["components"].items() for name in named}
    security = {name for name in defined if name.startswith("#/components/securitySchemes/")}
    assert refs(OPENAPI) - defined == set()
    assert defined - refs(OPENAPI) - security == set()


def test_the_version_is_that_of_the_project():
    project = re.search(r"project\(qkv VERSION ([\d.]+)", (ROOT / "CMakeLists.txt").read_text(encoding="utf-8"))
    assert OPENAPI["info"]["version"] == project[1]


@pytest.mark.release
def test_the_description_is_valid():
    validator = pytest.importorskip("openapi_spec_validator", reason="openapi-spec-validator (PyPI) is not installed")
    validator.validate(OPENAPI)


@pytest.fixture(scope="module")
def ask():
    """A function that sends a request to a server of a small language model and returns the status and the body."""
    run = ROOT / "tests/golden/runs/language"
    server = subprocess.Popen([QKV, "serve", f"lm={run}", "--listen", "127.0.0.1:0"], stderr=subprocess.PIPE, text=True)
    address = next(filter(None, (re.search(r"http://([\d.]+:\d+)", line) for line in server.stderr)))[1]

    def send(method, path, body=None):
        connection = http.client.HTTPConnection(address, timeout=60)
        connection.request(method, path, body, {"Content-Type": "application/json"} if body is not None else {})
        answer = connection.getresponse()
        status, text = answer.status, answer.read()
        connection.close()
        return status, text

    yield send
    server.kill()
    server.wait()
    server.stderr.close()


def test_the_server_answers_with_the_file(ask):
    assert ask("GET", "/openapi.json") == (200, FILE.read_bytes())


def test_every_route_of_the_tables_answers_as_described(ask):
    assert ask("POST", "/")[1].startswith(b'{"error":"Content-Type')  # in the form of TEI, unlike those of GET /
    for method, path in sorted(routes_of(table_routes()) & set(operations())):
        status, text = ask(method, path.replace("{}", "x"), "{}" if method in ("POST", "PUT") else None)
        assert status != 405 and (status != 404 or b"no such route" not in text), (method, path, text)
        assert {str(status), "default"} & set(operations()[method, path]["responses"]), (method, path, status)


# 501 is the answer to methods that the server does not know, and not one of the description. A deadline of 0 passes.
SCHEMATHESIS = """
[phases.coverage]
unexpected-methods = ["DELETE", "PATCH"]
[checks.not_a_server_error]
expected-statuses = ["2xx", "3xx", "4xx", "503", "504"]
"""
CHECKS = ("not_a_server_error", "status_code_conformance", "content_type_conformance", "response_headers_conformance",
          "response_schema_conformance", "unsupported_method")


@pytest.mark.release
def test_schemathesis_has_no_complaint(tmp_path):
    pytest.importorskip("schemathesis")
    (tmp_path / "schemathesis.toml").write_text(SCHEMATHESIS)
    on = ["--chat-template", "lm=plain", "--suggestions", tmp_path / "suggestions", "--events", tmp_path / "events",
          "--log", "none"]
    with ServeProcess([*ALL, *on]) as server:
        program = Path(sys.executable).with_name("schemathesis")
        done = subprocess.run(
            [program, "--config-file", "schemathesis.toml", "run", FILE, "--url", server.url, "--phases",
             "examples,coverage,fuzzing", "--max-examples", "10", "--seed", "1", "--generation-database", "none",
             "--checks", ",".join(CHECKS), "--no-color"], cwd=tmp_path, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stdout[-20000:]
        assert f"{len(operations())} selected / {len(operations())} total" in done.stdout
        assert server.stop() == 0
