"""Multi-head attention."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import _qkv
from .._arguments import documents_options
from ._module import DType, Module, configured

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from typing_extensions import Unpack

    from .._options import LayerOptions


class AttentionModule(Module):
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


class MultiHeadAttention(AttentionModule):
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
        super().__init__(configured("MultiHeadAttention", dtype, options, d_model=d_model, heads=heads), dtype)

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
