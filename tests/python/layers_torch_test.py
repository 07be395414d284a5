"""qkv.layers against the PyTorch modules of the same kind: outputs and all gradients, packed and padded.

Skipped without PyTorch."""

import numpy as np
import pytest

from qkv import layers

torch = pytest.importorskip("torch")

D, HEADS, FFN = 32, 4, 64
LENGTHS = [5, 3, 4]  # tokens of each sequence
MEMORY_LENGTHS = [2, 6, 4]
SIZES = {"activation": "gelu"}


def relative_error(found, expected):
    found, expected = np.asarray(found, np.float64), np.asarray(expected, np.float64)
    assert found.shape == expected.shape
    return np.linalg.norm(found - expected) / max(np.linalg.norm(expected), 1e-30)


def limit(dtype):
    return 1e-5 if dtype == "float32" else 1e-12


def batch(lengths, seed, dtype):
    """A padded batch, with random values at padding too."""
    generator = np.random.default_rng(seed)
    return generator.standard_normal((len(lengths), max(lengths), D)).astype(dtype)


def inside(lengths):
    """True for tokens, False for padding: [B, T]."""
    return np.arange(max(lengths)) < np.array(lengths)[:, None]


def offsets(lengths):
    return np.concatenate([[0], np.cumsum(lengths)])


def torch_results(module, lengths, inputs, grad_out, call):
    """PyTorch's output and gradients, in float64. The gradient of the output is zero at padding."""
    inputs = [torch.tensor(x, dtype=torch.float64, requires_grad=True) for x in inputs]
    out = call(module, *inputs)
    out.backward(torch.tensor(grad_out * inside(lengths)[:, :, None], dtype=torch.float64))
    return out.detach().numpy(), [x.grad.numpy() for x in inputs], {n: p.grad.numpy() for n, p in module.named_parameters()}


def compare(layer, module, lengths, inputs, call, padded, packed):
    """padded, packed: the keyword arguments of the layer for each layout."""
    layer.load_state_dict(module.state_dict())
    assert {n: p.shape for n, p in layer.state_dict().items()} == {n: tuple(p.shape) for n, p in module.named_parameters()}
    grad_out = batch(lengths, 9, layer.dtype)
    out, dinputs, dparameters = torch_results(module, lengths, inputs, grad_out, call)
    every = [lengths if i == 0 or len(inputs) == 1 else MEMORY_LENGTHS for i in range(len(inputs))]
    if isinstance(layer, layers.Transformer):
        every = every[::-1]
    masks = [inside(length) for length in every]
    rows = inside(lengths)

    y = layer.forward(*inputs, **padded)
    assert relative_error(y[rows], out[rows]) < limit(layer.dtype)
    assert not y[~rows].any()
    found = layer.backward(grad_out)
    for dx, expected, mask in zip(found if isinstance(found, tuple) else [found], dinputs, masks):
        assert relative_error(dx[mask], expected[mask]) < limit(layer.dtype)
        assert not dx[~mask].any()
    gradients = layer.gradients(torch_names=True)
    for name, expected in dparameters.items():
        assert relative_error(gradients[name], expected) < limit(layer.dtype), name

    layer.clear_gradients()
    y = layer.forward(*(x[mask] for x, mask in zip(inputs, masks)), **packed)
    assert relative_error(y, out[rows]) < limit(layer.dtype)
    found = layer.backward(grad_out[rows])
    for dx, expected, mask in zip(found if isinstance(found, tuple) else [found], dinputs, masks):
        assert relative_error(dx, expected[mask]) < limit(layer.dtype)
    for name, expected in dparameters.items():
        assert relative_error(layer.gradients(torch_names=True)[name], expected) < limit(layer.dtype), name


def randomized(module):
    """Also biases and norms, which PyTorch sets to zeros and ones."""
    torch.manual_seed(5)
    with torch.no_grad():
        for p in module.parameters():
            p.normal_(0, 0.3)
    return module.double().eval()


@pytest.fixture(params=["float32", "float64"])
def dtype(request):
    return request.param


PADDED, PACKED = {"lengths": LENGTHS}, {"offsets": offsets(LENGTHS)}
CROSS_PADDED = {**PADDED, "memory_lengths": MEMORY_LENGTHS}
CROSS_PACKED = {**PACKED, "memory_offsets": offsets(MEMORY_LENGTHS)}
SOURCE_PADDED = {**PADDED, "source_lengths": MEMORY_LENGTHS}
SOURCE_PACKED = {**PACKED, "source_offsets": offsets(MEMORY_LENGTHS)}


