"""`qkv explain`: what it prints, its errors, and its page, whose steps equal the library's after every edit."""

import itertools
import json
import math
import random
import re

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
    "one key hidden from all": {
        "X": [[1, 0], [0, 2]], "W_Q": [[1], [1]], "W_K": [[1], [1]], "W_V": [[1], [2]], "mask": [[0, 0], [None, None]]},
    "queries, keys and values": {
        "heads": [{"Q": [[1, 0.5], [-1, 2]], "K": [[1, 1], [0, 0.7], [2, -1]], "V": [[1], [0.3], [-2]]},
                  {"Q": [[0, 1], [1, 1]], "K": [[0.5, 0], [1, 0], [0, 1]], "V": [[2], [1], [0]]}],
        "memory_tokens": ["x", "y", "z"], "W_O": [[1, 0, 2], [0.5, 1, -1]], "dO": [[1, 0, 0.5], [0.25, -1, 1]]},
    "biases with tokens as columns": {
        "X": [[1, 0.5, -1], [0, 2, 1]], "W_Q": [[1, 0], [0, 1], [1, 1]], "W_K": [[0.5, 1], [1, 0], [0, -1]],
        "W_V": [[1, 0], [2, 1], [3, -1]], "b_Q": [0.5, -1], "b_K": [0.25, 1], "b_V": [1, 2],
        "W_O": [[1, 0, 1], [0, 1, 2]], "b_O": [0.1, 0.2, 0.3], "form": "columns", "tokens": ["W_Q", "the row"],
        "output": {"W": [[1, 0], [0, 1], [1, 1]], "vocabulary": ["yes", "no"], "labels": ["no", 0],
                   "label_smoothing": 0.1}},
    "decoder layer with pre-norm and a gate": {
        "X": [[1, 0.5], [0, 2]], "memory": [[1, 0, 2], [0.5, -1, 1], [0, 1, 0.3]], "causal": True,
        "W_Q": [[1], [2]], "W_K": [[1], [-1]], "W_V": [[1, 0.5], [0, 1]], "b_V": [0.5, 0],
        "cross": {"W_Q": [[1], [0.5]], "W_K": [[1], [0], [0.5]], "W_V": [[1, 0], [0, 1], [0.5, 0.5]], "b_K": [0.3],
                  "mask": [[0, None, 0.5], [1, 0, 0]], "scale": 0.5, "W_O": [[1, 0.5], [-1, 1]], "b_O": [0, 1]},
        "layer": {"W_1": [[1, -1, 2], [0.5, 1, 1]], "W_gate": [[1, 0, 1], [0, 1, 2]], "b_gate": [1, 0, 0.5],
                  "W_2": [[1, 0], [0, 1], [1, -1]], "norm_position": "pre", "activation": "silu", "gamma_3": [0.5, 2],
                  "epsilon": 0.1},
        "output": {"W": [[1, 0, 2], [0, 1, -1]], "b": [0, 0.5, 0], "gamma": [1, 2], "beta": [0, 0.1],
                   "labels": [2, 0]}},
    "a layer with RMSNorm and gradients of logits": {
        "X": [[1, 0.5], [0, 2]], "dO": [[1, -1, 0.5], [0.5, 2, 0]], "W_Q": [[1], [2]], "W_K": [[1], [-1]],
        "W_V": [[1, 0.5], [0, 1]],
        "layer": {"W_1": [[1, -1, 2], [0.5, 1, 1]], "W_2": [[1, 0], [0, 1], [1, -1]], "norm": "rms",
                  "gamma_1": [0.5, 2], "epsilon": 0.1},
        "output": {"W": [[1, 0, 2], [0, 1, -1]]}},
    "very small scores": {"X": [[40], [39]], "W_Q": [[1]], "W_K": [[-1]], "W_V": [[1]]},
    "very small logits": {"X": [[1], [2]], "W_Q": [[0.1]], "W_K": [[0.1]], "W_V": [[1]],
                          "output": {"W": [[-200, -210]], "labels": [0, 1]}},
    "very small scores, and a key hidden from all": {
        "X": [[1, 0], [0, 2]], "W_Q": [[1], [1]], "W_K": [[1], [1]], "W_V": [[1], [2]],
        "mask": [[-1000, -1001], [None, None]]},
    "large scores": {"X": [[300, 0], [0, 200]], "W_Q": [[1], [1]], "W_K": [[1], [1]], "W_V": [[1], [2]]},
}


