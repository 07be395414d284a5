"""Long calls: other threads run, Ctrl-C stops the call, and splitting it into parts does not change the result."""

import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import qkv
from qkv import _qkv

NONE, BOTTOM_RIGHT, TOP_LEFT = _qkv.Causal.none, _qkv.Causal.bottom_right, _qkv.Causal.top_left
WAYS = {
    "plain": {},
    "causal": {"causal": BOTTOM_RIGHT},
    "causal window": {"causal": BOTTOM_RIGHT, "left": 90, "alibi": True},
    "top-left": {"causal": TOP_LEFT},
    "window": {"left": 40, "right": 2400},
    "alibi": {"alibi": True},
    "mask": {"mask": "float"},
    "causal bool mask": {"causal": BOTTOM_RIGHT, "mask": "bool"},
    "lengths": {"lengths": [3000, 100], "k_lengths": [20, 400], "causal": BOTTOM_RIGHT},
    "packed": {"q_offsets": [0, 30, 30, 3500], "k_offsets": [0, 10, 50, 3600], "causal": BOTTOM_RIGHT, "mask": "float"},
}


def arguments(random, type, way, shape_q, shape_k):
    q = random.standard_normal(shape_q).astype(type)
    k, v = (random.standard_normal(shape_k).astype(type) for _ in "kv")
    options = {"mask": None, "alibi": None, "q_offsets": None, "k_offsets": None, "lengths": None,
               "k_lengths": None, "scale": None, "softcap": None,
               "causal": NONE, "left": -1, "right": -1, **WAYS[way]}
    if options["mask"]:
        rows, keys = (3470, 3550) if way == "packed" else (shape_q[2], shape_k[2])
        mask = random.standard_normal((1, 1, rows, keys)).astype(type)
        options["mask"] = mask if options["mask"] == "float" else mask > -1
    if options["alibi"]:
        options["alibi"] = random.random(shape_q[1]).astype(type)
    return _qkv.Arguments(q=q, k=k, v=v, **options)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("T, S", [(3500, 500), (3500, 3600)])
def test_parts_are_bit_identical_to_one_call(random, way, T, S):
    if way == "packed":
        shapes = (3500, 2, 8), (3600, 1, 8)
    else:
        shapes = (2, 2, T, 8), (2, 1, S, 8)
    a = arguments(random, np.float32, way, *shapes)
    whole = _qkv.attention(a, True, False, 1e30)
    for budget in (1.0, 2e8):  # parts of few rows, and of many rows or a sequence
        assert all(np.array_equal(x, y) for x, y in zip(_qkv.attention(a, True, False, budget)[:2], whole))


@pytest.mark.parametrize("way", ["plain", "causal window", "packed"])
def test_parts_of_backward_are_bit_identical_to_one_call(random, way):
    shapes = ((3500, 2, 4), (3600, 1, 4)) if way == "packed" else ((3, 4, 40, 4), (3, 2, 50, 4))
    a = arguments(random, np.float32, way, *shapes)
    out, lse, _ = _qkv.attention(a, True, False, None)
    whole = _qkv.attention_backward(out, a, out, lse, False, 1e30)
    for budget in (1.0, 6e4):
        found = _qkv.attention_backward(out, a, out, lse, False, budget)
        assert all(np.array_equal(x, y) for x, y in zip(found[:3], whole))


def turns_during_a_call():
    x = np.ones((1, 1, 1200, 64))
    call = threading.Thread(target=qkv.attention, args=(x, x, x))
    call.start()
    turns = 0
    while call.is_alive():
        time.sleep(0.001)
        turns += 1
    return turns


def test_other_threads_run_during_a_call():
    assert any(turns_during_a_call() > 10 for _ in range(20))  # one or two in each if calls held the GIL


def test_concurrent_calls_are_independent(random):
    inputs = [[random.standard_normal((2, 2, 100, 32)).astype(np.float32) for _ in "qkv"] for _ in range(2)]
    wanted = [qkv.attention(*x) for x in inputs]
    found = [[], []]
    calls = [threading.Thread(target=lambda i=i: found[i].extend(qkv.attention(*inputs[i]) for _ in range(20)))
             for i in range(2)]
    for call in calls:
        call.start()
    for call in calls:
        call.join()
    assert all(len(found[i]) == 20 and np.array_equal(x, wanted[i]) for i in range(2) for x in found[i])


LONG = """
import signal
import numpy as np, qkv
signal.signal(signal.SIGINT, signal.default_int_handler)  # needed if this runs in the background
x = np.ones({shape})
lse = np.zeros(x.shape[:-1])
try:
    print("begun", flush=True)
    {call}
    print("finished")
except KeyboardInterrupt:
    print("interrupted")
print(qkv.attention(*[np.ones((1, 1, 1, 1))] * 3)[0, 0, 0, 0])
"""


@pytest.mark.parametrize("shape, call", [((1, 1, 12000, 64), "qkv.attention(x, x, x)"),
                                         ((1, 1, 12000, 64), "qkv.attention(x, x, x, causal=True)"),
                                         ((4000, 4, 40, 64), "qkv.attention(x, x, x, window=30, causal='top-left')"),
                                         ((1, 400, 200, 64), "qkv.attention_backward(x, x, x, x, x, lse)")])
def test_ctrl_c_stops_a_long_call(shape, call):
    """Without the interrupt, each call would take most of a minute."""
    command = [sys.executable, "-c", LONG.format(shape=shape, call=call)]
    program = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert program.stdout.readline() == "begun\n"
    time.sleep(0.3)
    program.send_signal(signal.SIGINT)
    output, _ = program.communicate(timeout=50)
    assert output == "interrupted\n1.0\n" and program.returncode == 0
