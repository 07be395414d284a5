"""Text embeddings with a run directory."""

from __future__ import annotations

import os
import warnings
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Iterable

from . import _qkv
from ._analysis import HiddenStates
from ._arguments import check_text, checked_texts, documents_options
from ._attention_map import AttentionMap
from ._tables import Tabular, is_tabular, row_file

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from typing_extensions import Unpack

    from ._options import EmbedOptions, HardNegativeOptions


@dataclass(frozen=True)
class HardNegativeReport:
    """The result of Embedder.mine_hard_negatives.

    >>> report = qkv.HardNegativeReport(rows=20, written=19, texts=38, candidates=18, cut=0, positive_similarity=0.8,
    ...                                 negative_similarity=0.6, messages=[])
    >>> f"{report.rows - report.written} row was dropped"
    '1 row was dropped'
    """

    rows: int  # of the input
    written: int  # rows with negatives; the others were dropped
    texts: int  # different anchors and positives, each of which was embedded once
    candidates: int  # different positives
    cut: int  # texts that were truncated
    positive_similarity: float  # mean over the rows written, of the anchor and its positive
    negative_similarity: float  # the same of the anchor and a negative that was found
    messages: list[str] = field(repr=False)  # lines about the data and the result


class Embedder:
    """A model that reads texts: an encoder, the encoder of a translator, or a language model. Methods are thread-safe.

    >>> embedder = qkv.Embedder("runs/encoder")
    >>> embedder.embed(["a b c", "h g f"]).shape == (2, embedder.width)
    True

    device: where the model computes: "cpu"; "cuda", a device plugin; or "auto", which is "cuda" if a plugin finds a
        device.
    precision: what a device computes with, "float32" or "bfloat16"; "auto" is bfloat16. The CPU computes with float32.

    Raises qkv.Error, a ValueError, naming the file, if the run is of another kind, incomplete or damaged.
    """

    width: int  # components of a vector, d
    max_length: int  # default of the option max_length, in tokens
    prompts: dict[str, str]  # texts that may take the place of the run's prefix, by name

    def __init__(
        self, run_directory: str | os.PathLike[str], *, device: str = "cpu", precision: str = "auto"
    ) -> None:
        self._embedder = _qkv.Embedder(os.fspath(run_directory), {"device": device, "precision": precision})
        self.width, self.max_length = self._embedder.width(), self._embedder.max_length()
        self.prompts = dict(self._embedder.prompts())

    @documents_options("EmbedOptions")
    def embed(self, texts: Iterable[str], **options: Unpack[EmbedOptions]) -> NDArray[np.float32]:
        """Returns an array [texts, width]; row i is the vector of text i and does not depend on the others.

        Texts that are truncated give a Python warning. Ctrl-C stops the call after a few hundred texts. Options that are
        not set take the values of the run.

        >>> vectors = qkv.Embedder("runs/encoder").embed(["a b c", "h g f"], normalize=True)
        >>> vectors.shape, vectors.dtype, np.linalg.norm(vectors, axis=1).round(4)
        ((2, 12), dtype('float32'), array([1., 1.], dtype=float32))

        texts: texts; or a column of strings of pandas, polars or pyarrow.

        Raises qkv.Error, a ValueError, that names the invalid text or option, and TypeError for an unknown option.
        """
        found = checked_texts("texts", texts)
        vectors, cut = self._embedder.embed(found, dict(options))
        if cut:
            longest = options.get("max_length") or self.max_length
            warnings.warn(f"{cut} of {len(found)} texts had more than {longest} tokens and were truncated", stacklevel=2)
        return vectors

    def encode(
        self,
        sentences: str | Iterable[str],
        prompt_name: str | None = None,
        prompt: str | None = None,
        batch_size: int = 32,
        show_progress_bar: bool | None = None,
        output_value: str | None = "sentence_embedding",
        precision: str = "float32",
        convert_to_numpy: bool = True,
        convert_to_tensor: bool = False,
        device: object = None,
        normalize_embeddings: bool = False,
        truncate_dim: int | None = None,
        pool: object = None,
        chunk_size: int | None = None,
    ) -> Any:
        """Returns vectors like SentenceTransformer.encode of sentence-transformers, for code that was written for it.

        >>> embedder = qkv.Embedder("runs/encoder")
        >>> embedder.encode("a b c").shape, embedder.encode(["a b c", "h g f"], truncate_dim=8).shape
        ((12,), (2, 8))

        sentences: a text, which gives one vector [d], or texts, which give an array [texts, d].
        prompt: put before every text instead of the run's prefix. prompt_name: the name of one of the run's prompts,
            which is ignored with a prompt.
        batch_size: checked, but not used: batches do not change the result.
        show_progress_bar: True shows one, by tqdm.
        output_value: only "sentence_embedding".
        precision: "float32", or "binary" (int8) and "ubinary" (uint8) for the signs, 8 in a byte: arrays [texts, d / 8].
        convert_to_tensor: returns a tensor of PyTorch. convert_to_numpy=False: a list of tensors.
        device: only None or "cpu". pool and chunk_size: only None.
        normalize_embeddings: divides vectors by their Euclidean norms, also those of a run that does not do so.
        truncate_dim: keeps the first components, before vectors are normalized by normalize_embeddings.

        Raises qkv.Error for other values.
        """
        _check_encode(batch_size, output_value, precision, device, pool, chunk_size)
        if truncate_dim is not None and not 1 <= truncate_dim <= self.width:
            raise _qkv.Error(f"truncate_dim must be between 1 and {self.width} (is {truncate_dim})")
        texts = [sentences] if isinstance(sentences, str) else checked_texts("sentences", sentences)
        options: EmbedOptions = {}
        if prompt is not None:
            options["prefix"] = prompt
        elif prompt_name is not None:
            options["prompt_name"] = prompt_name
        if normalize_embeddings and truncate_dim is None:
            options["normalize"] = True
        vectors: Any = self._with_progress(texts, options) if show_progress_bar else self.embed(texts, **options)
        if truncate_dim is not None:
            vectors = _truncated(vectors, truncate_dim, normalize_embeddings)
        if precision != "float32":
            vectors = _signs(vectors, precision)
        if convert_to_tensor or not convert_to_numpy:
            import torch

            vectors = torch.from_numpy(vectors) if convert_to_tensor else [torch.from_numpy(v) for v in vectors]
        return vectors[0] if isinstance(sentences, str) else vectors

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Returns the vector of each text as a list, like the Embeddings of LangChain.

        >>> [len(vector) for vector in qkv.Embedder("runs/encoder").embed_documents(["a b c", "h g f"])]
        [12, 12]
        """
        found: list[list[float]] = self.embed(texts).tolist()
        return found

    def embed_query(self, text: str) -> list[float]:
        """Returns the vector of a text as a list, like the Embeddings of LangChain. The prefix is that of the run.

        >>> len(qkv.Embedder("runs/encoder").embed_query("a b c"))
        12
        """
        return self.embed_documents([text])[0]

    @documents_options("EmbedOptions")
    def attend(self, text: str, *, method: str = "weights", **options: Unpack[EmbedOptions]) -> AttentionMap:
        """Returns the attention weights of a text, with the tokens around it: the kind "encoder".

        method: "weights", or the attention of all layers up to one, "rollout" or "flow". Of the options, only prefix and
        prompt_name have an effect.

        >>> found = qkv.Embedder("runs/encoder").attend("a b c").kinds["encoder"]
        >>> found.rows, found.weights.shape  # layers, heads, tokens, tokens
        (['▁[CLS]', '▁a', '▁b', '▁c', '▁[SEP]'], (2, 3, 5, 5))

        Raises qkv.Error if the run is not an encoder, or the text is longer than the model's maximum.
        """
        check_text("text", text)
        return AttentionMap._of(self._embedder.attend(text, dict(options), {"method": method}))

    @documents_options("EmbedOptions")
    def hidden(self, text: str, **options: Unpack[EmbedOptions]) -> HiddenStates:
        """Returns the hidden states of all layers for a text, with the tokens around it.

        Of the options, only prefix and prompt_name have an effect.

        >>> states = qkv.Embedder("runs/encoder").hidden("a b c")
        >>> states.pieces, states.values.shape  # layers + 1, tokens, width
        (['▁[CLS]', '▁a', '▁b', '▁c', '▁[SEP]'], (3, 5, 12))

        Raises qkv.Error if the run is a translator or a language model, or the text is longer than the model's maximum.
        """
        check_text("text", text)
        return HiddenStates._of(self._embedder.hidden(text, dict(options)))

    @documents_options("HardNegativeOptions")
    def mine_hard_negatives(
        self,
        rows: str | os.PathLike[str] | Tabular,
        out: str | os.PathLike[str],
        *,
        columns: Iterable[str] = (),
        **options: Unpack[HardNegativeOptions],
    ) -> HardNegativeReport:
        """Finds texts that are similar to each anchor without belonging to it, and writes rows with them.

        qkv.train_embedder learns from these rows (docs/train-embedders.md). The file has the same bytes as that of `qkv
        embed --negatives`. Rows with too few negatives are dropped, and texts truncated, with a Python warning. Vectors
        are normalized unless normalize is False. Ctrl-C stops the call and leaves no file.

        >>> embedder = qkv.Embedder("runs/encoder")
        >>> report = embedder.mine_hard_negatives("answers.tsv", "triplets.csv", negatives_per_row=1, relative_margin=-10)
        >>> report.written, open("triplets.csv").readline()
        (3, 'anchor,positive,negative_1\\n')

        rows: rows of an anchor, its positive and perhaps negatives: CSV, TSV or JSON lines; or a table of pandas, polars
            or pyarrow.
        out: file to write; its name ends in .csv, .tsv or .jsonl.
        columns: columns to read: names, or numbers from "1"; by default usual names, or all columns.

        Raises qkv.Error, a ValueError, that names the file and its line or the option, and TypeError for an unknown
        option.
        """
        names = checked_texts("columns", columns)
        with row_file("rows", rows) as path:
            report = HardNegativeReport(*self._embedder.mine_hard_negatives(path, names, os.fspath(out), dict(options)))
        if is_tabular(rows):
            named = [line.replace(path, os.path.basename(path)) for line in report.messages]
            report = replace(report, messages=named)
        for line in report.messages[1:-1]:  # between the columns and the result
            warnings.warn(line, stacklevel=2)
        return report

    def _with_progress(self, texts: list[str], options: EmbedOptions) -> NDArray[np.float32]:
        import numpy as np

        try:
            from tqdm.auto import tqdm  # type: ignore[import-untyped]
        except ImportError:
            raise _qkv.Error("show_progress_bar requires the package tqdm, which is not installed") from None
        parts = [texts[begin : begin + 256] for begin in range(0, len(texts), 256)]
        found = [self.embed(part, **options) for part in tqdm(parts, desc="Batches")]
        return np.concatenate(found) if found else self.embed([])


def _check_encode(
    batch_size: int, output_value: str | None, precision: str, device: object, pool: object, chunk_size: int | None
) -> None:
    """Raises Error for what encode does not do."""
    if not isinstance(batch_size, int) or batch_size < 1:
        raise _qkv.Error(f"batch_size must be at least 1 (is {batch_size!r})")
    for name, value, accepted in (
        ("output_value", output_value, ("sentence_embedding",)),
        ("precision", precision, ("float32", "binary", "ubinary")),
        ("device", None if device is None else str(device), (None, "cpu")),
        ("pool", pool, (None,)),
        ("chunk_size", chunk_size, (None,)),
    ):
        if value not in accepted:
            raise _qkv.Error(f"{name} must be {' or '.join(str(x) for x in accepted)} (is {value!r})")


def _truncated(vectors: NDArray[np.float32], width: int, normalize: bool) -> NDArray[np.float32]:
    import numpy as np

    cut = np.ascontiguousarray(vectors[:, :width])
    if not normalize:
        return cut
    normalized: NDArray[np.float32] = cut / np.maximum(np.linalg.norm(cut, axis=1, keepdims=True), np.float32(1e-12))
    return normalized


def _signs(vectors: NDArray[np.float32], precision: str) -> NDArray[Any]:
    """Returns a bit for each component, 1 if it is positive, the first one in the highest bit of a byte."""
    import numpy as np

    bits = np.packbits(vectors > 0, axis=1)
    return bits if precision == "ubinary" else (bits.astype(np.int16) - 128).astype(np.int8)
