"""Draws docs/transformer.svg and docs/transformer-variants.svg: each box leads to its formulas and its code.

usage: write_drawings.py [FOLDER]

The links are those of the table of boxes in docs/math.md; they are relative to docs/.
"""

import re
import sys
from html import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.append(str(ROOT / "tests"))

from docs_test import LINK  # noqa: E402

WIDTH, MARGIN, BOX, CHIP = 360, 20, 152, 34  # of the drawing, of its margins, of a box, of its link to the code
COLUMN = {"left": MARGIN, "right": WIDTH - MARGIN - BOX}  # where the boxes of a column begin
LINE, ARROW, SPLIT = 15, 16, 26  # height of a line of text, of an arrow, of an arrow before a sublayer
FRAME, GAP = 16, 4  # from a box to the frame of its layer, on the side of the residual connections and on the other

# kind of box -> fill and stroke, light and dark
COLORS = {
    "embedding": ("#fde4e7", "#9c2f3f", "#3d1a20", "#e58a97"),
    "position": ("#eeeeee", "#5b5b5b", "#2b2d31", "#a8a8a8"),
    "attention": ("#ffeed6", "#8a5200", "#3b2a10", "#e0a24a"),
    "norm": ("#f4f4c8", "#5f5c00", "#2f2f10", "#c9c45a"),
    "forward": ("#dcecfb", "#0b5394", "#122a41", "#7ab3ec"),
    "linear": ("#e6e3fa", "#4b3fa7", "#262142", "#aba0f2"),
    "softmax": ("#dff3e1", "#1f6f34", "#15301c", "#7cc98f"),
    "title": ("#ffffff", "#57606a", "#131416", "#9aa4ae"),
}
STYLE = """
.drawing { --ink: #1b1f24; --line: #57606a; --link: #0550ae; --page: #ffffff; %s }
[data-theme="dark"] .drawing { --ink: #eeeeee; --line: #9aa4ae; --link: #8cc2ff; --page: #131416; %s }
@media (prefers-color-scheme: dark) { .drawing:not([data-theme="light"] *) { --ink: #eeeeee; --line: #9aa4ae; --link: #8cc2ff;
 --page: #131416; %s } }
.drawing { background: var(--page); font: 12.5px Arial, "Liberation Sans", Helvetica, sans-serif; }
.drawing .page { fill: var(--page); }
.drawing text { fill: var(--ink); text-anchor: middle; }
.drawing .code text { fill: var(--link); font-size: 11.5px; text-decoration: underline; }
.drawing a { cursor: pointer; }
.drawing a:hover text { text-decoration: underline; }
.drawing a:focus-visible { outline: none; }
.drawing a:focus-visible rect { stroke: var(--link); stroke-width: 3; }
.drawing .flow { fill: none; stroke: var(--line); stroke-width: 1.25; }
.drawing .head { fill: var(--line); }
.drawing .frame { fill: none; stroke: var(--line); stroke-dasharray: 4 3; }
.drawing .chip { fill: var(--page); }
""".strip("\n")


def table_of_boxes(page):
    """Name of a box -> (link to formulas, link to code), of the table below the drawings."""
    rows = re.findall(r"^\| ([^|\[]+) \| (\[[^|]*\)) \| (\[[^|]*\)) \|$", page.partition("| box | formulas | code |")[2]
                      .partition("\n\n")[0], re.MULTILINE)
    return {name: (LINK.fullmatch(formulas), LINK.fullmatch(code)) for name, formulas, code in rows}


