"""Runs the program qkv: `python -m qkv ARGUMENTS`, and the command that pip installs."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import NoReturn


def main() -> NoReturn:
    """Replaces this process by the program of the package, or else by the one on the path."""
    own = Path(__file__).with_name("qkv")
    program = str(own) if own.exists() else shutil.which("qkv")
    if program is None:
        sys.exit(f"qkv: no program in {own.parent} or on the path; install the package qkv")
    os.execv(program, ["qkv", *sys.argv[1:]])


if __name__ == "__main__":
    main()
