"""Accepts the present state of public surfaces: writes their files in this folder.

usage: write.py [SURFACE...]     default: all but python, which needs an interpreter that has the module

The program is the one that the environment variable QKV names, by default build/dev/qkv; "symbols" reads the shared
library next to it, and "cpp" needs python3-clang.
"""

import importlib.util
import os
import sys
import tempfile
from pathlib import Path

import surfaces

ROOT = surfaces.HERE.parent.parent


def main(names):
    program = str(Path(os.environ.get("QKV", ROOT / "build/dev/qkv")).resolve())
    spec = importlib.util.spec_from_file_location("kept", ROOT / "tests/golden/releases/make.py")
    kept = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(kept)
    with tempfile.TemporaryDirectory() as folder:
        if {"json", "files"} & set(names):
            kept.make_runs(program, Path(folder))
        for name in names:
            now = surfaces.SURFACES[name](program, Path(folder), kept)
            file = surfaces.HERE / f"{name}.txt"
            before = surfaces.accepted(name) if file.exists() else []
            print("\n".join(surfaces.differences(name, before, now)[:-1]) or f"{name}: unchanged")
            file.write_text("\n".join(now) + "\n", encoding="utf-8")


if __name__ == "__main__":
    unknown = set(sys.argv[1:]) - set(surfaces.SURFACES)
    if unknown:
        sys.exit(f"{unknown.pop()}: unknown surface, choose from {', '.join(surfaces.SURFACES)}")
    main(sys.argv[1:] or [name for name in surfaces.SURFACES if name != "python"])
