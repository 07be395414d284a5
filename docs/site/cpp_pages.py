"""Pages of the public headers: each top-level name with its comment, its declaration, and the table of its options."""

import re

from prose import escaped, fence, plain, prose

NAME = re.compile(
    r"(?:^|\n)(?:template <[^\n]*>\n)?(?:struct|class|enum class)\s+(?P<type>\w+)(?:<[^>]*>)?\s*[:{;]"
    r"|(?:^|\n)(?:template <.*>\n)?using\s+(?P<alias>\w+)"
    r"|\bconstexpr\s[\w:<>, *]*?(?P<constant>k[A-Z]\w*)(?=\s*[={;,])"
    r"|(?P<function>\w+|operator\S+)\(",
    re.DOTALL,
)
VISIT = re.compile(r'visit\(\s*"(\w+)",\s*[^{"]*\{((?:"(?:[^"\\]|\\.)*"\s*)+)', re.DOTALL)


INDEX = """# C++ headers

All names are in the namespace `qkv`, those of `layers.h` in `qkv::layers`. `qkv/qkv.h` includes the headers that most
programs need. Errors are exceptions of the type `qkv::Error`. [CMake finds the library](@home) as the package `qkv`.
"""


def blocks(text):
    """The declarations of namespaces, each as (comment, code)."""
    comment, code, depth, found = [], [], 0, []
    for line in text.split("\n"):
        if not code and (line.startswith(("#", "namespace ", "}  // namespace")) or not line.strip()):
            comment = []
        elif not code and line.startswith("//"):
            comment.append(line[2:].removeprefix(" "))
        else:
            code.append(line)
            bare = re.sub(r'"(?:[^"\\]|\\.)*"|\'(?:[^\'\\]|\\.)\'|//.*', "", line)
            depth += sum(map(bare.count, "{(")) - sum(map(bare.count, "})"))
            if depth == 0 and re.search(r"[;}]\s*$", bare):
                found.append(("\n".join(comment), "\n".join(code)))
                comment, code = [], []
    assert not code, code[0]
    return found


def name_of(code):
    name = next(filter(None, NAME.search(code).groupdict().values()))
    return "operator" + name.removeprefix("operator") if name.startswith("operator") else name


def public(code):
    """The declaration without private members and without bodies of functions of several lines."""
    code = re.sub(r"\n private:\n.*?\n};", "\n};", code, flags=re.DOTALL)
    if re.search(r"^(?:struct|class) ", code, re.MULTILINE):
        code = re.sub(r" \{\n(?:    .*\n|\n)*  \}(?=\n)", ";", code)
    return code


def options(code):
    """The table of the fields that a function visit_fields describes."""
    rows = [(name, "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', text))) for name, text in VISIT.findall(code)]
    return "\n".join(["| option | effect |", "|---|---|", *(f"| `{name}` | {escaped(text)} |" for name, text in rows)])


def header(path):
    """The page of a header, and the names on it."""
    text = path.read_text(encoding="utf-8")
    intro, _, rest = text.partition("#pragma once")
    name = f"qkv/{path.name}"
    page = [f"# {name}", prose(re.sub(r"^// ?", "", intro, flags=re.MULTILINE)),
            f"[Source of the header](include/{name}), `#include \"{name}\"`"]
    names = []
    for comment, code in blocks(rest):
        found = name_of(code)
        if found == "names_of" or re.match(r"(?:template <[^\n]*>\n)?(?:class|struct) \w+;", code):
            continue
        if found == "visit_fields":
            owner = re.search(r"visit_fields\((\w+)&", code)
            if owner and VISIT.search(code):
                page += [f"The options of `{owner[1]}`:", options(code)]
            continue
        if found not in names:
            names.append(found)
            page.append(f"## {plain(found)}")
        page += [prose(comment), fence(public(code), "cpp")]
    return "\n\n".join(filter(None, page)) + "\n", names


def summary(path):
    """The first sentence of a header."""
    intro = path.read_text(encoding="utf-8").partition("#pragma once")[0]
    words = " ".join(line.removeprefix("//").strip() for line in intro.splitlines())
    return escaped(re.split(r"(?<=[.:]) ", words)[0].rstrip(":"))


def pages(root):
    """Triples (name, text, file that it shows): the list of headers, and a page for each."""
    headers = sorted((root / "include/qkv").glob("*.h"))
    found = {f"cpp/{path.stem.replace('_', '-')}": (path, *header(path)) for path in headers}
    rows = [f"| [{path.name}](@{name}) | {summary(path)} | {', '.join(f'`{n}`' for n in names)} |"
            for name, (path, _, names) in found.items()]
    text = "\n".join([INDEX, "| header | | names |", "|---|---|---|", *rows]) + "\n"
    return [("cpp/index", text, root / "include/qkv"), *((name, page, path) for name, (path, page, _) in found.items())]
