"""The decoder and its layers, and the Transformer of both."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .._arguments import documents_options
from ._attention import AttentionModule
from ._module import DType, configured

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .._options import LayerOptions


class CrossModule(AttentionModule):
    """A module with causal self-attention and cross-attention."""

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


class DecoderLayer(CrossModule):
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
        super().__init__(configured("DecoderLayer", dtype, options, d_model=d_model, heads=heads, ffn=ffn), dtype)


class Decoder(CrossModule):
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
        super().__init__(configured("Decoder", dtype, options, **sizes), dtype)


class Transformer(AttentionModule):
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
        super().__init__(configured("Transformer", dtype, options, **sizes), dtype)

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
