"""qkv.torch: the attention of PyTorch by qkv, with gradients, compiled, and in transformers. Skipped without PyTorch."""

import importlib.util
import re
import subprocess
import sys
import warnings

import pytest

torch = pytest.importorskip("torch")

import qkv.torch  # noqa: E402
from torch.nn import functional as F  # noqa: E402

sdpa = qkv.torch.scaled_dot_product_attention
PYTORCH = F.scaled_dot_product_attention


def make(*shapes, dtype=torch.float32, seed=7):
    torch.manual_seed(seed)
    return [torch.randn(shape, dtype=dtype) for shape in shapes]


def qkv_of(B=2, H=4, T=9, S=9, Dk=16, Dv=16, **kind):
    return make((B, H, T, Dk), (B, H, S, Dk), (B, H, S, Dv), **kind)


CASES = {
    "plain": ({}, {}),
    "causal": ({}, {"is_causal": True}),
    "more keys": ({"T": 5}, {"is_causal": True}),
    "other width": ({"Dv": 8}, {"scale": 0.3}),
    "bool mask": ({}, {"attn_mask": torch.arange(81).reshape(9, 9) % 5 > 0}),
    "mask of each sequence": ({}, {"attn_mask": torch.randn(2, 1, 9, 9)}),
    "mask of each head": ({}, {"attn_mask": torch.randn(4, 9, 9)}),
    "mask of keys": ({}, {"attn_mask": torch.randn(2, 1, 1, 9)}),
}


@pytest.mark.parametrize("dtype, limit", [(torch.float32, 1e-5), (torch.float64, 1e-12), (torch.bfloat16, 2e-2)])
@pytest.mark.parametrize("name", CASES)
def test_results_and_gradients_are_those_of_pytorch(name, dtype, limit):
    shape, options = CASES[name]
    arrays = [x.requires_grad_() for x in qkv_of(**shape, dtype=dtype)]
    doubles = [x.detach().double().requires_grad_() for x in arrays]
    mask = options.get("attn_mask")
    ours, theirs = dict(options), dict(options)
    if mask is not None and mask.dtype != torch.bool:
        ours["attn_mask"] = mask.clone().to(dtype).requires_grad_()
        theirs["attn_mask"] = ours["attn_mask"].detach().double().requires_grad_()
    out, expected = sdpa(*arrays, **ours), PYTORCH(*doubles, **theirs)
    assert out.dtype == dtype
    assert (out - expected).abs().max() < limit
    weights = torch.randn_like(expected)
    out.backward(weights.to(dtype))
    expected.backward(weights.to(dtype).double())
    for x, y in zip(arrays + [ours.get("attn_mask")], doubles + [theirs.get("attn_mask")]):
        if x is not None and x.requires_grad:
            assert (x.grad - y.grad).abs().max() < 4 * limit * max(1, y.grad.abs().max()), name


@pytest.mark.parametrize("shape", [(9, 16), (4, 9, 16), (2, 3, 4, 9, 16)])
def test_any_number_of_leading_axes(shape):
    q, k, v = make(shape, shape, shape)
    torch.testing.assert_close(sdpa(q, k, v, is_causal=True), PYTORCH(q, k, v, is_causal=True))
    if len(shape) == 5:
        mask = torch.randn(2, 3, 1, 9, 9)
        torch.testing.assert_close(sdpa(q, k, v, mask), PYTORCH(q, k, v, mask))


def test_grouped_heads_and_views():
    q, k, v = (x.transpose(1, 2) for x in make((2, 9, 8, 16), (2, 9, 2, 16), (2, 9, 2, 16)))
    torch.testing.assert_close(sdpa(q, k, v, enable_gqa=True), PYTORCH(q, k, v, enable_gqa=True))
    with pytest.raises(ValueError, match="query has 8 heads and key 2, expected the same without enable_gqa"):
        sdpa(q, k, v)
    columns = [x.transpose(-1, -2) for x in make((1, 1, 16, 9), (1, 1, 16, 9), (1, 1, 16, 9))]
    torch.testing.assert_close(sdpa(*columns), PYTORCH(*columns))


