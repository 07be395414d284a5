"""Markdown of the plain text of comments and docstrings."""

import re

FIELD = re.compile(r"^(\w[\w.]*(?:, \w[\w.]*)*): (.+)$")  # q, k: their shapes
COLUMNS = re.compile(r"^  |\S {3,}\S")  # lines that are aligned with others
PAGE = re.compile(r"(?<![\w/])docs/[\w/-]+\.md")
CODE = re.compile(r"\b(?:\w+::)+\w+\b|\bqkv(?:\.\w+)+|\b\w+_\w+(?:\(\))?|\b\w+\[[^\]\s]*\](?:\[[^\]\s]*\])*|\b\w+\(\)")


def escaped(text):
    """The text with names of code as code, paths of pages as links, and all else without a meaning in Markdown."""
    parts, end = [], 0
    for found in sorted([*PAGE.finditer(text), *CODE.finditer(text)], key=lambda match: match.start()):
        if found.start() < end:
            continue
        parts.append(plain(text[end:found.start()]))
        word = found.group()
        parts.append(f"[{plain(word)}]({word})" if found.re is PAGE else f"`{word}`")
        end = found.end()
    return "".join(parts) + plain(text[end:])


def plain(text):
    return re.sub(r"([\\`*_{}\[\]<>#$|~&])", r"\\\1", text)


def fence(text, language="text"):
    return f"````{language}\n{text}\n````"


def item(name, text):
    return f"- **{plain(name)}**: {escaped(text)}"


def fields(lines):
    """The lines `name: text`, with continuation lines that are indented, as a list; other text may follow."""
    found = []
    for number, line in enumerate(lines):
        if start := FIELD.match(line):
            found.append([start[1], start[2]])
        elif line.startswith(" "):
            found[-1][1] += " " + line.strip()
        else:
            return "\n".join(item(*field) for field in found) + "\n\n" + prose("\n".join(lines[number:]))
    return "\n".join(item(*field) for field in found)


def paragraph(block):
    """A paragraph: text, then perhaps an example, a list of fields, or aligned lines."""
    lines = block.split("\n")
    for number, line in enumerate(lines):
        begins = number == 0 or lines[number - 1].endswith((".", ":"))
        rest = lines[number:]
        if line.startswith(">>> "):
            found = fence("\n".join(rest), "pycon")
        elif begins and FIELD.match(line):
            found = fields(rest)
        elif COLUMNS.search(line):
            found = fence("\n".join(rest))
        else:
            continue
        return "\n\n".join(filter(None, [escaped("\n".join(lines[:number])), found]))
    return escaped(block)


def prose(text):
    return "\n\n".join(paragraph(block) for block in re.split(r"\n\s*\n", text.strip("\n")) if block.strip())
