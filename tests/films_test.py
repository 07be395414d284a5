"""The example log of films: the generator writes the same bytes each time, and they are what its README says."""

import csv
import importlib.util
import pathlib
from collections import Counter, defaultdict

import pytest

SCRIPT = pathlib.Path(__file__).resolve().parent.parent / "examples/films/generate.py"


@pytest.fixture(scope="module")
def generate():
    spec = importlib.util.spec_from_file_location("films_generate", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def folder(generate, tmp_path_factory):
    folder = tmp_path_factory.mktemp("films")
    generate.write(folder)
    return folder


def rows(path):
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_regenerating_gives_the_same_bytes(generate, folder):
    generate.write(folder / "again")
    for name in ("log.csv", "titles.csv"):
        assert (folder / "again" / name).read_bytes() == (folder / name).read_bytes()


def test_the_files_are_what_the_readme_says(folder):
    log, titles = rows(folder / "log.csv"), rows(folder / "titles.csv")
    readme = SCRIPT.with_name("README.md").read_text(encoding="utf-8")
    assert f"{len(log):,} events" in readme and len(titles) == 960 and "960 films" in readme
    assert {row["item"] for row in log} == {row["item"] for row in titles}
    assert len({row["title"] for row in titles}) == 960 and len({row["genre"] for row in titles}) == 10
    events = defaultdict(list)
    for row in log:
        events[row["user"]].append(row)
    assert len(events) == 3000 and {15, 60} == {f(map(len, events.values())) for f in (min, max)}
    for history in events.values():
        assert len({row["item"] for row in history}) == len(history)
        assert all(int(a["timestamp"]) < int(b["timestamp"]) for a, b in zip(history, history[1:]))


def test_the_next_part_follows_more_often_from_the_history_than_from_the_last_film(folder):
    number = {row["item"]: i for i, row in enumerate(rows(folder / "titles.csv"))}
    found = Counter()
    seen = defaultdict(list)
    for row in rows(folder / "log.csv"):
        film, before = number[row["item"]], seen[row["user"]]
        if film % 6:  # not the first part
            found["all"] += 1
            found["last"] += before[-1:] == [film - 1]
            found["history"] += film - 1 in before[-8:]
        before.append(film)
    assert found["last"] < 0.75 * found["all"] < 0.85 * found["all"] < found["history"]
