"""qkv.Translator with a trained run, compared with the program."""

import asyncio
import json
import threading
import warnings

import numpy as np
import pytest

import qkv

LINES = ["The dog sees the cat.", "", "   ", "He sleeps.", "The dog sees the cat.", "He sleeps.  The dog sees the cat."]


@pytest.fixture(scope="module")
def translator(trained):
    return qkv.Translator(trained)


@pytest.mark.parametrize("options", [{}, {"beam": 1}, {"beam": 3, "length_penalty": 0.5}, {"batch_tokens": 1}])
def test_translations_match_the_program(translator, trained, run_program, options):
    arguments = [x for name, value in options.items() for x in (f"--{name.replace('_', '-')}", value)]
    wanted = run_program("translate", trained, *arguments, text="\n".join(LINES) + "\n")[1]
    assert [t.text for t in translator.translate(LINES, **options)] == wanted.split("\n")[:-1]
    assert translator.translate(iter(LINES), **options) == translator.translate(tuple(LINES), **options)


def test_results_match_the_json_of_the_program(translator, trained, run_program):
    options = {"beam": 4, "n_best": 3, "attention": True}
    lines = run_program("translate", trained, "--json", "--beam", 4, "--n-best", 3, "--word-scores", "--attention",
                        text="\n".join(LINES) + "\n")[1].splitlines()
    for result, wanted in zip(translator.translate(LINES, alignment=True, **options), map(json.loads, lines)):
        assert (result.source, result.source_tokens) == (wanted["source"], wanted["source_tokens"])
        assert str(result) == result.text == result.hypotheses[0].text
        for h, exact in zip(result.hypotheses, wanted["hypotheses"]):
            assert (h.text, h.tokens) == (exact["text"], exact["tokens"])
            assert h.score == pytest.approx(exact["score"], abs=1e-6)
            assert h.log_probability == pytest.approx(sum(h.token_scores))
            assert h.token_scores == pytest.approx(exact["token_scores"], abs=1e-6)
            assert [list(pair) for pair in h.alignment] == exact["alignment"]
            assert [word for word, _ in h.words] == [w["word"] for w in exact.get("words", [])]
            assert h.sentences == [(s["source"], s["text"]) for s in exact.get("sentences", [])]
            np.testing.assert_allclose(h.attention, exact["attention"], atol=1e-5)


def test_forced_scores_match_the_search(translator):
    for result in translator.translate(LINES[:1], beam=4, n_best=4, max_length=12):
        tokens = [h.tokens for h in result.hypotheses]
        for h, scored in zip(result.hypotheses, translator.score([result.source] * len(tokens), tokens)):
            forced = scored.hypotheses[0]
            assert forced.tokens == h.tokens and len(forced.token_scores) == len(h.tokens) + 1
            assert forced.token_scores[: len(h.token_scores)] == pytest.approx(h.token_scores, abs=1e-4)
    scored = translator.score(LINES[:1], ["Der Hund sieht die Katze."], alignment=True)[0].hypotheses[0]
    assert scored.text == "Der Hund sieht die Katze." and len(scored.alignment) == len(scored.tokens)
    assert scored.score == pytest.approx(scored.log_probability / len(scored.token_scores))


def test_prefixes_and_alternatives(translator):
    line = "The dog sees the cat."
    found = translator.translate([line], prefixes=["Ein Hund"], alternatives=True, n_best=4, beam=2)[0].hypotheses
    assert len(found) == 4 and all(h.text.startswith("Ein Hund") for h in found)
    with pytest.raises(qkv.Error, match="prefixes must be one for each of 2 lines"):
        translator.translate([line, line], prefixes=["Ein"])


def test_samples_depend_on_the_seed(translator):
    def draw(seed):
        return [h.tokens for h in translator.translate(LINES[:1], sampling=True, n_best=5, seed=seed)[0].hypotheses]

    assert draw(3) == draw(3) != draw(4)


def test_ensemble_of_one_run_twice_equals_the_run(translator, trained):
    both = qkv.Translator(trained, ensemble=[trained])
    assert [t.text for t in both.translate(LINES)] == [t.text for t in translator.translate(LINES)]


def test_on_token_reports_each_token(translator):
    reported = {}
    wanted = translator.translate(LINES, beam=1)
    translator.translate(LINES, beam=1, on_token=lambda t: reported.setdefault(t.line, []).append(t.token))
    for line, result in enumerate(wanted):
        assert reported.get(line, [])[: len(result.hypotheses[0].tokens)] == result.hypotheses[0].tokens
    short = translator.translate(LINES[:1], beam=1, min_length=9, on_token=lambda t: True)
    assert len(short[0].hypotheses[0].tokens) == 1


