"""Marks for all tests: `release` for what protects a release and not a change (CONTRIBUTING.md, "What runs where")."""
import os

import pytest


def pytest_configure(config):
    config.addinivalue_line("markers", "release: protects a release, not a change; runs with FULL=1")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    """Skips a test of a release before other marks do, whose reasons would be about packages of FULL=1."""
    if item.get_closest_marker("release") and not os.environ.get("FULL") and "release" not in item.config.getoption("-m"):
        pytest.skip("protects a release: FULL=1 runs it")
