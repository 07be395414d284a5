"""Formulas as MathML, converted when the site is built."""

import html
import importlib.util
import re
from pathlib import Path
from xml.etree import ElementTree

from docutils import nodes
from latex2mathml.converter import convert


def font():
    """The path of STIX Two Math, by whose table browsers stretch parentheses, roots and lines; part of ziamath."""
    return str(Path(importlib.util.find_spec("ziamath").origin).parent / "fonts/STIXTwoMath-Regular.ttf")


BAR = "&#x02015;"  # of latex2mathml for \overline; no font stretches it
MATHML = "http://www.w3.org/1998/Math/MathML"


def with_overlines(result):
    """MathML whose bars over a group are borders, which site.css draws, instead of characters."""
    ElementTree.register_namespace("", MATHML)
    root = ElementTree.fromstring(result)
    for over in root.iter(f"{{{MATHML}}}mover"):
        if over[1].text == html.unescape(BAR):
            over.tag, over.attrib = f"{{{MATHML}}}mrow", {"class": "overline"}
            over.remove(over[1])
    return ElementTree.tostring(root, encoding="unicode")


def mathml(text, display):
    result = convert(text.replace("{aligned}", "{align*}"), display=display)
    unknown = re.search(r">\s*(\\[a-zA-Z]+|&<)", result)
    assert not unknown, f"{text}: {unknown[1]} is unknown"
    return with_overlines(result) if BAR in result else result


def equations(text):
    """The equations of a formula, which \\qquad separates; inside braces and environments it does not."""
    depth, begin, parts = 0, 0, []
    for token in re.finditer(r"\\(?:qquad|begin|end|left|right)(?![a-zA-Z])|\\[{}]|[{}]", text):
        depth += {"{": 1, "\\begin": 1, "\\left": 1, "}": -1, "\\end": -1, "\\right": -1}.get(token[0], 0)
        if token[0] == "\\qquad" and depth == 0:
            parts.append(text[begin:token.start()])
            begin = token.end()
    return [part for part in [*parts, text[begin:]] if part.strip()]


def block(text):
    """A formula in lines of its own, which break between its equations."""
    parts = equations(text)
    if len(parts) == 1:
        return mathml(text, "block")
    maths = [mathml(part, "inline").replace('display="inline"', 'display="inline" displaystyle="true"') for part in parts]
    return " ".join(f'<span class="equation">{math}</span>' for math in maths)


def visit_math(translator, node):
    translator.body.append(mathml(node.astext(), "inline"))
    raise nodes.SkipNode


def visit_math_block(translator, node):
    translator.body.append(f'<div class="formula" tabindex="0">{block(node.astext())}</div>')
    raise nodes.SkipNode


def setup(app):
    app.add_html_math_renderer("mathml", (visit_math, None), (visit_math_block, None))
    app.config.html_math_renderer = "mathml"
