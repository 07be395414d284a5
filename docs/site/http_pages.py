"""The page of the HTTP routes, from the OpenAPI document of the server."""

import json

from prose import plain

DOCUMENT = "src/serve/api/assets/openapi.json"


def cell(text):
    return plain(text).replace("\n", " ")


class Page:
    def __init__(self, document):
        self.document = document

    def resolved(self, item):
        """The item that a reference names."""
        while "$ref" in item:
            target = self.document
            for key in item["$ref"].removeprefix("#/").split("/"):
                target = target[key]
            item = target
        return item

    def type_of(self, schema):
        """The type in words; schemas with a name are links to their section."""
        if "$ref" in schema:
            name = schema["$ref"].split("/")[-1]
            return f"[{name}](#{name.lower()})"
        for key in ("oneOf", "anyOf", "allOf"):
            if key in schema:
                return (" and " if key == "allOf" else " or ").join(dict.fromkeys(map(self.type_of, schema[key])))
        if "enum" in schema or "const" in schema:
            return ", ".join(f"`{json.dumps(value)}`" for value in schema.get("enum", [schema.get("const")]))
        kind = schema.get("type", "any value")
        text = " or ".join(kind) if isinstance(kind, list) else kind
        if "items" in schema:
            text += f" of {self.type_of(schema['items'])}"
        return text + self.bounds(schema)

    def bounds(self, schema):
        low = schema.get("minimum", schema.get("minLength", schema.get("minItems")))
        high = schema.get("maximum", schema.get("maxLength", schema.get("maxItems")))
        limits = [f"at least {low}"] if low is not None else []
        limits += [f"above {schema['exclusiveMinimum']}"] if "exclusiveMinimum" in schema else []
        limits += [f"at most {high}"] if high is not None else []
        return f" ({', '.join(limits)})" if limits else ""

    def properties(self, schema):
        """The table of the members of an object."""
        rows = []
        for name, value in schema.get("properties", {}).items():
            need = "yes" if name in schema.get("required", []) else ""
            default = f" Default `{json.dumps(value['default'], ensure_ascii=False)}`." if "default" in value else ""
            text = cell(value.get("description", "")) + default
            rows.append(f"| `{name}` | {self.type_of(value)} | {need} | {text} |")
        return ["", "| member | type | required | |", "|---|---|---|---|", *rows, ""] if rows else []

    def schema(self, name, schema):
        lines = [f"### {name}", "", cell(schema.get("description", "")), ""]
        if "properties" not in schema:
            lines.append(self.type_of(schema))
        for part in [schema, *map(self.resolved, schema.get("allOf", []))]:
            lines += self.properties(part)
        return lines

    def contents(self, item):
        return [f"`{kind}`: {self.type_of(value.get('schema', {}))}" for kind, value in item.get("content", {}).items()]

    def route(self, method, path, operation):
        lines = [f"### {method.upper()} {plain(path)}", "", cell(operation["summary"]) + ".", ""]
        lines += [cell(operation.get("description", "")), ""]
        rows = []
        for p in map(self.resolved, operation.get("parameters", [])):
            kind, text = self.type_of(p.get("schema", {})), cell(p.get("description", ""))
            rows.append(f"| `{p['name']}` | {p['in']} | {kind} | {text} |")
        if rows:
            lines += ["| parameter | in | type | |", "|---|---|---|---|", *rows, ""]
        if "requestBody" in operation:
            lines += ["Request: " + "; ".join(self.contents(self.resolved(operation["requestBody"]))), ""]
        lines += ["| status | answer |", "|---|---|"]
        for status, answer in operation["responses"].items():
            found = self.resolved(answer)
            body = "".join(f"; {text}" for text in self.contents(found))
            lines.append(f"| {status} | {cell(found.get('description', ''))}{body} |")
        return [*lines, ""]

    def text(self):
        info = self.document["info"]
        lines = ["# HTTP routes", "", f"{info['summary']}. [Serving](docs/serve.md) describes how to use the server; "
                 f"[openapi.json]({DOCUMENT}), which a server answers at `/openapi.json`, is the source of this page.",
                 "", cell(info["description"]), ""]
        for tag in self.document["tags"]:
            lines += [f"## Routes: {tag['name']}", "", cell(tag["description"]) + ".", ""]
            for path, methods in self.document["paths"].items():
                for method, operation in methods.items():
                    if tag["name"] in operation.get("tags", []):
                        lines += self.route(method, path, operation)
        lines += ["## Schemas", ""]
        for name, schema in self.document["components"]["schemas"].items():
            lines += self.schema(name, schema)
        return "\n".join(lines) + "\n"


def pages(root):
    """Triples (name, text, file that it shows)."""
    return [("http", Page(json.loads((root / DOCUMENT).read_text(encoding="utf-8"))).text(), root / DOCUMENT)]
