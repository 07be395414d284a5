"""Import of models that other projects trained."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Callable

from . import _qkv
from ._arguments import documents_options

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._options import ImportOptions


@documents_options("ImportOptions")
def import_model(
    source: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    on_download: Callable[[_qkv.DownloadProgress], Any] | None = None,
    **options: Unpack[ImportOptions],
) -> _qkv.ImportReport:
    """Converts a model of another project into the run directory `out`, which must not exist, as `qkv import` does.

    `source` is a directory, a file, or hf:OWNER/NAME[/FILE][@REVISION] on the Hugging Face hub, which is downloaded
    first. docs/import.md lists what is read. Raises qkv.Error, a ValueError, naming file and field, if the model is
    broken, not supported or cannot be downloaded. `on_download` is called during a download, at least about once a
    second; what it raises ends the download, as does Ctrl-C. What has arrived is kept.
    """
    return _qkv.import_model(os.fspath(source), os.fspath(out), dict(options), on_download)
