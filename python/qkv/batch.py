"""Jobs on many rows or files, for engines that call one object in many processes, such as Ray, Spark and Dask.

qkv.batch.Translate   adds a column of translations to batches of rows
qkv.batch.Embed       adds a column of vectors
qkv.batch.Recommend   adds a column of recommended items
qkv.batch.Parts       does the same on the lines of files, each with its own output, like qkv translate --in

Objects are pickled as their arguments. A process opens a run when it first needs it, and keeps the last few that it has
opened. docs/jobs.md has examples for each engine, none of which is needed otherwise.

>>> batch = {"id": np.array([1, 2]), "text": np.array(["He sleeps.", "The dog runs."])}
>>> list(qkv.batch.Translate("runs/en-de")(batch))
['id', 'text', 'translation']
"""

from __future__ import annotations

import contextlib
import functools
import os
import warnings
from typing import TYPE_CHECKING, Any, Iterable, Iterator, Literal, Sequence

from . import _qkv
from ._arguments import documents_options
from ._batch_columns import Batch, check_batch, column_of, rows_of, with_column
from ._embedder import Embedder
from ._recommender import Recommender
from ._translator import Translator

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._options import EmbedOptions, RecommendOptions, TranslateOptions

__all__ = ["Embed", "Parts", "Recommend", "Translate"]

# The models that this process has opened.


@functools.lru_cache(maxsize=4)
def _translator(run: str, ensemble: tuple[str, ...]) -> Translator:
    return Translator(run, ensemble)


@functools.lru_cache(maxsize=4)
def _embedder(run: str) -> Embedder:
    return Embedder(run)


@functools.lru_cache(maxsize=4)
def _recommender(run: str, catalogue: str | None, item_column: str, new_items: str | None) -> Recommender:
    return Recommender(run, catalogue=catalogue, item_column=item_column, new_items=new_items)


@contextlib.contextmanager
def _using_threads(count: int | None) -> Iterator[None]:
    before = _qkv.threads()
    if count is not None:
        _qkv.set_threads(count)
    try:
        yield
    finally:
        _qkv.set_threads(before)


class _Rows:
    """A function of batches that adds a column."""

    def __init__(self, column: str, to: str, threads: int | None) -> None:
        self._column, self._to, self._threads = column, to, threads

    def __call__(self, batch: Batch) -> Batch:
        """Returns a batch of the same kind and rows, with one more column.

        batch: a dict of arrays, a DataFrame of pandas, or a Table or RecordBatch of pyarrow.

        Raises qkv.Error, a ValueError, that names the column, row or option.
        """
        check_batch(batch, self._to)
        with _using_threads(self._threads):
            return with_column(batch, self._to, self._values(column_of(batch, self._column)))

    def frames(self, frames: Iterable[Batch]) -> Iterator[Batch]:
        """Calls the object on each of the batches, for mapInPandas and mapInArrow of Spark.

        >>> batches = [{"text": np.array(["He sleeps."])}, {"text": np.array([], object)}]
        >>> [len(batch["translation"]) for batch in qkv.batch.Translate("runs/en-de").frames(batches)]
        [1, 0]
        """
        for frame in frames:
            yield self(frame)

    def _values(self, column: Any) -> Any:
        """Returns the new column: a list, or an array [rows, width]."""
        raise NotImplementedError


class _Lines(_Rows):
    """The same for the lines of files."""

    _forms: tuple[str, ...] = ("text",)

    def _do(self, folders: _qkv.PartFolders, name: bytes, form: str) -> tuple[str, str, list[str]]:
        raise NotImplementedError


