"""Tables and columns of pandas, polars and pyarrow, which are read by their own methods. None of them is imported."""

from __future__ import annotations

import contextlib
import datetime
import math
import os
from typing import Any, Iterable, Iterator, Mapping, Protocol, Sequence, TypeVar

from . import _qkv

_KINDS = {
    ("pandas", "DataFrame"), ("pandas", "Series"), ("polars", "DataFrame"), ("polars", "Series"),
    ("pyarrow", "Table"), ("pyarrow", "RecordBatch"), ("pyarrow", "ChunkedArray"), ("pyarrow", "Array"),
}
_ROWS = 1 << 16  # that become Python objects at a time
_MILLION = 1_000_000


class Tabular(Protocol):
    """A table or a column of pandas, polars or pyarrow, which all have this method."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Returns a capsule with a stream of chunks."""


Table = TypeVar("Table", bound=Tabular)


def _kinds(value: object) -> Iterator[tuple[str, str]]:
    return ((kind.__module__.partition(".")[0], kind.__name__) for kind in type(value).__mro__)


def is_tabular(value: object) -> bool:
    """Returns whether this object is a table or a column of pandas, polars or pyarrow."""
    return not _KINDS.isdisjoint(_kinds(value))


def listed(sources: Any) -> list[Any]:
    """Returns paths, tables and columns as a list; a single one is a list of one."""
    return [sources] if isinstance(sources, (str, os.PathLike)) or is_tabular(sources) else list(sources)


def _values(name: str, column: Any) -> Iterator[Any]:
    """Yields the values of a column as Python objects."""
    if hasattr(column, "columns"):
        raise _qkv.Error(f"{name} is a table, expected a column")
    rows = getattr(column, "iloc", column)  # of pandas, by position
    for begin in range(0, len(column), _ROWS):
        part = rows[begin : begin + _ROWS]
        yield from part.to_pylist() if hasattr(part, "to_pylist") else part.to_list()


def column_values(name: str, column: Any) -> list[Any]:
    """Returns the values of a column as Python objects. Raises Error for a table."""
    return list(_values(name, column))


def table_like(table: Any, columns: Mapping[str, Sequence[Any]]) -> Any:
    """Returns columns as a table of the same kind."""
    if hasattr(table, "column_names"):
        return type(table).from_pydict(columns)
    return next(kind for kind in type(table).__mro__ if kind.__name__ == "DataFrame")(columns)


class _Events:
    """The columns of user, item and, if there is one, time of a table; rows are in its order."""

    def __init__(self, name: str, table: Any, columns: list[str]) -> None:
        if not hasattr(table, "columns"):
            raise _qkv.Error(f"{name} is a column, expected a table")
        keys = list(table.column_names if hasattr(table, "column_names") else table.columns)
        self.names = [str(key) for key in keys]
        self._name, self._table, self._keys = name, table, keys
        self._user, self._item, self._time = _qkv.find_event_columns(self.names, columns, name)
        self.has_times = self._time >= 0

    @property
    def columns(self) -> list[str]:
        """The names of the columns of user and item."""
        return [self.names[self._user], self.names[self._item]]

    def users(self) -> Iterator[str | int]:
        return self._ids(self._user)

    def items(self) -> Iterator[str | int]:
        return self._ids(self._item)

    def times(self) -> Iterator[int]:
        """Yields times in millionths; those of dates and timestamps count from 1970."""
        for row, value in self._column(self._time):
            found = _millionths(value)
            if found is None:
                raise self._error(self._time, row, f"expected a finite number, a date or a timestamp (is {value!r:.80})")
            yield found

    def _column(self, index: int) -> Iterator[tuple[int, Any]]:
        return enumerate(_values(self._where(index), self._table[self._keys[index]]))

    def _ids(self, index: int) -> Iterator[str | int]:
        kind: type[str] | type[int] | None = None
        for row, value in self._column(index):
            kind = kind or (int if isinstance(value, int) else str)
            if not isinstance(value, kind) or isinstance(value, bool):
                expected = "a string or an integer" if row == 0 else "a string" if kind is str else "an integer"
                raise self._error(index, row, f"expected {expected} (is {value!r:.80})")
            if isinstance(value, str) and not is_unicode(value):
                raise self._error(index, row, "the string is not valid Unicode")
            yield value

    def _where(self, index: int) -> str:
        return f'{self._name}: column "{self.names[index]}"'

    def _error(self, index: int, row: int, problem: str) -> Exception:
        return _qkv.Error(f"{self._where(index)}, row {row} (from 0): {problem}")

    def write(self, path: str) -> None:
        """Writes the events as CSV with the columns user, item and, if the table has times, time."""
        rows: Iterable[str]
        if self.has_times:
            triples = zip(self.users(), self.items(), self.times())
            rows = (f"{_field(user)},{_field(item)},{_seconds(time)}\n" for user, item, time in triples)
        else:
            rows = (f"{_field(user)},{_field(item)}\n" for user, item in zip(self.users(), self.items()))
        with open(path, "w", encoding="utf-8", newline="") as file:
            file.write("user,item,time\n" if self.has_times else "user,item\n")
            file.writelines(rows)


