"""A server on this machine that speaks the routes of the Hugging Face hub, with faults on request.

Small files are answered through a relative redirect, files of `large` through a redirect to a second server (the hub
keeps them in a storage service at another host), as on the hub.
"""

import hashlib
import http.server
import json
import threading
import urllib.parse
from dataclasses import dataclass, field

COMMIT = "0123456789abcdef0123456789abcdef01234567"


def git_hash(content):
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


@dataclass
class Repository:
    files: dict                                # name -> bytes
    large: set = field(default_factory=set)    # names of files in the storage service
    commit: str = COMMIT
    token: str = ""                            # that is required
    gated: bool = False                        # the description is public, the files are not


@dataclass
class Fault:
    """A wrong answer to one request."""
    status: int = 0                            # answer with this status
    headers: dict = field(default_factory=dict)
    cut: int = -1                              # close the connection after this number of bytes of the body
    change: bool = False                       # send other bytes of the same length
    stall: bool = False                        # send nothing until the server is closed
    body: bytes = b""


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_HEAD(self):
        self.respond()

    def do_GET(self):
        self.respond()

    def respond(self):
        server = self.server.owner
        with server.lock:
            server.requests.append((self.command, self.path, dict(self.headers)))
            fault = next((f for key, faults in server.faults.items() if key in f"{self.command} {self.path}"
                          for f in [faults.pop(0) if faults else None] if f), Fault())
        if fault.stall:
            server.closing.wait(30)
            self.close_connection = True
        elif fault.status:
            self.send(fault.status, fault.body, fault.headers)
        else:
            # A proxy gets whole URLs.
            server.answer(self, urllib.parse.unquote(urllib.parse.urlsplit(self.path).path), fault)

    def send(self, status, body=b"", headers=None, fault=Fault()):
        self.send_response(status)
        for name, value in {"Content-Length": len(body), **(headers or {})}.items():
            self.send_header(name, str(value))
        self.end_headers()
        if self.command == "HEAD":
            return
        if fault.change:
            body = bytes(byte ^ 1 for byte in body)
        if 0 <= fault.cut < len(body):
            body = body[:fault.cut]
            self.close_connection = True
        try:
            self.wfile.write(body)
        except OSError:
            self.close_connection = True

    def send_file(self, content, headers, fault):
        """Sends a file, or the part that is asked for."""
        asked = self.headers.get("Range")
        if not asked or self.server.owner.no_ranges:
            return self.send(200, content, {**headers, "Accept-Ranges": "bytes"}, fault)
        begin = int(asked.removeprefix("bytes=").rstrip("-"))
        if begin >= len(content):
            return self.send(416, b"", {"Content-Range": f"bytes */{len(content)}"})
        place = f"bytes {begin}-{len(content) - 1}/{len(content)}"
        return self.send(206, content[begin:], {**headers, "Content-Range": place}, fault)