def steps_of(sections):
    return {step["id"]: step for section in sections for step in section["steps"]}


def options_of(value, folder):
    """The options of `qkv explain` for an input, which is written to a file."""
    if value is None:
        return ["--backward"]
    (folder / "input.json").write_text(json.dumps(value))
    differentiates = "dO" in value or "labels" in value.get("output", {})
    return ["--json", folder / "input.json", *(["--backward"] if differentiates else [])]


def library_steps(value, folder):
    """The sections with steps; that of the symbols has none."""
    sections = json.loads(qkv("explain", *options_of(value, folder), "--arithmetic", "--steps", "-")[1])["sections"]
    return [section for section in sections if section["steps"]]


def test_the_example_is_explained_without_options():
    text = qkv("explain")[1]
    assert "  Chai  0.056  0.944\n  piyo  0.944  0.056\n" in text
    assert "exp(2.828…) is 16.919" in text
    assert "  t = 1   0.841   0.540   0.010   1.000\n" in text


def test_options_choose_what_is_shown(tmp_path):
    assert qkv("explain", "--scaling")[1].startswith("Why scores are divided by √d_k\n")
    assert qkv("explain", "--positions", "6")[1].startswith("Positions of width 6\n")
    assert "Attention, head 2 of 2\n" in qkv("explain", "--heads")[1] and "Y = O W_O\n" in qkv("explain", "--heads")[1]
    assert "Feed-forward network" in qkv("explain", "--layer")[1]
    assert "Cross-attention\n" in qkv("explain", "--decoder")[1] and "Loss\n" in qkv("explain", "--decoder")[1]
    assert "U = φ(H) ∘ G\n" in qkv("explain", "--language-model")[1]
    assert "      k1  k2  k3\n" in qkv("explain", "--queries")[1]
    assert "Q = Ω_q X\n" in qkv("explain", "--columns")[1]
    assert "  [Chai, 1]  1×1 + 0×0 + 1×1 + 0×0 = 2\n" in qkv("explain", "--arithmetic")[1]
    qkv("explain", "--steps", tmp_path / "steps.json")
    assert "dV" not in {step.partition(".")[2] for step in steps_of(json.loads((tmp_path / "steps.json").read_text())["sections"])}
    assert "head1.dV" in steps_of(library_steps(None, tmp_path))


def test_the_input_may_be_standard_input(tmp_path):
    value = INPUTS["two heads, mask and gradients"]
    (tmp_path / "input.json").write_text(json.dumps(value))
    arguments = ["--backward", "--steps", "-"]
    assert qkv("explain", "--json", "-", *arguments, text=json.dumps(value))[1] == \
        qkv("explain", "--json", tmp_path / "input.json", *arguments)[1]
    status, out, error = qkv("explain", "--json", "-", text="{}", ok=False)
    assert (status, out) == (1, "") and error.startswith("qkv: standard input: ") and error.count("\n") == 1


def test_a_mask_and_a_memory_have_the_symbols_of_the_formulas():
    text = qkv("explain", "--decoder", "--backward")[1]
    assert "\ng\n  Chai " in text and "K = g W_K\n" in text and "\ndg = " in text
    assert "\nS′ = S + M, where the mask M is −∞ for later tokens and otherwise 0\n" in text
    assert "A = softmax(S′): E divided by its row sums\n" in text and "E = exp(S′)\n" in text


@pytest.mark.parametrize("arguments, message", [
    (["--json", "absent.json"], "absent.json: cannot be read: No such file or directory"),
    (["--positions", "7"], "explain: the width of positions is 7, expected an even number from 2 to 1024"),
    (["--html", "/absent/page.html"], "/absent/page.html: cannot be written: No such file or directory")])
def test_errors_are_one_line(arguments, message):
    status, out, error = qkv("explain", *arguments, ok=False)
    assert (status, out, error) == (1, "", f"qkv: {message}\n")


CHOICES = {"--layer": "Feed-forward network", "--columns": "Symbols with tokens as rows and as columns",
           "--backward": "Backward: inputs", "--positions": "Positions of width 6", "--scaling": "Why scores are divided by √d_k"}


