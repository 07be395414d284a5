"""`qkv plot`: the page, the picture and the figures of runs, and the page in a browser."""

import json
import xml.etree.ElementTree as ElementTree

import pytest
from conftest import qkv

LOSS = "figure:first-child"


@pytest.fixture(scope="module")
def runs(trained, counting):
    return [trained, counting]


def test_the_figures_are_those_of_the_metrics(trained):
    records = [json.loads(line) for line in (trained / "metrics.jsonl").read_text().splitlines()]
    run = json.loads(qkv("plot", trained, "--json")[1])["runs"][0]
    assert run["curves"]["loss"] == [[r["step"], r["loss"]] for r in records if "loss" in r]
    assert run["curves"]["dev_score"] == [[r["step"], r["dev"][r["best"]]["bleu"]] for r in records if "dev" in r]
    minutes = json.loads(qkv("plot", trained, "--json", "--x", "time")[1])["runs"][0]["curves"]["loss"]
    assert [round(60 * x, 3) for x, _ in minutes] == [round(r["seconds"], 3) for r in records if "loss" in r]


def test_the_picture_is_valid_svg(runs, tmp_path):
    assert qkv("plot", *runs, "--svg", tmp_path / "curves.svg")[1:] == ("", f"{tmp_path / 'curves.svg'}\n")
    picture = ElementTree.parse(tmp_path / "curves.svg").getroot()
    assert picture.tag == "{http://www.w3.org/2000/svg}svg"
    assert len(picture.findall("{http://www.w3.org/2000/svg}svg")) == 4


def test_errors_are_one_line(tmp_path, trained):
    for arguments, message in [([tmp_path], "has no metrics.jsonl"), ([tmp_path / "absent"], "is not a run directory"),
                               ([trained] * 17, "between 1 and 16"),
                               ([trained, "--html", tmp_path / "no/page.html"], "no/page.html")]:
        status, output, error = qkv("plot", *arguments, ok=False)
        assert status == 1 and output == "" and error.count("\n") == 1 and message in error


def test_pointer_keys_and_buttons_show_and_hide_values(browser, runs, tmp_path):
    qkv("plot", *runs, "--html", tmp_path / "page.html")
    browser.driver.get((tmp_path / "page.html").as_uri())
    values = f"document.querySelector('{LOSS} .values').textContent"
    browser.script(f"return document.querySelector('{LOSS} .chart').focus()")
    assert f"{runs[0]}: loss " in browser.script(values) and "dev loss" in browser.script(values)
    browser.keys("END")
    assert "at 120" in browser.script(values)
    browser.script("return document.querySelector('button[data-run]').click()")
    assert browser.script("getComputedStyle(document.querySelector('.chart .run0')).display") == "none"
    browser.keys("HOME")
    assert browser.script("reports") == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 360])
def test_the_page_is_accessible(scheme, width, browser, runs, tmp_path):
    qkv("plot", *runs, "--html", tmp_path / "page.html")
    browser.show_as(scheme, width)
    browser.driver.get((tmp_path / "page.html").as_uri())
    assert browser.findings() == []
    assert browser.script("document.documentElement.scrollWidth") <= width
    browser.show_as()
