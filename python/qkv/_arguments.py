"""Checks of what callers hand over, for errors that name it."""

from __future__ import annotations

from typing import Any, TypeVar

from . import _qkv

Options = TypeVar("Options")


def set_options(options: Options, op: str, **values: Any) -> Options:
    """Sets the fields of these names. C++ checks the ranges; here are the types."""
    for name, value in values.items():
        try:
            setattr(options, name, float(value) if isinstance(getattr(options, name), float) else value)
        except (TypeError, ValueError, OverflowError):
            wanted = {bool: "True or False", int: "a whole number"}.get(type(getattr(options, name)), "a number")
            raise _qkv.Error(f"{op}: {name} is {value!r}, wanted {wanted}") from None
    return options


def checked_texts(op: str, what: str, values: Any) -> list[str]:
    """The values as a list, if each is a str that UTF-8 can hold."""
    found = [values] if isinstance(values, str) else list(values)
    for i, text in enumerate(found):
        if isinstance(values, str) or not isinstance(text, str):
            raise _qkv.Error(
                f"{op}: {what} {i + 1} of {type(values).__name__} is {type(text).__name__}, wanted a list of str"
            )
        if not is_unicode(text):
            raise _qkv.Error(f"{op}: {what} {i + 1} is not valid Unicode")
    return found


def checked_times(op: str, values: Any) -> list[int | None]:
    """The values as a list, if each is None or a whole number of 64 bits."""
    found = list(values)
    for i, time in enumerate(found):
        if time is not None and not (isinstance(time, int) and -(2**63) < time < 2**63):
            raise _qkv.Error(f"{op}: time {i + 1} is {time!r}, wanted a whole number of 64 bits, or None")
    return found


def is_unicode(text: str) -> bool:
    """False if half a surrogate pair is in it, which UTF-8 cannot hold."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
