"""qkv.Generator with a trained language model, compared with the program."""

import json
import signal
import threading
import time

import pytest

import qkv

PROMPTS = ["45", "", "0123", "9", "45"]


@pytest.fixture(scope="module")
def generator(counting):
    return qkv.Generator(counting)


@pytest.mark.parametrize("options", [{}, {"temperature": 0}, {"stop": ["8"]}, {"temperature": 3, "seed": 5, "top_p": 0.9},
                                     {"alternatives": 3, "batch": 2}])
def test_texts_match_the_program(generator, counting, run_program, tmp_path, options):
    named = {"stop": "--stop", "alternatives": "--explain"}
    arguments = [x for name, value in options.items()
                 for x in (named.get(name, f"--{name.replace('_', '-')}"), value[0] if name == "stop" else value)]
    (tmp_path / "prompts").write_text("\n".join(PROMPTS) + "\n")
    output = run_program("generate", counting, "--prompts", tmp_path / "prompts", "--max-tokens", 20, "--json", *arguments)[1]
    found = generator.generate(PROMPTS, max_tokens=20, **options)
    for result, wanted in zip(found, map(json.loads, output.splitlines()), strict=True):
        assert (result.text, str(result), result.end) == (wanted["text"], wanted["text"], wanted["end"])
        for token, exact in zip(result.tokens, wanted["tokens"], strict=True):
            assert (token.text, token.log_probability) == (exact["text"], exact["log_probability"])
            assert [vars(a) for a in token.alternatives] == exact.get("alternatives", [])
    assert [generator.generate(prompt, max_tokens=20, **options) for prompt in PROMPTS] == found


def test_on_text_streams_the_texts(generator):
    pieces, done = [], []
    found = generator.generate(iter(PROMPTS), max_tokens=12, on_text=pieces.append,
                               on_done=lambda i, text: done.append((i, text, "".join(pieces))))
    assert [i for i, _, _ in done] == list(range(5)) and [text for _, text, _ in done] == found
    so_far = ""
    for _, text, known in done:
        so_far += text.text
        assert known == so_far
    assert generator.generate([]) == []


def test_stream_yields_the_text(generator):
    wanted = generator.generate("45", max_tokens=40).text
    pieces = list(generator.stream("45", max_tokens=40))
    assert "".join(pieces) == wanted and len(pieces) > 10
    stream = generator.stream("45", max_tokens=10**9, temperature=0)
    assert next(stream) == "6"
    stream.close()
    with pytest.raises(qkv.Error, match="temperature must be at least 0"):
        next(generator.stream("45", temperature=-1))


def test_callback_exceptions_are_raised(generator):
    for callback in ("on_text", "on_done"):
        def fail(*arguments):
            raise KeyError("enough")

        with pytest.raises(KeyError):
            generator.generate("45", max_tokens=3, **{callback: fail})
    assert generator.generate("45", max_tokens=2, temperature=0).text == "67"


def test_ctrl_c_stops_generation(generator, interruptible):
    timer = threading.Timer(0.3, signal.raise_signal, [signal.SIGINT])
    begin = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        timer.start()
        generator.generate("45", max_tokens=10**9, temperature=0)  # would not end by itself
    assert time.monotonic() - begin < 120


def test_concurrent_texts_match_a_single_thread(generator, counting):
    wanted, found = [generator.generate(prompt, max_tokens=15) for prompt in PROMPTS], {}
    threads = [threading.Thread(target=lambda i=i: found.update({i: generator.generate(PROMPTS[i], max_tokens=15)}))
               for i in range(len(PROMPTS))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [found[i] for i in range(len(PROMPTS))] == wanted
    assert qkv.Generator(counting, cache_bytes=0).generate(PROMPTS, max_tokens=15) == wanted


def test_attention_of_a_text(generator, counting, run_program, tmp_path):
    np = pytest.importorskip("numpy")
    run_program("attend", counting, "--text", "45\n", "--generate", 2, "--json", tmp_path / "map.json")
    found = generator.attend("45\n", 2)
    assert json.loads(found.to_json()) == json.loads((tmp_path / "map.json").read_text())
    decoder = found.kinds["decoder"]
    assert decoder.rows[:4] == ["<s>", "4", "5", "⏎"] and len(decoder.rows) == 6 and len(found.target) == 2
    np.testing.assert_allclose(decoder.weights.sum(-1), 1, atol=1e-5)


@pytest.mark.parametrize("call, message", [
    (lambda g: g.generate(["4", 3]), "prompts[1] must be a str (is 3)"),
    (lambda g: g.generate("x"), 'prompt: the character "x" is not in the vocabulary of 11 characters'),
    (lambda g: g.generate(["4", "x"]), 'prompt 2: the character "x" is not in the vocabulary of 11 characters'),
    (lambda g: g.generate("4", temperature=-1), "temperature must be at least 0 (is -1)"),
    (lambda g: g.generate("4", top_k="3"), "top_k must be a whole number (is '3')"),
    (lambda g: g.generate("4", stop="8"), "stop must be a list of str (is '8')"),
    (lambda g: g.generate("4", alternatives=-1), "alternatives must be between 0 and 16777216 (is -1)"),
    (lambda g: g.attend("4" * 40), "text must have at most 32 tokens, the start token included (has 41)"),
    (lambda g: qkv.Generator("nowhere"), "nowhere: is not a run directory"),
])
def test_errors_name_the_invalid_argument(generator, call, message):
    with pytest.raises(qkv.Error) as error:
        call(generator)
    assert str(error.value).startswith(message)


CHAT_TEMPLATE = "{% for m in messages %}{{ m.content }}{% endfor %}{% if tools %}{{ tools[0].n }}{% endif %}{{ more }}" \
                "{% if add_generation_prompt %}5{% endif %}"


def test_chat_answers_a_conversation(generator):
    messages = [{"role": "user", "content": "3"}, {"role": "assistant", "content": "4"}]
    options = {"max_tokens": 2, "temperature": 0, "chat_template": CHAT_TEMPLATE}
    pieces = []
    found = generator.chat(messages, on_text=pieces.append, **options)
    assert (found.text, "".join(pieces), found.end) == ("67", "67", "length")
    assert found == generator.generate("345", max_tokens=2, temperature=0)
    assert generator.chat(messages, tools=[{"n": 5}], variables={"more": 6}, continue_final_message=True, **options).text == "56"
    assert generator.chat_text(messages, chat_template=CHAT_TEMPLATE, tools=[{"n": 7}], variables={"more": "é"}) == "347é5"
    assert generator.chat_text(messages, chat_template=CHAT_TEMPLATE, add_generation_prompt=False) == "34"


@pytest.mark.parametrize(("template", "message"), [
    ("", "chat_template: the model has none of its own"), ("other", "chat_template: unknown name \"other\""),
    ("{% if", "chat template: line 1: the template ends within a tag"), ("{{ raise_exception('no') }}", "^no$"),
])
def test_chat_errors_are_those_of_the_template(generator, template, message):
    with pytest.raises(qkv.Error, match=message):
        generator.chat([{"role": "user", "content": "3"}], chat_template=template)
    with pytest.raises(qkv.Error, match="messages: must be a list of messages"):
        generator.chat_text([], chat_template="{{ messages }}")
