"""Vectors of texts, by a run directory."""

from __future__ import annotations

import os
import warnings
from typing import TYPE_CHECKING, Iterable

from . import _qkv
from ._arguments import checked_texts, set_options

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Embedder:
    """A model that reads texts: an encoder, that of a translator, or a language model. Any number of threads may call it
    at the same time.

    Raises qkv.Error, a ValueError, naming the file, if the directory does not hold a whole and sound run.
    """

    width: int  # of a vector, d
    max_length: int  # tokens of a text, if nothing else is said

    def __init__(self, run_directory: str | os.PathLike[str]) -> None:
        self._embedder = _qkv.Embedder(os.fspath(run_directory))
        self.width, self.max_length = self._embedder.width(), self._embedder.max_length()

    def embed(
        self,
        texts: Iterable[str],
        *,
        pooling: str | None = None,
        normalize: bool | None = None,
        prefix: str | None = None,
        max_length: int | None = None,
        batch_tokens: int = 4096,
    ) -> NDArray[np.float32]:
        """Row i, of [texts, width], is the vector of text i, the same alone and in any company.

        pooling: "mean", "first" or "last", of the last hidden states of a text's tokens; None: the run's.
        normalize: divide each vector by its Euclidean norm; None: as the run says.
        prefix: text before every text; None: the run's.
        max_length: tokens of a text, those around it included; longer ones lose their ends, with a Python warning.
        batch_tokens: tokens that the model reads at once; changes no result.
        Ctrl-C stops it after some hundred texts.
        """
        if pooling is not None and pooling not in _POOLINGS:
            raise _qkv.Error(f"embed: pooling is {pooling!r}, wanted mean, first or last")
        if prefix is not None:
            prefix = checked_texts("embed", "prefix", [prefix])[0]
        options = set_options(
            _qkv.EmbedOptions(),
            "embed",
            pooling=None if pooling is None else _POOLINGS[pooling],
            normalize=normalize,
            prefix=prefix,
            max_length=max_length,
            batch_tokens=batch_tokens,
        )
        found = checked_texts("embed", "text", texts)
        vectors, cut = self._embedder.embed(found, options)
        if cut:
            longest = self.max_length if max_length is None else max_length
            warnings.warn(f"{cut} of {len(found)} texts had more than {longest} tokens and lost their ends", stacklevel=2)
        return vectors


_POOLINGS = {"mean": _qkv.Pooling.mean, "first": _qkv.Pooling.first, "last": _qkv.Pooling.last}
