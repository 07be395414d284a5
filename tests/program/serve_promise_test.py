"""Answers of `qkv serve` have the bytes of the command line's for the same input, whatever is computed at the same time."""

import base64
import concurrent.futures
import json
import random
import re
import struct
from dataclasses import dataclass, field

import pytest
from conftest import qkv
from serving import ALL, MODELS, RUNS, TITLES, ServeProcess, has_option, only_known, request_bytes, reset

LINES = [*(RUNS / "text/lines.en").read_text().splitlines()[:4], "A guest", "", "Zürich, 東京 & <b>"]
PROMPTS = ["The red", "A", "Who", "A nurse's"]
TEXTS = ["a b c", "h", "", "b b b b b b b b b b b b b b b b b b b b", "unknown words"]
ONE = ["--threads", 1]  # the command line, whose results do not depend on it

TRANSLATIONS = [
    {}, {"beam": 1}, {"beam": 3, "n_best": 3, "length_penalty": 0.5, "coverage_penalty": 0.2},
    {"beam": 1, "repetition_penalty": 1.5, "no_repeat_ngram": 2, "word_scores": True, "alignment": False},
    {"beam": 4, "max_length": 9, "min_length": 3, "attention": True, "attention_layer": 1, "attention_head": 2},
    {"beam": 3, "n_best": 3, "alternatives": True, "prefix": "D", "replace_unknown": True},
    {"sampling": True, "seed": 5, "n_best": 3, "top_k": 20, "temperature": 0.8},
    {"sampling": True, "seed": 9007199254740991, "top_p": 0.9, "typical_p": 0.95, "min_p": 0.01},
    {"beam": 3, "early_stopping": "never", "length_penalty": 2},
]
GENERATIONS = [
    {"temperature": 0, "seed": 1, "max_tokens": 4}, {"seed": 3, "max_tokens": 12}, {"seed": 1, "max_tokens": 40, "slide": True},
    {"seed": 7, "top_p": 0.8, "top_k": 9, "repetition_penalty": 1.3, "max_tokens": 8, "n": 3},
    {"seed": 8, "stop": ["e", "st"], "max_tokens": 12}, {"seed": 2, "min_p": 0.02, "typical_p": 0.9, "no_repeat_ngram": 2, "max_tokens": 9},
]
HISTORIES = [
    {"history": ["f0000", "f0001"]}, {"history": ["f0000", ["f0003", "f0005"]], "top": 3, "explain": True, "id": 1.5},
    {"similar": "f0004", "top": 4, "id": {"of": "similar"}}, {"history": ["Silent Harbour, Part 1", "unknown"], "id": "x"},
    {"history": ["f0010"], "deny": ["f0001"], "diversity": 0.5, "include_seen": True}, {"history": []},
    {"history": ["f0002"], "allow": ["f0001", "f0009", "none"], "top": 2},
]


def digits(text):
    """Parses JSON with numbers as they are written."""
    return json.loads(text, parse_float=str, parse_int=str)


def arguments(options):
    """The options of the command line that mean these members."""
    found = []
    for name, value in options.items():
        flag = "--" + name.replace("_", "-")
        if value is False:
            found.append(flag.replace("--", "--no-", 1))
        for one in value if isinstance(value, list) else [value] if value is not False else []:
            found += [flag] if one is True else [flag, one]
    return found


@dataclass
class Case:
    path: str
    body: object
    check: object                            # called with the reply of the request alone
    headers: dict = field(default_factory=dict)


def streamed(case, check):
    return Case(case.path, {**case.body, "stream": True}, check)


# ---- Translations

def translated(options, *more):
    return qkv("translate", MODELS["mt"], "--json", *ONE, *arguments(options), *more, text="\n".join(LINES) + "\n")[1:]


