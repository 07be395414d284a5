"""`qkv explain`: what it prints, its errors, and its page, whose steps equal the library's after every edit."""

import itertools
import json
import random

import page_browser
import pytest
from conftest import qkv

INPUTS = {
    "textbook": None,
    "two heads, mask and gradients": {
        "tokens": ["a", "b", "c"], "causal": True, "mask": [[0, 0, 0], [None, 0, 0], [0.5, -1, 0]],
        "X": [[1, 0.5, -1], [0, 2, 1], [0.3, -0.7, 0.9]], "dO": [[1, 0, 2], [0, 1, -1], [0.5, 0.5, 0]],
        "heads": [{"W_Q": [[1, 0], [0, 1], [1, 1]], "W_K": [[0.5, 1], [1, 0], [0, -1]], "W_V": [[1], [2], [3]]},
                  {"W_Q": [[0, 2], [1, 1], [-1, 1]], "W_K": [[1, 1], [0, 0.5], [2, -1]], "W_V": [[0], [1], [-1]]}],
        "W_O": [[1, 0, 0.5], [0, 1, -0.5]],
        "layer": {"W_1": [[1, -1, 0, 2], [0, 1, 1, -2], [1, 0, -1, 0.5]], "b_1": [0, 0.1, -0.1, 0], "gamma_1": [1, 2, 3],
                  "W_2": [[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 1]], "beta_2": [0.5, 0, -0.5], "activation": "gelu"}},
    "layer, gradients of one head": {
        "X": [[1, 0.5], [0, 2]], "dO": [[1, -1], [0.5, 2]], "scale": 0.7,
        "W_Q": [[1], [2]], "W_K": [[1], [-1]], "W_V": [[1, 0.5], [0, 1]],
        "layer": {"W_1": [[1, -1, 2], [0.5, 1, 1]], "W_2": [[1, 0], [0, 1], [1, -1]], "activation": "gelu_tanh",
                  "gamma_2": [0.5, 2], "epsilon": 0.1}},
    "cross-attention in a layer": {
        "X": [[1, 2], [0, 1]], "memory": [[3, 4], [-0.5, 0], [1, 1]], "dO": [[1, 2], [-1, 0]], "W_O": [[1, 2]],
        "W_Q": [[1], [2]], "W_K": [[1], [0]], "W_V": [[2], [1]],
        "layer": {"W_1": [[1, -1], [0.5, 1]], "W_2": [[1, 0.5], [0, 1]], "activation": "silu", "epsilon": 0.1}},
    "cross-attention": {
        "X": [[1, 2]], "memory": [[3, 4], [-0.5, 0]], "memory_tokens": ["u", "<script>"], "scale": 0.5,
        "W_Q": [[1], [2]], "W_K": [[1], [0]], "W_V": [[2, 1], [1, 2]], "dO": [[1, 2]]},
    "large scores": {"X": [[300, 0], [0, 200]], "W_Q": [[1], [1]], "W_K": [[1], [1]], "W_V": [[1], [2]]},
}


def steps_of(sections):
    return {step["id"]: step for section in sections for step in section["steps"]}


def options_of(value, folder):
    """The options of `qkv explain` for an input, which is written to a file."""
    if value is None:
        return ["--backward"]
    (folder / "input.json").write_text(json.dumps(value))
    return ["--json", folder / "input.json", *(["--backward"] if "dO" in value else [])]


def library_steps(value, folder):
    return json.loads(qkv("explain", *options_of(value, folder), "--steps", "-")[1])["sections"]


def test_the_example_is_explained_without_options():
    text = qkv("explain")[1]
    assert "  Chai  0.056  0.944\n  piyo  0.944  0.056\n" in text
    assert "exp(2.828…) is 16.919" in text
    assert "  t = 1   0.841   0.540   0.010   1.000\n" in text


def test_options_choose_what_is_shown(tmp_path):
    assert qkv("explain", "--scaling")[1].startswith("Why scores are divided by √d_k\n")
    assert qkv("explain", "--positions", "6")[1].startswith("Positions of width 6\n")
    assert "Feed-forward network" in qkv("explain", "--layer")[1]
    qkv("explain", "--steps", tmp_path / "steps.json")
    assert "dV" not in {step.partition(".")[2] for step in steps_of(json.loads((tmp_path / "steps.json").read_text())["sections"])}
    assert "head1.dV" in steps_of(library_steps(None, tmp_path))