def test_own_options():
    q, k, v = qkv_of()
    i, j = torch.arange(9)[:, None], torch.arange(9)
    slopes = torch.tensor([0.5, 0.25, 0.125, 0.0625])
    expected = PYTORCH(q, k, v, -slopes[:, None, None] * (i - j).abs())
    torch.testing.assert_close(sdpa(q, k, v, alibi_slopes=slopes), expected)
    torch.testing.assert_close(sdpa(q, k, v, window=2), PYTORCH(q, k, v, (i - j).abs() <= 2))
    torch.testing.assert_close(sdpa(q, k, v, window=(3, None), is_causal=True),
                               PYTORCH(q, k, v, (i - j <= 3) & (j <= i)))
    scores = 2 * torch.tanh(q @ k.mT / 4 / 2)
    torch.testing.assert_close(sdpa(q, k, v, softcap=2), scores.softmax(-1) @ v)


def test_packed_sequences():
    q, k, v = make((9, 4, 16), (9, 4, 16), (9, 4, 16))
    out = sdpa(q, k, v, is_causal=True, q_offsets=torch.tensor([0, 4, 9], dtype=torch.int32))
    for begin, end in ((0, 4), (4, 9)):
        parts = (x[begin:end].transpose(0, 1) for x in (q, k, v))
        torch.testing.assert_close(out[begin:end].transpose(0, 1), PYTORCH(*parts, is_causal=True))


@pytest.mark.parametrize("options", [{}, {"is_causal": True}, {"softcap": 3.0, "window": 2},
                                     {"attn_mask": torch.randn(2, 1, 4, 4, dtype=torch.float64)}])
def test_gradcheck(options):
    arrays = [x.requires_grad_() for x in qkv_of(B=2, H=2, T=4, S=4, Dk=3, Dv=2, dtype=torch.float64)]
    if "attn_mask" in options:
        mask = options["attn_mask"].clone().requires_grad_()
        assert torch.autograd.gradcheck(lambda q, k, v, m: sdpa(q, k, v, m), (*arrays, mask))
    else:
        assert torch.autograd.gradcheck(lambda q, k, v: sdpa(q, k, v, **options), arrays)


@pytest.mark.parametrize("requires_grad", [False, True])
@pytest.mark.parametrize("mask", [None, torch.randn(1, 1, 9, 9)])
def test_opcheck(requires_grad, mask):
    q, k, v = (x.requires_grad_(requires_grad) for x in qkv_of())
    arguments = (q, k, v, mask, None, None, None, 0.25, None, 1, -1, -1)
    torch.library.opcheck(torch.ops.qkv.attention.default, arguments)
    out, lse = torch.ops.qkv.attention(*arguments)
    backward = (torch.randn_like(out), q, k, v, out, lse, mask, *arguments[4:], mask is not None)
    torch.library.opcheck(torch.ops.qkv.attention_backward.default, [x.detach() if torch.is_tensor(x) else x
                                                                      for x in backward])


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.project = torch.nn.Linear(16, 48)

    def forward(self, x):
        q, k, v = self.project(x).reshape(2, 9, 3, 2, 8).permute(2, 0, 3, 1, 4).unbind()
        return sdpa(q, k, v, is_causal=True).transpose(1, 2).reshape(2, 9, 16)


def test_a_compiled_module_has_the_same_results_and_gradients():
    torch.manual_seed(1)
    block, x = Block(), torch.randn(2, 9, 16)
    compiled = torch.compile(block, fullgraph=True, backend="aot_eager")
    expected = block(x)
    expected.sum().backward()
    gradient = block.project.weight.grad.clone()
    block.project.weight.grad = None
    out = compiled(x)
    out.sum().backward()
    torch.testing.assert_close(out, expected)
    torch.testing.assert_close(block.project.weight.grad, gradient)


def test_enable_reaches_the_modules_of_pytorch():
    layer = torch.nn.MultiheadAttention(16, 4, batch_first=True)
    x = torch.randn(2, 9, 16)
    expected = layer(x, x, x, need_weights=False)[0]
    with qkv.torch.enable():
        assert F.scaled_dot_product_attention is sdpa
        torch.testing.assert_close(layer(x, x, x, need_weights=False)[0], expected)
    assert F.scaled_dot_product_attention is PYTORCH
    qkv.torch.enable()
    assert F.scaled_dot_product_attention is sdpa
    qkv.torch.disable()
    assert F.scaled_dot_product_attention is PYTORCH