@pytest.mark.parametrize("chosen", [chosen for n in range(len(CHOICES) + 1)
                                    for chosen in itertools.combinations(CHOICES, n)],
                         ids=lambda chosen: " ".join(chosen) or "none")
def test_every_form_shows_exactly_what_was_chosen(chosen, tmp_path):
    arguments = [x for option in chosen for x in ([option, "6"] if option == "--positions" else [option])]
    attends = not chosen or {"--layer", "--backward", "--columns"} & set(chosen)
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
    assert (status, error) == (1, f"qkv: --backward: {tmp_path}/input.json has neither dO, the gradient of the output, nor "
                               "labels of output\n")


@pytest.mark.parametrize("others", [["--decoder"], ["--json", "x.json"]])
def test_there_is_one_input(others):
    status, out, error = qkv("explain", "--layer", *others, ok=False)
    assert (status, out) == (2, "") and "--layer" in error and others[0] in error


class Range:
    """A number that was printed, with the error of its rounding; operations give all results that are possible."""

    def __init__(self, low, high):
        self.low, self.high = min(low, high), max(low, high)

    @staticmethod
    def of(values):
        return Range(min(values), max(values))

    def apply(self, function, other):
        other = other if isinstance(other, Range) else Range(other, other)
        return Range.of([function(a, b) for a in (self.low, self.high) for b in (other.low, other.high)])

    def __add__(self, other):
        return self.apply(lambda a, b: a + b, other)

    def __sub__(self, other):
        return self.apply(lambda a, b: a - b, other)

    def __mul__(self, other):
        return self.apply(lambda a, b: a * b, other)

    def __truediv__(self, other):
        return self.apply(lambda a, b: a / b, other)

    def __neg__(self):
        return Range(-self.high, -self.low)

    def square(self):
        ends = self.low ** 2, self.high ** 2
        return Range(0 if self.low < 0 < self.high else min(ends), max(ends))

    def map(self, function):
        return Range(function(self.low), function(self.high))

    def smooth(self, function):
        """The values of a function whose slope is at most 1.2, as those of gelu and silu are."""
        middle, half = function((self.low + self.high) / 2), 1.2 * (self.high - self.low) / 2
        return Range(middle - half, middle + half)


def printed(match):
    """A number as Range: with half a unit of its last digit, which a whole number of at most three digits may lack."""
    text = match[0]
    digits, _, exponent = text.partition("e")
    half = 0.5e-3 * 10 ** int(exponent or 0)
    return f"Range({text}-{half}, {text}+{half})"


ACTIVATIONS = {"relu": lambda x: max(x, 0), "gelu": lambda x: x * (1 + math.erf(x / math.sqrt(2))) / 2,
               "silu": lambda x: x / (1 + math.exp(-x)),
               "gelu_tanh": lambda x: x * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x ** 3))) / 2}
FUNCTIONS = {
    "Range": Range, "exp": lambda x: x.map(math.exp), "log": lambda x: Range(max(x.low, 1e-300), x.high).map(math.log),
    "root": lambda x: (x if isinstance(x, Range) else Range(x, x)).map(lambda a: math.sqrt(max(a, 0))),
    "square": lambda x: x.square(), "max": lambda *all: Range(max(x.low for x in all), max(x.high for x in all)),
    **{name: lambda x, f=ACTIVATIONS[name]: x.smooth(f) for name in ("gelu", "silu", "gelu_tanh")}}


def evaluated(text):
    """The range of an arithmetic expression; None if it contains −∞."""
    if "∞" in text:
        return None
    text = re.sub(r"(\([^()]*\)|\((?:[^()]|\([^()]*\))*\)|[\d.]+(?:e-?\d+)?)²", r"square(\1)", text)
    text = re.sub(r"√(\d+)", r"root(\1)", text).replace("√(", "root(")
    text = re.sub(r"log ([\d.]+(?:e[+-]?\d+)?)", r"log(\1)", text).replace("×", "*").replace("−", "-")
    text = re.sub(r"(?<![\w.])-?\d+(?:\.\d+)?(?:e[+-]?\d+)?(?![\w.])", printed, text)
    return eval(text, FUNCTIONS)  # of what the program under test printed