def translate_cases():
    for options in TRANSLATIONS:
        out, log = translated(options)
        of_tokens = options.get("beam") == 1 or "sampling" in options  # a stream of tokens protects no part
        streams = (translated(options, "--protected-parts", "none")[0] if of_tokens else out).splitlines()
        lines, notes = out.splitlines(), dict(re.findall(r"^qkv: line (\d+): (longer .*)$", log, re.MULTILINE))
        assert len(lines) == len(LINES) and len(notes) >= 3
        several = Case("/v1/translate", {"model": "mt", "text": LINES[:3], **options},
                       is_translation(lines[:3], [f"text {i}: {notes[str(i + 1)]}" for i in range(3)]))
        yield several
        yield streamed(several, is_translation_stream(streams[:3]))
        for i, (text, line, stream) in enumerate(zip(LINES, lines, streams)):
            note = notes.get(str(i + 1))
            one = Case("/v1/translate", {"text": text, **options}, is_translation([line], [note] if note else []))
            yield one
            yield streamed(one, is_translation_stream([stream]))


def check_translation(text, lines):
    start = f'{{"model":"mt","translations":[{",".join(lines)}],"notes":['
    assert text.startswith(start), (text, start)
    hypotheses = [h for line in lines for h in json.loads(line)["hypotheses"]]
    usage = json.loads(text)["usage"]
    assert usage["target_tokens"] == sum(len(h["tokens"]) for h in hypotheses)
    assert usage["source_tokens"] >= sum(len(json.loads(line)["source_tokens"]) for line in lines)


def is_translation(lines, notes):
    def check(reply):
        check_translation(reply.text, lines)
        assert reply.json()["notes"] == notes

    return check


def is_translation_stream(lines):
    def check(reply):
        *events, answer, done = reply.events()
        assert done == "[DONE]"
        check_translation(answer, lines)
        if events and "translation" in json.loads(events[0]):
            wanted = [f'{{"line":{i},"translation":{line}}}' for i, line in enumerate(lines)]
            assert sorted(events) == sorted(wanted)
            return
        tokens, texts = {}, {}
        for event in map(json.loads, events):
            place = (event["line"], event["hypothesis"])
            tokens.setdefault(place, []).append(event["log_probability"])
            texts[place] = event["text"]
        if len(json.loads(lines[0])["hypotheses"]) > 1 and json.loads(answer)["notes"]:
            return  # the samples of each part are sorted when it ends, so the whole text is another choice of them
        hypotheses = [(i, h) for i, line in enumerate(lines) for h in json.loads(line)["hypotheses"] if h["token_scores"]]
        assert sorted((place[0], texts[place]) for place in texts) == sorted((i, h["text"]) for i, h in hypotheses)
        assert sorted((place[0], tokens[place]) for place in tokens) == sorted((i, h["token_scores"]) for i, h in hypotheses)

    return check


# ---- Completions

def generated(prompts, options):
    """The lines of qkv generate --json, with the numbers as they are written."""
    known = {name: value for name, value in options.items() if name not in ("n", "slide")}
    known.setdefault("max_tokens", 16)
    text = "\n".join(prompts) + "\n"
    choices = [[digits(line) for line in qkv("generate", MODELS["lm"], *ONE, "--json", "--prompts", "-", "--explain", 2,
                                             *arguments({**known, "seed": options.get("seed", 1) + i}), text=text)[1].splitlines()]
               for i in range(options.get("n", 1))]
    return [[choice[i] for choice in choices] for i in range(len(prompts))]


def generate_cases():
    for options in GENERATIONS:
        found = generated(PROMPTS, options)
        for prompt, texts in zip(PROMPTS, found):
            body = {"prompt": prompt, **options}
            for more in ({}, {"logprobs": 2}, {"echo": True}):
                case = Case("/v1/completions", {**body, **more}, is_completion([prompt], [texts], more))
                yield case
                yield streamed(case, is_completion_stream([prompt], [texts], more))
        several = Case("/v1/completions", {"model": "lm", "prompt": PROMPTS, **options}, is_completion(PROMPTS, found, {}))
        yield several
        yield streamed(several, is_completion_stream(PROMPTS, found, {}))


def wanted_choices(prompts, found, more):
    return [((prompt if more.get("echo") else "") + text["text"], text,
             "stop" if text["end"] in ("document", "stop") else "length") for prompt, texts in zip(prompts, found) for text in texts]


