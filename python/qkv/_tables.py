"""Tables and columns of other libraries, such as pandas, polars and pyarrow, which export them by the Arrow C data
interface (__arrow_c_stream__ or __arrow_c_array__). No such library is imported here.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
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


@contextlib.contextmanager
def log_files(name: str, tables: Sequence[object], columns: Iterable[str]) -> Iterator[list[str]]:
    """Writes tables of interactions to temporary files that the library reads as logs; they are deleted at the end.

    Errors about these files name the argument instead.
    """
    with tempfile.TemporaryDirectory(prefix="qkv-") as folder:
        names = [name if len(tables) == 1 else f"{name}[{i}]" for i in range(len(tables))]
        paths = [os.path.join(folder, x) for x in names]
        for table, x, path in zip(tables, names, paths):
            _qkv.write_events(table, x, list(columns), path)
        try:
            yield paths
        except _qkv.Error as error:
            raise _qkv.Error(str(error).replace(folder + os.sep, "")) from None


@contextlib.contextmanager
def text_file(name: str, column: object) -> Iterator[str]:
    """Writes a column of strings to a temporary file, one a line; it is deleted at the end.

    Raises Error, naming the row, for a string with a line break.
    """
    with tempfile.TemporaryDirectory(prefix="qkv-") as folder:
        path = os.path.join(folder, name)
        _qkv.write_lines(column, name, path)
        try:
            yield path
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
