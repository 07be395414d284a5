"""Compares PyTorch and transformers with and without qkv.torch, in one process, case by case.

    VENV/bin/python bench/peers/torch_models.py [--threads 2] [--rounds 5] [--case NAME ...] [--write]

Requires a Python with PyTorch, transformers and the qkv module. --write writes the table to bench/RESULTS.md. Each
round times PyTorch, then qkv. Figures are medians over the rounds, ratios are medians of the ratios of a round.
PyTorch runs with tcmalloc, if it is installed, and denormals flushed; flex_attention is compiled.
"""

import argparse
import statistics

from common import Table, times, use_fast_malloc

use_fast_malloc()  # before PyTorch is loaded

import torch
import torch.nn.functional as F
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

import qkv
import qkv.torch

CASES = {}  # name -> a function that returns the calls of PyTorch and of qkv


def case(function):
    """Registers a case by its docstring."""
    CASES[function.__doc__.rstrip(".")] = function
    return function


def both(model, run):
    """The same call with two implementations of attention."""
    def call(implementation):
        model.set_attn_implementation(implementation)
        return run()
    return lambda: call("sdpa"), lambda: call("qkv")


def bert(lengths):
    import transformers

    qkv.torch.register_transformers()
    model = transformers.BertModel(transformers.BertConfig()).eval()
    ids = torch.randint(999, 9999, (len(lengths), max(lengths)))
    mask = (torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]).long()

    def run():
        with torch.inference_mode():
            model(ids, attention_mask=mask)
    return both(model, run)


@case
def bert_base():
    """BERT-base, 4 texts of 512 tokens."""
    return bert([512] * 4)


@case
def bert_padded():
    """BERT-base, 8 texts of 64 to 512 tokens, padded."""
    return bert([512, 448, 384, 320, 256, 192, 128, 64])


@case
def gpt2_step():
    """GPT-2 small, a training step of 1,024 tokens."""
    import transformers

    qkv.torch.register_transformers()
    config = transformers.GPT2Config(attn_pdrop=0, resid_pdrop=0, embd_pdrop=0)
    model = transformers.GPT2LMHeadModel(config).train()
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)
    ids = torch.randint(0, 50257, (1, 1024))

    def run():
        model(ids, labels=ids).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    return both(model, run)


def arrays(T, requires_grad=False):
    return [torch.randn(1, 12, T, 64, requires_grad=requires_grad) for _ in "qkv"]


def attention_calls(theirs, ours, T, backward):
    """Calls of two functions of q, k and v, with gradients if `backward`."""
    q, k, v = arrays(T, backward)
    grad = torch.randn(1, 12, T, 64)

    def call(f):
        with torch.set_grad_enabled(backward):
            out = f(q, k, v)
        if backward:
            torch.autograd.grad(out, (q, k, v), grad)
    return lambda: call(theirs), lambda: call(ours)


for passes, with_gradients in (("forward", False), ("forward and backward", True)):
    for tokens in (512, 1024, 4096):
        CASES[f"attention, 12 heads of 64, {tokens} tokens, causal, {passes}"] = lambda T=tokens, b=with_gradients: (
            attention_calls(lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True),
                            lambda q, k, v: qkv.torch.scaled_dot_product_attention(q, k, v, is_causal=True), T, b))


def windowed(T=4096, window=256):
    places = torch.arange(T)
    distance = places[:, None] - places
    return (distance >= 0) & (distance < window)


@case
def window_masked():
    """window 256 of 4,096 tokens, against a mask."""
    mask = windowed()
    return attention_calls(
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, mask),
        lambda q, k, v: qkv.torch.scaled_dot_product_attention(q, k, v, is_causal=True, window=(255, 0)), 4096, False)


@case
def window_flex():
    """window 256 of 4,096 tokens, against flex_attention."""
    block_mask = create_block_mask(lambda b, h, i, j: (i >= j) & (i - j < 256), None, None, 4096, 4096, device="cpu")
    flex = torch.compile(flex_attention)
    return attention_calls(
        lambda q, k, v: flex(q, k, v, block_mask=block_mask),
        lambda q, k, v: qkv.torch.scaled_dot_product_attention(q, k, v, is_causal=True, window=(255, 0)), 4096, False)


@case
def softcap_flex():
    """softcap 30 of 2,048 tokens, against flex_attention."""
    flex = torch.compile(flex_attention)
    return attention_calls(
        lambda q, k, v: flex(q, k, v, score_mod=lambda s, b, h, i, j: 30 * torch.tanh(s / 30)),
        lambda q, k, v: qkv.torch.scaled_dot_product_attention(q, k, v, softcap=30), 2048, False)


def compare(name, a):
    """Returns a row of the table."""
    theirs, ours = CASES[name]()
    theirs(), ours()  # compiles, and allocates
    rounds = [[statistics.median(times(f, a.seconds)) for f in (theirs, ours)] for _ in range(a.rounds)]
    x, y = (statistics.median(column) * 1e3 for column in zip(*rounds))
    ratio = statistics.median(theirs / ours for theirs, ours in rounds)
    return f"| {name} | {x:,.1f} | {y:,.1f} | {ratio:.2f} |"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=2, help="threads of both (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=5, help="rounds of a case (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=1, help="seconds of a side in a round (default: %(default)s)")
    parser.add_argument("--case", action="append", choices=CASES, help="only this case; may be repeated")
    parser.add_argument("--write", action="store_true", help="write the table to bench/RESULTS.md")
    a = parser.parse_args()
    torch.set_num_threads(a.threads)
    torch.set_flush_denormal(True)
    table = Table()
    table.show(f"PyTorch {torch.__version__}, {a.threads} threads, {qkv.active_isa()}, {a.rounds} rounds\n")
    table.show("| case | PyTorch, ms | with qkv, ms | ratio |\n|---|---|---|---|")
    for name in a.case or CASES:
        table.show(compare(name, a))
    if a.write:
        table.write("qkv.torch")


if __name__ == "__main__":
    main()
