"""Formulas that some textbooks print, and the right ones: docs/math.md, "Mistakes in textbooks".

Each test computes both forms, and finds the right one, and not the other, in the steps of `qkv explain`.
"""

import json
import math

import pytest
from conftest import qkv

X = [[1.0, 0.5, -1.0, 0.25], [0.0, 2.0, 1.0, -0.5], [0.3, -0.7, 0.9, 1.5]]
HEAD = {"W_Q": [[1, 0], [0, 1], [1, 1], [0.5, 0]], "W_K": [[0.5, 1], [1, 0], [0, -1], [1, 1]],
        "W_V": [[1, 0, 2, 1], [2, 1, 0, -1], [0, 1, 1, 0], [1, -1, 0.5, 2]]}
IDENTITY = [[float(row == column) for column in range(4)] for row in range(4)]
WIDTH = len(HEAD["W_Q"][0])  # d_k; the components of a token are four, the tokens are three


def steps_of(*arguments):
    sections = json.loads(qkv("explain", *arguments, "--steps", "-")[1])["sections"]
    return {step["id"]: step["values"] for section in sections for step in section["steps"]}


@pytest.fixture(scope="module")
def steps(tmp_path_factory):
    path = tmp_path_factory.mktemp("textbook") / "input.json"
    path.write_text(json.dumps({"X": X, **HEAD, "layer": {"W_1": IDENTITY, "W_2": IDENTITY}}))
    return steps_of("--json", path)


def product(A, B):
    return [[sum(a * b for a, b in zip(row, column, strict=True)) for column in zip(*B)] for row in A]


def numbers(table):
    return [value for row in table for value in row]


def test_the_exponential_of_the_worked_example():
    printed, right = 16.923, math.exp(4 / math.sqrt(2))
    found = steps_of()["head1.exp"][0][1]
    assert found == pytest.approx(right, rel=1e-12) and abs(found - printed) > 4e-3
    assert "exp(2.828…) is 16.919" in qkv("explain")[1]


def test_the_values_are_weighted_by_the_softmax_and_not_by_the_scores(steps):
    scores = [[value / math.sqrt(WIDTH) for value in row] for row in product(steps["head1.Q"], list(zip(*steps["head1.K"])))]
    weights = [[math.exp(s) / sum(map(math.exp, row)) for s in row] for row in scores]
    output = numbers(steps["head1.output"])
    assert output == pytest.approx(numbers(product(weights, steps["head1.V"])), abs=1e-12)
    assert output != pytest.approx(numbers(product(scores, steps["head1.V"])), abs=0.1)


def test_the_softmax_sums_over_the_keys_of_one_row(steps):
    scores, weights = steps["head1.scaled"], numbers(steps["head1.weights"])
    rows = [math.exp(s) / sum(map(math.exp, row)) for row in scores for s in row]
    columns = [math.exp(s) / sum(math.exp(row[at]) for row in scores) for line in scores for at, s in enumerate(line)]
    own = [math.exp(s) / (len(row) * math.exp(s)) for row in scores for s in row]  # of the bound index: n equal terms
    assert weights == pytest.approx(rows, abs=1e-12)
    assert weights != pytest.approx(columns, abs=0.01) and weights != pytest.approx(own, abs=0.01)


def test_the_mean_of_a_norm_is_that_of_the_components_of_one_token(tmp_path):
    path = tmp_path / "input.json"  # as many tokens as components, so that both forms have as many numbers
    path.write_text(json.dumps({"X": [*X, [1.0, -1.0, 0.5, 2.0]], **HEAD, "layer": {"W_1": IDENTITY, "W_2": IDENTITY}}))
    steps = steps_of("--json", path)
    rows, found = steps["residual_1"], steps["statistics_1"]
    components = [sum(row) / len(row) for row in rows]
    tokens = [sum(column) / len(column) for column in zip(*rows)]
    means = [row[0] for row in found]
    assert means == pytest.approx(components, abs=1e-12)
    assert all(abs(mean - wrong) > 0.1 for mean, wrong in zip(means, tokens, strict=True))
    variances = [sum((value - mean) ** 2 for value in row) / len(row) for row, mean in zip(rows, components)]
    assert [row[1] for row in found] == pytest.approx([math.sqrt(value + 1e-5) for value in variances], abs=1e-12)


def test_weights_have_a_row_for_each_component_of_a_token(tmp_path):
    path = tmp_path / "input.json"
    path.write_text(json.dumps({"X": X, **HEAD, "W_Q": [[1, 0], [0, 1]]}))  # d_k × d_k
    status, _, error = qkv("explain", "--json", path, ok=False)
    assert status == 1 and error.endswith("W_Q is 2 × 2, expected 4 × 2\n")


def test_the_row_of_positions_is_the_token_and_the_column_the_component():
    found = steps_of("--positions", "4")["positions"]
    assert len(found) == 16 and {len(row) for row in found} == {4}
    for n, row in enumerate(found):
        right = [math.sin(n / 10000 ** (i / 4)) if i % 2 == 0 else math.cos(n / 10000 ** ((i - 1) / 4)) for i in range(4)]
        assert row == pytest.approx(right, abs=1e-12)
