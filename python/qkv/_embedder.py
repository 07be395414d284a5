"""Text embeddings with a run directory."""

from __future__ import annotations

import os
import warnings
from typing import TYPE_CHECKING, Iterable

from . import _qkv
from ._arguments import checked_texts, documents_options

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from typing_extensions import Unpack

    from ._options import EmbedOptions


class Embedder:
    """A model that reads texts: an encoder, the encoder of a translator, or a language model. Methods are thread-safe.

    Raises qkv.Error, a ValueError, naming the file, if the run is of another kind, incomplete or damaged.
    """

    width: int  # components of a vector, d
    max_length: int  # default of the option max_length, in tokens

    def __init__(self, run_directory: str | os.PathLike[str]) -> None:
        self._embedder = _qkv.Embedder(os.fspath(run_directory))
        self.width, self.max_length = self._embedder.width(), self._embedder.max_length()

    @documents_options("EmbedOptions")
    def embed(self, texts: Iterable[str], **options: Unpack[EmbedOptions]) -> NDArray[np.float32]:
        """Returns an array [texts, width]; row i is the vector of text i and does not depend on the others.

        Texts that are truncated give a Python warning. Ctrl-C stops the call after a few hundred texts. Options that are
        not set take the values of the run.
        """
        found = checked_texts("texts", texts)
        vectors, cut = self._embedder.embed(found, dict(options))
        if cut:
            longest = options.get("max_length") or self.max_length
            warnings.warn(f"{cut} of {len(found)} texts had more than {longest} tokens and were truncated", stacklevel=2)
        return vectors
