"""The routes of LibreTranslate: texts, HTML, languages, suggestions and files."""

import json
import re
import urllib.error
import urllib.parse

import pytest
from serving import ServeProcess, RUNS

TRANSLATOR = f"mt={RUNS / 'translator'}"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    suggestions = tmp_path_factory.mktemp("libre") / "suggestions.jsonl"
    with ServeProcess([TRANSLATOR, "--languages", "mt=en-de", "--suggestions", str(suggestions)]) as process:
        process.suggestions = suggestions
        yield process


def translate(server, **fields):
    return server.post("/translate", fields)


def test_lines_are_translated_apart_and_line_ends_stay(server):
    whole = translate(server, q="a dog\r\n\nruns\n", source="en", target="de").json()["translatedText"]
    parts = translate(server, q=["a dog", "runs"], source="en", target="de").json()["translatedText"]
    assert whole == f"{parts[0]}\r\n\n{parts[1]}\n"


def test_sentences_are_translated_one_by_one(server):
    sentences = ["A dog runs.", "The guest sleeps!", "Who sees a dog?"]
    parts = translate(server, q=sentences, source="en", target="de").json()["translatedText"]
    text = " {}  {}\n\t{}\r\n"
    whole = translate(server, q=text.format(*sentences), source="en", target="de").json()["translatedText"]
    assert whole == text.format(*parts)
    html = translate(server, q="<p>A <b>dog</b> runs. <i>The guest sleeps!</i></p>", source="en", target="de",
                     format="html").json()["translatedText"]
    assert html.count("<b>") == html.count("</i>") == 1
    assert " ".join(re.sub("<[^>]*>", "", html).split()) == " ".join(f"{parts[0]} {parts[1]}".split())


def test_a_stream_is_the_whole_text(server):
    request = {"text": "A dog runs. The guest sleeps!\n\nWho sees a dog?\n", "beam": 1, "stream": True}
    *tokens, answer, end = server.post("/v1/translate", request).body.decode().strip().split("\n\n")
    events = [json.loads(event.removeprefix("data: ")) for event in tokens]
    assert end == "data: [DONE]" and [event["last"] for event in events] == [False] * (len(events) - 1) + [True]
    translation = json.loads(answer.removeprefix("data: "))["translations"][0]
    found = translation["hypotheses"][0]
    assert events[-1]["text"] == found["text"] and found["text"].count("\n") == 3
    assert [event["token"] for event in events][:len(found["tokens"])] == found["tokens"]
    assert translation["source_tokens"].count("</s>") == 3


def test_a_text_is_translated_as_a_whole_on_request(server):
    request = {"text": "A dog. A cat."}
    for sentences, ends in ("auto", 2), ("line", 1), (None, 2):
        found = server.post("/v1/translate", {**request, "sentences": sentences}).json()["translations"][0]
        assert found["source_tokens"].count("</s>") == ends
    refused = server.post("/v1/translate", {**request, "sentences": "word"})
    assert refused.status == 400 and "auto" in refused.json()["error"]["message"]


def test_tags_and_attributes_stay(server):
    q = '<p class="x&amp;y">a <b>dog</b></p><!-- no --><script>if (a < b) {}</script><pre>as  is</pre>'
    found = translate(server, q=q, source="en", target="de", format="html").json()["translatedText"]
    assert found.startswith('<p class="x&amp;y">') and found.count("<b>") == found.count("</b>") == 1
    assert found.endswith("</p><!-- no --><script>if (a < b) {}</script><pre>as  is</pre>")


def test_one_source_language_is_detected_without_confidence(server):
    answer = translate(server, q="a dog", source="auto", target="de").json()
    assert answer["detectedLanguage"] == {"confidence": 0, "language": "en"}
    assert server.post("/detect", {"q": "a dog"}).json() == [{"confidence": 0, "language": "en"}]


def test_a_text_in_the_target_language_comes_back(server):
    assert translate(server, q="ein Hund", source="de", target="de").json() == {"translatedText": "ein Hund"}


def test_alternatives_differ_from_the_translation(server):
    answer = translate(server, q="a dog", source="en", target="de", alternatives=3).json()
    assert 1 <= len(answer["alternatives"]) <= 3 and answer["translatedText"] not in answer["alternatives"]


@pytest.mark.parametrize("fields, message", [
    ({"source": "en", "target": "de"}, "Invalid request: missing q parameter"),
    ({"q": "", "source": "en", "target": "de"}, "Invalid request: missing q parameter"),
    ({"q": "a", "target": "de"}, "Invalid request: missing source parameter"),
    ({"q": "a", "source": "en", "target": "xx"}, "xx is not supported"),
    ({"q": "a", "source": "x" * 31 + "é", "target": "de"}, "x" * 31 + "\ufffd is not supported"),
    ({"q": "a", "source": "de", "target": "en"},
     "English (en) is not available as a target language from German (de)"),
    ({"q": "a", "source": "en", "target": "de", "format": "pdf"}, "pdf format is not supported"),
    ({"q": "a", "source": "en", "target": "de", "alternatives": 16},
     "Invalid request: alternatives parameter must be <= 15"),
    ({"q": "a" * 16385, "source": "en", "target": "de"}, "Invalid request: request (16385) exceeds text limit (16384)"),
])
def test_errors_have_the_words_that_clients_know(server, fields, message):
    reply = translate(server, **fields)
    assert (reply.status, reply.json()) == (400, {"error": message})


