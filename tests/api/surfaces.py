"""The public surfaces of qkv, each as sorted lines "NAME  DESCRIPTION". docs/versions.md says what they promise.

NAME.txt next to this file is what was accepted last; write.py writes it, and tests compare it with the present state.
"""

from pathlib import Path

import cpp_surface
import http_surface
import program_surface
import python_surface

HERE = Path(__file__).resolve().parent
SURFACES = {  # name -> function of the program, a folder of fresh runs and the module that made them
    "command-line": lambda program, runs, kept: program_surface.command_line(),
    "json": program_surface.json_lines,
    "files": lambda program, runs, kept: program_surface.file_lines(runs, kept),
    "http": lambda program, runs, kept: http_surface.surface(),
    "cpp": lambda program, runs, kept: cpp_surface.declarations(),
    "symbols": lambda program, runs, kept: cpp_surface.symbols(Path(program).with_name("libqkv.so"), accepted("cpp")),
    "python": lambda program, runs, kept: python_surface.surface(),
}
ACCEPT = "accept intended changes: python3 tests/api/write.py {}, and a line in CHANGELOG.md"


def accepted(name):
    return (HERE / f"{name}.txt").read_text(encoding="utf-8").splitlines()


def differences(name, before, now):
    """Names what was removed, changed and added, one line each, and how to accept it; empty if nothing differs."""
    old = {line.partition("  ")[0]: line for line in sorted(set(before) - set(now))}
    new = {line.partition("  ")[0]: line for line in sorted(set(now) - set(before))}
    changed = [f'changed "{line}" to "{new[key].partition("  ")[2]}"' for key, line in old.items() if key in new]
    removed = [f'removed "{line}"' for key, line in old.items() if key not in new]
    added = [f'added "{line}"' for key, line in new.items() if key not in old]
    words = removed + changed + added
    return [f"{name}: {word}" for word in words] + ([ACCEPT.format(name)] if words else [])
