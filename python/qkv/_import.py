"""Import of models that other projects trained."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Callable

from . import _qkv
from ._arguments import documents_options

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._options import ImportOptions


@dataclass(frozen=True)
class ImportReport:
    """A model that import_model has converted.

    >>> report = qkv.import_model("bert", "runs/imported")
    >>> report.kind, report.parameters > 1000, report.notes
    ('BERT', True, ['left out: pooler (not needed for hidden states)'])
    """

    kind: str  # the model class: "BERT", "Llama", "CTranslate2", "Marian", …
    parameters: int
    notes: list[str]  # on what was left out or downloaded, a line each


@dataclass(frozen=True)
class DownloadProgress:
    """The state of a download, as import_model reports it to on_download.

    >>> progress = qkv.DownloadProgress("model.safetensors", received=50, size=200, complete=False, note="")
    >>> f"{progress.file}: {progress.received / progress.size:.0%}"
    'model.safetensors: 25%'
    """

    file: str  # name in the repository; "" while its list of files is requested
    received: int  # bytes that have arrived, those of an earlier attempt included
    size: int  # bytes of the file; 0 if the hub does not state it
    complete: bool  # the file is checked and in the cache; the last report on it
    note: str  # why nothing arrives at the moment, or ""


@documents_options("ImportOptions")
def import_model(
    source: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    on_download: Callable[[DownloadProgress], Any] | None = None,
    **options: Unpack[ImportOptions],
) -> ImportReport:
    """Converts a model of another project into the run directory `out`, which must not exist, as `qkv import` does.

    docs/import.md lists what is read.

    >>> qkv.import_model("bert", "runs/bert").kind
    'BERT'
    >>> qkv.Embedder("runs/bert").width
    12

    source: a directory, a file, or hf:OWNER/NAME[/FILE][@REVISION] on the Hugging Face hub, which is downloaded first.
    out: run directory to write.
    on_download: called during a download, at least about once a second; what it raises ends the download, as does
        Ctrl-C. What has arrived is kept.

    Raises qkv.Error, a ValueError, naming file and field, if the model is broken, not supported or cannot be
    downloaded, and TypeError for an unknown option.
    """

    def report(p: _qkv.DownloadProgress) -> None:
        if on_download is not None:
            on_download(DownloadProgress(p.file, p.received, p.size, p.complete, p.note))

    found = _qkv.import_model(os.fspath(source), os.fspath(out), dict(options), report)
    return ImportReport(found.kind, found.parameters, found.notes)
