"""qkv chat, and chat completions with the template of the model."""

import json
import os
import pty
import select
import shutil
import signal
import subprocess
import time

import pytest
from conftest import QKV, ROOT, qkv
from serving import ServeProcess

TEMPLATE = """{%- for m in messages %}
{%- if m.role not in ['system', 'user', 'assistant', 'tool'] %}{{ raise_exception('no role ' ~ m.role) }}{% endif %}
{{- m.content }}
{%- for call in m.tool_calls %}{{ call.function.arguments.a }}{% endfor %}
{%- endfor %}
{%- if tools %}{{ tools | length }}{% endif %}
{%- if documents %}{{ documents[0].text }}{% endif %}
{%- if enable_thinking is defined and not enable_thinking %}9{% endif %}
{%- if add_generation_prompt %}{{ '4' }}{% endif %}"""
GREEDY = {"temperature": 0, "max_tokens": 3}


@pytest.fixture(scope="module")
def run(counting, tmp_path_factory):
    """A language model that counts, with a chat template."""
    copy = tmp_path_factory.mktemp("chat") / "lm"
    shutil.copytree(counting, copy)
    (copy / "chat_template.jinja").write_text(TEMPLATE)
    return copy


@pytest.fixture(scope="module")
def server(run):
    with ServeProcess([f"lm={run}"]) as process:
        yield process
        assert process.stop() == 0


def chat(run, text, *arguments, ok=True):
    return qkv("chat", run, "--temperature", 0, "--max-tokens", 2, *arguments, text=text, ok=ok)


def test_lines_of_a_pipe_are_answered(run):
    status, output, error = chat(run, "3\n\n/reset\n2\n/quit\n5\n")
    assert (status, output) == (0, "56\n56\n")
    assert error == "qkv: the answer ends at --max-tokens 2\n" * 2
    assert chat(run, "3")[1] == "56\n"


def test_the_conversation_is_remembered(run):
    template = "{% for m in messages %}{{ m.content }}{% endfor %}"
    assert chat(run, "12\n5\n", "--chat-template", template)[1] == "34\n67\n"
    assert chat(run, "/system 1\n2\n/reset\n2\n/system\n4\n", "--chat-template", template)[1] == "34\n34\n56\n"
    assert chat(run, "2\n", "--chat-template", template, "--system", "1")[1] == "34\n"
    variables = "{% if x %}5{% else %}1{% endif %}"
    assert chat(run, "0\n", "--chat-template", variables, "--chat-variables", '{"x": true}')[1] == "67\n"


def test_errors_are_one_line(run, counting):
    for arguments, text, wanted in [(["--chat-template", "other"], "", "chat_template: unknown name \"other\""),
                                    (["--chat-template", "chatml"], "", "chat_template chatml: the model has no token"),
                                    (["--chat-template", "{{ raise_exception('not so') }}"], "1\n", "not so"),
                                    ([], "/other\n", "unknown command /other (/help lists them)"),
                                    (["--chat-variables", "[]"], "1\n", "variables: must be an object")]:
        status, _, error = chat(run, text, *arguments, ok=False)
        assert status == 1 and error.startswith(f"qkv: {wanted}") and error.count("\n") == 1, error
    assert "has none of its own" in chat(counting, "1\n", ok=False)[2]
    assert "/system TEXT" in chat(run, "/help\n")[1]


