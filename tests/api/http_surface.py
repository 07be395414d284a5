"""The routes of the server, from its OpenAPI description: parameters, members of requests and of answers."""

import functools
import json
from pathlib import Path

FILE = Path(__file__).resolve().parent.parent.parent / "src/serve/api/assets/openapi.json"
METHODS = ("get", "put", "post", "delete")


def kind_of(schema):
    """The type of a member, as one word or a list."""
    if "$ref" in schema:
        return schema["$ref"].rpartition("/")[2]
    for several in ("oneOf", "anyOf", "allOf"):
        if several in schema:
            return " or ".join(kind_of(part) for part in schema[several])
    if "const" in schema or "enum" in schema:
        return " | ".join(map(json.dumps, schema.get("enum", [schema.get("const")])))
    kind = schema.get("type", "any")
    kind = " or ".join(kind) if isinstance(kind, list) else kind
    return f"array of {kind_of(schema['items'])}" if "items" in schema else kind


def members(name, schema):
    """Lines of the members of an object, and of those in it."""
    lines = []
    for key, value in schema.get("properties", {}).items():
        needed = ", required" if key in schema.get("required", ()) else ""
        lines += [f"{name}.{key}  {kind_of(value)}{needed}", *members(f"{name}.{key}", value)]
    for several in ("oneOf", "anyOf", "allOf"):
        lines += [line for part in schema.get(several, ()) for line in members(name, part)]
    return lines + (members(f"{name}[]", schema["items"]) if isinstance(schema.get("items"), dict) else [])


def resolved(document, item):
    while "$ref" in item:
        item = functools.reduce(lambda part, key: part[key], item["$ref"].removeprefix("#/").split("/"), document)
    return item


def contents(document, item):
    """Media types and schemas of a body."""
    found = resolved(document, item).get("content", {})
    return ", ".join(f"{media} {kind_of(body.get('schema', {}))}" for media, body in found.items()) or "no body"


def operation_lines(document, name, operation, shared):
    lines = [f"{name}  {contents(document, operation.get('requestBody', {}))}"]
    for parameter in (resolved(document, p) for p in [*shared, *operation.get("parameters", ())]):
        needed = ", required" if parameter.get("required") else ""
        lines.append(f"{name} {parameter['in']} {parameter['name']}  {kind_of(parameter['schema'])}{needed}")
    answers = operation["responses"].items()
    return lines + [f"{name} answer {status}  {contents(document, answer)}" for status, answer in answers]


def surface():
    document = json.loads(FILE.read_text(encoding="utf-8"))
    lines = []
    for path, item in document["paths"].items():
        for method in METHODS:
            if method in item:
                lines += operation_lines(document, f"{method.upper()} {path}", item[method], item.get("parameters", ()))
    for name, schema in document["components"]["schemas"].items():
        lines += [f"{name}  {kind_of(schema)}", *members(name, schema)]
    return sorted(set(lines))