@pytest.mark.parametrize("name", INPUTS)
def test_the_arithmetic_is_true(name, tmp_path):
    found = 0
    for step in steps_of(library_steps(INPUTS[name], tmp_path)).values():
        entries = [x for row in step.get("arithmetic", []) for x in row]
        for text, value in zip(entries, [x for row in step["values"] for x in row] if entries else [], strict=True):
            if not text:
                continue
            left, _, right = text.rpartition(" = ")
            expected, shown = evaluated(left), evaluated(right)
            if expected is None:
                assert shown is None or value == 0, (step["id"], text)
                continue
            found += 1
            assert expected.low - 1e-9 <= shown.high and shown.low <= expected.high + 1e-9, (step["id"], text)
            assert shown.low - 1e-9 <= value <= shown.high + 1e-9, (step["id"], text, value)
    assert found > 20


def page_steps(browser):
    """The steps that the page computes from its present input, with null for −∞ as in JSON."""
    return json.loads(browser.script("return JSON.stringify(shownSections())"))


def same_arithmetic(found, expected):
    """Whether two texts differ at most in the last digit of numbers, which a sum in another order may change."""
    number = r"\(?-?\d+(?:\.\d+)?(?:e[+-]\d+)?\)?"
    if re.sub(number, "n", found) != re.sub(number, "n", expected):
        return False

    def unit(x):  # of the last digit; numbers below 1e-12 are what rounding left
        return 1e-3 * (1 if abs(x) < 1e-12 or 1e-2 <= abs(x) < 1e6 else 10 ** math.floor(math.log10(abs(x))))

    numbers = [[float(x.strip("()")) for x in re.findall(number, text)] for text in (found, expected)]
    return all(abs(a - b) <= 1.001 * unit(b) for a, b in zip(*numbers, strict=True))


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
        texts = [x for row in step.get("arithmetic", []) for x in row] or [""] * len(numbers)
        own = [x for row in found[id]["arithmetic"] for x in row]
        assert all(same_arithmetic(a, b) for a, b in zip(own, texts, strict=True)), (name, id, own, texts)
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
    browser.keys("TAB", "TAB", "TAB")
    assert browser.script("document.activeElement.getAttribute('aria-label')") == "X, row Chai, column 1"
    browser.keys("BACKSPACE", "3")
    assert browser.texts("figure[id='head1.Q'] td")[0] == "4"
    browser.keys("x")
    assert browser.text("message") == "X, row Chai, column 1 is not a number"
    assert browser.texts("figure[id='head1.Q'] td")[0] == "4"
    browser.script("return document.getElementById('reset').click()")
    assert browser.texts("figure[id='head1.Q'] td")[0] == "2" and browser.text("message") == ""


@pytest.mark.parametrize("options", [[], ["--decoder", "--backward"], ["--language-model", "--columns"]], ids=" ".join)
def test_the_page_has_the_notes_of_the_original_numbers(options, browser, tmp_path):
    page = tmp_path / "page.html"
    qkv("explain", *options, "--html", page)
    browser.driver.get(page.as_uri())
    notes = "[...document.querySelectorAll('.note')].map(note => [note.closest('figure').id, note.textContent])"
    steps = [step for section in json.loads(qkv("explain", *options, "--steps", "-")[1])["sections"] for step in section["steps"]]
    wanted = [[step["id"], step["note"]] for step in steps if "note" in step]
    assert len(wanted) > 4 and browser.script(notes) == wanted
    fields(browser)[0].send_keys("3")
    assert browser.script("document.querySelectorAll('.step:not(:has(input)) .note').length") == 0
    browser.script("return document.getElementById('reset').click()")
    assert browser.script(notes) == wanted


def test_the_page_shows_the_arithmetic_of_a_value(browser, tmp_path):
    page = tmp_path / "page.html"
    qkv("explain", "--html", page)
    browser.driver.get(page.as_uri())
    assert browser.text("arithmetic").startswith("Point at a computed number")
    browser.point_at("figure[id='head1.Q'] td.computed")
    assert browser.text("arithmetic") == "Q, row Chai, column 1: 1×1 + 0×0 + 1×1 + 0×0 = 2"
    sources = "[...document.querySelectorAll('.source')].map(cell => cell.closest('figure').id)"
    assert sorted(browser.script(sources)) == ["X"] * 4 + ["head1.W_Q"] * 4
    browser.script("return document.querySelector(\"figure[id='head1.weights'] td.computed\").focus()")
    browser.keys("ARROW_RIGHT")
    assert browser.text("arithmetic") == "A, row Chai, column piyo: 16.919 / 17.919 = 0.944"
    assert browser.script("document.activeElement.tabIndex") == 0
    assert browser.script("document.querySelectorAll(\"figure[id='head1.weights'] td[tabindex='0']\").length") == 1
    assert browser.script("document.getElementById('arithmetic').getAttribute('role')") == "status"
    browser.keys("ARROW_RIGHT")  # at the end of the row
    assert "column piyo" in browser.text("arithmetic")