def test_control_c_stops_an_answer(tmp_path):
    (tmp_path / "text.txt").write_text("0123456789" * 200)
    qkv("train", "lm", "--text", tmp_path / "text.txt", "--out", tmp_path / "lm", "--d-model", 32, "--heads", 2, "--ffn", 32,
        "--decoder-layers", 1, "--max-length", 20000, "--batch-tokens", 256, "--max-steps", 60, "--warmup-steps", 10,
        "--learning-rate", 0.01, "--positions", "rotary", "--threads", 1)
    leader, follower = pty.openpty()
    command = [QKV, "chat", str(tmp_path / "lm"), "--max-tokens", "19000", "--temperature", "0", "--chat-template",
               "{{ messages[-1].content }}"]
    seen = b""

    def read_until(text):
        nonlocal seen
        deadline = time.monotonic() + 60
        while text not in seen:
            assert time.monotonic() < deadline, seen
            if select.select([leader], [], [], 1)[0]:
                seen += os.read(leader, 4096)
        answer, _, seen = seen.partition(text)
        return answer

    with subprocess.Popen(command, stdin=follower, stdout=follower, stderr=follower, start_new_session=True) as process:
        os.close(follower)
        read_until(b"> ")
        process.send_signal(signal.SIGINT)
        read_until(b"/quit or Ctrl-D ends the conversation\r\n> ")
        os.write(leader, b"3\n")
        read_until(b"3\r\n")
        read_until(b"0")
        process.send_signal(signal.SIGINT)
        assert len(read_until(b"> ")) < 19000
        os.write(leader, b"/quit\n")
        assert process.wait(60) == 0
    os.close(leader)


def completion(server, messages, **body):
    return server.post("/v1/chat/completions", {"model": "lm", "messages": messages, **GREEDY, **body})


def answer(server, messages, **body):
    reply = completion(server, messages, **body)
    assert reply.status == 200, reply.body
    return reply.json()["choices"][0]["message"]["content"]


def user(text):
    return [{"role": "user", "content": text}]


def test_completions_use_the_template_of_the_model(server):
    reply = completion(server, user("3"))
    assert reply.json()["choices"][0]["message"]["content"] == "567"
    assert reply.json()["usage"]["prompt_tokens"] == 3  # the start token included
    assert answer(server, user("3"), add_generation_prompt=False) == "456"
    assert answer(server, [*user("1"), {"role": "assistant", "content": "67"}], continue_final_message=True) == "89\n"
    assert answer(server, user("3"), enable_thinking=False, add_generation_prompt=False)[0] == "\n"
    assert answer(server, user("3"), chat_template_kwargs={"enable_thinking": False}, add_generation_prompt=False)[0] == "\n"
    tool = {"type": "function", "function": {"name": "f"}}
    assert answer(server, user("3"), tools=[tool] * 4, add_generation_prompt=False) == "567"
    assert answer(server, user("3"), tools=[tool] * 6, tool_choice="none", add_generation_prompt=False) == "456"
    assert answer(server, user("3"), documents=[{"text": "6"}], add_generation_prompt=False) == "789"


def test_all_roles_reach_the_template(server):
    call = {"id": "x", "type": "function", "function": {"name": "f", "arguments": "{\"a\": 5}"}}
    messages = [*user("3"), {"role": "assistant", "content": None, "tool_calls": [call]}]
    assert answer(server, messages, add_generation_prompt=False) == "678"
    assert answer(server, [*messages, {"role": "tool", "content": [{"type": "text", "text": "7"}]}], add_generation_prompt=False)[0] == "8"
    assert answer(server, [{"role": "developer", "content": "1"}, *user("2")], add_generation_prompt=False) == "345"
    reply = completion(server, [{"role": "other", "content": "1"}])
    assert reply.status == 400 and reply.json()["error"]["message"] == "no role other"


