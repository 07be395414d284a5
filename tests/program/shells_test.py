"""Completions complete every command and option in bash, zsh and fish; man shows a page of every command.

The commands and options to expect are read from the help.
"""

import os
import pty
import re
import shutil
import subprocess

import pytest
from conftest import QKV, ROOT, qkv

pytestmark = pytest.mark.release

SHELLS = [pytest.param(shell, marks=pytest.mark.skipif(not shutil.which(shell), reason=f"{shell} is not installed"))
          for shell in ("bash", "zsh", "fish")]

# Each prints the matches of each argument after the first, the completion script, in one line.
BASH = r"""
source "$1"
compopt() { :; }  # it is only for real completion
for line in "${@:2}"; do
  line=${line//=/ = }  # readline separates words at this character, too
  COMP_WORDS=($line); [ "${line: -1}" = ' ' ] && COMP_WORDS+=('')
  COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
  _qkv
  echo "${COMPREPLY[*]}"
done
"""
# Completion runs in a terminal of its own, where the function that adds matches also prints them.
ZSH = r"""
zmodload zsh/zpty
zpty shell zsh -f -i
zpty -w shell "PS1= PROMPT= ; unsetopt promptsp autolist automenu; autoload -Uz compinit; compinit -u -D"
zpty -w shell "source $1; bindkey '^I' complete-word"
zpty -w shell 'compadd() { local -a found; [[ ${@[(I)-[OAD]]} -gt 0 ]] && { builtin compadd "$@"; return }
  builtin compadd -O found "$@"; print -r -- "<found>${found[*]}</found>"; builtin compadd "$@" }
end-line() { print -r -- "<end>"; zle kill-buffer }; zle -N end-line; bindkey "^T" end-line
zle-line-init() { print -r -- "<re""ady>" }; zle -N zle-line-init'
zpty -r shell text '*<ready>*'
for line in "${@:2}"; do
  zpty -w -n shell "$line"$'\t\x14'
  zpty -r shell text '*<end>*'
  print -r -- "${text//[^[:print:]]/ }"
done
zpty -d shell
"""
FISH = r"""
source $argv[1]
for line in $argv[2..]
  string join -- ' ' '' (complete -C "$line" | string split -f 1 \t)
end
exit 0
"""


def entries(page, heading):
    """Names in a section of the help."""
    section = page.split(f"\n{heading}:\n", 1)[-1] if f"\n{heading}:\n" in page else ""
    return re.findall(r"^  (\S+)", section.split("\n\n")[0], re.MULTILINE)


def all_commands():
    """Pairs of a command, as a tuple of words, and the words that may follow: commands and options."""
    found, left = {}, [()]
    while left:
        path = left.pop()
        page = qkv(*path, "--help")[1]
        if "--help-all" in page:
            page = qkv(*path, "--help-all")[1]
        options = [name for names in re.findall(r"^  (-\S+)", page, re.MULTILINE) for name in names.split(",")]
        groups = re.findall(r"^(\S.*):$", page, re.MULTILINE) if " COMMAND\n" in page else []
        below = [name for group in groups for name in entries(page, group) if not name.startswith("-")]
        found[path] = [name.removesuffix("...") for name in below], [name.removesuffix("...") for name in options]
        left += [(*path, name) for name in below]
    return found


@pytest.fixture(scope="module")
def commands():
    return all_commands()


@pytest.fixture(scope="module")
def complete(tmp_path_factory):
    """A function that completes lines in a shell; returns the set of matches of each."""
    folder = tmp_path_factory.mktemp("completions")

    def run(shell, lines):
        script, program = folder / f"_qkv.{shell}", folder / shell
        script.write_text(qkv("completions", shell)[1])
        program.write_text({"bash": BASH, "zsh": ZSH, "fish": FISH}[shell])
        done = subprocess.run([shell, program, script, *lines], text=True, capture_output=True, timeout=300, cwd=folder)
        assert done.returncode == 0 and not done.stderr, done.stderr
        matches = done.stdout.splitlines()
        if shell == "zsh":
            matches = [" ".join(re.findall("<found>(.*?)</found>", text)) for text in matches]
        return [set(text.split()) for text in matches]
    return run


