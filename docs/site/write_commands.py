"""Writes docs/commands.md, all commands and options, from the help of the program.

usage: write_commands.py PROGRAM > docs/commands.md
"""

import re
import subprocess
import sys
import textwrap

HEAD = """# Commands

Every command and option of the program, from the text of `--help-all`. This page is generated: after a change of an
option, run `python3 docs/site/write_commands.py build/dev/qkv > docs/commands.md`.

[The program](program.md) describes what all commands share, such as the exit status.
[Options](options.md) has the same descriptions by the names of C++ and Python.
"""


def parsed(help_text):
    """(description, usage, [(group, [(name, text)])], footer) of the help of a command."""
    lines = help_text.rstrip("\n").split("\n")
    at = next(i for i, line in enumerate(lines) if line.startswith("Usage: "))
    groups, footer = [], []
    for line in lines[at + 1 :]:
        if re.match(r"\S.*:$", line) and not footer:
            groups.append((line[:-1], []))
        elif line.startswith(" " * 30) and groups:
            groups[-1][1][-1][1].append(line.strip())
        elif line.startswith("  ") and groups and not footer:
            name, _, text = line.strip().partition("  ")
            groups[-1][1].append((name, [text.strip()]))
        elif line:
            footer.append(line)
    return " ".join(lines[:at]).strip(), lines[at], groups, "\n".join(footer)


def cell(text):
    """Text of a cell: what looks like HTML, a formula or a column is code or escaped."""
    text = text.replace("|", r"\|").replace("*", r"\*").replace("$", r"\$")
    return re.sub(r"<[^<>\s]+>", lambda found: f"`{found.group()}`", text)


def help_of(program, words):
    """The longest help of a command: one without groups of options has no --help-all."""
    for flag in ("--help-all", "--help"):
        done = subprocess.run([program, *words[1:], flag], capture_output=True, text=True)
        if done.returncode == 0:
            return done.stdout
    raise SystemExit(done.stderr)


def table(group, rows):
    lines = [f"| {name} | {cell(' '.join(filter(None, text)))} |" for name, text in rows]
    return [f"**{group}**", "", "| | |", "|---|---|", *lines, ""] if rows else []


def section(program, words):
    """The lines of a command, and the names of its subcommands."""
    description, usage, groups, footer = parsed(help_of(program, words))
    lines = [f"## {' '.join(words)}", "", textwrap.fill(cell(description) + ".", 118), ""]
    lines += ["```", usage.removeprefix("Usage: "), "```", ""]
    commands = []
    for group, entries in groups:
        if "COMMAND" in usage and group != "Options":
            commands += [name for name, _ in entries]
            lines += table(group, [(f"[{name}](#{'-'.join([*words, name])})", text) for name, text in entries])
        else:
            shown = [entry for entry in entries if not words[1:] or not entry[0].startswith(("-h,", "--help-all"))]
            lines += table(group, [("`{}`".format(name.replace("|", r"\|")), text) for name, text in shown])
    return lines + ([textwrap.fill(cell(footer), 118), ""] if footer else []), commands


def page(program):
    def below(words):
        lines, commands = section(program, words)
        for command in commands:
            lines += below([*words, command])
        return lines

    return HEAD + "\n" + "\n".join(below(["qkv"])).rstrip("\n") + "\n"


if __name__ == "__main__":
    sys.stdout.write(page(sys.argv[1]))