def test_callback_exceptions_are_raised(translator):
    def fail(report):
        raise KeyError(report.token)

    for workers in (1, 2):
        with pytest.raises(KeyError):
            translator.translate(LINES, beam=1, workers=workers, on_token=fail)
        with pytest.raises(KeyError):
            translator.translate([" ".join(LINES)] * 3, beam=1, batch_tokens=1, workers=workers, on_token=fail)


def test_a_text_has_the_translations_of_its_sentences(translator):
    parts = [t.text for t in translator.translate(["He sleeps.", "The dog sees the cat.", "a cat"])]
    text = " {}  {}\r\n\n- {}\n"
    found = translator.translate([text.format("He sleeps.", "The dog sees the cat.", "a cat")])[0]
    whole = translator.translate(["He sleeps. The dog sees the cat."], sentences="line")[0].hypotheses[0]
    assert whole.sentences == [] and "</s>" not in whole.tokens
    assert [source for source, _ in found.hypotheses[0].sentences] == ["He sleeps.", "The dog sees the cat.", "- a cat"]
    assert found.text.startswith(f" {parts[0]}  {parts[1]}\r\n\n") and found.text.endswith("\n")
    assert found.hypotheses[0].tokens.count("</s>") <= 2


def test_async_results_and_streams(translator):
    wanted = translator.translate(LINES)
    futures = [translator.translate_async(LINES) for _ in range(3)]
    assert all(future.result(60) == wanted for future in futures)
    assert translator.translate_async([1]).exception(60).__class__ is qkv.Error

    async def wait():
        return await asyncio.wrap_future(translator.translate_async(LINES))

    assert asyncio.run(wait()) == wanted
    many = list(translator.stream(line for _ in range(60) for line in LINES))
    assert [t.text for t in many] == [t.text for t in wanted] * 60


def test_no_lines_give_no_translations(translator):
    assert translator.translate([]) == []


def test_a_long_line_is_translated_in_parts_with_a_warning(translator):
    with pytest.warns(UserWarning, match="line 1: a sentence is longer than the model's 40 tokens, split into"):
        assert len(translator.translate(["the dog sees the cat in the garden, " * 20], beam=2)) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        translator.translate(LINES)


def test_attention_map_matches_the_program(translator, trained, run_program, tmp_path):
    run_program("attend", trained, LINES[0], "--json", tmp_path / "a.json", "--html", tmp_path / "a.html")
    found = translator.attend(LINES[0])
    wanted = json.loads((tmp_path / "a.json").read_text())
    assert json.loads(found.to_json()) == wanted and found.to_html() == (tmp_path / "a.html").read_text()
    assert (found.source, found.target) == (LINES[0], wanted["target"])
    assert list(found.kinds) == ["encoder", "decoder", "cross"]
    for kind, exact in zip(found.kinds.values(), wanted["attention"]):
        assert (kind.name, kind.rows, kind.columns) == (exact["kind"], exact["rows"], exact["columns"])
        assert kind.causal == (kind.name == "decoder") and kind.weights.dtype == np.float32
        np.testing.assert_allclose(kind.weights, exact["layers"], rtol=0, atol=1e-6)  # the JSON has six digits


def test_attention_map_of_a_given_target(translator):
    found = translator.attend(LINES[0], "Der Hund sieht die Katze.")
    assert found.target == "Der Hund sieht die Katze." and found.kinds["encoder"].weights.ndim == 4
    words = found.merge_words().kinds["encoder"]
    assert words.weights.shape[-1] < found.kinds["encoder"].weights.shape[-1]
    np.testing.assert_allclose(words.weights.sum(-1), 1, atol=1e-5)


def test_concurrent_translations_match_a_single_thread(translator):
    wanted, found = translator.translate(LINES), []

    def work():
        found.extend(translator.translate(LINES) for _ in range(5))

    calls = [threading.Thread(target=work) for _ in range(3)]
    for call in calls:
        call.start()
    for call in calls:
        call.join()
    assert found == [wanted] * 15


@pytest.mark.parametrize("lines, options, line", [
    ("one str", {}, "lines must be a list of str (is 'one str')"),
    (["a", 1], {}, "lines[1] must be a str (is 1)"),
    (["a"], {"beam": 0}, "beam must be between 1 and 1024 (is 0)"),
    (["a"], {"beam": 1025}, "beam must be between 1 and 1024 (is 1025)"),
    (["a"], {"beam": 1.5}, "beam must be a whole number (is 1.5)"),
    (["a"], {"n_best": 6}, "n_best must be at most beam, 5, unless sampling (is 6)"),
    (["a"], {"sampling": "yes"}, "sampling must be True or False (is 'yes')"),
    (["a"], {"seed": -1}, "seed must be a whole number from 0 (is -1)"),
    (["a"], {"attention_head": 99}, "attention: head 99 does not exist"),
    (["a"], {"prefixes": [3]}, "prefixes[0] must be a str (is 3)"),
    (["a"], {"batch_tokens": 0}, "batch_tokens must be between 1 and 16777216 (is 0)"),
    (["a"], {"length_penalty": "x"}, "length_penalty must be a number (is 'x')"),
    (["a", "\ud800"], {}, "lines[1] is not valid Unicode"),
])
def test_errors_are_one_line(translator, lines, options, line):
    with pytest.raises(qkv.Error) as raised:
        translator.translate(lines, **options)
    assert line in str(raised.value) and "\n" not in str(raised.value)


