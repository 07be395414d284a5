"""The encoder and its layers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .._arguments import documents_options
from ._attention import AttentionModule
from ._module import DType, configured

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .._options import LayerOptions


class SelfModule(AttentionModule):
    """A module with self-attention."""

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


class EncoderLayer(SelfModule):
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
        super().__init__(configured("EncoderLayer", dtype, options, causal, **sizes), dtype)


class Encoder(SelfModule):
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
        super().__init__(configured("Encoder", dtype, options, causal, **sizes), dtype)
