"""Settings of generation_config.json as defaults of a run: qkv translate and the server use them unless an option is given."""

import json
import shutil

from conftest import ROOT, qkv
from serving import ServeProcess

LINE = "the dog runs in the park .\n"


def imported(folder, settings):
    shutil.copytree(ROOT / "tests/golden/encoder_decoders/opus", folder / "model")
    file = folder / "model/generation_config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | settings))
    _, out, _ = qkv("import", folder / "model", folder / "run")
    return folder / "run", out


def translated(run, *options):
    return json.loads(qkv("translate", run, "--json", *options, text=LINE)[1])["hypotheses"]


def test_options_of_a_run_count_where_none_is_given(tmp_path):
    run, out = imported(tmp_path, {"num_beams": 3, "max_length": 9, "no_repeat_ngram_size": 2, "early_stopping": True,
                                   "begin_suppress_tokens": [1]})
    assert out.endswith("not taken over from generation_config.json: begin_suppress_tokens\n")
    given = ["--beam", 3, "--max-length", 8, "--no-repeat-ngram", 2]
    shutil.copytree(run, tmp_path / "plain")
    (tmp_path / "plain/decoding.json").unlink()
    assert translated(run) == translated(tmp_path / "plain", *given) != translated(tmp_path / "plain")
    other = ["--beam", 1, "--max-length", 5, "--no-repeat-ngram", 0]
    assert translated(run, *other) == translated(tmp_path / "plain", *other)
    with ServeProcess([run]) as server:
        answer = server.post("/v1/translate", {"text": LINE.strip()}).json()["translations"][0]["hypotheses"]
        assert [h["text"] for h in answer] == [h["text"] for h in translated(run)]
        answer = server.post("/v1/translate", {"text": LINE.strip(), "max_length": 2}).json()["translations"][0]
        assert len(answer["hypotheses"][0]["tokens"]) <= 2


def test_the_server_takes_prompts_by_name(tmp_path):
    qkv("import", ROOT / "tests/golden/sentence_transformers/mean6", tmp_path / "run")

    def vector(*options):
        return [float(x) for x in qkv("embed", tmp_path / "run", *options, text="the cat\n")[1].split()]

    with ServeProcess([tmp_path / "run"]) as server:
        for route, name, take in [("/v1/embeddings", "input", lambda found: found["data"][0]["embedding"]),
                                  ("/embed", "inputs", lambda found: found[0])]:
            assert take(server.post(route, {name: "the cat"}).json()) == vector()
            assert take(server.post(route, {name: "the cat", "prompt_name": "query"}).json()) == vector("--prompt-name", "query")
            reply = server.post(route, {name: "the cat", "prompt_name": "title"})
            assert 400 <= reply.status < 500 and "prompt_name must be one of document, passage, query" in reply.text