SOURCES = {  # a value -> its step, row and column, and the places of the numbers that it follows from
    "μ": (("statistics_1", 1, 0), {("residual_1", 1, 0), ("residual_1", 1, 1)}),
    "σ": (("statistics_1", 1, 1), {("residual_1", 1, 0), ("residual_1", 1, 1)}),
    "a norm": (("norm_1", 1, 0), {("residual_1", 1, 0), ("statistics_1", 1, 0), ("statistics_1", 1, 1),
                                  ("gamma_1", 0, 0), ("beta_1", 0, 0)}),
    "gradient of a norm's rows": (("dR_1", 1, 0), {(id, 1, at) for at in (0, 1)
                                                   for id in ("dN_1", "residual_1", "statistics_1")}
                                  | {("gamma_1", 0, 0), ("gamma_1", 0, 1)}),
    "gradient of a gain": (("dgamma_1", 0, 1), {("dN_1", 0, 1), ("dN_1", 1, 1), ("residual_1", 0, 1), ("residual_1", 1, 1)}
                           | {("statistics_1", row, at) for row in (0, 1) for at in (0, 1)}),
    "a Jacobian": (("head1.jacobian2", 0, 1), {("head1.weights", 1, 0), ("head1.weights", 1, 1)}),
}


@pytest.mark.parametrize("name", SOURCES)
def test_the_page_marks_what_a_value_follows_from(name, browser, tmp_path):
    """Two tokens of width 2, where the statistics of a norm have as many columns as its rows."""
    page, (place, expected) = tmp_path / "page.html", SOURCES[name]
    qkv("explain", *options_of(INPUTS["layer, gradients of one head"], tmp_path), "--html", page)
    browser.driver.get(page.as_uri())
    found = browser.script("""const [id, row, column] = arguments;
        show({id, i: row, j: column});
        return [...document.querySelectorAll('.source')].map(
            cell => [cell.closest('figure').id, Number(cell.dataset.row), Number(cell.dataset.column)]);""", *place)
    assert sorted(map(tuple, found)) == sorted(expected)


def test_the_page_shows_what_overflows_as_not_finite(browser, tmp_path):
    page = tmp_path / "page.html"
    qkv("explain", *options_of(INPUTS["very small scores"], tmp_path), "--html", page)
    browser.driver.get(page.as_uri())
    field = fields(browser)[0]
    field.clear()
    field.send_keys("1e200")
    assert browser.texts("figure[id='head1.scores'] td")[-4] == "not finite"
    assert "−∞" not in browser.texts("figure.step td")


def test_the_page_shows_both_forms(browser, tmp_path):
    page = tmp_path / "page.html"
    qkv("explain", "--decoder", "--backward", "--html", page)
    browser.driver.get(page.as_uri())
    rows = page_steps(browser)
    browser.script("return document.getElementById('form').click()")
    assert browser.texts("figure[id='head1.Q'] figcaption") == ["Q = βq 1ᵀ + Ωq X"]
    assert browser.texts("#symbols th") == ["rows", "columns", "meaning"]
    for id, step in steps_of(page_steps(browser)).items():
        assert [list(row) for row in zip(*step["values"])] == steps_of(rows)[id]["values"], id
    browser.script("return document.getElementById('form').click()")
    assert page_steps(browser) == rows and browser.texts("#symbols th") == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 360])
def test_the_page_is_accessible(scheme, width, browser, tmp_path):
    page = tmp_path / "page.html"
    qkv("explain", "--decoder", "--backward", "--columns", "--html", page)
    browser.show_as(scheme, width)
    browser.driver.get(page.as_uri())
    browser.script("return document.querySelector('td.computed').focus()")
    assert browser.findings() == []
    assert browser.script("document.documentElement.scrollWidth") <= width
    browser.show_as()
