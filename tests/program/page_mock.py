"""A server with the page of `qkv serve` and the routes that it uses. Its models are tables of examples.

`Mock()` is a context manager. Tests change its attributes to make it slow, busy, locked or hostile.
"""

import base64
import hashlib
import json
import math
import pathlib
import random
import re
import threading
import time
import urllib.parse
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

SCRIPTS = ("requests", "page", "translate", "translate_attention", "translate_choices", "translate_document", "recommend",
           "generate")
SOURCES = pathlib.Path(__file__).resolve().parent.parent.parent / "src"
HOSTILE = "</script><script>hacked=1</script><img src=x onerror=hacked=1>\"'`${hacked=1}{{style}}<!--\u202e&lt;\0"

DICTIONARY = dict(pair.split(":") for pair in (
    "the:der a:ein old:alte young:junge teacher:Lehrer painter:Maler has:hat not:nicht seen:gesehen small:kleinen "
    "dog:Hund cat:Katze in:im garden:Garten sees:sieht dances:tanzt tall:große sad:traurige mother:Mutter and:und "
    "sister:Schwester guest:Gast washed:wusch shirt:Hemd sings:singt with:mit book:Buch reads:liest").split())
FILMS = [f"{name}, Part {part}" for name in ("Silent Harbour", "Golden Dragon", "Winter of Glass", "The Last Orchard",
                                             "Paper Moons", "Northern Lights") for part in range(1, 6)]
CONTINUATION = [token.replace("_", " ").replace("|", "\n") for token in (  # _ is a space and | a line break
    "But _soft! _what _light _through _yonder _win dow _breaks? | It _is _the _east, _and _Jul iet _is _the _sun. | "
    "Ar ise, _fair _sun, _and _kill _the _en vious _moon, | Who _is _al ready _sick _and _pale _with _grief, | "
    "That _thou _her _maid _art _far _more _fair _than _she. |").split(" ")]


def page_and_policy():
    """The page and its Content-Security-Policy, put together as in src/serve/api/site.cc."""
    def read(*names):
        return "\n".join((SOURCES / name).read_text(encoding="utf-8") for name in names)

    style = read("eval/assets/attention_view.css", "serve/api/assets/page.css")
    script = read("eval/assets/attention_view.js", *(f"serve/api/assets/{name}.js" for name in SCRIPTS))
    style, script = compact_style(style), compact(script)
    page = read("serve/api/assets/page.html")
    for name, text in (("style", style), ("view", read("eval/assets/attention_view.html")), ("script", script)):
        page = page.replace("{{" + name + "}}", text, 1)

    def sum_of(text):
        return base64.b64encode(hashlib.sha256(("\n" + text).encode()).digest()).decode()

    return page, (f"default-src 'none'; script-src 'sha256-{sum_of(script)}'; style-src 'sha256-{sum_of(style)}'; "
                  "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
                  "require-trusted-types-for 'script'")


def compact(text):
    """Without indentation, empty lines, lines that are comments, and comments after two spaces."""
    lines = [line.strip(" ").split("  // ")[0].rstrip(" ") for line in text.split("\n")]
    return "".join(line + "\n" for line in lines if line and not line.startswith("//"))


def compact_style(text):
    """Without the spaces that separate nothing."""
    return re.sub(r" ?\{", "{", re.sub(r"([:;,]) +", r"\1", compact(text)))