def hidden(lengths):
    return torch.tensor(~inside(lengths))


def causal_mask():
    return torch.nn.Transformer.generate_square_subsequent_mask(max(LENGTHS), dtype=torch.float64)


@pytest.mark.parametrize("layer, module", [
    (lambda t: layers.Linear(D, 7, dtype=t), lambda: torch.nn.Linear(D, 7)),
    (lambda t: layers.Linear(D, 7, False, dtype=t), lambda: torch.nn.Linear(D, 7, bias=False)),
    (lambda t: layers.LayerNorm(D, dtype=t), lambda: torch.nn.LayerNorm(D)),
    (lambda t: layers.RMSNorm(D, dtype=t), lambda: torch.nn.RMSNorm(D, eps=1e-5)),
])
def test_modules_of_rows(layer, module, dtype):
    layer, module = layer(dtype), randomized(module())
    layer.load_state_dict(module.state_dict())
    x = batch(LENGTHS, 1, dtype)
    inputs = torch.tensor(x, dtype=torch.float64, requires_grad=True)
    out = module(inputs)
    grad_out = np.random.default_rng(2).standard_normal(out.shape).astype(dtype)
    out.backward(torch.tensor(grad_out, dtype=torch.float64))
    assert relative_error(layer(x), out.detach()) < limit(dtype)
    assert relative_error(layer.backward(grad_out), inputs.grad) < limit(dtype)
    for name, p in module.named_parameters():
        assert relative_error(layer.gradients()[name], p.grad) < limit(dtype)


def test_embedding(dtype):
    layer, module = layers.Embedding(11, D, dtype=dtype), randomized(torch.nn.Embedding(11, D))
    layer.load_state_dict(module.state_dict())
    ids = np.array([[1, 10, 1], [0, 3, 3]])
    out = module(torch.tensor(ids))
    grad_out = np.random.default_rng(2).standard_normal(out.shape).astype(dtype)
    out.backward(torch.tensor(grad_out, dtype=torch.float64))
    assert relative_error(layer(ids), out.detach()) < limit(dtype)
    assert layer.backward(grad_out) is None
    assert relative_error(layer.gradients()["weight"], module.weight.grad) < limit(dtype)


@pytest.mark.parametrize("activation", ["relu", "gelu", "silu"])
def test_feed_forward(activation, dtype):
    layer = layers.FeedForward(D, FFN, activation=activation, dtype=dtype)
    first, second = randomized(torch.nn.Linear(D, FFN)), randomized(torch.nn.Linear(FFN, D))
    module = torch.nn.ModuleDict({"linear1": first, "linear2": second})
    layer.load_state_dict(module.state_dict())
    x = batch(LENGTHS, 1, dtype)
    inputs = torch.tensor(x, dtype=torch.float64, requires_grad=True)
    out = second(getattr(torch.nn.functional, activation)(first(inputs)))
    out.backward(torch.ones_like(out))
    assert relative_error(layer(x), out.detach()) < limit(dtype)
    assert relative_error(layer.backward(np.ones_like(x)), inputs.grad) < limit(dtype)
    for name, p in module.named_parameters():
        assert relative_error(layer.gradients(torch_names=True)[name], p.grad) < limit(dtype)


@pytest.mark.parametrize("inputs", [1, 3])
def test_attention(inputs, dtype):
    layer, module = layers.MultiHeadAttention(D, HEADS, dtype=dtype), randomized(torch.nn.MultiheadAttention(D, HEADS, batch_first=True))
    if inputs == 1:
        compare(layer, module, LENGTHS, [batch(LENGTHS, 1, dtype)],
                lambda m, q: m(q, q, q, key_padding_mask=hidden(LENGTHS))[0], PADDED, PACKED)
    else:
        arrays = [batch(LENGTHS, 1, dtype), batch(MEMORY_LENGTHS, 2, dtype), batch(MEMORY_LENGTHS, 3, dtype)]
        compare(layer, module, LENGTHS, arrays,
                lambda m, q, k, v: m(q, k, v, key_padding_mask=hidden(MEMORY_LENGTHS))[0],
                {**PADDED, "k_lengths": MEMORY_LENGTHS}, {**PACKED, "k_offsets": offsets(MEMORY_LENGTHS)})


