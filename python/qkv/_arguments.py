"""Checks of arguments, with errors that name them, and docstrings of options."""

from __future__ import annotations

import inspect
from typing import Any, Callable, Iterable, TypeVar

from . import _qkv
from ._option_texts import TEXTS
from ._tables import column_values, is_tabular, is_unicode

Function = TypeVar("Function", bound=Callable[..., Any])


def documents_options(name: str) -> Callable[[Function], Function]:
    """Decorator that appends the description of each option of this struct to a docstring."""

    def append(function: Function) -> Function:
        function.__doc__ = f"{inspect.cleandoc(function.__doc__ or '')}\n\n{TEXTS[name]}"
        return function

    return append


def check_options(function: str, name: str, options: Iterable[str]) -> None:
    """Raises TypeError for an option that this struct does not have."""
    allowed = {field["name"] for field in _qkv.option_fields()[name]}
    for option in options:
        if option not in allowed:
            raise TypeError(f"{function}() got an unexpected keyword argument '{option}'")


def checked_texts(name: str, values: Any) -> list[str]:
    """Returns the values, of a list or of a column of pandas, polars or pyarrow, as a list.

    Raises Error unless each is a str of valid Unicode.
    """
    if isinstance(values, str):
        raise _qkv.Error(f"{name} must be a list of str (is {values!r})")
    found = column_values(name, values) if is_tabular(values) else list(values)
    for i, text in enumerate(found):
        check_text(f"{name}[{i}]", text)
    return found


def check_text(name: str, text: Any) -> None:
    """Raises Error unless the value is a str of valid Unicode."""
    if not isinstance(text, str):
        raise _qkv.Error(f"{name} must be a str (is {text!r})")
    if not is_unicode(text):
        raise _qkv.Error(f"{name} is not valid Unicode")


def check_separator(logs: list[Any], separator: Any) -> None:
    """Raises Error unless the value is a str, and for one that is given with tables instead of files."""
    check_text("separator", separator)
    if separator and any(map(is_tabular, logs)):
        raise _qkv.Error(f"separator applies to files, not to tables (is {separator!r})")


def checked_times(name: str, values: Any) -> list[int | None]:
    """Returns the values as a list. Raises Error unless each is None or an integer of 64 bits."""
    found = list(values)
    for i, time in enumerate(found):
        if time is not None and not (isinstance(time, int) and -(2**63) < time < 2**63):
            raise _qkv.Error(f"{name}[{i}] must be an integer of 64 bits or None (is {time!r})")
    return found