@pytest.mark.parametrize(("body", "message"), [
    ({"chat_template": "x"}, "chat_template is chosen by the server"),
    ({"chat_template_kwargs": {"style": 1}}, "chat_template_kwargs has style, which the chat template"),
    ({"chat_template_kwargs": []}, "chat_template_kwargs must be an object"),
    ({"tools": {}}, None), ({"tools": {"a": 1}}, "tools must be a list of objects"),
    ({"tool_choice": "required"}, "tool_choice must be auto or none"),
    ({"continue_final_message": True, "add_generation_prompt": True}, "continue_final_message must be false where"),
    ({"functions": [{}]}, "functions are not supported"),
    ({"chat_template_kwargs": {"style": False, "other": None}}, None),
    ({"messages": []}, "messages must be a list of messages"),
    ({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, "messages must have text parts only"),
])
def test_what_the_template_does_not_read_is_refused(server, body, message):
    reply = completion(server, **{"messages": user("3"), **body})
    assert reply.status == (400 if message else 200), reply.body
    assert message is None or reply.json()["error"]["message"].replace('"', "").startswith(message), reply.body


def test_nothing_is_put_before_token_ids(server, run):
    characters = json.loads((run / "vocabulary.json").read_text())
    start, text = len(characters), [characters.index("4"), characters.index("5")]

    def complete(prompt):
        body = {"model": "lm", "prompt": prompt, **GREEDY, "echo": True, "logprobs": 0}
        reply = server.post("/v1/completions", body)
        assert reply.status == 200, reply.body
        choice = reply.json()["choices"][0]
        return reply.json()["usage"]["prompt_tokens"], choice["text"], choice["logprobs"]["token_logprobs"]

    count, words, alone = complete("45")
    assert (count, words) == (3, "45678") and len(alone) == 5 and alone[0] is None
    count, words, with_start = complete([start, *text])
    assert (count, words) == (3, "45678") and with_start[2:] == pytest.approx(alone[1:], abs=1e-5)
    count, words, without = complete(text)
    assert count == 2 and words.startswith("45") and without[1] != pytest.approx(alone[1], abs=1e-5)


def test_a_template_that_cannot_be_read_is_named(counting, tmp_path):
    shutil.copytree(counting, tmp_path / "lm")
    (tmp_path / "lm/chat_template.jinja").write_text("{% if %}")
    with ServeProcess([f"lm={tmp_path / 'lm'}"]) as server:
        reply = completion(server, user("3"))
        assert reply.status == 400 and "(chat template: line 1: expected an expression" in reply.json()["error"]["message"]
        assert server.stop() == 0
    (tmp_path / "file.jinja").write_text("{{ messages[0].content }}")
    with ServeProcess([f"lm={tmp_path / 'lm'}", "--chat-template", f"lm={tmp_path / 'file.jinja'}"]) as server:
        assert answer(server, user("3")) == "456"
        assert server.stop() == 0


FAMILIES = ROOT / "tests/golden/chat/families"


@pytest.fixture(scope="module")
def families(tmp_path_factory):
    """A server with a model of each family, imported from a directory as it is published."""
    folder, runs = tmp_path_factory.mktemp("families"), []
    for family in sorted(file.parent for file in FAMILIES.glob("*/expected.json")):
        shutil.copytree(family / "published", folder / "model")
        shutil.copy(family / "model.safetensors", folder / "model")
        qkv("import", folder / "model", folder / family.name)
        shutil.rmtree(folder / "model")
        runs.append(f"{family.name}={folder / family.name}")
    assert len(runs) == 7
    with ServeProcess(runs) as process:
        yield process
        assert process.stop() == 0


@pytest.mark.parametrize("family", ["gemma3", "llama3", "mistral", "phi3", "qwen2.5", "qwen3", "smollm2"])
def test_published_models_read_the_tokens_of_transformers(families, family):
    """A conversation is answered like its tokens, which transformers gives."""
    def first_token(path, body):
        reply = families.post(path, {"model": family, "max_tokens": 1, "temperature": 0, **body})
        assert reply.status == 200, reply.body
        choice = reply.json()["choices"][0]
        return choice["logprobs"], reply.json()["usage"]["prompt_tokens"]

    for case in json.loads((FAMILIES / family / "expected.json").read_text(encoding="utf-8")):
        known = {name: value for name, value in case["options"].items() if name not in ("enable_thinking", "date_string")}
        variables = {name: value for name, value in case["options"].items() if name not in known}
        found, count = first_token("/v1/chat/completions", {"messages": case["messages"], "logprobs": True, "top_logprobs": 5, **known,
                                                            "chat_template_kwargs": variables})
        wanted, _ = first_token("/v1/completions", {"prompt": case["ids"], "logprobs": 5})
        assert count == len(case["ids"]), case["text"]
        best = [entry["logprob"] for entry in found["content"][0]["top_logprobs"]] if found["content"] else []
        assert best == sorted(wanted["top_logprobs"][0].values(), reverse=True) if wanted["top_logprobs"] else best == [], case["text"]