def test_attention_weights_and_masks(dtype):
    layer, module = layers.MultiHeadAttention(D, HEADS, dtype=dtype), randomized(torch.nn.MultiheadAttention(D, HEADS, batch_first=True))
    layer.load_state_dict(module.state_dict())
    x = batch(LENGTHS, 1, dtype)
    allowed = np.random.default_rng(3).random((5, 5)) < 0.7
    allowed[np.arange(5), np.arange(5)] = True
    added = np.where(allowed, 0, -np.inf).astype(dtype)
    inputs = torch.tensor(x, dtype=torch.float64)
    out, weights = module(inputs, inputs, inputs, attn_mask=torch.tensor(~allowed), average_attn_weights=False)
    for mask in (allowed, added):
        assert relative_error(layer(x, mask=mask), out.detach()) < limit(dtype)
        assert relative_error(layer.attention_weights()[0], weights.detach()) < limit(dtype)


@pytest.mark.parametrize("position", ["post", "pre"])
def test_encoder(position, dtype):
    options = {"batch_first": True, "activation": "gelu", "norm_first": position == "pre"}
    one = torch.nn.TransformerEncoderLayer(D, HEADS, FFN, **options)
    module = torch.nn.TransformerEncoder(one, 2, norm=torch.nn.LayerNorm(D), enable_nested_tensor=False)
    call = lambda m, x: m(x, src_key_padding_mask=hidden(LENGTHS))
    x = [batch(LENGTHS, 1, dtype)]
    layer = layers.EncoderLayer(D, HEADS, FFN, norm_position=position, dtype=dtype, **SIZES)
    compare(layer, randomized(one), LENGTHS, x, call, PADDED, PACKED)
    layer = layers.Encoder(D, HEADS, FFN, 2, norm_position=position, final_norm=True, dtype=dtype, **SIZES)
    compare(layer, randomized(module), LENGTHS, x, call, PADDED, PACKED)


@pytest.mark.parametrize("position", ["post", "pre"])
def test_decoder(position, dtype):
    options = {"batch_first": True, "activation": "gelu", "norm_first": position == "pre"}
    one = torch.nn.TransformerDecoderLayer(D, HEADS, FFN, **options)
    module = torch.nn.TransformerDecoder(one, 2)
    call = lambda m, x, memory: m(x, memory, tgt_mask=causal_mask(), tgt_key_padding_mask=hidden(LENGTHS).double().masked_fill(hidden(LENGTHS), -torch.inf),
                                  memory_key_padding_mask=hidden(MEMORY_LENGTHS))
    inputs = [batch(LENGTHS, 1, dtype), batch(MEMORY_LENGTHS, 2, dtype)]
    layer = layers.DecoderLayer(D, HEADS, FFN, norm_position=position, dtype=dtype, **SIZES)
    compare(layer, randomized(one), LENGTHS, inputs, call, CROSS_PADDED, CROSS_PACKED)
    layer = layers.Decoder(D, HEADS, FFN, 2, norm_position=position, dtype=dtype, **SIZES)
    compare(layer, randomized(module), LENGTHS, inputs, call, CROSS_PADDED, CROSS_PACKED)


@pytest.mark.parametrize("position", ["post", "pre"])
def test_transformer(position, dtype):
    module = torch.nn.Transformer(D, HEADS, 2, 1, FFN, batch_first=True, activation="gelu", norm_first=position == "pre")
    call = lambda m, source, target: m(source, target, tgt_mask=causal_mask(), src_key_padding_mask=hidden(MEMORY_LENGTHS),
                                       memory_key_padding_mask=hidden(MEMORY_LENGTHS))
    layer = layers.Transformer(D, HEADS, FFN, 2, 1, norm_position=position, dtype=dtype, **SIZES)
    compare(layer, randomized(module), LENGTHS, [batch(MEMORY_LENGTHS, 1, dtype), batch(LENGTHS, 2, dtype)], call, SOURCE_PADDED, SOURCE_PACKED)


def test_tensors_in_and_out():
    layer = layers.Linear(3, 2)
    y = layer(torch.ones(4, 3))
    assert isinstance(y, torch.Tensor) and isinstance(layer.backward(torch.ones(4, 2)), torch.Tensor)
    torch.nn.Linear(3, 2).load_state_dict({name: torch.tensor(p) for name, p in layer.state_dict().items()})
