"""Tables and columns of other libraries, such as pandas, polars and pyarrow, which export them by the Arrow C data
interface (__arrow_c_stream__ or __arrow_c_array__). No such library is imported here.
"""

from __future__ import annotations

import contextlib
import os
from typing import Any, Iterable, Iterator, Mapping, Protocol, Sequence, TypeVar

from . import _qkv


class ArrowTable(Protocol):
    """A table, or a column, of a library that supports the Arrow C data interface."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Returns a capsule with a stream of chunks."""


Table = TypeVar("Table", bound=ArrowTable)


def is_arrow(value: object) -> bool:
    """Returns whether this object exports Arrow data."""
    return hasattr(value, "__arrow_c_stream__") or hasattr(value, "__arrow_c_array__")


def listed(sources: Any) -> list[Any]:
    """Returns paths, tables and columns as a list; a single one is a list of one."""
    return [sources] if isinstance(sources, (str, os.PathLike)) or is_arrow(sources) else list(sources)


def arrow_texts(name: str, column: Any) -> list[str]:
    """Returns a column of strings as a list. Raises Error, naming the row, for null and for invalid Unicode."""
    try:
        return _qkv.arrow_texts(column, name)
    except ImportError:  # pandas exports by pyarrow, which may not be installed
        return list(column)


def table_like(table: object, columns: Mapping[str, Sequence[Any]]) -> Any:
    """Returns columns as a table of the same kind: of pandas, polars or pyarrow; of another kind as a dict of lists."""
    for kind in type(table).__mro__:
        library = kind.__module__.partition(".")[0]
        if library in ("pandas", "polars") and kind.__name__ == "DataFrame":
            return kind(columns)
        if library == "pyarrow" and kind.__name__ in ("Table", "RecordBatch"):
            return kind.from_pydict(columns)  # type: ignore[attr-defined]
    return columns


def _temporary_folder() -> contextlib.AbstractContextManager[str]:
    import tempfile  # slow to import

    return tempfile.TemporaryDirectory(prefix="qkv-")


@contextlib.contextmanager
def log_files(name: str, logs: Any, columns: Iterable[str]) -> Iterator[tuple[list[str], list[str]]]:
    """Yields the paths of logs, and their columns: those given, or of temporary files with the tables given.

    Errors about these files name the argument instead. Raises Error for both paths and tables.
    """
    found = listed(logs)
    tables = sum(map(is_arrow, found))
    if 0 < tables < len(found):
        raise _qkv.Error(f"{name} must be paths or tables (has both)")
    if not tables:
        yield [os.fspath(log) for log in found], list(columns)
        return
    with _temporary_folder() as folder:
        names = [name if len(found) == 1 else f"{name}[{i}]" for i in range(len(found))]
        paths = [os.path.join(folder, own) for own in names]
        for table, own, path in zip(found, names, paths):
            _qkv.write_events(table, own, list(columns), path)
        with _named_as_arguments(folder):
            yield paths, []


@contextlib.contextmanager
def text_files(name: str, texts: Any, separator: str = "\n") -> Iterator[list[str]]:
    """Yields the paths of text: those given, or of temporary files with the columns of strings given.

    separator: after each string: a line break, or what ends a document. A string that contains it is an Error.
    """
    found = listed(texts)
    with _temporary_folder() as folder:
        paths = []
        for i, text in enumerate(found):
            own = name if len(found) == 1 else f"{name}[{i}]"
            paths.append(os.path.join(folder, own) if is_arrow(text) else os.fspath(text))
            if is_arrow(text):
                _qkv.write_texts(text, own, paths[-1], separator)
        with _named_as_arguments(folder):
            yield paths


@contextlib.contextmanager
def _named_as_arguments(folder: str) -> Iterator[None]:
    """Removes the name of a temporary folder from errors."""
    try:
        yield
    except _qkv.Error as error:
        raise _qkv.Error(str(error).replace(folder + os.sep, "")) from None


class Histories:
    """The events of a table of interactions by user, in the order in which it first names the users."""

    users: list[Any]  # as in the table
    items: list[list[str]]  # of each user, in time order
    times: list[list[int | None]]  # of these events; empty in a table without times

    def __init__(self, name: str, table: object, columns: Iterable[str]) -> None:
        events = _qkv.read_events(table, name, list(columns))
        self.columns = events.columns  # the names of the columns of user and item
        self.integers = bool(events.items) and isinstance(events.items[0], int)
        rows: dict[Any, list[int]] = {}
        for row, user in enumerate(events.users):
            rows.setdefault(user, []).append(row)
        items, times = [str(item) for item in events.items], events.times
        self.users, self.items, self.times = list(rows), [], []
        for mine in rows.values():
            if times is None:
                pairs: list[tuple[int | None, str]] = [(None, items[row]) for row in mine]
            else:  # as in a log, an event counts once
                pairs = list(dict.fromkeys((times[row], items[row]) for row in sorted(mine, key=times.__getitem__)))
            self.items.append([item for _, item in pairs])
            self.times.append([] if times is None else [time for time, _ in pairs])

    def item(self, name: str) -> str | int:
        """Returns an item of the model as the table has them. Raises Error for one that is no integer, if these are."""
        if not self.integers:
            return name
        number = int(name) if name.isdecimal() or name.startswith("-") and name[1:].isdecimal() else None
        if str(number) != name:
            column = self.columns[1]
            raise _qkv.Error(f"column {column!r} has integers, but the model's item {name!r} is none: pass strings")
        return int(name)
