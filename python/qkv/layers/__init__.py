"""The layers of the Transformer, one by one, forward and backward.

Construct a layer from its sizes, set its parameters by name, and run it on arrays of NumPy, PyTorch or any library that
supports DLPack. These are the layers that training uses; qkv/layers.h is the same in C++.

>>> import numpy as np
>>> import qkv
>>> layer = qkv.layers.Linear(3, 2)
>>> layer.load_state_dict({"weight": [[1, 0, 0], [0, 1, 1]], "bias": [0, 10]})
>>> layer(np.array([[1, 2, 3]], np.float32))
array([[ 1., 15.]], dtype=float32)
>>> layer.backward(np.ones((1, 2), np.float32))  # the gradient of the input
array([[1., 1., 1.]], dtype=float32)
>>> layer.gradients()["weight"]
array([[1., 2., 3.],
       [1., 2., 3.]], dtype=float32)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Mapping

from . import _qkv
from ._arguments import documents_options
from ._attention import causal_of

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from typing_extensions import Unpack

    from ._options import LayerOptions

__all__ = [
    "Decoder",
    "DecoderLayer",
    "Embedding",
    "Encoder",
    "EncoderLayer",
    "FeedForward",
    "LayerNorm",
    "Linear",
    "Module",
    "MultiHeadAttention",
    "RMSNorm",
    "Transformer",
    "cross_entropy",
    "positional_encoding",
    "softmax",
    "softmax_backward",
]

DType = Literal["float32", "float64"]
_MODULES: dict[str, type[_qkv.Float32Module] | type[_qkv.Float64Module]] = {
    "float32": _qkv.Float32Module,
    "float64": _qkv.Float64Module,
}


def _type(dtype: str) -> type[_qkv.Float32Module] | type[_qkv.Float64Module]:
    if dtype not in _MODULES:
        raise _qkv.Error(f'dtype is {dtype!r}, expected "float32" or "float64"')
    return _MODULES[dtype]


class Module:
    """The methods that all layers have.

    Initial values are random, the same for the same seed; it is 1 until initialize() sets another. dtype is "float32",
    or "float64" for checks: it uses plain loops and is slow. Inputs must have this type. They are read where they lie,
    also by backward, so they must not change in between. Results are new arrays of the kind of the first input.

    >>> layer = qkv.layers.LayerNorm(4, dtype="float64")
    >>> layer(np.eye(4)).dtype
    dtype('float64')

    One thread at a time runs a module, with all threads of the library. Errors are qkv.Error, a ValueError, that names
    the argument.
    """

    _module: _qkv.Float32Module | _qkv.Float64Module
    dtype: str

    def __init__(self, module: _qkv.Float32Module | _qkv.Float64Module, dtype: str) -> None:
        self._module = module
        self.dtype = dtype

    def parameters(self) -> dict[str, NDArray[Any]]:
        """Returns the parameters by name, as arrays that can be changed in place: `layer.parameters()["bias"][:] = 0`.

        The names are those of a run directory, such as "self_attention.q.weight".

        >>> [(name, p.shape) for name, p in qkv.layers.Linear(3, 2).parameters().items()]
        [('weight', (2, 3)), ('bias', (2,))]
        """
        return self._module.arrays(False, False)

    def gradients(self, *, torch_names: bool = False) -> dict[str, NDArray[Any]]:
        """Returns the gradients of the parameters, by the same names, or by those of state_dict.

        backward() adds to them, and clear_gradients() sets them to zero.

        >>> float(qkv.layers.Linear(3, 2).gradients()["bias"].sum())
        0.0
        """
        return self._module.arrays(True, torch_names)

    def state_dict(self) -> dict[str, NDArray[Any]]:
        """Returns the parameters by the names of the PyTorch module of the same kind, as arrays that can be changed.

        The weights of queries, keys and values are one array there, below one another.

        >>> sorted(qkv.layers.MultiHeadAttention(8, 2).state_dict())
        ['in_proj_bias', 'in_proj_weight', 'out_proj.bias', 'out_proj.weight']
        """
        return self._module.arrays(False, True)

    def load_state_dict(self, values: Mapping[str, Any]) -> None:
        """Sets all parameters, under the names of state_dict() or of parameters().

        values: arrays, tensors or nested lists; they are converted to the type of the module. Nothing changes if a
        parameter is missing or has another shape.

        >>> layer, other = qkv.layers.Linear(3, 2), qkv.layers.Linear(3, 2)
        >>> other.load_state_dict(layer.state_dict())
        """
        import numpy as np

        self._module.load([(name, np.ascontiguousarray(value, self.dtype)) for name, value in values.items()])

    def initialize(self, seed: int = 1) -> None:
        """Sets the initial values of this seed, from 0.

        >>> qkv.layers.Linear(3, 2).initialize(7)
        """
        self._module.initialize(seed)

    def clear_gradients(self) -> None:
        """Sets all gradients to zero.

        >>> qkv.layers.Linear(3, 2).clear_gradients()
        """
        self._module.clear_gradients()

    def backward(self, grad_out: Any) -> Any:
        """Returns the gradient of the input of the last forward pass, and adds to the gradients of the parameters.

        grad_out: the gradient of the output, of its shape. With several inputs the result is a tuple, in the order of
        the inputs. With lengths, gradients are zero at padding.

        >>> layer = qkv.layers.LayerNorm(4)
        >>> y = layer(np.eye(4, dtype=np.float32))
        >>> layer.backward(np.ones_like(y)).shape
        (4, 4)
        """
        found = self._module.backward(grad_out)
        if not found:
            return None
        return found[0] if len(found) == 1 else tuple(found)

    def _forward(self, inputs: list[Any], causal: Any = False, **arguments: Any) -> Any:
        names = ("offsets", "lengths", "memory_offsets", "memory_lengths", "mask", "memory_mask", "source_mask", "seed")
        given = {name: arguments.get(name) for name in names}
        return self._module.forward(_qkv.LayerArguments(inputs=inputs, causal=causal_of(causal, type(self).__name__), **given))


class _RowModule(Module):
    """A module that maps each row by itself."""

    def forward(self, x: Any) -> Any:
        """Returns the output for x: [..., width].

        >>> qkv.layers.Linear(3, 2).forward(np.ones((4, 5, 3), np.float32)).shape
        (4, 5, 2)
        """
        return self._forward([x])

    __call__ = forward


class Linear(_RowModule):
    """A linear layer, y = x Wᵀ + b: [..., in_features] -> [..., out_features].

    Parameters: weight [out_features, in_features], bias [out_features].

    >>> qkv.layers.Linear(3, 2)(np.ones((5, 3), np.float32)).shape
    (5, 2)
    """

    def __init__(self, in_features: int, out_features: int, bias: bool = True, *, dtype: DType = "float32") -> None:
        super().__init__(_type(dtype).linear(in_features, out_features, bias), dtype)


class LayerNorm(_RowModule):
    """Layer normalization of each row: [..., d] -> [..., d].

    Parameters: weight [d], bias [d]. epsilon: added to the variance.

    >>> qkv.layers.LayerNorm(4)(np.array([[1, 2, 3, 4]], np.float32)).round(3)
    array([[-1.342, -0.447,  0.447,  1.342]], dtype=float32)
    """

    def __init__(self, d: int, epsilon: float = 1e-5, bias: bool = True, *, dtype: DType = "float32") -> None:
        super().__init__(_type(dtype).layer_norm(d, epsilon, bias), dtype)


class RMSNorm(_RowModule):
    """Root mean square normalization of each row: [..., d] -> [..., d].

    Parameters: weight [d]. epsilon: added to the mean square.

    >>> qkv.layers.RMSNorm(2)(np.array([[3, 4]], np.float32)).round(3)
    array([[0.849, 1.131]], dtype=float32)
    """

    def __init__(self, d: int, epsilon: float = 1e-5, *, dtype: DType = "float32") -> None:
        super().__init__(_type(dtype).rms_norm(d, epsilon), dtype)


class FeedForward(_RowModule):
    """The feed-forward network, φ(x W_1ᵀ + b_1) W_2ᵀ + b_2: [..., d_model] -> [..., d_model].

    It is gated, φ(x W_1ᵀ + b_1) ∘ (x W_gateᵀ + b_gate) before W_2, with the option gated_ffn.
    Parameters: first.weight [ffn, d_model], second.weight [d_model, ffn], first.bias [ffn], second.bias [d_model], and
    gate.weight and gate.bias like the first. state_dict() has linear1, linear2 and gate.

    >>> qkv.layers.FeedForward(8, 32, activation="silu", gated_ffn=True)(np.ones((5, 8), np.float32)).shape
    (5, 8)
    """

    @documents_options("LayerOptions")
    def __init__(self, d_model: int, ffn: int, *, dtype: DType = "float32", **options: Unpack[LayerOptions]) -> None:
        """"""
        super().__init__(_configured("FeedForward", dtype, options, d_model=d_model, ffn=ffn), dtype)


class Embedding(Module):
    """Token embeddings, scale · E[id] + P[position].

    Parameters: weight [vocab, d_model], and with learned positions positions.weight [max_length, d_model].
    positions: "none", "learned", or a sinusoidal encoding such as "interleaved", that of the paper.
    scale: multiplies embeddings by √d_model. max_length: tokens of the longest sequence, if there are positions.

    >>> qkv.layers.Embedding(100, 8)([[5, 3], [7, 0]]).shape
    (2, 2, 8)
    """

    def __init__(
        self,
        vocab: int,
        d_model: int,
        *,
        positions: str = "none",
        scale: bool = False,
        max_length: int = 256,
        dtype: DType = "float32",
    ) -> None:
        options = {"positions": positions, "scale_embeddings": scale, "max_length": max_length}
        super().__init__(_type(dtype).embedding(vocab, d_model, options), dtype)

    def forward(self, ids: Any, *, offsets: Any = None, lengths: Any = None, seed: int | None = None) -> Any:
        """Returns the embeddings of ids: [N] -> [N, d_model], or [B, T] -> [B, T, d_model].

        >>> embedding = qkv.layers.Embedding(100, 8, positions="learned")
        >>> embedding.forward([[5, 3], [7, 0]], lengths=[2, 1])[1, 1]  # padding
        array([0., 0., 0., 0., 0., 0., 0., 0.], dtype=float32)

        offsets, lengths, seed: as for Encoder.forward. backward returns None.
        """
        return self._forward([ids], offsets=offsets, lengths=lengths, seed=seed)

    __call__ = forward


class _AttentionModule(Module):
    """A module that has attention."""

    def attention_weights(self, kind: str = "self") -> NDArray[Any]:
        """Returns the weights of the last forward pass, without dropout: [layers, sequences, heads, queries, keys].

        kind: "self", "cross", or "encoder", self-attention in the encoder of a Transformer. Sequences that are shorter
        than others have zeros behind them. A row sums to 1, or is 0 if the query sees no key.

        >>> layer = qkv.layers.MultiHeadAttention(8, 2)
        >>> y = layer(np.ones((3, 8), np.float32), causal=True)
        >>> layer.attention_weights()[0, 0, 0].round(2)
        array([[1.  , 0.  , 0.  ],
               [0.5 , 0.5 , 0.  ],
               [0.33, 0.33, 0.33]], dtype=float32)
        """
        return self._module.attention_weights(kind)


class MultiHeadAttention(_AttentionModule):
    """Multi-head attention: head_h = Attention(q W_Q^h, k W_K^h, v W_V^h), y = [head_1; …; head_H] W_Oᵀ + b_O.

    Parameters: q.weight [H d_k, d_model], k.weight [K d_k, d_model], v.weight [K d_v, d_model], output.weight
    [d_model, H d_v], and biases, for H heads and K key/value heads. d_k and d_v are the options key_width and
    value_width, by default d_model / heads.

    >>> layer = qkv.layers.MultiHeadAttention(8, 4, key_value_heads=2, positions="rotary")
    >>> layer(np.ones((2, 5, 8), np.float32), lengths=[5, 3]).shape
    (2, 5, 8)
    """

    @documents_options("LayerOptions")
    def __init__(self, d_model: int, heads: int, *, dtype: DType = "float32", **options: Unpack[LayerOptions]) -> None:
        """"""
        super().__init__(_configured("MultiHeadAttention", dtype, options, d_model=d_model, heads=heads), dtype)

    def forward(
        self,
        q: Any,
        k: Any = None,
        v: Any = None,
        *,
        causal: Any = False,
        mask: Any = None,
        offsets: Any = None,
        lengths: Any = None,
        k_offsets: Any = None,
        k_lengths: Any = None,
        seed: int | None = None,
    ) -> Any:
        """Returns the output for q: [N, d_model] or [B, T, d_model], and k and v: [M, d_model] or [B, S, d_model].

        >>> layer = qkv.layers.MultiHeadAttention(8, 2)
        >>> q, k = np.ones((2, 5, 8), np.float32), np.ones((2, 3, 8), np.float32)
        >>> layer.forward(q, k, k_lengths=[3, 2]).shape
        (2, 5, 8)

        v is k by default, and both are q. Rotary positions, alibi, the window and the relative bias need q alone.
        causal: True: the last query sees all keys; "top-left": query i sees keys 0 to i.
        mask, offsets, lengths, seed: as for Encoder.forward; k_offsets and k_lengths are those of k and v.
        backward returns a gradient for each array given.
        """
        if k is None and v is not None:
            raise _qkv.Error("MultiHeadAttention: v is given without k")
        inputs = [x for x in (q, k, v) if x is not None]
        return self._forward(inputs, causal, mask=mask, offsets=offsets, lengths=lengths, memory_offsets=k_offsets,
                             memory_lengths=k_lengths, seed=seed)

    __call__ = forward


class _SelfModule(_AttentionModule):
    def forward(
        self, x: Any, *, mask: Any = None, offsets: Any = None, lengths: Any = None, seed: int | None = None
    ) -> Any:
        """Returns the output for x: [N, d_model], one sequence or packed ones, or [B, T, d_model], a batch.

        >>> layer = qkv.layers.EncoderLayer(8, 2, 32)
        >>> layer.forward(np.ones((2, 5, 8), np.float32), lengths=[5, 3]).shape
        (2, 5, 8)

        offsets: integers [sequences + 1]; sequence s of packed rows has rows offsets[s] to offsets[s + 1] - 1.
        lengths: integers [B], tokens of each sequence of a padded batch. Padding is not read; the output is 0 there.
        mask: broadcasts to [sequences, heads, longest T, longest T]. bool: True where attention is allowed; floats are
            added to the scores.
        seed: applies dropout with the masks of this seed; None means no dropout.
        """
        return self._forward([x], mask=mask, offsets=offsets, lengths=lengths, seed=seed)

    __call__ = forward


class EncoderLayer(_SelfModule):
    """A layer of an encoder: self-attention and feed-forward network, each with residual and norm.

    Input and output: [N, d_model] or [B, T, d_model]. causal: a token sees only itself and those before it.
    Parameters: self_attention.*, feed_forward.*, self_attention_norm.*, feed_forward_norm.*; state_dict() has the names
    of torch.nn.TransformerEncoderLayer.

    >>> qkv.layers.EncoderLayer(8, 2, 32, norm_position="pre")(np.ones((5, 8), np.float32)).shape
    (5, 8)
    """

    @documents_options("LayerOptions")
    def __init__(
        self,
        d_model: int,
        heads: int,
        ffn: int,
        *,
        causal: bool = False,
        dtype: DType = "float32",
        **options: Unpack[LayerOptions],
    ) -> None:
        """"""
        sizes: dict[str, Any] = {"d_model": d_model, "heads": heads, "ffn": ffn}
        super().__init__(_configured("EncoderLayer", dtype, options, causal, **sizes), dtype)


class Encoder(_SelfModule):
    """A stack of encoder layers, and a final norm with the option final_norm.

    Input and output: [N, d_model] or [B, T, d_model]. With causal=True it is the stack of a decoder-only model.
    Parameters: layers.0.*, layers.1.*, …, norm.*; state_dict() has the names of torch.nn.TransformerEncoder.

    >>> encoder = qkv.layers.Encoder(8, 2, 32, layers=2)
    >>> encoder(np.ones((5, 8), np.float32), offsets=[0, 2, 5]).shape  # two sequences
    (5, 8)
    """

    @documents_options("LayerOptions")
    def __init__(
        self,
        d_model: int,
        heads: int,
        ffn: int,
        layers: int,
        *,
        causal: bool = False,
        dtype: DType = "float32",
        **options: Unpack[LayerOptions],
    ) -> None:
        """"""
        sizes: dict[str, Any] = {"d_model": d_model, "heads": heads, "ffn": ffn, "encoder_layers": layers}
        super().__init__(_configured("Encoder", dtype, options, causal, **sizes), dtype)


class _CrossModule(_AttentionModule):
    def forward(
        self,
        x: Any,
        memory: Any,
        *,
        mask: Any = None,
        memory_mask: Any = None,
        offsets: Any = None,
        lengths: Any = None,
        memory_offsets: Any = None,
        memory_lengths: Any = None,
        seed: int | None = None,
    ) -> Any:
        """Returns the output for x: [N, d_model] or [B, T, d_model], and memory: [M, d_model] or [B, S, d_model].

        Self-attention is causal: a token sees itself and those before it. memory is the encoder's output.

        >>> layer = qkv.layers.DecoderLayer(8, 2, 32)
        >>> x, memory = np.ones((2, 5, 8), np.float32), np.ones((2, 3, 8), np.float32)
        >>> layer.forward(x, memory, memory_lengths=[3, 2]).shape
        (2, 5, 8)

        mask, offsets, lengths, seed: as for Encoder.forward; those of memory are those of cross-attention.
        backward returns the gradients of x and of memory.
        """
        return self._forward([x, memory], mask=mask, memory_mask=memory_mask, offsets=offsets, lengths=lengths,
                             memory_offsets=memory_offsets, memory_lengths=memory_lengths, seed=seed)

    __call__ = forward


class DecoderLayer(_CrossModule):
    """A layer of a decoder: causal self-attention, cross-attention and feed-forward network.

    Inputs: x [N, d_model] and memory [M, d_model], or batches of three axes; output: as x.
    Parameters: self_attention.*, cross_attention.*, feed_forward.* and a norm of each; state_dict() has the names of
    torch.nn.TransformerDecoderLayer.

    >>> qkv.layers.DecoderLayer(8, 2, 32)(np.ones((5, 8), np.float32), np.ones((3, 8), np.float32)).shape
    (5, 8)
    """

    @documents_options("LayerOptions")
    def __init__(
        self, d_model: int, heads: int, ffn: int, *, dtype: DType = "float32", **options: Unpack[LayerOptions]
    ) -> None:
        """"""
        super().__init__(_configured("DecoderLayer", dtype, options, d_model=d_model, heads=heads, ffn=ffn), dtype)


class Decoder(_CrossModule):
    """A stack of decoder layers, and a final norm with the option final_norm.

    Inputs: x [N, d_model] and memory [M, d_model], or batches of three axes; output: as x.
    Parameters: layers.0.*, …, norm.*; state_dict() has the names of torch.nn.TransformerDecoder.

    >>> qkv.layers.Decoder(8, 2, 32, layers=2)(np.ones((5, 8), np.float32), np.ones((3, 8), np.float32)).shape
    (5, 8)
    """

    @documents_options("LayerOptions")
    def __init__(
        self,
        d_model: int,
        heads: int,
        ffn: int,
        layers: int,
        *,
        dtype: DType = "float32",
        **options: Unpack[LayerOptions],
    ) -> None:
        """"""
        sizes: dict[str, Any] = {"d_model": d_model, "heads": heads, "ffn": ffn, "decoder_layers": layers}
        super().__init__(_configured("Decoder", dtype, options, **sizes), dtype)


class Transformer(_AttentionModule):
    """Encoder and decoder, without embeddings and output layer, each with a final norm unless final_norm is False.

    Inputs: source [M, d_model] and target [N, d_model], or batches of three axes; output: as target.
    Parameters: encoder.*, decoder.*; state_dict() has the names of torch.nn.Transformer.

    >>> model = qkv.layers.Transformer(8, 2, 32, encoder_layers=2, decoder_layers=1)
    >>> model(np.ones((3, 8), np.float32), np.ones((5, 8), np.float32)).shape
    (5, 8)
    """

    @documents_options("LayerOptions")
    def __init__(
        self,
        d_model: int,
        heads: int,
        ffn: int,
        encoder_layers: int,
        decoder_layers: int,
        *,
        dtype: DType = "float32",
        **options: Unpack[LayerOptions],
    ) -> None:
        """"""
        sizes: dict[str, Any] = {"d_model": d_model, "heads": heads, "ffn": ffn, "encoder_layers": encoder_layers,
                 "decoder_layers": decoder_layers, "final_norm": options.pop("final_norm", True)}
        super().__init__(_configured("Transformer", dtype, options, **sizes), dtype)

    def forward(
        self,
        source: Any,
        target: Any,
        *,
        mask: Any = None,
        memory_mask: Any = None,
        source_mask: Any = None,
        offsets: Any = None,
        lengths: Any = None,
        source_offsets: Any = None,
        source_lengths: Any = None,
        seed: int | None = None,
    ) -> Any:
        """Returns the decoder's output for source: [M, d_model] or [B, S, d_model], and target: [N, d_model] or
        [B, T, d_model].

        >>> model = qkv.layers.Transformer(8, 2, 32, encoder_layers=1, decoder_layers=1)
        >>> source, target = np.ones((2, 3, 8), np.float32), np.ones((2, 5, 8), np.float32)
        >>> y = model.forward(source, target, source_lengths=[3, 2])
        >>> [gradient.shape for gradient in model.backward(np.ones_like(y))]
        [(2, 3, 8), (2, 5, 8)]

        mask, offsets, lengths, seed: as for Encoder.forward, of the target; memory_mask is that of cross-attention, and
        source_mask, source_offsets and source_lengths those of the encoder.
        backward returns the gradients of source and of target.
        """
        return self._forward([source, target], mask=mask, memory_mask=memory_mask, source_mask=source_mask,
                             offsets=offsets, lengths=lengths, memory_offsets=source_offsets,
                             memory_lengths=source_lengths, seed=seed)

    __call__ = forward


def _configured(
    name: str, dtype: str, options: Mapping[str, Any], causal: bool = False, **sizes: Any
) -> _qkv.Float32Module | _qkv.Float64Module:
    allowed = {field["name"] for field in _qkv.option_fields()["LayerOptions"]}
    for option in options:
        if option not in allowed:
            raise TypeError(f"{name}() got an unexpected keyword argument '{option}'")
    return _type(dtype).configured(name, {**options, **sizes}, bool(causal))


def positional_encoding(length: int, d_model: int, kind: str = "interleaved") -> NDArray[Any]:
    """Returns the sinusoidal positions 0, 1, …: [length, d_model], float32.

    kind: "interleaved", sin(p r_j) at 2j and cos(p r_j) at 2j + 1 with r_j = 10000^(-2j / d_model), as in the paper; or
    "halves", "closed_halves", "second_halves" of other systems, whose width must be even.

    >>> qkv.layers.positional_encoding(2, 4).round(3)
    array([[0.   , 1.   , 0.   , 1.   ],
           [0.841, 0.54 , 0.01 , 1.   ]], dtype=float32)
    """
    found: NDArray[Any] = _qkv.positional_encoding(length, d_model, kind)
    return found


def softmax(x: Any) -> Any:
    """Returns exp(x) / Σ exp(x) over the last axis: [..., n] -> [..., n], float32 or float64.

    A row of only -inf becomes zeros.

    >>> qkv.layers.softmax(np.array([0, np.log(3)])).round(6)
    array([0.25, 0.75])
    """
    return _qkv.softmax(x)


def softmax_backward(y: Any, grad_out: Any) -> Any:
    """Returns y ∘ (grad_out − Σ grad_out ∘ y), the gradient of x for y = softmax(x): [..., n].

    >>> qkv.layers.softmax_backward(np.array([0.25, 0.75]), np.array([1.0, 0.0]))
    array([ 0.1875, -0.1875])
    """
    return _qkv.softmax_backward(y, grad_out)


def cross_entropy(
    logits: Any, labels: Any, *, label_smoothing: float = 0.0, ignore_index: int = -100
) -> tuple[float, Any]:
    """Returns the mean loss over the labels that are not ignore_index, in nats, and the gradient of the logits.

    logits: [..., V]; labels: integers [...], from 0 to V - 1. The loss is -Σ q log softmax(logits), where q is 1 at the
    label, or with label_smoothing ε: (1 - ε) at the label, plus ε / V everywhere.

    >>> loss, gradient = qkv.layers.cross_entropy(np.array([[0, np.log(3)]]), [1])
    >>> round(loss, 6), gradient.round(6)
    (0.287682, array([[ 0.25, -0.25]]))
    """
    loss, _, _, gradient = _qkv.cross_entropy(logits, labels, label_smoothing, ignore_index)
    return loss, gradient
