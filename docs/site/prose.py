"""Markdown of the plain text of comments and docstrings."""

import re

FIELD = re.compile(r"^(\w[\w.]*(?:, \w[\w.]*)*): (.+)$")
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


def fields(lines):
    """The lines `name: text`, with continuation lines that are indented, as a list."""
    found = []
    for line in lines:
        start = FIELD.match(line)
        if start:
            found.append([start[1], start[2]])
        elif found and line.startswith(" "):
            found[-1][1] += " " + line.strip()
        elif found:  # a sentence after the list
            return "\n".join(map(item, found)) + "\n\n" + prose("\n".join(lines[lines.index(line):]))
    return "\n".join(map(item, found))


def item(field):
    return f"- **{plain(field[0])}**: {escaped(field[1])}"


def paragraph(block):
    lines = block.split("\n")
    if lines[0].startswith(">>> "):
        return fence(block, "pycon")
    if any(line.startswith("  ") for line in lines) and not FIELD.match(lines[0]) or re.search(r"\S {3,}\S", block):
        first = next(i for i, line in enumerate(lines) if line.startswith("  ") or re.search(r"\S {3,}\S", line))
        head = escaped("\n".join(lines[:first])) + "\n\n" if first else ""
        return head + fence("\n".join(lines[first:]))
    first = next((i for i, line in enumerate(lines) if FIELD.match(line)), None)
    if first is not None and (first == 0 or lines[first - 1].endswith((".", ":"))) and " " not in lines[first].partition(":")[0].replace(", ", ","):
        head = escaped("\n".join(lines[:first])) + "\n\n" if first else ""
        return head + fields(lines[first:])
    return escaped(block)


def prose(text):
    return "\n\n".join(paragraph(block) for block in re.split(r"\n\s*\n", text.strip("\n")) if block.strip())
