"""Programs of earlier releases, from the wheels in the folder QKV_WHEELS, on kept runs and on those of this program."""

import json
import os
import pathlib
import re
import subprocess
import sys

import pytest

from conftest import kept_releases

pytestmark = pytest.mark.release
KEPT = kept_releases()
WHEELS = sorted(pathlib.Path(os.environ["QKV_WHEELS"]).glob("qkv-*.whl")) if "QKV_WHEELS" in os.environ else []
if not WHEELS:
    pytest.skip("QKV_WHEELS names no folder with wheels of earlier releases", allow_module_level=True)


@pytest.fixture(scope="module", params=WHEELS, ids=[wheel.name.split("-")[1] for wheel in WHEELS])
def earlier(request, tmp_path_factory):
    """(version, program) of a wheel."""
    folder = tmp_path_factory.mktemp("wheel")
    install = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-index", "--target", folder, request.param]
    subprocess.run(install, check=True, timeout=300)
    (folder / "qkv/qkv").chmod(0o755)
    return request.param.name.split("-")[1], str(folder / "qkv/qkv")


def test_a_release_gives_the_output_that_is_kept_of_it(earlier):
    version, program = earlier
    folder = KEPT.HERE / version
    for file, command in json.loads((folder / "expected.json").read_text(encoding="utf-8"))["outputs"].items():
        assert KEPT.run(program, command, folder) == (folder / "expected" / file).read_text(encoding="utf-8"), file


def test_a_release_reads_a_run_of_this_version_or_names_what_is_new(earlier, fresh_runs):
    _, program = earlier
    for file, command in KEPT.OUTPUTS.items():
        done = subprocess.run([program, *command.split()], cwd=fresh_runs, env=KEPT.PORTABLE, capture_output=True, text=True)
        named = re.fullmatch(r"qkv: .*(unknown|was written by qkv [\d.]+).*\n", done.stderr)
        assert done.returncode == 0 or (done.returncode == 1 and named), (file, done.stderr)
