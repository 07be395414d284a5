"""The commands of the guide, which are the blocks `sh` of its pages, run as they are written, with fewer steps."""

import pathlib
import re
import shutil
import subprocess

import pytest

from conftest import QKV, ROOT

GUIDE = ROOT / "docs/guide"
PAGES = ["first-translation-model", "translate-a-document", "summarize", "import-and-fine-tune", "first-recommender",
         "first-language-model", "train-embeddings", "classify-texts", "learn-the-transformer"]
FEWER = [  # option -> what a test has time for
    (r"--(max-steps|warmup-steps|eval-every) \d+", r"--\1 2"),
    (r"--max-epochs \d+", "--max-epochs 1 --max-steps 2"),
    (r"--batch-tokens \d+", "--batch-tokens 512"),
    (r"--beam \d+", "--beam 1 --max-length 4"),
]


def commands(page):
    text = (GUIDE / f"{page}.md").read_text(encoding="utf-8")
    return re.findall(r"^```sh\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("guide")
    (folder / "bin").mkdir()
    (folder / "bin/qkv").symlink_to(pathlib.Path(QKV).resolve())
    shutil.copytree(ROOT / "examples", folder / "examples", ignore=shutil.ignore_patterns("__pycache__"))
    return folder


@pytest.mark.parametrize("page", PAGES)
def test_the_commands_of_the_guide_run(folder, page):
    blocks = commands(page)
    assert len(blocks) >= 2
    for block in blocks:
        for option, fewer in FEWER:
            block = re.sub(option, fewer, block)
        script = f'set -euo pipefail\nPATH="{folder}/bin:$PATH"\n{block}'
        done = subprocess.run(["bash", "-c", script], cwd=folder, capture_output=True, text=True, timeout=600)
        assert done.returncode == 0, block + done.stderr
