"""The public names of the Python module: functions with their parameters, classes with their members."""

import ast
import dataclasses
import importlib
import inspect
import re
from pathlib import Path

MODULES = ("qkv", "qkv.layers", "qkv.batch")
CALLS = ("__init__", "__call__", "__enter__", "__iter__", "__len__", "__getitem__")
DEFAULTS = (bool, int, float, str, type(None))
MARKS = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}


def parameters(function):
    """(parameters, type of the keyword options, which are the last ones); without annotations, which may change."""
    try:
        found = inspect.signature(function).parameters.values()
    except ValueError:  # of the extension
        return "...", None
    texts, options, named = [], None, False
    for p in found:
        if p.kind is p.KEYWORD_ONLY and not named:
            texts.append("*")
        named |= p.kind in (p.KEYWORD_ONLY, p.VAR_POSITIONAL)
        default = "" if p.default is p.empty else f" = {p.default!r}" if type(p.default) in DEFAULTS else " = ..."
        texts.append(MARKS.get(p.kind, "") + p.name + default)
        unpacked = re.search(r"Unpack\[(\w+)\]", str(p.annotation))
        options = unpacked[1] if unpacked else options
    return ", ".join(texts), options


def function_lines(name, function):
    texts, options = parameters(function)
    kind = getattr(importlib.import_module("qkv._options"), options, None) if options else None
    if kind is None:
        return [f"{name}  ({texts})"]
    return [f"{name}  ({texts}: {options})", *(f"{options}.{key}  option" for key in kind.__annotations__)]


def class_lines(name, item):
    bases = [base.__name__ for base in item.__mro__[1:] if base is not object and base.__module__ == "builtins"]
    lines = [f"{name}  class" + (f"({bases[0]})" if bases else "")]
    if dataclasses.is_dataclass(item):
        lines += [f"{name}.{field.name}  field" for field in dataclasses.fields(item)]
    for short in sorted({s for s in dir(item) if not s.startswith("_") or s in CALLS and s in vars(item)}):
        member = getattr(item, short)
        if short == "__init__" and dataclasses.is_dataclass(item):
            continue
        if callable(member):
            lines += function_lines(f"{name}.{short}", member)
        elif f"{name}.{short}  field" not in lines:
            lines.append(f"{name}.{short}  " + ("property" if isinstance(member, property) else "value"))
    return lines


def names(module_name):
    module = importlib.import_module(module_name)
    lines = []
    for short in module.__all__:
        item, name = getattr(module, short), f"{module_name}.{short}"
        if inspect.isclass(item) and issubclass(item, Exception):
            lines.append(f"{name}  class({item.__mro__[1].__name__})")
        elif inspect.isclass(item):
            lines += class_lines(name, item)
        elif callable(item):
            lines += function_lines(name, item)
        else:
            lines.append(f"{name}  {'module' if inspect.ismodule(item) else 'value'}")
    return lines


def torch_names(source):
    """The names of qkv.torch, whose import needs torch, from its source."""
    tree = ast.parse(source)
    public = next(ast.literal_eval(node.value) for node in tree.body
                  if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__")
    lines = []
    for node in (node for node in tree.body if getattr(node, "name", None) in public):
        init = [f for f in ast.walk(node) if isinstance(f, ast.FunctionDef) and f.name in (node.name, "__init__")][0]
        for argument in ast.walk(init.args):
            if isinstance(argument, ast.arg):
                argument.annotation = None
        lines.append(f"qkv.torch.{node.name}  ({ast.unparse(init.args)})")
    assert len(lines) == len(public)
    return lines


def surface():
    torch = Path(importlib.import_module("qkv").__file__).with_name("torch.py").read_text(encoding="utf-8")
    return sorted({*torch_names(torch), *(line for module in MODULES for line in names(module))})
