"""Formulas as MathML, converted when the site is built."""

import re

from docutils import nodes
from latex2mathml.converter import convert


def mathml(text, display):
    result = convert(text, display=display)
    unknown = re.search(r">\s*(\\[a-zA-Z]+)", result)
    assert not unknown, f"{text}: {unknown[1]} is unknown"
    return result


def visit_math(translator, node):
    translator.body.append(mathml(node.astext(), "inline"))
    raise nodes.SkipNode


def visit_math_block(translator, node):
    translator.body.append(f'<div class="formula" tabindex="0">{mathml(node.astext(), "block")}</div>')
    raise nodes.SkipNode


def setup(app):
    app.add_html_math_renderer("mathml", (visit_math, None), (visit_math_block, None))
    app.config.html_math_renderer = "mathml"
