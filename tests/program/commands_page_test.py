"""docs/commands.md is what the program's help says."""

import subprocess
import sys

from conftest import QKV, ROOT


def test_the_page_of_commands_is_current():
    done = subprocess.run([sys.executable, "-B", ROOT / "docs/site/write_commands.py", QKV],
                          capture_output=True, text=True, timeout=300, check=True)
    assert done.stdout == (ROOT / "docs/commands.md").read_text(encoding="utf-8"), (
        "run: python3 docs/site/write_commands.py build/dev/qkv > docs/commands.md")
