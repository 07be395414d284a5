"""The prose of the site has only words of British English, with -ize, and of words.txt."""

import re
import shutil
import subprocess

import pytest

from site_pages import ROOT

pytestmark = pytest.mark.release
WORDS = ROOT / "tests/site/words.txt"
NAME = re.compile(r"\S*[\d_/\\@=<>#{}|^~+*&%$:]\S*|\S+\.\w\S*|--?\w\S*")  # paths, numbers, options and code


def unknown(texts):
    words = re.findall(r"[^\W\d_]+(?:'[^\W\d_]+)*", NAME.sub(" ", "\n".join(texts)))
    plain = "\n".join(sorted({word.removesuffix("'s") for word in words if word.isascii()}))
    found = subprocess.run(["hunspell", "-d", "en_GB", "-l"], input=plain, capture_output=True, text=True, check=True)
    return set(found.stdout.split())


def listed():
    return {line for line in WORDS.read_text(encoding="utf-8").splitlines() if line and not line.startswith("#")}


@pytest.mark.skipif(not shutil.which("hunspell"), reason="hunspell is not installed")
def test_words_are_spelled_correctly(pages):
    found = unknown(text for page in pages for text in page.texts)
    assert not sorted(word for word in found - listed() if not is_name(word))


def is_name(word):
    """Names of classes, abbreviations, and German words of the examples are not looked up."""
    return bool(re.search(r"[a-z][A-Z]|^[A-Z]{2,}s?$", word))


def test_the_list_has_each_word_once_in_order():
    lines = [line for line in WORDS.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    assert lines == sorted(set(lines), key=lambda word: (word.lower(), word))
