"""The public declarations of C++, from the headers by libclang, and the symbols that the shared library exports."""

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
HEADERS = ROOT / "include/qkv"


def squeezed(text):
    """Code in one line, without comments."""
    return re.sub(r"\s+", " ", re.sub(r"//.*|/\*.*?\*/", "", text)).strip()


class Declarations:
    """Walks over the declarations of the headers. Lines are "NAME  DECLARATION"."""

    def __init__(self, clang):
        self.kinds, self.access = clang.CursorKind, clang.AccessSpecifier
        self.lines, self.texts = [], {}

    def text(self, cursor):
        """The declaration without a body and without comments."""
        file = cursor.location.file.name
        source = self.texts.setdefault(file, Path(file).read_bytes())
        bodies = [child for child in cursor.get_children() if child.kind == self.kinds.COMPOUND_STMT]
        end = bodies[0].extent.start.offset if bodies else cursor.extent.end.offset
        code = source[cursor.extent.start.offset : end].decode("utf-8")
        if self.is_type(cursor):
            code = code.partition("{")[0]
        return squeezed(code)

    def is_type(self, cursor):
        k = self.kinds
        return cursor.kind in (k.STRUCT_DECL, k.CLASS_DECL, k.ENUM_DECL, k.CLASS_TEMPLATE,
                               k.CLASS_TEMPLATE_PARTIAL_SPECIALIZATION)

    def add(self, name, text):
        self.lines.append(f"{name}  {text}")

    def add_type(self, cursor, name):
        size = cursor.type.get_size()
        self.add(name, self.text(cursor) + (f", {size} bytes" if size > 0 else ""))
        children = [child for child in cursor.get_children() if child.access_specifier != self.access.PRIVATE]
        fields = [child for child in children if child.kind in (self.kinds.FIELD_DECL, self.kinds.ENUM_CONSTANT_DECL)]
        before = ""
        for number, field in enumerate(fields):
            whole = self.text(field)  # of "int a = 1, b = 2" up to the field
            shared = bool(before) and whole.startswith(before + ",")
            own = kind + whole[len(before) + 2 :] if shared else whole
            self.add(f"{name}::{field.spelling}", f"[{number}] {own}")
            kind = kind if shared else whole.partition(field.spelling)[0]
            before = whole
        for child in children:
            if child not in fields:
                self.visit(child, name)

    def visit(self, cursor, scope):
        k = self.kinds
        own = (cursor.displayname or cursor.type.spelling) if self.is_type(cursor) else cursor.spelling
        name = f"{scope}::{own}" if scope else own
        if cursor.kind in (k.NAMESPACE, k.LINKAGE_SPEC) or cursor.kind == k.UNEXPOSED_DECL and not cursor.spelling:
            for child in cursor.get_children():
                self.visit(child, name if cursor.kind == k.NAMESPACE else scope)
        elif self.is_type(cursor):
            if cursor.is_definition():
                self.add_type(cursor, name)
        elif cursor.kind in (k.FUNCTION_DECL, k.FUNCTION_TEMPLATE, k.CXX_METHOD, k.CONSTRUCTOR, k.DESTRUCTOR,
                             k.CONVERSION_FUNCTION):
            types = ", ".join(self.parameters(cursor))
            self.add(f"{name}({types})" + (" const" if cursor.is_const_method() else ""), self.text(cursor))
        elif cursor.kind in (k.VAR_DECL, k.TYPEDEF_DECL, k.TYPE_ALIAS_DECL, k.TYPE_ALIAS_TEMPLATE_DECL,
                             k.USING_DECLARATION):
            if "{" not in self.text(cursor).partition("=")[0]:  # else a type that was visited
                self.add(name, self.text(cursor))
        elif cursor.kind == k.MACRO_DEFINITION and not name.endswith("_H"):
            self.add(name, self.text(cursor))

    def parameters(self, cursor):
        """The types of the parameters, as they are written."""
        found = [child for child in cursor.get_children() if child.kind == self.kinds.PARM_DECL]
        return [self.text(child).partition(" = ")[0].removesuffix(child.spelling).strip() for child in found]


def declarations():
    import clang.cindex as clang

    includes = "".join(f'#include "qkv/{header.name}"\n' for header in sorted(HEADERS.glob("*.h")))
    unit = clang.Index.create().parse("all.cc", ["-std=c++20", f"-I{HEADERS.parent}"], [("all.cc", includes)],
                                      clang.TranslationUnit.PARSE_DETAILED_PROCESSING_RECORD)
    errors = [problem.format() for problem in unit.diagnostics if problem.severity >= clang.Diagnostic.Error]
    assert not errors, errors[:3]
    found = Declarations(clang)
    for cursor in unit.cursor.get_children():
        if cursor.location.file and Path(cursor.location.file.name).parent == HEADERS:
            found.visit(cursor, "")
    return sorted(found.lines)


STANDARD = [(r"std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >", "std::string"),
            (r", std::(?:allocator|default_delete)<[^<>]*(?:<[^<>]*(?:<[^<>]*>)?[^<>]*>)?[^<>]*>(?= ?>)", ""),
            (r" >", ">"), (r", 18446744073709551615ul", ""), (r"\[abi:cxx11\]", ""), (r"@@.*", "")]


def plain_name(text):
    """The qualified name of a declaration or a symbol, without arguments, parameters and a result."""
    while "<" in text and "operator<" not in text:
        shorter = re.sub(r"<[^<>]*>", "", text)
        if shorter == text:
            break
        text = shorter
    return text.partition("(")[0].split(" ")[-1] if "operator" not in text else text.partition("(")[0]


def symbols(library, declared):
    """The exported functions and objects that the lines `declared` name; private ones are exported, too.

    Weak symbols depend on the optimization, except those of the templates that are instantiated explicitly.
    """
    done = subprocess.run(["nm", "-D", "--defined-only", "--demangle", library], capture_output=True, text=True, check=True)
    public = {plain_name(line.partition("  ")[0]) for line in declared}
    found = set()
    for _, kind, name in (line.split(maxsplit=2) for line in done.stdout.splitlines()):
        for pattern, short in STANDARD:
            name = re.sub(pattern, short, name)
        if plain_name(name) in public and (kind in "TBDR" or kind == "W" and name.startswith("qkv::layers::")):
            found.add(name)
    return sorted(found)
