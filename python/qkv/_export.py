"""Runs as models of Hugging Face's transformers, and runs with weights in 8 or 4 bits."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Literal

from . import _qkv


@dataclass(frozen=True)
class ExportReport:
    """A model that export_model has written.

    >>> qkv.ExportReport("gpt2", 124_439_808).model_type
    'gpt2'
    """

    model_type: str  # of the class of transformers: "gpt2", "marian", …
    parameters: int  # numbers that were written


@dataclass(frozen=True)
class QuantizeReport:
    """A run that quantize has written.

    >>> report = qkv.QuantizeReport("runs/en-de-int8", 20, 0, bytes_before=4_000_000, bytes=1_100_000)
    >>> report.bytes / report.bytes_before
    0.275
    """

    out: str  # path of the run directory that was written
    int8_matrices: int
    int4_matrices: int  # all other parameters stay float32
    bytes_before: int  # of the weights in memory
    bytes: int


def export_model(
    run: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    dtype: Literal["float32", "float16", "bfloat16"] = "float32",
) -> ExportReport:
    """Writes a run as a model for Hugging Face's transformers into the directory `out`, as `qkv export` does.

    An encoder is also a model of sentence-transformers.

    docs/export.md says which run becomes which class. The directory, which must not exist, is written whole or not at
    all.

    >>> report = qkv.export_model("runs/en-de", "exported", dtype="bfloat16")
    >>> report.model_type
    'marian'

    dtype: type of the weights: "float32" (default), "float16" or "bfloat16".

    Raises qkv.Error, a ValueError, if `out` exists, if the run is incomplete, damaged or quantized, if a number is too
    large for dtype, and, naming the field, if no class can express the configuration.
    """
    return ExportReport(*_qkv.export_model(os.fspath(run), os.fspath(out), {"dtype": dtype}))


def quantize(
    run: str | os.PathLike[str], out: str | os.PathLike[str] | None = None, *, bits: Literal[4, 8] = 8
) -> QuantizeReport:
    """Writes a copy of a run with weights in 8 or 4 bits into the run directory `out`, as `qkv quantize` does.

    The copy serves like any run, takes a quarter of the memory, or less with 4 bits, and cannot be trained.

    >>> report = qkv.quantize("runs/en-de")
    >>> report.out, report.bytes < report.bytes_before
    ('runs/en-de-int8', True)

    out: run directory to write, which must not exist; by default the path of the run with "-int8" or "-int4" appended.
    bits: 8 (default), or 4 for the matrices of layers with a multiple of 16 outputs and of 64 inputs; other matrices,
        embeddings and the output among them, have 8.

    Raises qkv.Error, a ValueError, naming the file, if `out` exists, or if the run is invalid, is quantized
    already, or has no matrix that may have so few bits, and for other bits.
    """
    return QuantizeReport(*_qkv.quantize(os.fspath(run), "" if out is None else os.fspath(out), bits))