class Mock:
    def __init__(self):
        self.kinds = ("translator", "recommender", "language_model")
        self.hostile = False
        self.key = None
        self.delay = 0.0  # seconds between the tokens of a stream
        self.limit = math.inf  # events after which a stream waits until the limit is raised or the client leaves
        self.end = None  # of streams: "error" or "cut" after three events
        self.refusals = {}  # path -> list of (status, headers), used up one by one
        self.requests = []  # (path, body)
        self.aborted = Counter()  # path -> streams that the client left
        self.errors = []  # (status, path)
        handler = type("MockHandler", (Handler,), {"mock": self})
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, args=[0.05], daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()

    def text(self, text):
        return text + HOSTILE if self.hostile else text

    def bodies(self, path):
        return [body for other, body in self.requests if other == path]

    def models(self):
        names = {"translator": ["en-de", "de-en", "many"], "recommender": ["films"], "language_model": ["lm"]}
        return [{"id": self.text(name), "object": "model", "created": 1, "owned_by": "qkv", "kind": kind,
                 "parameters": 12_345_678, "max_length": 256} for kind in self.kinds for name in names[kind]]

    def info(self):
        languages = {"en-de": (["en"], ["de"]), "de-en": (["de"], ["en"]), "many": (["en", "fr"], ["de", "fr"])}
        models = []
        for model in self.models():
            name = model["id"].removesuffix(HOSTILE)
            if name in languages:
                source, target = languages[name]
                model = model | {"source_languages": source, "target_languages": target}
            models.append(model)
        return {"version": self.text("qkv 0.1.0 (avx2)"), "models": models, "limits": {"max_text": 16384}}

    # Translation

    def translation(self, source, prefix="", n_best=1):
        def translated(word):
            stem = word.strip(".,!?").lower()
            return word.lower().replace(stem, DICTIONARY.get(stem, stem)) if stem else word

        sentences = re.split(r"(?<=[.!?]) ", source) if not prefix else []
        if len(sentences) > 1:
            return self.joined(source, [self.translation(sentence, "", n_best) for sentence in sentences])
        words = [translated(word) for word in source.split()]
        words[:1] = [word[:1].upper() + word[1:] for word in words[:1]]
        kept = prefix.split()
        hypotheses = []
        for number in range(n_best):
            rest = words[len(kept):]
            if number and rest:
                rest[0] += "e" * number
            text = self.text(" ".join(kept + rest))
            hypotheses.append({"text": text, "tokens": ["▁" + word for word in text.split()],
                               "score": -0.21 - 0.17 * number, "log_probability": -2.5,
                               "token_scores": [-0.2] * len(words)})
        return {"source": source, "source_tokens": ["▁" + word for word in source.split()] + ["</s>"],
                "hypotheses": hypotheses}

    def joined(self, source, parts):
        hypotheses = []
        for found in zip(*(part["hypotheses"] for part in parts)):
            text = " ".join(one["text"] for one in found)
            pairs = [{"source": part["source"], "text": one["text"]} for part, one in zip(parts, found)]
            hypotheses.append(found[0] | {"text": text, "tokens": ["▁" + word for word in text.split()],
                                          "token_scores": [-0.2] * len(text.split()), "sentences": pairs})
        return {"source": source, "source_tokens": sum((part["source_tokens"] for part in parts), []),
                "hypotheses": hypotheses}

    def translate(self, body):
        lines = body["text"] if isinstance(body["text"], list) else [body["text"]]
        translations = [self.translation(line, body.get("prefix", ""), body.get("n_best", 1)) for line in lines]
        final = {"model": body["model"], "translations": translations,
                 "notes": [self.text("note")] if self.hostile else [],
                 "usage": {"source_tokens": 9, "target_tokens": sum(len(t["source_tokens"]) for t in translations)}}
        if not body.get("stream"):
            return final
        return self.translation_events(body, translations, final)

    def translation_events(self, body, translations, final):
        for line, translation in enumerate(translations):
            words = translation["hypotheses"][0]["text"].split(" ")
            if body["beam"] > 1:
                yield {"line": line, "translation": translation}
                continue
            for n, word in enumerate(words):
                yield {"line": line, "hypothesis": 0, "token": "▁" + word, "text": " ".join(words[:n + 1]),
                       "log_probability": -0.1, "last": n == len(words) - 1}
        yield final

    def attend(self, body):
        source = ["▁" + word for word in body["text"].split()] + ["</s>"]
        target = ["▁" + word for word in body["target"].split()]
        if not body.get("words"):
            source, target = pieces(source), pieces(target)
        kinds = [("encoder", source, source), ("decoder", ["<s>", *target], ["<s>", *target]),
                 ("cross", [*target, "</s>"], source)]
        return {"source": body["text"], "target": body["target"], "attention": [
            {"kind": kind, "rows": rows, "columns": columns, "layers": [
                [weights(kind, len(rows), len(columns), 4 * layer + head) for head in range(4)] for layer in range(3)]}
            for kind, rows, columns in kinds]}

    # Items

    def items(self, query):
        found = [n for n, title in enumerate(FILMS) if query["q"][0].lower() in title.lower()][:int(query["n"][0])]
        return {"items": [{"item": f"f{n:04}", "title": self.text(FILMS[n])} for n in found]}

    def recommend(self, body):
        past = [int(item[1:]) for item in body["history"]]
        ranked = [n for n in sorted(range(len(FILMS)), key=lambda n: (min([(n - p) % 30 for p in past] or [0]), n))
                  if n not in past]
        items = []
        for rank, n in enumerate(ranked[:body["top"]], 1):
            chance = random.Random(n)
            effects = [round(chance.uniform(-1, 3) / (1 + (n - p) % 30), 4) for p in past]
            items.append({"rank": rank, "item": f"f{n:04}", "title": self.text(FILMS[n]),
                          "score": 12.5 - 0.7 * rank if past else 900 - 17 * rank,
                          "effects": effects if len(past) > 1 else []})
        return {"items": items, "popular": not past, "read": body["history"],
                "unknown": [self.text("?")] if self.hostile else []}

    # Text

    def completions(self, body):
        chance = random.Random(1)
        made = list(map(self.text, CONTINUATION)) * 40
        made[4:4] = ["bytes:\\xe2\\x82", "bytes:\\xac"]
        made = made[:body["max_tokens"]]
        for n, token in enumerate(made):
            own = math.log(chance.choice((0.97, 0.9, 0.8, 0.5, 0.2, 0.07)))
            others = enumerate((" the", " and", "\n", " thou"), 1)
            top = {token: own} | {self.text(other): own - 0.7 * k for k, other in others}
            text = {"bytes:\\xe2\\x82": "", "bytes:\\xac": "€"}.get(token, token)
            yield {"id": "cmpl-1", "object": "text_completion", "choices": [{
                "index": 0, "text": text, "finish_reason": None,
                "logprobs": {"tokens": [token], "token_logprobs": [own], "top_logprobs": [top], "text_offset": [0]}}]}
        yield {"id": "cmpl-1", "object": "text_completion", "seed": 7, "choices": [
            {"index": 0, "text": "", "logprobs": None, "finish_reason": "length"}]}


