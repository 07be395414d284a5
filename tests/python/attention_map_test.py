"""qkv.AttentionMap: weights of a model, and weights that are given."""

import html
import json
import re
import shutil
import subprocess

import pytest

import qkv

np = pytest.importorskip("numpy")
ROWS, COLUMNS = ["▁the", "▁dog"], ["▁der", "▁Hu", "nd"]


def weights(*shape):
    found = np.random.default_rng(3).random(shape)
    return found / found.sum(-1, keepdims=True)


@pytest.mark.parametrize("shape", [(2, 3), (4, 2, 3), (5, 4, 2, 3)])
def test_given_weights_have_layers_and_heads(shape):
    given = weights(*shape)
    found = qkv.AttentionMap(given, ROWS, COLUMNS, name="mine")
    kind = found.kinds["mine"]
    assert kind.weights.shape == (1,) * (4 - len(shape)) + shape and kind.weights.dtype == np.float32
    assert np.allclose(kind.weights, given, atol=1e-7)
    assert (kind.rows, kind.columns, kind.causal) == (ROWS, COLUMNS, False)
    assert (found.source, found.target) == ("", "")
    merged = found.merge_words().kinds["mine"]
    assert merged.columns == ["▁der", "▁Hund"]
    assert np.allclose(merged.weights[..., 1], kind.weights[..., 1:].sum(-1))
    assert json.loads(found.to_json())["attention"][0]["kind"] == "mine"


def test_columns_are_by_default_the_rows():
    found = qkv.AttentionMap(np.tril(np.full((2, 2), 0.5)), ROWS, causal=True)
    assert found.kinds["custom"].columns == ROWS and found.kinds["custom"].causal
    assert repr(found) == "AttentionMap(source='', target='', kinds=['custom'])"


def test_tensors_are_taken():
    torch = pytest.importorskip("torch")
    given = torch.softmax(torch.randn(2, 4, 2, 3), -1)
    assert np.array_equal(qkv.AttentionMap(given, ROWS, COLUMNS).kinds["custom"].weights, given.numpy())
    with pytest.raises(qkv.Error, match="^weights must be an array of 2 to 4 axes .*grad"):
        qkv.AttentionMap(given.requires_grad_(), ROWS, COLUMNS)


def test_text_shows_one_head(counting):
    given = np.zeros((2, 2, 2, 3))
    given[0, 1] = [[1, 0, 0], [0, 0.2, 0.8]]
    lines = qkv.AttentionMap(given, ROWS, COLUMNS).to_text(layer=1, head=2).splitlines()
    assert lines[0] == "custom attention, layer 1 of 2, head 2 of 2: rows look at columns"
    assert [line for line in lines if line.startswith(("the", "dog"))] == ["the ██· ·", "dog · ▒▒██"]
    found = qkv.Generator(counting).attend("45")
    assert found.to_text() == found.to_text("decoder", layer=1, head=1)
    mean = found.to_text(head="mean", numbers=True).splitlines()
    assert "mean of" in mean[0] and not any("█" in line for line in mean)
    for arguments, message in (({"kind": "cross"}, "kind must be one of decoder (is 'cross')"),
                               ({"layer": 2}, "layer must be an integer from 0 to 1 (is 2)"),
                               ({"head": 0}, "head must be an integer from 1 to 2 (is 0)"),
                               ({"head": 1.0}, "head must be an integer from 1 to 2 (is 1.0)")):
        with pytest.raises(qkv.Error) as error:
            found.to_text(**arguments)
        assert str(error.value) == message


@pytest.mark.parametrize("given, arguments, message", [
    (weights(3), {}, "weights must have the shape [2, 3]"),
    (weights(1, 1, 1, 2, 3), {}, "(is [1, 1, 1, 2, 3])"),
    (weights(3, 2), {}, "(is [3, 2])"),
    (np.zeros((0, 2, 3)), {}, "(is [0, 2, 3])"),
    ("abc", {}, "weights must be an array of 2 to 4 axes"),
    ([[1, 2], [3]], {}, "weights must be an array of 2 to 4 axes"),
    ([[0, 1, 0], [0, np.nan, 1]], {}, "weights must be between 0 and 1 (weights[1, 1] is nan)"),
    ([[0, 1, 0], [0, 0, 1.5]], {}, "weights must be between 0 and 1 (weights[1, 2] is 1.5)"),
    ([[0, 1, -0.5], [0, 0, 1]], {}, "weights must be between 0 and 1 (weights[0, 2] is -0.5)"),
    (weights(2, 3), {"causal": True}, "causal requires as many rows as columns (are 2 and 3)"),
    (weights(2, 3), {"name": 3}, "name must be a str (is 3)"),
])
def test_invalid_weights_are_errors(given, arguments, message):
    with pytest.raises(qkv.Error) as error:
        qkv.AttentionMap(given, ROWS, COLUMNS, **arguments)
    assert message in str(error.value) and "\n" not in str(error.value)


def test_a_notebook_shows_the_page_in_a_frame(tmp_path):
    found = qkv.AttentionMap(weights(2, 2, 2, 3), ['"><script>', "a&amp;"], COLUMNS)
    shown = found._repr_html_()
    assert html.unescape(re.search('srcdoc="([^"]*)"', shown)[1]) == found.to_html()
    assert shown.count("<") == 2 and 'sandbox="allow-scripts"' in shown
    chromium = shutil.which("chromium")
    if not chromium:
        pytest.skip("needs chromium")
    page = tmp_path / "page.html"  # a dump has no contents of a sandboxed frame, so the page is loaded by itself
    run = [chromium, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path}/profile",
           "--virtual-time-budget=2000", "--dump-dom"]
    small = qkv.AttentionMap([[0.75, 0.25], [0.1, 0.9]], ["a", "b"])
    for shown, is_plain in ((found, False), (small, True)):  # a single map of whole words needs neither
        page.write_text(shown.to_html(), encoding="utf-8")
        dump = subprocess.run([*run, page.as_uri()], capture_output=True, text=True, timeout=300).stdout
        assert re.search(r'<dl class="sentences"[^>]* hidden', dump) and "Layer 1, head 1" in dump
        for part in (r'<section class="panel heads"[^>]* hidden', r"<label hidden", r'<span id="dot" hidden'):
            assert bool(re.search(part, dump)) == is_plain
