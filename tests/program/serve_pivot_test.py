"""qkv serve --pivot: a model that translates through a language in between."""

import json
import os
import shutil
import signal

import pytest
from conftest import ROOT, qkv
from serving import RUNS, ServeProcess, wait_for

RUN = RUNS / "translator"
TEXTS = ["A dog runs.", "The guest sleeps! Who sees a dog?\n\n A dog {name} runs. ", ""]


@pytest.fixture(scope="module")
def server():
    with ServeProcess([f"de-en={RUN}", f"en-fr={RUN}", "--pivot", "de-fr=de-en,en-fr"]) as process:
        yield process


def translate(server, model="de-fr", **fields):
    reply = server.post("/v1/translate", {"model": model, **fields})
    assert reply.status == 200, reply.body
    return reply.json()


def test_it_is_a_model_like_the_others(server):
    models = {model["id"]: model for model in server.get("/v1/models").json()["data"]}
    assert list(models) == ["de-en", "en-fr", "de-fr"] and models["de-fr"]["kind"] == "translator"
    info = {model["id"]: model for model in server.get("/v1/info").json()["models"]}
    assert info["de-fr"]["pivot"] == ["de-en", "en-fr"] and "pivot" not in info["de-en"]
    assert (info["de-fr"]["source_languages"], info["de-fr"]["target_languages"]) == (["de"], ["fr"])
    languages = {language["code"]: language["targets"] for language in server.get("/languages").json()}
    assert languages == {"de": ["en", "fr", "de"], "en": ["fr", "en"]}
    assert server.get("/v1/models/de-fr").json()["id"] == "de-fr"


def test_its_answers_are_those_of_the_command(server):
    for name, value in ("n_best", 2), ("beam", 1), ("sentences", "line"):
        option = f"--{name.replace('_', '-')}"
        lines = [text.replace("\n", " ") for text in TEXTS]
        printed = qkv("translate", RUN, RUN, "--json", option, value, text="\n".join(lines) + "\n")[1]
        answer = translate(server, text=lines, **{name: value})
        assert answer["translations"] == [json.loads(line) for line in printed.splitlines()]
    assert answer["model"] == "de-fr" and answer["usage"]["source_tokens"] > 0


def test_texts_of_several_lines_keep_their_space_and_protected_parts(server):
    found = translate(server, text=TEXTS)["translations"]
    assert found[1]["hypotheses"][0]["text"].count("{name}") == found[1]["pivot"][0].count("{name}") == 1
    assert "\n\n " in found[1]["hypotheses"][0]["text"] and found[2]["hypotheses"][0]["text"] == ""
    step = translate(server, "de-en", text=TEXTS[0])["translations"][0]["hypotheses"][0]["text"]
    assert found[0]["pivot"] == [step]


def test_a_stream_has_an_event_for_each_text(server):
    body = {"model": "de-fr", "text": TEXTS, "stream": True, "beam": 1}
    *events, answer, end = server.post("/v1/translate", body).events()
    assert end == "[DONE]"
    texts = {event["line"]: event["translation"] for event in map(json.loads, events)}
    assert [texts[i] for i in range(len(TEXTS))] == json.loads(answer)["translations"]


def test_the_routes_of_libretranslate(server):
    fields = {"q": "A dog runs.", "source": "de", "target": "fr"}
    found = server.post("/translate", fields).json()["translatedText"]
    assert found == translate(server, text="A dog runs.")["translations"][0]["hypotheses"][0]["text"]
    html = server.post("/translate", {**fields, "q": "<p>A <b>dog</b> runs.</p>", "format": "html",
                                      "alternatives": 1}).json()["translatedText"]
    assert html.startswith("<p>") and html.count("<b>") == html.count("</b>") == 1
    detected = server.post("/translate", {**fields, "source": "auto"}).json()["detectedLanguage"]
    assert detected["language"] in ("de", "en")


def test_files_are_translated(server):
    boundary = "limit"
    parts = [f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'
             for name, value in (("source", "de"), ("target", "fr"))]
    parts.append(f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="a.txt"\r\n\r\nA dog runs.\r\n'
                 f"--{boundary}--\r\n")
    reply = server.request("POST", "/translate_file", "".join(parts).encode(),
                           {"Content-Type": f"multipart/form-data; boundary={boundary}"})
    assert reply.status == 200, reply.body
    file = server.get(reply.json()["translatedFileUrl"].split(str(server.port))[1])
    assert file.text.strip() == translate(server, text="A dog runs.")["translations"][0]["hypotheses"][0]["text"]


