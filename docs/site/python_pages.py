"""Pages of the Python module, from its docstrings and signatures, without importing it."""

import inspect
import textwrap

import griffe

from prose import escaped, fence, plain, prose

MODULES = ("", "layers", "batch", "torch")
OPTIONS = {  # type of keyword arguments -> where they are described
    "TranslateOptions": "docs/options.md#translation",
    "SummaryOptions": "docs/commands.md#qkv-summarize",
    "GenerateOptions": "docs/options.md#generation",
    "ScoreOptions": "docs/commands.md#qkv-score",
    "RecommendOptions": "docs/options.md#recommendation",
    "EmbedOptions": "docs/options.md#embedding",
    "HardNegativeOptions": "docs/options.md#hard-negatives",
    "ClassifyOptions": "docs/options.md#classification",
    "RerankOptions": "docs/options.md#reranking",
    "ImportOptions": "docs/options.md#import",
    "TranslationRecipe": "docs/commands.md#qkv-train-translate",
    "RecommendationRecipe": "docs/commands.md#qkv-train-recommend",
    "LanguageRecipe": "docs/commands.md#qkv-train-lm",
    "EncoderRecipe": "docs/commands.md#qkv-train-encoder",
    "ClassifierRecipe": "docs/commands.md#qkv-train-classify",
    "EmbedderRecipe": "docs/commands.md#qkv-train-embed",
    "LayerOptions": "docs/commands.md#qkv-train-translate",
}
INDEX = """# Python names

Every public name of the module, from its docstring. [Python module](docs/python.md) describes how to use them.
"""
ERROR = """## qkv.Error

An invalid argument or file, described in one line: its name, what was found and what is accepted. A subclass of
`ValueError`."""
STARS = {griffe.ParameterKind.var_positional: "*", griffe.ParameterKind.var_keyword: "**"}


def signature(function, name):
    parameters, keyword_only = [], False
    for p in function.parameters:
        if p.name == "self":
            continue
        if p.kind is griffe.ParameterKind.keyword_only and not keyword_only:
            parameters.append("*")
        keyword_only |= p.kind in (griffe.ParameterKind.keyword_only, griffe.ParameterKind.var_positional)
        text = STARS.get(p.kind, "") + p.name + (f": {p.annotation}" if p.annotation else "")
        parameters.append(text + (f" = {p.default}" if p.default and p.kind not in STARS else ""))
    result = f" -> {function.returns}" if function.returns and name.split(".")[-1][0].islower() else ""
    line = f"{name}({', '.join(parameters)}){result}"
    return line if len(line) <= 100 else f"{name}(\n    " + ",\n    ".join(parameters) + f",\n){result}"


def options(function):
    """A link to the options that a function takes as keyword arguments."""
    for p in function.parameters:
        kind = str(p.annotation).removeprefix("Unpack[").rstrip("]")
        if p.kind is griffe.ParameterKind.var_keyword and kind in OPTIONS:
            return f"`**{p.name}`: [the options described here]({OPTIONS[kind]}), as keyword arguments."
    return ""


def docstring(item):
    return prose(inspect.cleandoc(item.docstring.value)) if item.docstring else ""


def fields(item):
    """The members of a data class as they are written, with their comments."""
    members = {m.lineno: m.endlineno for m in item.members.values() if m.is_attribute and "property" not in m.labels}
    lines = item.source.split("\n")
    return "\n".join(textwrap.dedent("\n".join(lines[begin - item.lineno : end - item.lineno + 1]))
                     for begin, end in sorted(members.items()))


def is_public(name, member):
    return not name.startswith("_") and (member.is_function or "property" in member.labels) and member.docstring


def describe(item, name):
    """The section of a class, with its public methods, or of a function."""
    if item.is_function:
        return [f"## {plain(name)}", fence(signature(item, name), "python"), docstring(item), options(item)]
    if not item.is_class:
        return [f"## {plain(name)}", fence(item.source, "python"), docstring(item)]
    page = [f"## {plain(name)}"]
    constructor = item.all_members.get("__init__")
    if "dataclass" in item.labels:
        page += [docstring(item), fence(fields(item), "python")]
    elif constructor:
        page += [fence(signature(constructor, name), "python"), docstring(item), docstring(constructor),
                 options(constructor)]
    else:
        page += [fence(item.source.partition('"""')[0].strip(), "python"), docstring(item)]
    for short, method in item.all_members.items():
        if is_public(short, method):
            full = f"{name}.{short}"
            code = signature(method, full) if method.is_function else f"{full}: {method.annotation}"
            page += [f"### {plain(full)}", fence(code, "python"), docstring(method)]
            page += [options(method)] if method.is_function else []
    return page


def page(module, title, names):
    text = [f"# {title}", docstring(module)]
    for name in names:
        member = module[name]
        if not member.is_module and name not in ("__version__", "Error"):
            text += describe(member, f"{title}.{name}")
    if "Error" in names:
        text.append(ERROR)
    return "\n\n".join(filter(None, text)) + "\n"


def pages(root):
    """Triples (name, text, file that it shows): the list of modules, and a page for each."""
    package = griffe.load("qkv", search_paths=[str(root / "python")], resolve_aliases=True)
    found = []
    rows = []
    for short in MODULES:
        module = package[short] if short else package
        title = f"qkv.{short}" if short else "qkv"
        names = [str(name).strip("'\"") for name in module.exports]
        name = f"python-names/{title.replace('.', '-')}"
        found.append((name, page(module, title, names), module.filepath))
        first = escaped(inspect.cleandoc(module.docstring.value).partition("\n\n")[0].replace("\n", " "))
        rows.append(f"| [{title}](@{name}) | {first} | {', '.join(f'`{n}`' for n in names if n != '__version__')} |")
    text = "\n".join([INDEX, "| module | | names |", "|---|---|---|", *rows])
    return [("python-names/index", text + "\n", root / "python/qkv"), *found]