def check_logprobs(logprobs, text, offset):
    assert logprobs["tokens"] == [token["text"] for token in text["tokens"]]
    assert logprobs["token_logprobs"] == [token["log_probability"] for token in text["tokens"]]
    for top, token in zip(logprobs["top_logprobs"], text["tokens"]):
        wanted = {("<end>" if other["end"] else other["text"]): other["log_probability"] for other in token["alternatives"]}
        assert top == {**wanted, token["text"]: token["log_probability"]}
    lengths = [len(token["text"]) for token in text["tokens"]]
    assert logprobs["text_offset"] == [str(offset + sum(lengths[:i])) for i in range(len(lengths))]


def is_completion(prompts, found, more):
    def check(reply):
        answer = digits(reply.body)
        wanted = wanted_choices(prompts, found, more)
        assert [(c["text"], c["finish_reason"]) for c in answer["choices"]] == [(t, finish) for t, _, finish in wanted]
        assert [c["index"] for c in answer["choices"]] == [str(i) for i in range(len(wanted))]
        assert answer["usage"]["completion_tokens"] == str(sum(len(text["tokens"]) for _, text, _ in wanted))
        for choice, (_, text, _) in zip(answer["choices"], wanted):
            if "logprobs" in more:
                check_logprobs(choice["logprobs"], text, 0)

    return check


def is_completion_stream(prompts, found, more):
    def check(reply):
        *events, done = reply.events()
        assert done == "[DONE]"
        texts, finishes, logprobs = {}, {}, {}
        for choice in (digits(event)["choices"][0] for event in events):
            i = int(choice["index"])
            texts[i] = texts.get(i, "") + choice["text"]
            finishes.setdefault(i, []).extend([choice["finish_reason"]] if choice["finish_reason"] else [])
            for name, values in (choice["logprobs"] or {}).items():
                logprobs.setdefault(i, {}).setdefault(name, []).extend(values)
        wanted = wanted_choices(prompts, found, more)
        assert [(texts[i], finishes[i]) for i in range(len(wanted))] == [(t, [finish]) for t, _, finish in wanted]
        for i, (_, text, _) in enumerate(wanted):
            if "logprobs" in more and text["tokens"]:
                check_logprobs(logprobs[i], text, 0)

    return check


# ---- Embeddings

def embed_cases():
    for options in ({}, {"normalize": False}):
        lines = qkv("embed", MODELS["enc"], *ONE, "--json", *arguments(options), text="\n".join(TEXTS) + "\n")[1].splitlines()
        vectors = [digits(line)["vector"] for line in lines]
        yield Case("/embed", {"inputs": TEXTS, **options}, lambda reply, v=vectors: check_equal(digits(reply.body), v))
        for text, vector in zip(TEXTS, vectors):
            yield Case("/embed", {"inputs": text, **options}, lambda reply, v=vector: check_equal(digits(reply.body), [v]))
            if options:
                continue
            body = {"input": text, "model": "enc"}
            yield Case("/v1/embeddings", body, is_embedding([vector]))
            yield Case("/v1/embeddings", {**body, "encoding_format": "base64"}, is_base64([vector]))
        if not options:
            yield Case("/v1/embeddings", {"input": TEXTS}, is_embedding(vectors))


def check_equal(found, wanted):
    assert found == wanted


def is_embedding(vectors):
    return lambda reply: check_equal([one["embedding"] for one in digits(reply.body)["data"]], vectors)


def is_base64(vectors):
    packed = [struct.pack(f"<{len(vector)}f", *map(float, vector)) for vector in vectors]
    return lambda reply: check_equal([base64.b64decode(one["embedding"]) for one in reply.json()["data"]], packed)


# ---- Recommendations and attention