@pytest.mark.parametrize(
    "field", [{"glossary": "dog\tHund\n"}, {"attention": True}, {"source_language": "de"}, {"beam": 99}])
def test_fields_that_it_cannot_have_are_refused(server, field):
    reply = server.post("/v1/translate", {"model": "de-fr", "text": "A dog.", **field})
    assert reply.status == 400 and next(iter(field)) in reply.json()["error"]["message"]


def test_what_is_known_of_it_holds_for_all_its_runs(tmp_path):
    shutil.copytree(RUN, tmp_path / "short")
    config = json.loads((tmp_path / "short/config.json").read_text())
    config["max_length"] -= 1
    (tmp_path / "short/config.json").write_text(json.dumps(config))
    qkv("quantize", RUN, "--int8", "--out", tmp_path / "int8")
    runs = [f"a={RUN}", f"b={tmp_path / 'short'}", f"q={tmp_path / 'int8'}"]
    pivots = ["--pivot", "ab=a,b", "--pivot", "ba=b,a", "--pivot", "qq=q,q", "--pivot", "qa=q,a"]
    with ServeProcess([*runs, *pivots]) as server:
        info = {model["id"]: model for model in server.get("/v1/info").json()["models"]}
        assert info["ab"]["max_length"] == info["ba"]["max_length"] == info["a"]["max_length"] - 1
        assert {name: model["int8"] for name, model in info.items()} == {
            "a": False, "b": False, "q": True, "ab": False, "ba": False, "qq": True, "qa": False}


def test_alternatives_leave_the_glossary_of_the_first_run(tmp_path):
    (tmp_path / "terms.tsv").write_text("dog\tdog guest\n")
    pivots = ["--pivot", "ab=a,b", "--glossary", f"a={tmp_path / 'terms.tsv'}"]
    with ServeProcess([f"a={RUN}", f"b={RUN}", *pivots]) as server:
        plain = translate(server, "ab", text="A dog runs.")["translations"][0]
        assert "dog guest" in plain["pivot"][0].lower()
        found = translate(server, "ab", text="A dog runs.", alternatives=True, n_best=2)["translations"][0]
        assert found["pivot"] == plain["pivot"] and len(found["hypotheses"]) == 2


def test_a_text_that_is_too_long_for_the_queue_is_refused(tmp_path):
    with ServeProcess([f"a={RUN}", f"b={RUN}", "--pivot", "c=a,b", "--queue-tokens", "400"]) as server:
        assert server.post("/v1/translate", {"model": "c", "text": "A dog runs. " * 50}).status == 400
        assert server.post("/v1/translate", {"model": "c", "text": "A dog."}).status == 200