def test_attend_errors(translator):
    long = "The dog sees the cat. " * 40
    for source, line in (("", "source is empty"), (long, "source must have at most")):
        with pytest.raises(qkv.Error, match=line):
            translator.attend(source)


def test_directory_that_is_not_a_run(tmp_path):
    with pytest.raises(qkv.Error, match=str(tmp_path)):
        qkv.Translator(tmp_path)


def test_version_and_instruction_set_match_the_program(run_program):
    assert run_program("--version")[1].split() == ["qkv", qkv.__version__, f"({qkv.active_isa()})"]


def test_the_encoders_output_is_what_is_pooled(translator, trained):
    texts = ["The dog sees the cat.", "He sleeps.", "The old dog sleeps."]
    found = translator.encode(iter(texts))
    assert [len(x) for x in found] == [len(t.source_tokens) for t in translator.translate(texts)]
    assert all(x.dtype == np.float32 and x.shape[1] == 32 for x in found)
    assert np.allclose([x.mean(0) for x in found], qkv.Embedder(trained).embed(texts), atol=1e-6)
    alone = translator.encode(texts, batch_tokens=1)
    assert all((a == b).all() for a, b in zip(alone, found)) and translator.encode([]) == []


def test_the_log_softmax_of_logits_is_the_score(translator, trained):
    sources = ["The dog sees the cat.", "He sleeps.", "The dog sees the cat."]
    targets = ["Der Hund sieht die Katze.", "Er", ""]
    ensemble = qkv.Translator(trained, [trained])
    for model, given in ((translator, targets), (ensemble, targets), (translator, None)):
        if given is None:  # lists of tokens
            given = [t.hypotheses[0].tokens[:5] for t in translator.translate(sources)]
        scored = [t.hypotheses[0] for t in model.score(sources, given)]
        found = model.logits(sources, iter(given))
        vocabulary = {}
        for hypothesis, rows in zip(scored, found):
            assert rows.shape == (len(hypothesis.token_scores), found[0].shape[1])
            exact = rows.astype(np.float64)
            log_p = exact - np.log(np.exp(exact).sum(1, keepdims=True))
            for token, row, score in zip([*hypothesis.tokens, "</s>"], log_p, hypothesis.token_scores):
                place = np.abs(row - score).argmin()
                assert row[place] == pytest.approx(score, abs=1e-5)
                vocabulary.setdefault(token, set()).add(int(place))
        assert all(len(places) == 1 for places in vocabulary.values())  # a token has one place in every row


@pytest.mark.parametrize("call, message", [
    (lambda t: t.encode("a"), "texts must be a list of str (is 'a')"),
    (lambda t: t.encode(["a", " "]), "text 2 is empty"),
    (lambda t: t.encode(["a " * 3000]), "text 1 must have at most"),
    (lambda t: t.encode(["a"], batch_tokens=0), "batch_tokens must be between"),
    (lambda t: t.encode(["a"], source_language="en"), "source_language"),
    (lambda t: t.logits(["a"], []), "targets must be one for each of 1 sources (are 0)"),
    (lambda t: t.logits(["a"], "b"), "targets must be a list of str (is 'b')"),
    (lambda t: t.logits(["a"], [["nothing"]]), 'token "nothing" is not in the target vocabulary'),
    (lambda t: t.logits(["a"], ["b " * 3000]), "target 1 must have at most"),
])
def test_invalid_arguments_of_encode_and_logits_are_errors(translator, call, message):
    with pytest.raises(qkv.Error) as error:
        call(translator)
    assert message in str(error.value) and "\n" not in str(error.value)


def test_a_device_that_cannot_compute_is_an_error(trained, monkeypatch):
    monkeypatch.setenv("QKV_DEVICE", "/nowhere/libqkv_cuda.so")
    with pytest.raises(qkv.Error, match=f"^{trained}: device cuda: the plugin /nowhere/libqkv_cuda.so does not exist"):
        qkv.Translator(trained, device="cuda")
    with pytest.raises(qkv.Error, match="device must be one of cpu, cuda, auto"):
        qkv.Translator(trained, device="gpu")
    with pytest.raises(qkv.Error, match="precision bfloat16 requires a device"):
        qkv.Embedder(trained, precision="bfloat16")
    assert qkv.Translator(trained, device="auto").translate(["a"])[0].source == "a"