class Server:
    """One listening address. `faults` maps a part of "METHOD PATH" to the faults of the next such requests."""

    def __init__(self):
        self.requests, self.faults, self.lock, self.closing = [], {}, threading.Lock(), threading.Event()
        self.no_ranges = False
        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True
        self.http.owner = self
        self.url = f"http://127.0.0.1:{self.http.server_port}"
        threading.Thread(target=self.http.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    def close(self):
        self.closing.set()
        self.http.shutdown()
        self.http.server_close()

    def asked(self, method, part):
        """The requests whose path has this part."""
        return [(path, headers) for kind, path, headers in self.requests if kind == method and part in path]


class Storage(Server):
    """Keeps large files by their SHA-256."""

    def __init__(self):
        super().__init__()
        self.contents = {}

    def answer(self, request, path, fault):
        content = self.contents.get(path.rsplit("/", 1)[-1])
        if content is None:
            return request.send(404)
        return request.send_file(content, {"ETag": '"storage"'}, fault)


class Hub(Server):
    def __init__(self):
        super().__init__()
        self.repositories, self.renamed, self.storage = {}, {}, Storage()

    def add(self, name, repository):
        self.repositories[name] = repository
        for file in repository.large:
            self.storage.contents[hashlib.sha256(repository.files[file]).hexdigest()] = repository.files[file]

    def close(self):
        super().close()
        self.storage.close()

    def refuse(self, request, status, code, message):
        request.send(status, json.dumps({"error": message}).encode(),
                     {"X-Error-Code": code, "X-Error-Message": message, "Content-Type": "application/json"})

    def answer(self, request, path, fault):
        parts = path.strip("/").split("/")
        api, cached = parts[:2] == ["api", "models"], parts[:3] == ["api", "resolve-cache", "models"]
        parts = parts[3:] if cached else parts[2:] if api else parts
        name = "/".join(parts[:2])
        if parts[0] in self.renamed:
            return request.send(307, b"", {"Location": path.replace(parts[0], self.renamed[parts[0]], 1)})
        repository = self.repositories.get(name)
        token = request.headers.get("Authorization", "").removeprefix("Bearer ")
        allowed = repository and token == repository.token if repository and repository.token else repository
        if not repository or (not allowed and not repository.gated):
            if token and not repository:
                return self.refuse(request, 404, "RepoNotFound", "Repository not found")
            return self.refuse(request, 401, "RepoNotFound" if not token else "",
                               "Invalid username or password." if not token else "Invalid credentials")
        if api:
            return self.describe(request, name, repository, parts[2:])
        if not allowed:
            message = f"Access to model {name} is restricted. You must have access to it and be authenticated."
            return self.refuse(request, 401 if not token else 403, "GatedRepo", message)
        revision, file = (parts[2], "/".join(parts[3:])) if cached else (parts[3], "/".join(parts[4:]))
        return self.resolve(request, name, repository, revision, file, cached, fault)

    def describe(self, request, name, repository, rest):
        revision = "/".join(rest[1:]) or "main"
        if revision not in ("main", "v1/beta", repository.commit):
            return self.refuse(request, 404, "RevisionNotFound", f"Invalid rev id: {revision}")
        if rest[:1] == ["tree"]:
            entries = []
            for file, content in repository.files.items():
                entry = {"type": "file", "path": file, "size": len(content), "oid": git_hash(content)}
                if file in repository.large:
                    entry["lfs"] = {"oid": hashlib.sha256(content).hexdigest(), "size": len(content), "pointerSize": 130}
                entries.append(entry)
            return request.send(200, json.dumps(entries).encode(), {"Content-Type": "application/json"})
        description = {"_id": "1", "id": name, "modelId": name, "sha": repository.commit, "private": bool(repository.token),
                       "tags": [], "downloads": 0, "siblings": [{"rfilename": file} for file in repository.files]}
        return request.send(200, json.dumps(description).encode(), {"Content-Type": "application/json"})

    def resolve(self, request, name, repository, revision, file, cached, fault):
        if revision not in ("main", "v1/beta", repository.commit):
            return self.refuse(request, 404, "RevisionNotFound", f"Invalid rev id: {revision}")
        content = repository.files.get(file)
        headers = {"X-Repo-Commit": repository.commit}
        if content is None:
            return self.refuse(request, 404, "EntryNotFound", "Entry not found")
        if file in repository.large:
            sum_ = hashlib.sha256(content).hexdigest()
            return request.send(302, b"", {**headers, "X-Linked-Etag": f'"{sum_}"', "X-Linked-Size": len(content),
                                           "Location": f"{self.storage.url}/xet/{sum_}?signature=1"})
        headers["ETag"] = f'"{git_hash(content)}"'
        if not cached:
            place = f"/api/resolve-cache/models/{name}/{repository.commit}/{urllib.parse.quote(file)}"
            return request.send(307, b"", {**headers, "Location": place, "X-Linked-Size": len(content)})
        return request.send_file(content, headers, fault)
