"""The page of `qkv serve`, open in a browser, and what the tests of the page do with it.

The fixture `site` is the page of the program with trained models, `page` is that of the mock server.
"""

import contextlib
import re
import subprocess

import pytest
from conftest import QKV, TEXT, head, qkv
from page_browser import Browser, missing
from page_mock import Mock
from serving import wait_for

needs_a_browser = pytest.mark.skipif(bool(missing()), reason=missing() or "all is there")
SENTENCE = "The old teacher sees the dog."
KINDS = {"translate": "translator", "recommend": "recommender", "generate": "language_model"}


@pytest.fixture(scope="module")
def chromium():
    browser = Browser()
    yield browser
    browser.quit()


@pytest.fixture
def mock():
    with Mock() as mock:
        yield mock


@pytest.fixture
def page(chromium, mock):
    """The page of the mock server. It must not complain, except about requests that the mock refused."""
    chromium.open(mock.url)
    yield chromium
    assert not chromium.complaints({status for status, _ in mock.errors})


@pytest.fixture(scope="session")
def translator_run(tmp_path_factory):
    """A translator of two layers that writes sentences of several words, and has alternatives to them."""
    folder = tmp_path_factory.mktemp("translator")
    texts = [head(TEXT / f"train.{side}", 2000, folder / f"train.{side}") for side in ("en", "de")]
    dev = [head(TEXT / f"dev.{side}", 20, folder / f"dev.{side}") for side in ("en", "de")]
    qkv("train", "translate", "--train", *texts, "--dev", *dev, "--out", folder / "run", "--preset", "tiny",
        "--encoder-layers", 2, "--decoder-layers", 2, "--d-model", 64, "--ffn", 64, "--vocab-size", 300, "--batch-tokens", 512,
        "--max-length", 40, "--learning-rate", 0.01, "--warmup-steps", 20, "--dropout", 0, "--max-steps", 200,
        "--eval-every", 200, "--threads", 1)
    return folder / "run"


@contextlib.contextmanager
def served(translator_run, films, counting):
    """The address of the program with three models."""
    command = [QKV, "serve", f"en-de={translator_run}", f"films={films / 'run'}", f"lm={counting}", "--languages",
               "en-de=en-de", "--titles", f"films={films / 'titles.csv'}", "--listen", "127.0.0.1:0",
               "--threads", "1", "--log", "none"]
    with subprocess.Popen(list(map(str, command)), stderr=subprocess.PIPE, text=True) as server:
        try:
            for line in server.stderr:
                if found := re.search(r"serving .* on (http://\S+)", line):
                    break
            else:
                raise AssertionError("the server did not start")
            yield found[1]
        finally:
            server.terminate()
            server.communicate(timeout=30)


@pytest.fixture
def site(chromium, translator_run, films, counting):
    """The page of the program. It must not complain."""
    with served(translator_run, films, counting) as url:
        chromium.open(url)
        yield chromium
        assert not chromium.complaints()


def until(condition, seconds=60):
    assert wait_for(condition, seconds)


def open_tab(page, name):
    page.script("$('tab-' + arguments[0]).click()", name)


def translate(page, text=SENTENCE):
    page.script("$('source').focus()")
    page.keys(text)
    page.wait("!$('attention').hidden && document.querySelector('.word')")


def generate(page, prompt="ROMEO:"):
    open_tab(page, "generate")
    page.script("$('prompt').focus()")
    page.keys(prompt)
    page.script("$('go').click()")


def recommend(page, query, *more):
    open_tab(page, "recommend")
    for text in (query, *more):
        page.script("$('search').focus()")
        page.keys(text)
        page.wait("!$('found').hidden")
        page.keys("ENTER")
    page.wait(f"$('basis').textContent.includes('{1 + len(more)} event')")