@pytest.mark.parametrize("arguments, message", [
    (["--json", "absent.json"], "absent.json: cannot be read: No such file or directory"),
    (["--positions", "7"], "explain: the width of positions is 7, expected an even number from 2 to 1024"),
    (["--html", "/absent/page.html"], "/absent/page.html: cannot be written: No such file or directory")])
def test_errors_are_one_line(arguments, message):
    status, out, error = qkv("explain", *arguments, ok=False)
    assert (status, out, error) == (1, "", f"qkv: {message}\n")


CHOICES = {"--layer": "Feed-forward network", "--backward": "Backward: inputs", "--positions": "Positions of width 6",
           "--scaling": "Why scores are divided by √d_k"}


@pytest.mark.parametrize("chosen", [chosen for n in range(5) for chosen in itertools.combinations(CHOICES, n)],
                         ids=lambda chosen: " ".join(chosen) or "none")
def test_every_form_shows_exactly_what_was_chosen(chosen, tmp_path):
    arguments = [x for option in chosen for x in ([option, "6"] if option == "--positions" else [option])]
    attends = not chosen or {"--layer", "--backward"} & set(chosen)
    expected = ({"Inputs", "Attention"} if attends else set()) | {CHOICES[option] for option in chosen}
    others = set(CHOICES.values()) - expected

    def assert_shown(titles):
        assert expected <= set(titles) and not others & set(titles), titles

    assert_shown(qkv("explain", *arguments)[1].split("\n"))
    out = qkv("explain", *arguments, "--steps", "-")[1]
    assert_shown([section["title"] for section in json.loads(out)["sections"]])
    assert qkv("explain", *arguments, "--steps", tmp_path / "steps.json")[1] == ""
    assert (tmp_path / "steps.json").read_text() == out.rstrip("\n")
    refused = [option for option in chosen if option in ("--positions", "--scaling")]
    status, page, error = qkv("explain", *arguments, "--html", "-", ok=not refused)
    if refused:
        assert (status, page) == (2, "") and "--html" in error and any(option in error for option in refused)
    else:
        assert page.startswith("<!DOCTYPE html>") and page.endswith("</html>\n\n")
        assert qkv("explain", *arguments, "--html", tmp_path / "page.html", "--steps", "-")[1] == out
        assert (tmp_path / "page.html").read_text() == page[:-1]


def test_no_file_is_written_over_another(tmp_path):
    source = tmp_path / "input.json"
    source.write_text(json.dumps(INPUTS["cross-attention"]))
    for arguments, message in [
            (["--html", "-", "--steps", "-"], "--html and --steps: both are -, expected different files"),
            (["--html", tmp_path / "a", "--steps", f"{tmp_path}/./a"],
             f"--html and --steps: both are {tmp_path}/a, expected different files"),
            (["--json", source, "--steps", source], f"--steps: {source} is the input of --json, expected another file"),
            (["--json", source, "--html", source], f"--html: {source} is the input of --json, expected another file")]:
        assert qkv("explain", *arguments, ok=False) == (1, "", f"qkv: {message}\n")
    assert json.loads(source.read_text()) == INPUTS["cross-attention"] and not (tmp_path / "a").exists()


def test_gradients_need_the_gradient_of_the_output(tmp_path):
    options = options_of(INPUTS["large scores"], tmp_path)
    status, _, error = qkv("explain", *options, "--backward", ok=False)
    assert (status, error) == (1, f"qkv: --backward: {tmp_path}/input.json has no dO, the gradient of the output\n")


@pytest.fixture(scope="module")
def browser():
    if lacking := page_browser.missing():
        pytest.skip(lacking)
    made = page_browser.Browser()
    yield made
    made.quit()


def page_steps(browser):
    """The steps that the page computes from its present input, with null for −∞ as in JSON."""
    return json.loads(browser.script("return JSON.stringify(explain(input))"))


