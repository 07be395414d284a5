"""The surfaces of the program: its command line, the members of its JSON, and the files of its runs."""

import json
import re
import struct
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
REPORTS = {  # commands with --json besides those whose output is kept; that of qkv doctor depends on the machine
    "inspect": "inspect translator --json",
    "generate": "generate language --prompt There --max-tokens 3 --explain 2 --json",
    "embed": "embed encoder --file data/lines.en --json",
    "score": "score bleu --ref data/dev.de --hyp data/dev.en --json",
    "data check": "data check --train data/train.en data/train.de --json",
    "plot": "plot translator --json",
    "attend": "attend encoder dog --json -",
    "explain": "explain --steps -",
}
SHARED = ("config.json", "training.json")  # with the same members in all runs
FOREIGN = ("tokenizer.json",)


def command_line():
    """Lines from docs/commands.md, which a test compares with the help of the program."""
    lines, command = [], ""
    for line in (ROOT / "docs/commands.md").read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            command = line[3:]
            lines.append(f"{command}  command")
        elif row := re.match(r"\| `([^`]+)` \| (.*) \|$", line):
            name, _, value = row[1].replace(r"\|", "|").partition(" ")
            accepted = re.search(r"\[(?!default)(.*?)(?:; default [^\]]*)?\]$", row[2])
            needed = " (required)" if row[2].endswith("(required)") else ""
            value += needed + (f" [{accepted[1]}]" if accepted else "")
            lines.append(f"{command} {name}  {value}".rstrip())
    return sorted(set(lines))


def kind_of(value):
    names = {bool: "boolean", int: "number", float: "number", str: "string", type(None): "null"}
    return names.get(type(value), "object" if isinstance(value, dict) else "array")


def members(name, value):
    """A line for each member of a JSON value; those of all elements of an array together."""
    if isinstance(value, list):
        return {line for element in value for line in members(f"{name}[]", element)} | {f"{name}  array"}
    if isinstance(value, dict):
        return {line for key, part in value.items() for line in members(f"{name}.{key}", part)} | {f"{name}  object"}
    return {f"{name}  {kind_of(value)}"}


def json_lines(program, runs, kept):
    """Members of the output of commands with --json on the runs of a folder."""
    commands = REPORTS | {command.partition(" ")[0]: command for command in kept.OUTPUTS.values() if "--json" in command}
    lines = set()
    for name, command in commands.items():
        for line in kept.run(program, command, runs).splitlines():
            lines |= members(name, json.loads(line))
    return sorted(lines)


def tensors(file):
    """Lines of a safetensors file: metadata, and names with types. Layers of a kind count as one."""
    data = file.read_bytes()
    header = json.loads(data[8 : 8 + struct.unpack("<Q", data[:8])[0]])
    found = {f"metadata {key}  {value if key == 'format' else 'text'}" for key, value in header.pop("__metadata__", {}).items()}
    return found | {f"{re.sub(r'[.][0-9]+[.]', '.N.', name)}  {item['dtype']}" for name, item in header.items()}


def file_lines(runs, kept):
    """Files of the runs in a folder, with the members of their JSON and their tensors."""
    lines = set()
    for run in (file.parent for file in runs.glob("*/config.json")):
        for file in (file for file in run.rglob("*") if file.is_file()):
            name = re.sub(r"\d{8}", "STEP", str(file.relative_to(run)))
            path = name if name in SHARED else f"{run.name}/{name}"
            lines.add(f"{run.name}/{name}  file")
            if file.suffix == ".safetensors":
                lines |= {f"{path} {line}" for line in tensors(file)}
            elif file.suffix in (".json", ".jsonl") and name not in FOREIGN:
                text = file.read_text(encoding="utf-8")
                for value in text.splitlines() if file.suffix == ".jsonl" else [text]:
                    lines |= members(path, json.loads(value))
    return sorted(lines)
