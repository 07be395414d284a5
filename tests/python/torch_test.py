"""PyTorch tensors: arguments and results, bfloat16, and gradients with an autograd function. Skipped without PyTorch."""

import pytest

import qkv

torch = pytest.importorskip("torch")


def make(*shape, type=torch.float32):
    torch.manual_seed(7)
    return [torch.randn(shape, dtype=type) for _ in "qkv"]


@pytest.mark.parametrize("type, limit", [(torch.float32, 1e-5), (torch.float64, 1e-12), (torch.bfloat16, 2e-2)])
@pytest.mark.parametrize("causal", [False, True])
def test_attention_matches_torch(type, limit, causal):
    q, k, v = make(2, 4, 33, 16, type=type)
    out = qkv.attention(q, k, v, causal=causal)
    expected = torch.nn.functional.scaled_dot_product_attention(q.double(), k.double(), v.double(), is_causal=causal)
    assert isinstance(out, torch.Tensor) and out.dtype == type
    assert (out.double() - expected).abs().max() < limit


def test_masks_views_and_additional_results():
    q, k, v = (x.transpose(1, 2) for x in make(2, 9, 4, 16))
    mask = torch.rand(9, 9) < 0.8
    out, lse, weights = qkv.attention(q, k, v, mask=mask, return_lse=True, return_weights=True)
    expected = torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    torch.testing.assert_close(out, expected)
    torch.testing.assert_close(weights @ v, expected)
    scores = (q @ k.transpose(-1, -2) / 4).masked_fill(~mask, -torch.inf)
    torch.testing.assert_close(lse, scores.logsumexp(-1))


def test_packed_tensors():
    q, k, v = make(9, 4, 16)
    out = qkv.attention(q, k, v, q_offsets=torch.tensor([0, 4, 9], dtype=torch.int32))
    first = qkv.attention(*(x[None, :4].transpose(1, 2) for x in (q, k, v)))
    torch.testing.assert_close(out[:4], first[0].transpose(0, 1))


def test_tensors_that_require_a_gradient_are_rejected():
    q, k, v = make(1, 1, 3, 4)
    with pytest.raises(qkv.Error, match=r"attention: k requires a gradient.*pass k.detach\(\)"):
        qkv.attention(q, k.requires_grad_(), v)
    qkv.attention(q, k.detach(), v)


@pytest.mark.parametrize("wrong", [lambda x: x.to("meta"), lambda x: x.to_sparse(), lambda x: x.half(),
                                   lambda x: x.to(torch.complex64), lambda x: x.long()])
def test_tensors_without_dense_cpu_memory_are_rejected(wrong):
    q, k, v = make(1, 1, 3, 4)
    with pytest.raises(qkv.Error, match="attention: q "):
        qkv.attention(wrong(q), k, v)


class Attention(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q, k, v):
        out, lse = qkv.attention(q.detach(), k.detach(), v.detach(), causal=True, return_lse=True)
        ctx.save_for_backward(q, k, v, out, lse)
        return out

    @staticmethod
    def backward(ctx, grad_out):
        q, k, v, out, lse = (x.detach() for x in ctx.saved_tensors)
        return qkv.attention_backward(grad_out.contiguous(), q, k, v, out, lse, causal=True)


def test_an_autograd_function():
    arrays = [x.requires_grad_() for x in make(1, 2, 5, 4, type=torch.float64)]
    assert torch.autograd.gradcheck(Attention.apply, arrays)