def pieces(words):
    """Words of more than six letters in two parts."""
    return [part for word in words for part in ((word[:5], word[5:]) if len(word) > 7 else (word,))]


def weights(kind, rows, columns, seed):
    chance = random.Random(seed)
    sharpness, shift = chance.uniform(0.3, 3), chance.choice((-1, 0, 0, 1))
    made = []
    for i in range(rows):
        centre = i * columns / rows + shift
        row = [math.exp(-sharpness * abs(j - centre)) * chance.uniform(0.4, 1) + 1e-3 for j in range(columns)]
        if kind == "decoder":
            row = [value if j <= i else 0.0 for j, value in enumerate(row)]
        made.append([value / sum(row) for value in row])
    return made


class Handler(BaseHTTPRequestHandler):
    mock: Mock
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, status, text, kind="application/json", headers=()):
        data = text.encode("utf-8", "surrogatepass")
        self.send_response(status)
        for name, value in (("Content-Type", f"{kind}; charset=utf-8"), ("Content-Length", len(data)), *headers):
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def refuse(self, status, message, headers=()):
        self.mock.errors.append((status, self.path))
        error = {"message": self.mock.text(message), "type": "invalid_request_error", "param": None, "code": None}
        self.answer(status, json.dumps({"error": error}), headers=headers)

    def stream(self, path, events):
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream; charset=utf-8")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        try:
            for n, event in enumerate(events):
                self.wait(n)
                if n == 3 and self.mock.end:
                    self.close_connection = True
                    if self.mock.end == "cut":
                        return
                    self.chunk(f"data: {json.dumps({'error': {'message': 'deadline of 60 s passed'}})}\n\n")
                    break
                self.chunk(f": \n\ndata: {json.dumps(event, ensure_ascii=False)}\n\n")
            else:
                self.chunk("data: [DONE]\n\n")
            self.wfile.write(b"0\r\n\r\n")
        except (BrokenPipeError, ConnectionResetError):
            self.mock.aborted[path] += 1
            self.close_connection = True

    def wait(self, n):
        """Waits until the event of this number may be sent. Raises BrokenPipeError if the client has left."""
        time.sleep(self.mock.delay)
        while not (closed := self.connection_is_closed()) and n >= self.mock.limit:
            time.sleep(0.02)
        if closed:
            raise BrokenPipeError

    def connection_is_closed(self):
        self.connection.setblocking(False)
        try:
            return self.connection.recv(1, 2) == b""  # MSG_PEEK
        except BlockingIOError:
            return False
        finally:
            self.connection.setblocking(True)

    def chunk(self, text):
        """Writes one event in two parts, cut within a character if it has one of several bytes."""
        data = text.encode()
        cut = next((n + 1 for n, byte in enumerate(data) if byte >= 0xC0), len(data) // 2)
        for part in (data[:cut], data[cut:]):
            if part:
                self.wfile.write(f"{len(part):x}\r\n".encode() + part + b"\r\n")
                self.wfile.flush()

    def do_GET(self):
        self.serve(None)

    def do_POST(self):
        self.serve(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

    def serve(self, body):
        mock, url = self.mock, urllib.parse.urlsplit(self.path)
        path, query = url.path, urllib.parse.parse_qs(url.query)
        mock.requests.append((path, body if body is not None else query))
        if path == "/":
            page, policy = page_and_policy()
            headers = {"Content-Security-Policy": policy, "Referrer-Policy": "no-referrer",
                       "Cross-Origin-Opener-Policy": "same-origin"}
            return self.answer(200, page, "text/html", headers.items())
        if mock.key and self.headers["Authorization"] != f"Bearer {mock.key}" and path not in ("/languages", "/frontend/settings"):
            return self.refuse(401, "a key is required")
        if mock.refusals.get(path):
            status, headers = mock.refusals[path].pop(0)
            return self.refuse(status, "model lm: 256 requests wait already", headers.items())
        answers = {"/v1/models": lambda: {"object": "list", "data": mock.models()}, "/v1/info": mock.info,
                   "/languages": lambda: [{"code": c, "name": mock.text(n), "targets": []} for c, n in
                                          (("en", "English"), ("de", "German"), ("fr", "French"))],
                   "/frontend/settings": lambda: {"filesTranslation": True, "supportedFilesFormat": [".txt", ".html"]},
                   "/v1/items": lambda: mock.items(query), "/v1/translate": lambda: mock.translate(body),
                   "/v1/attend": lambda: mock.attend(body), "/v1/recommend": lambda: mock.recommend(body),
                   "/v1/completions": lambda: mock.completions(body)}
        if path not in answers:
            return self.refuse(404, f"no route {path}")
        answer = answers[path]()
        if isinstance(answer, dict | list):
            return self.answer(200, json.dumps(answer))
        return self.stream(path, answer)


if __name__ == "__main__":
    with Mock() as mock:
        mock.delay = 0.03
        print(mock.url, flush=True)
        time.sleep(3600)