class Translate(_Lines):
    """Adds the best translation of each text.

    >>> translate = qkv.batch.Translate("runs/en-de", column="en", to="de", beam=2)
    >>> batch = translate({"en": np.array(["He sleeps.", "The dog runs."])})
    >>> translations = qkv.Translator("runs/en-de").translate(["He sleeps.", "The dog runs."], beam=2)
    >>> list(batch["de"]) == [found.text for found in translations]
    True

    run: run directory; a path that all processes have.
    column: the column with the texts. to: the new column.
    threads: of each call; by default OMP_NUM_THREADS, or one per processor that the process may use.
    ensemble: further run directories, as for qkv.Translator.

    With sampling, a translation depends on the number of its row in the batch.
    """

    _forms = ("text", "json")

    @documents_options("TranslateOptions")
    def __init__(
        self,
        run: str | os.PathLike[str],
        column: str = "text",
        to: str = "translation",
        threads: int | None = None,
        ensemble: Iterable[str | os.PathLike[str]] = (),
        **options: Unpack[TranslateOptions],
    ) -> None:
        """See the class."""
        super().__init__(column, to, threads)
        self._run, self._ensemble = os.fspath(run), tuple(os.fspath(other) for other in ensemble)
        self._options = options

    def _translator(self) -> Translator:
        return _translator(self._run, self._ensemble)

    def _values(self, column: Any) -> list[str]:
        return [found.text for found in self._translator().translate(column, **self._options)]

    def _do(self, folders: _qkv.PartFolders, name: bytes, form: str) -> tuple[str, str, list[str]]:
        translator = self._translator()
        options = {**translator._defaults, **self._options}
        return folders.translate(name, translator._translator, options, form == "json")


class Embed(_Lines):
    """Adds the vector of each text: to a dict an array [rows, width], to a table a column of lists of float32.

    >>> batch = qkv.batch.Embed("runs/encoder")({"text": np.array(["a b c", "h g f"])})
    >>> batch["vector"].shape
    (2, 12)

    run, column, to and threads: as for Translate.
    """

    _forms = ("text", "json", "npy")

    @documents_options("EmbedOptions")
    def __init__(
        self,
        run: str | os.PathLike[str],
        column: str = "text",
        to: str = "vector",
        threads: int | None = None,
        **options: Unpack[EmbedOptions],
    ) -> None:
        """See the class."""
        super().__init__(column, to, threads)
        self._run, self._options = os.fspath(run), options

    def _embedder(self) -> Embedder:
        return _embedder(self._run)

    def _values(self, column: Any) -> Any:
        return self._embedder().embed(column, **self._options)

    def _do(self, folders: _qkv.PartFolders, name: bytes, form: str) -> tuple[str, str, list[str]]:
        return folders.embed(name, self._embedder()._embedder, dict(self._options), form)


class Recommend(_Lines):
    """Adds the names of the next items after each history, a list of names, the best first.

    >>> histories = np.empty(2, object)
    >>> histories[:] = [["f0000", "f0010"], ["f0001"]]
    >>> batch = qkv.batch.Recommend("runs/films", top=3)({"history": histories})
    >>> [len(items) for items in batch["items"]]
    [3, 3]

    run, to and threads: as for Translate. catalogue, item_column and new_items: as for qkv.Recommender.
    column: the column with the histories, lists of item names, oldest first. A line of a file is a request in JSON, as
        for qkv recommend.
    """

    _forms = ("json",)

    @documents_options("RecommendOptions")
    def __init__(
        self,
        run: str | os.PathLike[str],
        column: str = "history",
        to: str = "items",
        threads: int | None = None,
        catalogue: str | os.PathLike[str] | None = None,
        item_column: str = "",
        new_items: str | os.PathLike[str] | None = None,
        **options: Unpack[RecommendOptions],
    ) -> None:
        """See the class."""
        super().__init__(column, to, threads)
        tables = [None if path is None else os.fspath(path) for path in (catalogue, new_items)]
        self._arguments = (os.fspath(run), tables[0], item_column, tables[1])
        self._options = options

    def _recommender(self) -> Recommender:
        return _recommender(*self._arguments)

    def _values(self, column: Any) -> list[list[str]]:
        histories = rows_of(column)
        for row, history in enumerate(histories):
            if isinstance(history, str) or not hasattr(history, "__iter__"):
                raise _qkv.Error(f"column {self._column!r}, row {row} (from 0): expected a list of str (is {history!r})")
        return [answer.names for answer in self._recommender().recommend_all(histories, **self._options)]

    def _do(self, folders: _qkv.PartFolders, name: bytes, form: str) -> tuple[str, str, list[str]]:
        return folders.recommend(name, self._recommender()._recommender, dict(self._options))


