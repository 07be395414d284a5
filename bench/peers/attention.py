"""Compares attention with PyTorch's scaled_dot_product_attention, in one process, case by case.

    VENV/bin/python bench/peers/attention.py [--threads 2] [--dtype float32] [--rounds 15] [--case NAME ...] [--write]

Requires a Python with PyTorch and the qkv module; bench/run.sh provides it. --write writes the table to
bench/RESULTS.md. Each round times PyTorch, then qkv, then the machine's FMA peak, so that a slow period affects all
three. Figures are medians over the rounds, ratios are medians of the ratios of a round. PyTorch runs in its fastest
configuration: tcmalloc, denormals flushed, boolean padding masks or is_causal. qkv gets the same tensors and the same
mask. Operations are counted as 4 B H T S D for the forward pass, 2.5 times that for the backward pass, and half of it
if causal.
"""

import argparse
import json
import statistics
from pathlib import Path

from common import Table, times, use_fast_malloc

use_fast_malloc()  # before PyTorch is loaded

import torch
import torch.nn.functional as F

import qkv

CASES = json.loads((Path(__file__).parent.parent / "attention_cases.json").read_text())


def seconds(f, least):
    """Returns the shortest time of f over at least `least` seconds and three calls."""
    return min(times(f, least))


class Problem:
    """One case: the passes of PyTorch and of qkv over the same tensors."""

    def __init__(self, case, dtype):
        B, H, T, S, D = (case[key] for key in "BHTSD")
        self.tensors = [torch.randn(B, H, n, D, dtype=dtype) for n in (T, S, S)]
        self.leaves = [x.clone().requires_grad_() for x in self.tensors]
        self.grad = torch.randn(B, H, T, D, dtype=dtype)
        self.causal, self.mask = case["mask"] == "causal", None
        if case["mask"] == "padding":  # keys beyond each length are hidden; lengths from S / 2 to S
            lengths = torch.linspace(S // 2, S, B).long()
            self.mask = (torch.arange(S)[None, :] < lengths[:, None])[:, None, None, :]
        self.operations = 4.0 * B * H * T * S * D * (0.5 if self.causal else 1)

    def torch_forward(self):
        with torch.no_grad():
            return F.scaled_dot_product_attention(*self.tensors, attn_mask=self.mask, is_causal=self.causal)

    def torch_both(self):
        F.scaled_dot_product_attention(*self.leaves, attn_mask=self.mask, is_causal=self.causal).backward(self.grad)
        for x in self.leaves:
            x.grad = None

    def qkv_forward(self):
        return qkv.attention(*self.tensors, mask=self.mask, causal=self.causal)

    def qkv_both(self):
        out, lse = qkv.attention(*self.tensors, mask=self.mask, causal=self.causal, return_lse=True)
        qkv.attention_backward(self.grad, *self.tensors, out, lse, mask=self.mask, causal=self.causal)

    def agree(self, tolerance):
        error = (self.torch_forward().float() - self.qkv_forward().float()).abs().max().item()
        assert error <= tolerance, f"the outputs differ by {error}"


def compare(problem, both, rounds, least):
    """Returns medians over the rounds: GFLOP/s of PyTorch and of qkv, their ratio, and qkv's share of the peak."""
    operations = problem.operations * (3.5 if both else 1)
    theirs = problem.torch_both if both else problem.torch_forward
    ours = problem.qkv_both if both else problem.qkv_forward
    theirs(), ours()
    samples = []
    for _ in range(rounds):
        t, o = seconds(theirs, least), seconds(ours, least)
        samples.append((operations / t / 1e9, operations / o / 1e9, t / o, operations / o / qkv.fma_peak(0.02)))
    return [statistics.median(column) for column in zip(*samples)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=2, help="number of threads (default: %(default)s)")
    parser.add_argument("--dtype", default="float32", choices=["float32", "bfloat16"],
                        help="element type (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=15, help="rounds; figures are medians (default: %(default)s)")
    parser.add_argument("--least", type=float, default=0.05, help="seconds per measurement (default: %(default)s)")
    parser.add_argument("--case", nargs="*", help="cases to run (default: all)")
    parser.add_argument("--write", action="store_true", help="write the table to bench/RESULTS.md")
    a = parser.parse_args()
    torch.set_num_threads(a.threads)
    torch.set_flush_denormal(True)
    torch.manual_seed(0)
    qkv.set_threads(a.threads)

    table = Table()
    peak = qkv.fma_peak() / 1e9
    table.show(f"{a.dtype}, {a.threads} threads, {qkv.active_isa()}, FMA peak {peak:.0f} GFLOP/s, "
               f"PyTorch {torch.__version__}\n")
    table.show("| case | pass | PyTorch, GFLOP/s | qkv, GFLOP/s | ratio | share of peak |\n|---|---|---|---|---|---|")
    ratios = {"forward": [], "both": []}
    for case in CASES:
        if a.case and case["name"] not in a.case:
            continue
        problem = Problem(case, getattr(torch, a.dtype))
        problem.agree(1e-5 if a.dtype == "float32" else 5e-2)
        for name in ("forward", "both") if case["name"] != "decode" else ("forward",):
            theirs, ours, ratio, share = compare(problem, name == "both", a.rounds, a.least)
            ratios[name].append(ratio)
            table.show(f"| {case['name']} | {name} | {theirs:.0f} | {ours:.0f} | {ratio:.2f} | {share:.0%} |")
    means = ", ".join(f"{statistics.geometric_mean(x):.2f} {name}" for name, x in ratios.items() if x)
    table.show(f"\nGeometric mean of the ratios: {means}.")
    if a.write:
        table.write(f"attention {a.dtype}")


main()
