"""Columns of batches: dicts of arrays, DataFrames of pandas, and Tables and RecordBatches of pyarrow."""

from __future__ import annotations

import importlib
from typing import Any, TypeVar, cast

from . import _qkv

Batch = TypeVar("Batch")


def column_of(batch: Any, name: str) -> Any:
    """Returns a column. Raises Error, listing the columns, if it does not exist."""
    names = list(batch.column_names if _is_arrow_table(batch) else batch)
    if name not in names:
        raise _qkv.Error(f"column must be one of {', '.join(map(str, names))} (is {name!r})")
    return batch[name]


def rows_of(column: Any) -> list[Any]:
    """Returns the values of a column."""
    return list(column.to_pylist() if hasattr(column, "to_pylist") else column)


def with_column(batch: Batch, name: str, values: Any) -> Batch:
    """Returns a batch of the same kind and rows with one more column: of str, of lists of str, or of vectors.

    values: a list, or an array [rows, width].
    """
    found: Any
    if _is_arrow_table(batch):
        found = _arrow_with(batch, name, values)
    elif isinstance(batch, dict):
        found = {**batch, name: _array(values)}
    else:
        found = _assigned(batch, name, values)
    return cast(Batch, found)


def check_batch(batch: Any, to: str) -> None:
    """Raises Error for another kind of batch, or one that has the column `to`."""
    if not (isinstance(batch, dict) or _is_arrow_table(batch) or _library(batch, "DataFrame") == "pandas"):
        kind = f"{type(batch).__module__}.{type(batch).__name__}"
        raise _qkv.Error(f"batch must be a dict of arrays, or a table of pandas or pyarrow (is a {kind})")
    if to in (batch.column_names if _is_arrow_table(batch) else batch):
        raise _qkv.Error(f"to must be the name of a new column ({to!r} exists)")


def _library(batch: object, *names: str) -> str:
    """Returns the library of a class, or of its bases, of one of these names."""
    found = (kind.__module__.partition(".")[0] for kind in type(batch).__mro__ if kind.__name__ in names)
    return next(found, "")


def _is_arrow_table(batch: object) -> bool:
    return _library(batch, "Table", "RecordBatch") == "pyarrow"


def _assigned(frame: Any, name: str, values: Any) -> Any:
    return frame.assign(**{name: list(values)})


def _array(values: Any) -> Any:
    """Returns an array of objects, or the array of vectors."""
    import numpy as np

    if isinstance(values, np.ndarray):
        return values
    array = np.empty(len(values), object)
    for i, value in enumerate(values):
        array[i] = value
    return array


def _arrow_with(batch: Any, name: str, values: Any) -> Any:
    pa = importlib.import_module("pyarrow")
    if hasattr(values, "ravel"):
        rows, width = values.shape
        column = pa.ListArray.from_arrays(pa.array([width * row for row in range(rows + 1)], pa.int32()), values.ravel())
    else:
        column = pa.array(values, pa.list_(pa.string()) if values and isinstance(values[0], list) else pa.string())
    schema = batch.schema.append(pa.field(name, column.type))
    return type(batch).from_arrays([*batch.columns, column], schema=schema)