class Drawing:
    """A drawing of two columns, in which boxes are added from the bottom up; y grows upwards until the end."""

    def __init__(self, name, title, description, boxes):
        self.name, self.title, self.description, self.boxes = name, title, description, boxes
        self.parts, self.lines, self.used = [], [], set()
        self.top = {"left": 0, "right": 0}

    def line(self, *points):
        """An arrow along points (x, y)."""
        (x0, y0), (x, y) = points[-2:]
        dx, dy = (x > x0) - (x < x0), (y > y0) - (y < y0)
        tip = [(x, y), (x - 6 * dx + 3.5 * dy, y - 6 * dy + 3.5 * dx), (x - 6 * dx - 3.5 * dy, y - 6 * dy - 3.5 * dx)]
        self.lines += [("flow", [*points[:-1], (x - 4 * dx, y - 4 * dy)]), ("head", tip)]

    def center(self, column):
        return COLUMN[column] + BOX / 2

    def words(self, x, y, lines):
        """Lines of text around the height y, from the top down."""
        middle = (len(lines) - 1) / 2
        return [("text", x, y + (middle - at) * LINE, line) for at, line in enumerate(lines)]

    def label(self, column, text):
        """Text without a link."""
        self.top[column] += LINE + 3
        self.parts.append((None, None, self.words(self.center(column), self.top[column] - LINE / 2, [text])))

    def arrow(self, column, length=ARROW):
        x, y = self.center(column), self.top[column]
        self.line((x, y), (x, y + length))
        self.top[column] += length

    def box(self, column, kind, key, lines=None):
        """A box with its two links; returns the heights of its bottom and top."""
        lines = lines or [key]
        x, bottom, height = COLUMN[column], self.top[column], 12 + LINE * len(lines)
        formulas, code = self.boxes[key]
        self.used.add(key)
        middle = bottom + height / 2
        shapes = [("rect", kind, x, bottom, BOX, height), *self.words(x + (BOX - CHIP) / 2, middle, lines)]
        self.parts.append((formulas, key, shapes))
        self.chip(x + BOX - CHIP, bottom, height, code, key)
        self.top[column] += height
        return bottom, bottom + height

    def chip(self, x, bottom, height, code, key, kind="chip"):
        inset = 0 if kind == "title" else 1
        shapes = [("rect", kind, x + inset, bottom + inset, CHIP - 2 * inset, height - 2 * inset),
                  ("text", x + CHIP / 2, bottom + height / 2, "code")]
        self.parts.append((code, f"Code of {key}: {code['text']}", shapes))

    def sublayer(self, column, before, box, after, inputs=1):
        """A sublayer between boxes before and after it, with its residual connection along the outer margin."""
        start, x = self.top[column], self.center(column)
        for kind, *rest in before:
            self.arrow(column, SPLIT if kind == before[0][0] else ARROW)
            self.box(column, kind, *rest)
        if before:
            self.arrow(column)
        else:
            self.top[column] += SPLIT
            split = self.top[column] - ARROW + 3
            self.line((x, start), (x, self.top[column]))
            for shift in (-36, 36) if inputs == 3 else ():
                self.line((x, split), (x + shift, split), (x + shift, self.top[column]))
        found = self.box(column, *box)
        self.arrow(column)
        bottom, top = self.box(column, *after)
        side = -1 if column == "left" else 1
        edge = COLUMN[column] + (0 if side < 0 else BOX)
        self.line((x, start + 6), (edge + side * FRAME / 1.5, start + 6),
                  (edge + side * FRAME / 1.5, (bottom + top) / 2), (edge, (bottom + top) / 2))
        return found

    def title_of(self, column, key, text, bottom):
        """The frame around a layer, from `bottom`, with its name and its link to the code on either side of the flow."""
        formulas, code = self.boxes[key]
        self.used.add(key)
        x, begin, height = COLUMN[column], self.top[column] + 6, 12 + 2 * LINE
        width = BOX / 2 - 8
        self.parts.append((formulas, key, [("rect", "title", x, begin, width, height),
                                           *self.words(x + width / 2, begin + height / 2, [text, "N layers"])]))
        self.chip(x + BOX - CHIP, begin, height, code, key, "title")
        self.lines.append(("flow", [(self.center(column), self.top[column]), (self.center(column), begin + height + 6)]))
        self.top[column] = begin + height + 6
        left = x - (FRAME if column == "left" else GAP)
        self.lines.append(("frame", (left, bottom, BOX + FRAME + GAP, self.top[column] - bottom)))

    def svg(self):
        height = max(self.top.values()) + 6
        colors = [" ".join(f"--{kind}: {color[at]}; --{kind}-edge: {color[at + 1]};" for kind, color in COLORS.items())
                  for at in (0, 2)]
        boxes = "\n".join(f".drawing .{kind} {{ fill: var(--{kind}); stroke: var(--{kind}-edge); }}" for kind in COLORS)
        ids = f"{self.name}-title", f"{self.name}-description"
        head = (f'<svg xmlns="http://www.w3.org/2000/svg" class="drawing" viewBox="0 0 {WIDTH} {number(height)}" '
                f'width="{WIDTH}" height="{number(height)}" role="graphics-document" '
                f'aria-labelledby="{ids[0]}" aria-describedby="{ids[1]}">')
        lines = [head, f'<title id="{ids[0]}">{escape(self.title)}</title>',
                 f'<desc id="{ids[1]}">{escape(self.description)}</desc>',
                 f"<style>\n{STYLE % (colors[0], colors[1], colors[1])}\n{boxes}\n</style>",
                 f'<rect class="page" width="{WIDTH}" height="{number(height)}"/>',
                 '<g aria-hidden="true">', *(self.shape(height, *line) for line in self.lines), "</g>"]
        lines += [self.part(height, *part) for part in self.parts]
        return "\n".join([*lines, "</svg>"]) + "\n"

    def shape(self, height, kind, points):
        if kind == "frame":
            x, y, w, h = points
            return f'<rect class="frame" x="{number(x)}" y="{number(height - y - h)}" width="{number(w)}" height="{number(h)}" rx="8"/>'
        path = "M" + " L".join(f"{number(x)} {number(height - y)}" for x, y in points)
        return f'<path class="{kind}" d="{path}{" Z" if kind == "head" else ""}"/>'

    def part(self, height, link, label, shapes):
        marks = []
        for shape in shapes:
            if shape[0] == "text":
                marks.append(f'<text x="{number(shape[1])}" y="{number(height - shape[2] + 4.5)}">{escape(shape[3])}</text>')
            else:
                _, kind, x, y, w, h = shape
                marks.append(f'<rect class="{kind}" x="{number(x)}" y="{number(height - y - h)}" width="{number(w)}" '
                             f'height="{number(h)}" rx="4"/>')
        if not link:
            return "".join(marks)
        target = f"{link['path'] or 'math.md'}#{link['anchor']}"
        code = f' data-code="{escape(link["title"])}"' if link["title"] else ""
        kind = ' class="code"' if link["title"] else ""
        return f'<a href="{target}"{code}{kind} aria-label="{escape(label)}">{"".join(marks)}</a>'