def line_of(path, word):
    return " ".join(("qkv", *path, word))


def test_the_help_lists_all_commands(commands):
    assert {("train", "lm"), ("bench", "peak"), ("doctor",), ("translate",)} <= set(commands)


@pytest.mark.parametrize("shell", SHELLS)
def test_every_command_and_option_is_completed(shell, commands, complete):
    lines = [line_of(path, word) for path in commands for word in ("", "--")]
    matches = iter(complete(shell, lines))
    for path, (below, options) in commands.items():
        after_space, after_dashes = next(matches), next(matches)
        assert set(below) <= after_space, (path, after_space)
        long_options = {option for option in options if option.startswith("--")}
        assert long_options == {match.removesuffix("=") for match in after_dashes if match.startswith("--")}, path


@pytest.mark.parametrize("shell", SHELLS)
def test_values_are_completed(shell, complete, tmp_path):
    lines = ["qkv completions ", "qkv score ", "qkv train translate --optimizer ", "qkv train lm --unit by",
             "qkv export a b --dtype ", "qkv train translate --optimizer=", "qkv train translate --seed "]
    shells, metrics, optimizers, units, types, after_equals, numbers = complete(shell, lines)
    assert shells == {"bash", "zsh", "fish"} and metrics >= {"bleu", "chrf"}
    assert optimizers == {"adam", "adamw"} and units == {"bytes", "byte_pieces"} and "float32" in types
    assert {match.removeprefix("--optimizer=") for match in after_equals} == {"adam", "adamw"}
    assert not numbers


def read(terminal):
    """Returns what a terminal shows next; nothing at its end."""
    try:
        return os.read(terminal, 4096)
    except OSError:
        return b""


@pytest.mark.skipif(not shutil.which("bash"), reason="bash is not installed")
def test_bash_completes_by_the_tabulator(tmp_path):
    """In an interactive shell, so that readline calls the function itself."""
    script = tmp_path / "qkv"
    script.write_text(qkv("completions", "bash")[1])
    ours, theirs = pty.openpty()
    with subprocess.Popen(["bash", "--norc", "--noprofile", "-i"], stdin=theirs, stdout=theirs, stderr=theirs,
                          env={"PATH": "/usr/bin:/bin", "TERM": "xterm"}, start_new_session=True) as shell:
        os.close(theirs)
        os.write(ours, f"source {script}\nqkv insp\t\x01echo \x05; exit\n".encode())
        shown = b""
        while part := read(ours):
            shown += part
    os.close(ours)
    plain = re.sub(rb"\x1b\[[?\d;]*[A-Za-z@]|\r", b"", shown)  # without commands to the terminal
    assert b"\nqkv inspect" in plain, shown


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    if not shutil.which("help2man"):
        pytest.skip("help2man is not installed")
    folder = tmp_path_factory.mktemp("man")
    subprocess.run([ROOT / "packaging/manual.sh", QKV, folder], check=True, timeout=300)
    return folder


def test_there_is_a_page_of_every_command(commands, pages):
    assert {page.name for page in pages.iterdir()} == {"-".join(("qkv", *path)) + ".1" for path in commands}
    for path, (below, options) in commands.items():
        name = "-".join(("qkv", *path))
        page = (pages / f"{name}.1").read_text(encoding="utf-8").replace("\\-", "-")
        assert f"\n{name} - " in page and all(word in page for word in below + options), path


@pytest.mark.skipif(not shutil.which("man"), reason="man is not installed")
def test_man_shows_the_pages_without_warnings(pages):
    for page in pages.iterdir():
        done = subprocess.run(["man", "--warnings", "-l", page], capture_output=True, text=True, timeout=60,
                              env={"LC_ALL": "C.UTF-8", "MANWIDTH": "80", "PATH": "/usr/bin:/bin"})
        assert done.returncode == 0 and not done.stderr and "NAME" in done.stdout, (page.name, done.stderr)
