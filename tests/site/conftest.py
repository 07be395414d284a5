"""The site, built once by docs/site/build.sh with the Python of the tests."""

import os
import pathlib
import subprocess
import sys

import pytest

from site_pages import ROOT, parsed

sys.path.insert(0, str(ROOT / "tests/program"))  # page_browser


@pytest.fixture(scope="session")
def site(tmp_path_factory):
    """The folder of the built site; QKV_SITE names one that was built before."""
    if "QKV_SITE" in os.environ:
        return pathlib.Path(os.environ["QKV_SITE"]).resolve()
    for package in ("sphinx", "myst_parser", "furo", "latex2mathml", "ziamath", "griffe"):
        pytest.importorskip(package)
    done = subprocess.run([ROOT / "docs/site/build.sh"], env={**os.environ, "PYTHON": sys.executable},
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return ROOT / "build/site/html"


@pytest.fixture(scope="session")
def pages(site):
    """All pages except those of source files."""
    return [parsed(path) for path in sorted(site.rglob("*.html")) if (site / "source") not in path.parents]


@pytest.fixture(scope="session")
def sources(site):
    return [parsed(path) for path in sorted((site / "source").rglob("*.html"))]