def recommend_cases():
    text = "".join(json.dumps(history) + "\n" for history in HISTORIES)
    lines = qkv("recommend", MODELS["rec"], *ONE, "--titles", TITLES, text=text)[1].splitlines()
    yield Case("/v1/recommend", HISTORIES, lambda reply: check_equal(reply.text, f"[{','.join(lines)}]"))
    for history, line in zip(HISTORIES, lines):
        yield Case("/v1/recommend", {**history, "model": "rec"}, lambda reply, wanted=line: check_equal(reply.text, wanted))


def attend_cases():
    for model, text, options in (("mt", LINES[4], {"target": "Der"}), ("mt", "A b", {"target": "in b", "words": True}),
                                 ("lm", "The red", {"generate": 5}), ("lm", "A nurse", {"words": True})):
        answer = qkv("attend", MODELS[model], text, *ONE, "--json", "-", *arguments(options))[1]
        yield Case("/v1/attend", {"model": model, "text": text, **options},
                   lambda reply, wanted=answer: check_equal(reply.text + "\n", wanted))


# ---- The promise

@pytest.fixture(scope="module")
def cases():
    found = [*translate_cases(), *generate_cases(), *embed_cases(), *recommend_cases(), *attend_cases()]
    for i, case in enumerate(found):
        case.headers = {"X-Request-Id": f"case-{i}"}
    return found


def promised(reply):
    """The promised part of a reply. Texts of a stream run at the same time, so their events are compared text by text."""
    assert reply.status == 200, (reply.status, reply.body)
    body = re.sub(rb'"(created|cached_tokens)":\d+', rb'"\1":0', reply.body)
    if "event-stream" not in reply.headers["content-type"]:
        return body
    return sorted(body.split(b"\n\n"), key=lambda event: re.findall(rb'"(?:index|line|hypothesis)":\d+', event)[:2])


def answer(server, case):
    return server.post(case.path, case.body, headers=case.headers)


def leave(server, case, seed):
    """Sends a request and leaves, at a random byte of the request or of the answer."""
    choice = random.Random(seed)
    data = request_bytes(case.path, case.body)
    connection = server.open_socket()
    if choice.random() < 0.2:
        connection.sendall(data[:choice.randrange(len(data))])
    else:
        connection.sendall(data)
        connection.recv(choice.choice([1, 200, 2000])) if choice.random() < 0.5 else None
    reset(connection) if choice.random() < 0.5 else connection.close()


@pytest.fixture(scope="module")
def alone(cases):
    """Replies to the cases, sent one at a time."""
    with ServeProcess(ALL) as server:
        connection = server.connect()
        replies = [server.post(case.path, case.body, headers=case.headers, connection=connection) for case in cases]
        connection.close()
        assert server.stop() == 0
    return replies


def test_answers_are_those_of_the_command_line(cases, alone):
    assert len(cases) >= 300
    for case, reply in zip(cases, alone):
        assert reply.status == 200, (case.path, case.body, reply.body)
        try:
            case.check(reply)
        except (AssertionError, KeyError, ValueError) as error:
            raise AssertionError(f"{case.path} {case.body}: {error}") from error


@pytest.mark.parametrize("threads, workers, rows, part", [(1, 1, 256, 1), (2, 2, 8, 1), (3, 2, 256, 1), (3, 1, 8, 8)])
def test_answers_do_not_depend_on_what_else_runs(cases, alone, threads, workers, rows, part):
    order = list(range(len(cases)))
    random.Random(threads).shuffle(order)
    order = order[::part]  # threads that share a step wait for each other, which takes long on a busy machine
    options = only_known(("--threads", threads), ("--workers", workers), ("--rows", rows), ("--deadline", "10min"))
    environment = {} if has_option("--threads") else {"OMP_NUM_THREADS": str(threads)}
    with ServeProcess(ALL + options, environment) as server, concurrent.futures.ThreadPoolExecutor(64) as pool:
        futures = {}
        for place, i in enumerate(order):
            futures[i] = pool.submit(answer, server, cases[i])
            if place % 4 == 0:
                pool.submit(leave, server, cases[order[place // 2]], place)
        for i, future in futures.items():
            assert promised(future.result()) == promised(alone[i]), (cases[i].path, cases[i].body)
        assert server.stop() == 0