def test_what_is_not_qkvs_is_computed_by_pytorch_with_one_warning():
    q, k, v = qkv_of(dtype=torch.float16)
    qkv.torch._warned.clear()
    with pytest.warns(UserWarning, match="qkv.torch: PyTorch computes attention with float16"):
        out = sdpa(q, k, v)
    torch.testing.assert_close(out, PYTORCH(q, k, v))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sdpa(q, k, v)
    with pytest.raises(ValueError, match="window, softcap, alibi_slopes and offsets are not available for float16"):
        sdpa(q, k, v, window=1)
    assert sdpa(*(x.to("meta") for x in (q, k, v))).device.type == "meta"


@pytest.mark.parametrize("arguments, message", [
    ({"attn_mask": torch.zeros(9, 9), "is_causal": True}, "is_causal and attn_mask are both given"),
    ({"query": torch.zeros(9)}, "query, key and value have 1, 4 and 4 axes"),
    ({"attn_mask": torch.zeros(8, 9)}, "mask"),
    ({"window": -2}, "window")])
def test_errors_name_the_argument(arguments, message):
    q, k, v = qkv_of()
    with pytest.raises(ValueError, match=message):
        sdpa(**({"query": q, "key": k, "value": v} | arguments))


def test_slopes_with_a_gradient_are_refused():
    slopes = torch.ones(4, requires_grad=True)
    with pytest.raises(NotImplementedError, match="alibi_slopes requires a gradient"):
        sdpa(*qkv_of(), alibi_slopes=slopes).sum().backward()


def test_threads_follow_pytorch():
    before = torch.get_num_threads()
    try:
        for count in (1, 3):
            torch.set_num_threads(count)
            sdpa(*qkv_of())
            assert qkv.threads() == count
    finally:
        torch.set_num_threads(before)


def test_one_openmp_runtime_in_the_process():
    """In a new process: tests before this one may have imported packages that bring their own."""
    code = ("import qkv.torch, torch\n"
            "q = torch.randn(1, 2, 64, 8)\n"
            "qkv.torch.scaled_dot_product_attention(q, q, q), q @ q.mT\n"
            "print(open('/proc/self/maps').read())")
    maps = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    runtimes = {line.split()[-1] for line in maps.splitlines() if re.search(r"/lib[gi]?omp[^/]*\.so", line)}
    assert len(runtimes) == 1, runtimes


@pytest.mark.skipif(importlib.util.find_spec("transformers") is None, reason="transformers is not installed")
@pytest.mark.parametrize("name", ["bert", "gpt2", "llama", "gemma2"])
def test_models_of_transformers_have_the_same_logits(name):
    import transformers

    qkv.torch.register_transformers()
    common = {"vocab_size": 99, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
              "intermediate_size": 64, "max_position_embeddings": 64}
    models = {
        "bert": (transformers.BertForMaskedLM, transformers.BertConfig(**common)),
        "gpt2": (transformers.GPT2LMHeadModel, transformers.GPT2Config(vocab_size=99, n_embd=32, n_layer=2, n_head=4)),
        "llama": (transformers.LlamaForCausalLM, transformers.LlamaConfig(**common, num_key_value_heads=2)),
        "gemma2": (transformers.Gemma2ForCausalLM,
                   transformers.Gemma2Config(**common, num_key_value_heads=2, head_dim=8, sliding_window=4))}
    model_class, config = models[name]
    torch.manual_seed(3)
    model = model_class(config).eval()
    ids = torch.randint(5, 99, (2, 12))
    mask = torch.ones_like(ids)
    if name == "bert":
        mask[1, 8:] = 0
    logits = {}
    for implementation in ("eager", "qkv"):
        model.set_attn_implementation(implementation)
        logits[implementation] = model(input_ids=ids, attention_mask=mask).logits[mask.bool()]
    torch.testing.assert_close(logits["qkv"], logits["eager"], rtol=1e-5, atol=1e-5)
    if name != "bert":
        texts = []
        for implementation in ("eager", "qkv"):
            model.set_attn_implementation(implementation)
            texts.append(model.generate(ids[:1], max_new_tokens=8, do_sample=False).tolist())
        assert texts[0] == texts[1]