def test_a_deadline_and_a_client_that_leaves_end_it():
    with ServeProcess([f"a={RUN}", f"b={RUN}", "--pivot", "c=a,b"]) as server:
        text = "\n".join(["A dog runs and the guest sleeps."] * 400)
        body = {"model": "c", "text": text, "beam": 16}
        late = server.request("POST", "/v1/translate", body, {"X-Request-Timeout": "0.02"})
        assert late.status in (503, 504)
        connection = server.open_socket()
        data = json.dumps(body).encode()
        connection.sendall(b"POST /v1/translate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                           b"Content-Length: %d\r\n\r\n" % len(data) + data)
        connection.close()
        assert server.post("/v1/translate", {"model": "c", "text": "A dog."}).status == 200
        wait_for(lambda: server.gauges("qkv_requests_running") == 0)


def test_a_reload_gives_the_chain_its_new_runs(tmp_path):
    shutil.copytree(RUN, tmp_path / "run")
    with ServeProcess([f"a={tmp_path / 'run'}", f"b={RUN}", "--pivot", "c=a,b"]) as server:
        before = server.post("/v1/translate", {"model": "c", "text": "A dog."}).json()
        shutil.rmtree(tmp_path / "run")
        shutil.copytree(RUNS / "language", tmp_path / "run")
        os.kill(server.pid, signal.SIGHUP)
        wait_for(lambda: any("pivot: c: a is no translator" in line for line in server.lines))
        assert server.post("/v1/translate", {"model": "c", "text": "A dog."}).json() == before
        shutil.rmtree(tmp_path / "run")
        shutil.copytree(RUN, tmp_path / "run")
        created = server.get("/v1/models/c").json()["created"]
        os.kill(server.pid, signal.SIGHUP)
        wait_for(lambda: server.get("/v1/models/c").json()["created"] >= created)
        assert server.post("/v1/translate", {"model": "c", "text": "A dog."}).json() == before


def test_models_of_several_languages_are_in_a_chain_with_two_of_them(tmp_path):
    golden = ROOT / "tests/golden/encoder_decoders"
    for name in "m2m_100", "madlad":
        qkv("import", golden / name, tmp_path / name)
    run = tmp_path / "m2m_100"
    pivots = ["--pivot", "c=m:de-en,m:en-fr", "--pivot", "d=t:en-de,m:de-fr", "--pivot", "e=m:fr-en,a"]
    runs = [f"m={run}", f"t={tmp_path / 'madlad'}", f"a={RUN}"]
    languages = ["--from", "de", "--pivot-language", "en", "--to", "fr"]
    printed = qkv("translate", run, run, "--json", *languages, text="a b\n")[1]
    with ServeProcess([*runs, "--languages", "a=en-xx", *pivots]) as server:
        assert translate(server, "c", text="a b")["translations"] == [json.loads(printed)]
        assert translate(server, "d", text="a b")["translations"][0]["pivot"]
        info = {model["id"]: model for model in server.get("/v1/info").json()["models"]}
        assert [info[c]["source_languages"] + info[c]["target_languages"] for c in "cde"] == [
            ["de", "fr"], ["en", "fr"], ["fr", "xx"]]
        for fields in {"source": "fr", "target": "xx"}, {"source": "de", "target": "en"}:
            assert server.post("/translate", {"q": "a b", **fields}).status == 200, fields
        refused = server.post("/v1/translate", {"model": "c", "text": "a", "target_language": "de"})
        assert refused.status == 400 and '"target_language" is not supported by c' in refused.json()["error"]["message"]
    with ServeProcess([f"t={tmp_path / 'madlad'}"]) as server:  # reads no language of the source
        assert server.post("/translate", {"q": "a b", "source": "en", "target": "de"}).status == 200
    for chain, message in [
            ("m,a", "pivot: c: m has several languages; two of them must be given as m:"),
            ("m:de,a", '(are "de")'), ("m:de-xx,a", '(are "de-xx")'), ("a,m", "(are missing)"),
            ("a:de-en,m:de-fr", 'pivot: c: a has a single language pair, and must be given without "de-en"')]:
        command = ["serve", f"a={RUN}", f"m={run}", "--pivot", f"c={chain}", "--listen", "127.0.0.1:0"]
        status, _, error = qkv(*command, ok=False)
        assert status != 0 and message in error and error.count("\n") == 1, error


@pytest.mark.parametrize("options, message", [
    (["--pivot", "c=a"], "pivot: \"c=a\" must be NAME=FIRST,SECOND"),
    (["--pivot", "c=a,x"], "(\"x\" is none)"),
    (["--pivot", "a=a,b"], "the name a stands for two models"),
    (["--pivot", "c=a,b", "--pivot", "d=c,b"], "(\"c\" is none)"),
    (["--pivot", "c=a,b", "--glossary", "c=terms.tsv"], "glossary: c is a chain"),
    (["--pivot", "c=a,lm", f"lm={RUNS / 'language'}"], "pivot: c: lm is no translator"),
])
def test_chains_that_cannot_be_are_refused(options, message):
    status, _, error = qkv("serve", f"a={RUN}", f"b={RUN}", *options, "--listen", "127.0.0.1:0", ok=False)
    assert status != 0 and message in error and error.count("\n") == 1, error


def test_a_run_may_be_in_a_chain_twice():
    with ServeProcess([f"a={RUN}", "--pivot", "c=a,a,a", "--languages", "c=xx-yy"]) as server:
        found = server.post("/v1/translate", {"model": "c", "text": "A dog."}).json()["translations"][0]
        assert len(found["pivot"]) == 2
        assert server.post("/translate", {"q": "A dog.", "source": "xx", "target": "yy"}).json() == {
            "translatedText": found["hypotheses"][0]["text"]}