def assert_equal_steps(found, expected, name):
    """Compares all steps: words exactly, numbers to the rounding of sums in another order."""
    assert [section["title"] for section in found] == [section["title"] for section in expected], name
    found, expected = steps_of(found), steps_of(expected)
    assert list(found) == list(expected), name
    for id, step in expected.items():
        assert [found[id][key] for key in ("name", "formula", "rows", "columns")] == \
            [step[key] for key in ("name", "formula", "rows", "columns")], (name, id)
        numbers = [x for row in step["values"] for x in row]
        others = [x for row in found[id]["values"] for x in row]
        largest = max(1, *(abs(x) for x in numbers if x is not None), 1)
        assert all(a == b if a is None or b is None else abs(a - b) <= 1e-12 * largest
                   for a, b in zip(numbers, others, strict=True)), (name, id, numbers, others)


def fields(browser):
    return browser.driver.find_elements("css selector", "td input")


@pytest.mark.parametrize("name", INPUTS)
def test_the_page_computes_what_the_library_computes_after_every_edit(name, browser, tmp_path):
    page = tmp_path / "page.html"
    qkv("explain", *options_of(INPUTS[name], tmp_path), "--html", page)
    browser.driver.get(page.as_uri())
    assert_equal_steps(page_steps(browser), library_steps(INPUTS[name], tmp_path), name)
    assert page_browser_text(browser) == library_text(page_steps(browser))
    chosen = random.Random(1)
    for edit in range(5):
        field = chosen.choice(fields(browser))
        field.clear()
        field.send_keys(f"{chosen.uniform(-2, 2):.2f}")
        edited = json.loads(browser.script("return JSON.stringify(input)"))
        assert_equal_steps(page_steps(browser), library_steps(edited, tmp_path), f"{name}, edit {edit}")
        assert page_browser_text(browser) == library_text(page_steps(browser))
    assert not browser.driver.get_log("browser")


def page_browser_text(browser):
    """The numbers that the page shows of the steps that it computes."""
    return browser.script("""return [...document.querySelectorAll('.step')].filter(f => f.querySelector('span').textContent
        != 'given').map(f => [f.id, [...f.querySelectorAll('td')].map(c => c.textContent).filter(t => t)])""")


def library_text(sections):
    def shown(x, values):
        finite = [abs(v) for row in values for v in row if v is not None]
        largest = max(finite, default=0)
        if x is None:
            return "−∞"
        if largest >= 1e6 or 0 < largest < 1e-2:
            digits, exponent = f"{x:.3e}".split("e")
            return f"{digits}e{int(exponent):+d}"
        return f"{x:.0f}" if all(v == int(v) for v in finite) else f"{x:.3f}"
    steps = [step for section in sections for step in section["steps"] if step["formula"]]
    return [[step["id"], [shown(x, step["values"]) for row in step["values"] for x in row]] for step in steps]


def test_the_page_is_edited_by_keyboard_and_reports_wrong_numbers(browser, tmp_path):
    page = tmp_path / "page.html"
    qkv("explain", "--html", page)
    browser.driver.get(page.as_uri())
    browser.keys("TAB", "TAB")
    assert browser.script("document.activeElement.getAttribute('aria-label')") == "X, row Chai, column 1"
    browser.keys("BACKSPACE", "3")
    assert browser.texts("figure[id='head1.Q'] td")[0] == "4"
    browser.keys("x")
    assert browser.text("message") == "X, row Chai, column 1 is not a number"
    assert browser.texts("figure[id='head1.Q'] td")[0] == "4"
    browser.script("return document.getElementById('reset').click()")
    assert browser.texts("figure[id='head1.Q'] td")[0] == "2" and browser.text("message") == ""


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 360])
def test_the_page_is_accessible(scheme, width, browser, tmp_path):
    page = tmp_path / "page.html"
    qkv("explain", "--layer", "--backward", "--html", page)
    browser.show_as(scheme, width)
    browser.driver.get(page.as_uri())
    assert browser.findings() == []
    assert browser.script("document.documentElement.scrollWidth") <= width
    browser.show_as()