class Parts(_Rows):
    """Does the lines of files, each with its own output, which has the bytes that the command line writes.

    >>> import pathlib
    >>> pathlib.Path("parts").mkdir()
    >>> for name in ("0", "1"):
    ...     size = pathlib.Path("parts", name).write_text("He sleeps.\\n")
    >>> parts = qkv.batch.Parts(qkv.batch.Translate("runs/en-de"), "parts", "done")
    >>> parts(parts.names()), parts(["1", "2"])
    (['written', 'written'], ['present', 'failed: parts/2: cannot be opened: No such file or directory'])

    Called with names of parts, it returns for each of them "written", "present" if the output existed, or "failed: "
    and the reason: a part that fails does not keep others from being done. Called with a batch, it takes them from a
    column, and adds these results as another.

    fn: a Translate, Embed or Recommend. Its column is not used.
    source: the folder of the parts. target: that of the outputs; see docs/jobs.md.
    form: "text"; "json", as with the option --json; or for Embed "npy". By default that of the command line.
    column: the column with the names, which is named as Ray does. to: the new column.

    Raises qkv.Error, a ValueError, for folders, options or a run that are not valid, and for an output that cannot be
    written.
    """

    def __init__(
        self,
        fn: Translate | Embed | Recommend,
        source: str | os.PathLike[str],
        target: str | os.PathLike[str],
        *,
        form: Literal["text", "json", "npy"] | None = None,
        column: str = "item",
        to: str = "done",
    ) -> None:
        if not isinstance(fn, _Lines):
            raise _qkv.Error(f"fn must be a Translate, an Embed or a Recommend (is {fn!r})")
        if form is not None and form not in fn._forms:
            raise _qkv.Error(f"form must be {' or '.join(fn._forms)} for a {type(fn).__name__} (is {form!r})")
        super().__init__(column, to, fn._threads)
        self._fn, self._form = fn, form or fn._forms[0]
        self._source, self._target = os.fspath(source), os.fspath(target)

    def names(self, worker: int = 1, workers: int = 1) -> list[str]:
        """Returns the names of all parts, or of those of a worker, as qkv translate --worker takes them.

        >>> import pathlib
        >>> pathlib.Path("parts").mkdir()
        >>> for name in ("a", "b", "c"):
        ...     size = pathlib.Path("parts", name).write_text("")
        >>> parts = qkv.batch.Parts(qkv.batch.Embed("runs/encoder"), "parts", "done")
        >>> parts.names(), parts.names(2, 2)
        (['a', 'b', 'c'], ['b'])
        """
        return [os.fsdecode(name) for name in self._folders().names(worker, workers)]

    def __call__(self, batch: Any) -> Any:
        """Does the parts with these names: a list, or a batch with a column of names. See the class."""
        if not isinstance(batch, (list, tuple)):
            return super().__call__(batch)
        with _using_threads(self._threads):
            return self._values(batch)

    def _folders(self) -> _qkv.PartFolders:
        suffix = ".npy" if self._form == "npy" else ""
        return _qkv.PartFolders(os.fsencode(self._source), os.fsencode(self._target), suffix)

    def _values(self, column: Sequence[str]) -> list[str]:
        folders = self._folders()
        found = [self._one(folders, name) for name in rows_of(column)]
        folders.remove_leftovers()
        return found

    def _one(self, folders: _qkv.PartFolders, name: str) -> str:
        if not isinstance(name, str):
            raise _qkv.Error(f"names of parts must be str (is {name!r})")
        state, error, notes = self._fn._do(folders, os.fsencode(name), self._form)
        for note in notes:
            warnings.warn(note, stacklevel=5)
        return f"failed: {error}" if state == "failed" else state
