"""Layers that map each row by itself, and embeddings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .._arguments import documents_options
from ._module import DType, Module, configured, type_of

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .._options import LayerOptions


class RowModule(Module):
    """A module that maps each row by itself."""

    def forward(self, x: Any) -> Any:
        """Returns the output for x: [..., width].

        >>> qkv.layers.Linear(3, 2).forward(np.ones((4, 5, 3), np.float32)).shape
        (4, 5, 2)
        """
        return self._forward([x])

    __call__ = forward


class Linear(RowModule):
    """A linear layer, y = x Wᵀ + b: [..., in_features] -> [..., out_features].

    Parameters: weight [out_features, in_features], bias [out_features].

    >>> qkv.layers.Linear(3, 2)(np.ones((5, 3), np.float32)).shape
    (5, 2)
    """

    def __init__(self, in_features: int, out_features: int, bias: bool = True, *, dtype: DType = "float32") -> None:
        super().__init__(type_of(dtype).linear(in_features, out_features, bias), dtype)


class LayerNorm(RowModule):
    """Layer normalization of each row: [..., d] -> [..., d].

    Parameters: weight [d], bias [d]. epsilon: added to the variance.

    >>> qkv.layers.LayerNorm(4)(np.array([[1, 2, 3, 4]], np.float32)).round(3)
    array([[-1.342, -0.447,  0.447,  1.342]], dtype=float32)
    """

    def __init__(self, d: int, epsilon: float = 1e-5, bias: bool = True, *, dtype: DType = "float32") -> None:
        super().__init__(type_of(dtype).layer_norm(d, epsilon, bias), dtype)


class RMSNorm(RowModule):
    """Root mean square normalization of each row: [..., d] -> [..., d].

    Parameters: weight [d]. epsilon: added to the mean square.

    >>> qkv.layers.RMSNorm(2)(np.array([[3, 4]], np.float32)).round(3)
    array([[0.849, 1.131]], dtype=float32)
    """

    def __init__(self, d: int, epsilon: float = 1e-5, *, dtype: DType = "float32") -> None:
        super().__init__(type_of(dtype).rms_norm(d, epsilon), dtype)


class FeedForward(RowModule):
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
        super().__init__(configured("FeedForward", dtype, options, d_model=d_model, ffn=ffn), dtype)


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
        super().__init__(type_of(dtype).embedding(vocab, d_model, options), dtype)

    def forward(self, ids: Any, *, offsets: Any = None, lengths: Any = None, seed: int | None = None) -> Any:
        """Returns the embeddings of ids: [N] -> [N, d_model], or [B, T] -> [B, T, d_model].

        >>> embedding = qkv.layers.Embedding(100, 8, positions="learned")
        >>> embedding.forward([[5, 3], [7, 0]], lengths=[2, 1])[1, 1]  # padding
        array([0., 0., 0., 0., 0., 0., 0., 0.], dtype=float32)

        offsets, lengths, seed: as for Encoder.forward. backward returns None.
        """
        return self._forward([ids], offsets=offsets, lengths=lengths, seed=seed)

    __call__ = forward