def number(value):
    return f"{value:g}"


MASKED = ["Masked", "multi-head", "attention"]
POSITIONS = ["Add positional", "encoding"]


def embed(drawing, column, text, name):
    drawing.label(column, text)
    drawing.arrow(column)
    drawing.box(column, "embedding", "Embedding", name)
    drawing.arrow(column)
    drawing.box(column, "position", "Add positional encoding", POSITIONS)
    drawing.arrow(column)
    return drawing.top[column]


def predict(drawing, column):
    drawing.arrow(column)
    drawing.box(column, "linear", "Linear")
    drawing.arrow(column)
    drawing.box(column, "softmax", "Softmax")
    drawing.arrow(column)
    drawing.label(column, "Output probabilities")


def transformer(boxes):
    drawing = Drawing("transformer", "The architecture of the Transformer",
                      "Inputs are embedded, and a positional encoding is added. Each of the N layers of the encoder has "
                      "multi-head attention and a feed-forward network. Each of the N layers of the decoder has masked "
                      "multi-head attention, cross-attention, which reads the output of the encoder, and a feed-forward "
                      "network. Around each of these parts is a residual connection, followed by a norm. A linear layer "
                      "and a softmax turn the output of the decoder into probabilities.", boxes)
    add = ("norm", "Add & norm")
    forward = ("forward", "Feed forward")
    start = embed(drawing, "left", "Inputs", ["Input", "embedding"])
    drawing.sublayer("left", [], ("attention", "Multi-head attention", ["Multi-head", "attention"]), add, 3)
    drawing.sublayer("left", [], forward, add)
    drawing.title_of("left", "Encoder layer", "Encoder", start)

    start = embed(drawing, "right", "Outputs (shifted right)", ["Output", "embedding"])
    drawing.sublayer("right", [], ("attention", "Masked multi-head attention", MASKED), add, 3)
    cross = ("attention", "Multi-head cross-attention", ["Multi-head", "cross-attention"])
    bottom, top = drawing.sublayer("right", [], cross, add)
    drawing.sublayer("right", [], forward, add)
    drawing.title_of("right", "Decoder layer", "Decoder", start)
    predict(drawing, "right")

    x, y, middle = drawing.center("left"), drawing.top["left"], (bottom + top) / 2
    drawing.line((x, y), (x, y + 12), (WIDTH / 2, y + 12), (WIDTH / 2, middle), (COLUMN["right"], middle))
    return drawing


def variants(boxes):
    drawing = Drawing("transformer-variants", "A decoder-only and an encoder-only Transformer",
                      "On the left, a decoder-only model with pre-norm: each of its N layers has a norm, masked "
                      "multi-head attention, an addition, a norm, a feed-forward network and an addition; a norm, a "
                      "linear layer and a softmax follow. On the right, an encoder-only model with post-norm: each of "
                      "its N layers has multi-head attention and a feed-forward network, each followed by an addition "
                      "and a norm; pooling and a head follow.", boxes)
    norm, add = ("norm", "Norm"), ("norm", "Add")
    start = embed(drawing, "left", "Tokens or items", ["Embedding"])
    drawing.sublayer("left", [norm], ("attention", "Masked multi-head attention", MASKED), add)
    drawing.sublayer("left", [norm], ("forward", "Feed forward"), add)
    drawing.title_of("left", "Decoder layer without cross-attention", "Stack of", start)
    drawing.arrow("left")
    drawing.box("left", *norm)
    predict(drawing, "left")

    start = embed(drawing, "right", "Tokens", ["Embedding"])
    after = ("norm", "Add & norm")
    drawing.sublayer("right", [], ("attention", "Multi-head attention", ["Multi-head", "attention"]), after, 3)
    drawing.sublayer("right", [], ("forward", "Feed forward"), after)
    drawing.title_of("right", "Encoder layer", "Stack of", start)
    drawing.arrow("right")
    drawing.box("right", "linear", "Pooling and head", ["Pooling", "and head"])
    drawing.arrow("right")
    drawing.label("right", "Vector or labels")
    return drawing


def drawings(boxes):
    return [transformer(boxes), variants(boxes)]


if __name__ == "__main__":
    folder = Path(sys.argv[1]) if sys.argv[1:] else ROOT / "docs"
    for drawn in drawings(table_of_boxes((ROOT / "docs/math.md").read_text(encoding="utf-8"))):
        (folder / f"{drawn.name}.svg").write_text(drawn.svg(), encoding="utf-8")
