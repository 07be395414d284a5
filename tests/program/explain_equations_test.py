"""The output of `qkv explain` is that of the equations of docs/math.md, written in NumPy."""

import json
import math

import pytest
from conftest import qkv
from explain_test import ACTIVATIONS, INPUTS, steps_of

np = pytest.importorskip("numpy")


def attended(x, z, attention, causal):
    """Multi-head attention by its equations."""
    outputs = []
    for head in attention.get("heads", [attention]):
        q, k, v = [np.array(head[name]) if name in head else
                   rows @ np.array(head["W_" + name]) + np.array(head.get("b_" + name, 0))
                   for name, rows in (("Q", x), ("K", z), ("V", z))]
        scores = q @ k.T * (attention.get("scale") or 1 / math.sqrt(q.shape[1]))
        if "mask" in attention:
            scores = scores + np.array([[-math.inf if m is None else m for m in row] for row in attention["mask"]])
        if causal:
            scores[np.triu_indices(len(scores), 1)] = -math.inf
        largest = np.where(np.isinf(scores).all(1), 0, scores.max(1))[:, None]
        e = np.exp(scores - largest)
        outputs.append(e / np.maximum(e.sum(1, keepdims=True), 1e-300) @ v)
    all_heads = np.concatenate(outputs, 1)
    return all_heads @ np.array(attention["W_O"]) + attention.get("b_O", 0) if "W_O" in attention else all_heads


def normalized(x, gamma, beta, layer):
    centered = x if layer.get("norm") == "rms" else x - x.mean(1, keepdims=True)
    return centered / np.sqrt((centered ** 2).mean(1, keepdims=True) + layer.get("epsilon", 1e-5)) * gamma + beta


def fed_forward(x, layer):
    hidden = np.vectorize(ACTIVATIONS[layer.get("activation", "relu")])(x @ layer["W_1"] + layer.get("b_1", 0))
    if "W_gate" in layer:
        hidden = hidden * (x @ layer["W_gate"] + layer.get("b_gate", 0))
    return hidden @ layer["W_2"] + layer.get("b_2", 0)


def expected_output(given):
    """The output of an input, or the loss if it has labels, by the equations of docs/math.md."""
    x = np.array(given.get("X", []))
    memory = np.array(given["memory"]) if "memory" in given else None
    own = memory is None or "cross" in given
    sublayers = [lambda y: attended(y, y if own else memory, given, given.get("causal"))]
    if "cross" in given:
        sublayers.append(lambda y: attended(y, memory, given["cross"], False))
    layer = given.get("layer")
    if layer:
        sublayers.append(lambda y: fed_forward(y, layer))
        for number, sublayer in enumerate(sublayers, 1):
            def norm(y, number=number):
                return normalized(y, layer.get(f"gamma_{number}", 1), layer.get(f"beta_{number}", 0), layer)
            x = x + sublayer(norm(x)) if layer.get("norm_position") == "pre" else norm(x + sublayer(x))
    else:
        x = sublayers[0](x)
    if not (output := given.get("output")):
        return x
    if "gamma" in output:
        x = normalized(x, output["gamma"], output.get("beta", 0), layer or {})
    logits = x @ output["W"] + output.get("b", 0)
    if "labels" not in output:
        return logits
    logits = logits - logits.max(1, keepdims=True)
    log_p = logits - np.log(np.exp(logits).sum(1, keepdims=True))
    share = output.get("label_smoothing", 0)
    places = [output["vocabulary"].index(label) if isinstance(label, str) else label for label in output["labels"]]
    return np.array([[-(1 - share) * log_p[range(len(x)), places].sum() - share * log_p.mean(1).sum()]])


@pytest.mark.parametrize("name", [name for name, given in INPUTS.items() if given])
def test_the_output_is_that_of_the_equations(name, tmp_path):
    given = INPUTS[name]
    (tmp_path / "input.json").write_text(json.dumps(given))
    steps = steps_of(json.loads(qkv("explain", "--json", tmp_path / "input.json", "--steps", "-")[1])["sections"])
    output = given.get("output", {})
    last = "output.loss" if "labels" in output else "output.logits" if output else list(steps)[-1]
    found, expected = np.array(steps[last]["values"]), expected_output(given)
    found = found.T if given.get("form") == "columns" else found
    assert found.shape == expected.shape and np.abs(found - expected).max() <= 1e-12 * max(1, np.abs(expected).max())
