"""Marks for all tests: `release` for what protects a release and not a change (CONTRIBUTING.md, "What runs where")."""
import os

import pytest


def pytest_configure(config):
    config.addinivalue_line("markers", "release: protects a release, not a change; runs with FULL=1")


def pytest_collection_modifyitems(config, items):
    if not os.environ.get("FULL") and "release" not in config.getoption("-m"):
        for item in items:
            if item.get_closest_marker("release"):
                item.add_marker(pytest.mark.skip(reason="protects a release: FULL=1 runs it"))
