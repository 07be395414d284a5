"""Objects that export Arrow data, made by hand with ctypes, valid or not. They need no other library."""

import ctypes
import struct

NEW = ctypes.pythonapi.PyCapsule_New
NEW.restype, NEW.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]


class Schema(ctypes.Structure):
    pass


class Array(ctypes.Structure):
    pass


RELEASE = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
Schema._fields_ = [
    ("format", ctypes.c_char_p), ("name", ctypes.c_char_p), ("metadata", ctypes.c_char_p), ("flags", ctypes.c_int64),
    ("n_children", ctypes.c_int64), ("children", ctypes.POINTER(ctypes.POINTER(Schema))),
    ("dictionary", ctypes.POINTER(Schema)), ("release", ctypes.c_void_p), ("private_data", ctypes.c_void_p)]
Array._fields_ = [
    ("length", ctypes.c_int64), ("null_count", ctypes.c_int64), ("offset", ctypes.c_int64),
    ("n_buffers", ctypes.c_int64), ("n_children", ctypes.c_int64), ("buffers", ctypes.POINTER(ctypes.c_void_p)),
    ("children", ctypes.POINTER(ctypes.POINTER(Array))), ("dictionary", ctypes.POINTER(Array)),
    ("release", ctypes.c_void_p), ("private_data", ctypes.c_void_p)]


class Column:
    """An array with these buffers (bytes, or None for a null pointer). It counts how often it was released."""

    def __init__(self, format, buffers, length, *, offset=0, null_count=0, dictionary=None, children=(), name=""):
        self.keep = [None if b is None else ctypes.create_string_buffer(b, max(len(b), 1)) for b in buffers]
        pointers = [ctypes.cast(b, ctypes.c_void_p) if b is not None else None for b in self.keep]
        self.pointers = (ctypes.c_void_p * max(len(pointers), 1))(*pointers)
        self.released = []
        self.release = RELEASE(self.on_release)
        callback = ctypes.cast(self.release, ctypes.c_void_p)
        self.schema = Schema(format.encode(), name.encode(), None, 2, len(children), None, None, callback, None)
        self.array = Array(length, null_count, offset, len(buffers), len(children), self.pointers, None, None, callback,
                           None)
        self.children = children
        if children:
            self.schema.children = (ctypes.POINTER(Schema) * len(children))(*[ctypes.pointer(c.schema) for c in children])
            self.array.children = (ctypes.POINTER(Array) * len(children))(*[ctypes.pointer(c.array) for c in children])
        if dictionary:
            self.dictionary = dictionary
            self.schema.dictionary, self.array.dictionary = map(ctypes.pointer, (dictionary.schema, dictionary.array))

    def on_release(self, address):
        self.released.append(address)
        kind = Schema if address == ctypes.addressof(self.schema) else Array
        ctypes.memset(address + kind.release.offset, 0, ctypes.sizeof(ctypes.c_void_p))

    def __arrow_c_array__(self, requested_schema=None):
        return (NEW(ctypes.addressof(self.schema), b"arrow_schema", None),
                NEW(ctypes.addressof(self.array), b"arrow_array", None))


def strings(texts, **options):
    """A column of utf8."""
    data = [text.encode() for text in texts]
    ends = [sum(map(len, data[:i])) for i in range(len(data) + 1)]
    return Column("u", [None, struct.pack(f"{len(ends)}i", *ends), b"".join(data)], len(texts), **options)


def integers(values, **options):
    """A column of int64."""
    return Column("l", [None, struct.pack(f"{len(values)}q", *values)], len(values), **options)


def table(length, *columns):
    """A table of these columns."""
    return Column("+s", [None], length, children=columns)
