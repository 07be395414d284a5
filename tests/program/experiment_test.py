"""`qkv experiment`: the list, a result as text, JSON and picture, and wrong usage."""

import json
import xml.etree.ElementTree as ElementTree

from conftest import qkv

SVG = "{http://www.w3.org/2000/svg}"


def test_without_a_name_it_lists_the_experiments():
    names = [line.split()[0] for line in qkv("experiment")[1].splitlines()]
    assert len(names) == len(set(names)) == 9
    assert all(name in qkv("experiment", "--help")[1] for name in names)


def test_text_json_and_picture_have_the_same_numbers(tmp_path):
    text = qkv("experiment", "softmax", "--plot", tmp_path / "a.svg", "--json", tmp_path / "a.json")[1]
    result = json.loads((tmp_path / "a.json").read_text())
    assert result["experiment"] == "softmax" and result["seed"] == 1
    assert all(row["name"] in text for row in result["tables"][0]["rows"])
    assert text.startswith("Task: ") and result["verdict"]["shown"]
    said = "".join(result["findings"]) + "Verdict: shown." + result["verdict"]["claim"]
    assert "".join(text.split()).endswith("".join(said.split()))
    picture = ElementTree.parse(tmp_path / "a.svg").getroot()
    assert picture.tag == f"{SVG}svg" and len(picture.findall(f"{SVG}svg")) == len(result["charts"])
    titles = {element.text for element in picture.iter(f"{SVG}text")}
    assert {chart["title"] for chart in result["charts"]} <= titles
    assert {curve["name"] for chart in result["charts"] for curve in chart["curves"]} <= titles


def test_json_on_standard_output_has_the_same_bytes_for_any_number_of_threads():
    results = [qkv("experiment", "order", "--json", "-", "--threads", threads)[1] for threads in (1, 2)]
    assert results[0] == results[1] and json.loads(results[0])["tables"]
    assert qkv("experiment", "order", "--json", "-", "--seed", 2)[1] != results[0]


def test_errors_are_one_line(tmp_path):
    for arguments, status, message in [(["orders"], 2, "softmax"), (["order", "--data", "x"], 1, "reads no data"),
                                       (["--plot", tmp_path / "a.svg"], 1, "no name"),
                                       (["softmax", "--plot", tmp_path / "no/a.svg"], 1, "no/a.svg"),
                                       (["softmax", "--seed", -1], 2, "--seed: must be at least 0 (is -1)"),
                                       (["softmax", "--seed", 1.5], 2, "--seed"),
                                       (["baselines", "--data", tmp_path / "absent"], 1, "absent")]:
        found, output, error = qkv("experiment", *arguments, ok=False)
        assert found == status and output == "" and error.count("\n") == 1 and message in error


def test_no_file_is_written_over_another(tmp_path):
    text = tmp_path / "text"
    text.write_text("words " * 2000)
    for arguments, message in [
            (["softmax", "--plot", "-", "--json", "-"], "--plot and --json: both are -, expected different files"),
            (["softmax", "--plot", tmp_path / "a", "--json", f"{tmp_path}/./a"],
             f"--plot and --json: both are {tmp_path}/a, expected different files"),
            (["baselines", "--data", text, "--json", text],
             f"--json: {text} is the input of --data, expected another file"),
            (["baselines", "--data", text, "--plot", f"{tmp_path}/../{tmp_path.name}/text"],
             f"--plot: {tmp_path}/../{tmp_path.name}/text is the input of --data, expected another file")]:
        assert qkv("experiment", *arguments, ok=False) == (1, "", f"qkv: {message}\n")
    assert text.read_text() == "words " * 2000 and not (tmp_path / "a").exists()


def test_the_picture_on_standard_output_is_that_of_the_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    out = qkv("experiment", "softmax", "--plot", "-", "--json", tmp_path / "a.json")[1]
    qkv("experiment", "softmax", "--plot", tmp_path / "a.svg")
    assert out == (tmp_path / "a.svg").read_text() and json.loads((tmp_path / "a.json").read_text())["seed"] == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.json", "a.svg"]  # none is named "-"


def test_the_largest_seed_is_accepted():
    assert json.loads(qkv("experiment", "softmax", "--seed", 2**64 - 1, "--json", "-")[1])["seed"] == 2**64 - 1