def test_forms_are_read_as_json_is(server):
    form = urllib.parse.urlencode([("q", "a dog"), ("q", "runs"), ("source", "en"), ("target", "de")])
    reply = server.request("POST", "/translate", form.encode(),
                           headers={"Content-Type": "application/x-www-form-urlencoded"})
    assert reply.json() == translate(server, q=["a dog", "runs"], source="en", target="de").json()


def test_languages_have_names_and_targets(server):
    assert server.get("/languages").json() == [{"code": "en", "name": "English", "targets": ["de", "en"]}]
    settings = server.get("/frontend/settings").json()
    assert settings["language"]["target"] == {"code": "de", "name": "German"}
    assert {".txt", ".html", ".srt", ".docx"} <= set(settings["supportedFilesFormat"])


def test_suggestions_are_on_disk_before_the_answer(server):
    suggestion = {"q": "a dog", "s": "ein Hund", "source": "en", "target": "de"}
    assert server.post("/suggest", suggestion).json() == {"success": True}
    assert json.loads(server.suggestions.read_text().splitlines()[-1]) == suggestion


def send_file(server, name, content, **fields):
    parts = [f'Content-Disposition: form-data; name="{key}"\r\n\r\n{value}' for key, value in fields.items()]
    parts.append(f'Content-Disposition: form-data; name="file"; filename="{name}"\r\n\r\n{content}')
    body = "".join(f"--x\r\n{part}\r\n" for part in parts) + "--x--\r\n"
    return server.request("POST", "/translate_file", body.encode(),
                          headers={"Content-Type": "multipart/form-data; boundary=x"})


def test_files_are_translated_and_fetched(server):
    subtitles = "1\n00:00:01,000 --> 00:00:02,000\na dog\n\n2\n00:00:03,000 --> 00:00:04,000\nruns\n"
    url = send_file(server, "../film.srt", subtitles, source="en", target="de").json()["translatedFileUrl"]
    reply = server.get(urllib.parse.urlparse(url).path)
    assert reply.headers["content-disposition"] == 'attachment; filename="film.srt"'
    lines = reply.text.split("\n")
    assert [lines[0], lines[1]] == ["1", "00:00:01,000 --> 00:00:02,000"] and len(lines) == len(subtitles.split("\n"))
    assert server.get("/download_file/" + "0" * 32).status == 404
    assert send_file(server, "film.pdf", "x", source="en", target="de").status == 400


def test_the_progress_of_a_file_is_a_stream_of_events(server):
    text = "a dog\n\nruns\n\n" * 120
    *progress, answer, end = send_file(server, "a.txt", text, source="en", target="de", stream="true").events()
    progress = [json.loads(event) for event in progress]
    assert 50 < len(progress) <= 100 and end == "[DONE]"
    assert [event["done"] for event in progress] == sorted(event["done"] for event in progress)
    assert progress[-1] == {"done": 240, "of": 240}
    streamed = server.get(urllib.parse.urlparse(json.loads(answer)["translatedFileUrl"]).path)
    whole = send_file(server, "a.txt", text, source="en", target="de", stream="false").json()["translatedFileUrl"]
    assert streamed.body == server.get(urllib.parse.urlparse(whole).path).body
    assert len(send_file(server, "a.txt", "", source="en", target="de", stream="true").events()) == 2  # nothing to do
    assert send_file(server, "a.pdf", "", source="en", target="de", stream="true").status == 400


@pytest.mark.release
def test_the_official_client_works(server):
    libre = pytest.importorskip("libretranslatepy")
    client = libre.LibreTranslateAPI(server.url)
    assert client.translate("a dog\n\nruns", "en", "de") == translate(
        server, q="a dog\n\nruns", source="en", target="de").json()["translatedText"]
    assert client.detect("a dog") == [{"confidence": 0, "language": "en"}]
    assert client.languages() == server.get("/languages").json()  # a GET with a body
    with pytest.raises(urllib.error.HTTPError) as caught:
        client.translate("a dog", "en", "xx")
    assert (caught.value.code, json.load(caught.value)) == (400, {"error": "xx is not supported"})


@pytest.mark.release
def test_the_official_client_sends_its_key(tmp_path):
    libre = pytest.importorskip("libretranslatepy")
    (tmp_path / "keys").write_text("alice 0123456789abcdef\n")
    with ServeProcess([TRANSLATOR, "--languages", "mt=en-de", "--api-keys", tmp_path / "keys"]) as server:
        known, unknown, none = (libre.LibreTranslateAPI(server.url + "/", key)
                                for key in ("0123456789abcdef", "0123456789abcdeg", None))
        assert known.translate("a dog", "en", "de") and known.detect("a dog") and none.languages()
        for client, status, message in ((unknown, 403, "Invalid API key"),
                                        (none, 400, "Please contact the server operator to get an API key")):
            with pytest.raises(urllib.error.HTTPError) as caught:
                client.translate("a dog", "en", "de")
            assert (caught.value.code, json.load(caught.value)) == (status, {"error": message})
