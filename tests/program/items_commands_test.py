"""The commands of docs/items.toml are commands of the program; those that need no file run."""

import functools
import re
import sys

import pytest
from conftest import ROOT, qkv

sys.path += [str(ROOT / "tests"), str(ROOT / "docs/site")]

import items_test  # noqa: E402

COMMANDS = sorted({command for item in items_test.ITEMS for command in items_test.commands(item)})
QUICK = sorted({command for item in items_test.ITEMS for command in items_test.quick_commands(item)})


@functools.cache
def output_of(command):
    return qkv(*command.split()[1:])[1]


@pytest.mark.parametrize("words", sorted(set(map(items_test.words_of, COMMANDS))))
def test_the_program_has_the_command_and_its_options(words):
    status, text, _ = qkv(*words.split()[1:], "--help-all", ok=False)
    if status:  # a command without groups of options has no --help-all
        text = qkv(*words.split()[1:], "--help")[1]
    used = {word for command in COMMANDS if items_test.words_of(command) == words for word in command.split() if word[:2] == "--"}
    assert not used - set(re.findall(r"--[a-z][\w-]*", text))


@pytest.mark.parametrize("command", QUICK)
def test_a_quick_command_needs_no_file(command):
    assert len(output_of(command).splitlines()) > 10


@pytest.mark.parametrize("item", [item for item in items_test.ITEMS if "prints" in item], ids=lambda item: str(item["number"]))
def test_the_output_has_what_the_item_is_about(item):
    assert item["prints"] in output_of(items_test.quick_commands(item)[0])


def test_there_are_quick_commands():
    assert len(QUICK) > 10