def _millionths(value: Any) -> int | None:
    """Returns a time in millionths of its unit, or None for a value that is no time."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value * _MILLION
    if isinstance(value, float):
        if not abs(value) < 2**53:
            return None
        whole = math.floor(value)
        return whole * _MILLION + round((value - whole) * _MILLION)
    if isinstance(value, datetime.datetime) and value == value:  # unlike pandas' NaT
        zone = datetime.timezone.utc
        passed = (value if value.tzinfo else value.replace(tzinfo=zone)) - datetime.datetime(1970, 1, 1, tzinfo=zone)
        return int(passed // datetime.timedelta(microseconds=1))
    if isinstance(value, datetime.date) and value == value:
        return (value - datetime.date(1970, 1, 1)).days * 86400 * _MILLION
    return None


def _seconds(time: int) -> str:
    whole, rest = divmod(abs(time), _MILLION)
    return ("-" if time < 0 else "") + (f"{whole}.{rest:06}" if rest else str(whole))


def _field(value: str | int) -> str:
    """Returns a value as a field of CSV."""
    return str(value) if isinstance(value, int) else '"' + value.replace('"', '""') + '"'


def is_unicode(text: str) -> bool:
    """Returns whether a string has no half of a surrogate pair."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _write_texts(name: str, column: Any, path: str, separator: str) -> None:
    """Writes a column of strings, each followed by a separator: a line break, or what ends a document, and a line break.

    Raises Error for a string that contains the separator.
    """
    lines = separator == "\n"
    if not separator:
        raise _qkv.Error(f"{name}: strings need a separator (is empty)")
    with open(path, "w", encoding="utf-8", newline="") as file:
        for row, text in enumerate(_values(name, column)):
            if not isinstance(text, str):
                problem = f"expected a string (is {text!r:.80})"
            elif not is_unicode(text):
                problem = "the string is not valid Unicode"
            elif lines and ("\n" in text or "\r" in text):
                problem = "the string contains a line break"
            elif separator in text:
                problem = f"the string contains {separator}"
            else:
                file.write(text + separator if lines else f"{text}{separator}\n")
                continue
            raise _qkv.Error(f"{name}, row {row} (from 0): {problem}")


def _write_rows(name: str, table: Any, path: str) -> None:
    """Writes the rows of a table, or of a column of strings named "text", as JSON lines."""
    import json

    if hasattr(table, "columns"):
        keys = list(table.column_names if hasattr(table, "column_names") else table.columns)
        columns = {str(key): _values(f'{name}: column "{key}"', table[key]) for key in keys}
    else:
        columns = {"text": _values(name, table)}
    with open(path, "w", encoding="utf-8", newline="") as file:
        for row, values in enumerate(zip(*columns.values())):
            try:
                file.write(json.dumps(dict(zip(columns, values)), ensure_ascii=False, allow_nan=False) + "\n")
            except (TypeError, ValueError) as error:
                raise _qkv.Error(f"{name}, row {row} (from 0): {error}") from None


@contextlib.contextmanager
def row_file(name: str, rows: Any) -> Iterator[str]:
    """Yields the path of rows of texts: the one given, "" for None, or of a temporary file with the table given."""
    if rows is None or not is_tabular(rows):
        yield "" if rows is None else os.fspath(rows)
        return
    with _temporary_folder() as folder, _named_as_arguments(folder):
        path = os.path.join(folder, f"{name}.jsonl")
        _write_rows(name, rows, path)
        yield path


def _temporary_folder() -> contextlib.AbstractContextManager[str]:
    import tempfile  # slow to import

    return tempfile.TemporaryDirectory(prefix="qkv-")


@contextlib.contextmanager
def log_files(name: str, logs: Any, columns: Iterable[str]) -> Iterator[tuple[list[str], list[str]]]:
    """Yields the paths of logs, and their columns: those given, or of temporary files with the tables given.

    Errors about these files name the argument instead. Raises Error for both paths and tables.
    """
    found = listed(logs)
    tables = sum(map(is_tabular, found))
    if 0 < tables < len(found):
        raise _qkv.Error(f"{name} must be paths or tables (has both)")
    if not tables:
        yield [os.fspath(log) for log in found], list(columns)
        return
    with _temporary_folder() as folder:
        names = [name if len(found) == 1 else f"{name}[{i}]" for i in range(len(found))]
        paths = [os.path.join(folder, own) for own in names]
        for table, own, path in zip(found, names, paths):
            _Events(own, table, list(columns)).write(path)
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
            paths.append(os.path.join(folder, own) if is_tabular(text) else os.fspath(text))
            if is_tabular(text):
                _write_texts(own, text, paths[-1], separator)
        with _named_as_arguments(folder):
            yield paths


@contextlib.contextmanager
def _named_as_arguments(folder: str) -> Iterator[None]:
    """Removes the name of a temporary folder from errors."""
    try:
        yield
    except _qkv.Error as error:
        raise _qkv.Error(str(error).replace(folder + os.sep, "")) from None


def _whole(name: str, times: list[int]) -> list[int]:
    """Returns times in millionths as integers: in whole units if none of them has a fraction, as in a log."""
    if not any(time % _MILLION for time in times):
        times = [time // _MILLION for time in times]
    for row, time in enumerate(times):
        if not -(2**63) < time < 2**63:
            raise _qkv.Error(f"{name}, row {row} (from 0): the time {time} does not fit into 64 bits")
    return times


class Histories:
    """The events of a table of interactions by user, in the order in which it first names the users."""

    users: list[Any]  # as in the table
    items: list[list[str]]  # of each user, in time order
    times: list[list[int | None]]  # of these events; empty in a table without times

    def __init__(self, name: str, table: Any, columns: Iterable[str]) -> None:
        events = _Events(name, table, list(columns))
        self.columns = events.columns  # the names of the columns of user and item
        found = list(events.items())
        self.integers = bool(found) and isinstance(found[0], int)
        times = _whole(name, list(events.times())) if events.has_times else None
        rows: dict[Any, list[int]] = {}
        for row, user in enumerate(events.users()):
            rows.setdefault(user, []).append(row)
        items = [str(item) for item in found]
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
