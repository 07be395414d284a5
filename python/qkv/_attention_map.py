"""Views of attention weights: of a model, or anyone's."""

from __future__ import annotations

import html
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Iterable

from . import _qkv
from ._arguments import check_text, checked_texts

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True)
class AttentionKind:
    """One kind of attention: the weights of each row token over the column tokens.

    >>> decoder = qkv.Generator("runs/lm").attend("012").kinds["decoder"]
    >>> decoder.causal, decoder.rows == decoder.columns, decoder.weights.shape
    (True, True, (1, 2, 4, 4))
    >>> bool(np.allclose(decoder.weights.sum(-1), 1, atol=1e-5))
    True
    """

    name: str  # "encoder", "decoder" or "cross"; of weights that were given, the name that was given
    causal: bool
    rows: list[str]  # sub-word pieces; "▁" begins a word
    columns: list[str]
    weights: NDArray[np.float32]  # [layers, heads, rows, columns]; rows sum to one, in attributions, rollout and
    # flow of a translator together with those of the other kind; weights of attributions are shares of absolute values
    method: str = "weights"  # or "rollout", "flow", "gradient", "integrated"
    values: NDArray[np.float32] | None = None  # attributions with their signs, in nats, in the shape of the weights


@dataclass(frozen=True)
class TokenAttribution:
    """The sum of the attributions of one token: of integrated gradients, its log-probability less the baseline.

    >>> tokens = qkv.Generator("runs/lm").attend("45", method="integrated", baseline="0").tokens
    >>> [token.piece for token in tokens], all(abs(t.sum - t.log_probability + t.baseline) < 1e-3 for t in tokens)
    (['4', '5', '6'], True)
    """

    piece: str
    log_probability: float
    baseline: float  # its log-probability with the embeddings of the baseline
    sum: float


class AttentionMap:
    """The attention weights of a sentence and its translation, of a text, or of weights from elsewhere.

    A notebook shows a map as the interactive page of to_html.

    weights: [T, S], [H, T, S] or [L, H, T, S]: of rows and columns, with heads H and layers L. An array of NumPy, or a
        tensor of PyTorch on the CPU without a gradient. All between 0 and 1.
    rows, columns: the T and S tokens; without columns, those of the rows. If any begins with "▁", that begins a word.
    name: of this kind of attention. causal: hides the columns after the diagonal.

    >>> found = qkv.AttentionMap([[0.75, 0.25], [0.1, 0.9]], ["a", "b"])
    >>> found.kinds["custom"].weights.shape
    (1, 1, 2, 2)

    Raises qkv.Error for weights of another shape, or out of range.
    """

    source: str  # empty, as target, for given weights
    target: str
    tokens: list[TokenAttribution]  # that are attributed, one for each row; empty for other methods
    kinds: dict[str, AttentionKind]  # by name: "encoder", "decoder", "cross"; a language model has only "decoder", an
    # encoder only "encoder"

    def __init__(
        self,
        weights: Any,
        rows: Iterable[str],
        columns: Iterable[str] | None = None,
        *,
        name: str = "custom",
        causal: bool = False,
    ) -> None:
        check_text("name", name)
        row_tokens = checked_texts("rows", rows)
        column_tokens = row_tokens if columns is None else checked_texts("columns", columns)
        array = _checked_weights(weights, len(row_tokens), len(column_tokens))
        if causal and len(row_tokens) != len(column_tokens):
            raise _qkv.Error(f"causal requires as many rows as columns (are {len(row_tokens)} and {len(column_tokens)})")
        self._take(_qkv.map_of(name, bool(causal), row_tokens, column_tokens, array))

    @classmethod
    def _of(cls, found: _qkv.AttentionMap) -> AttentionMap:
        self = cls.__new__(cls)
        self._take(found)
        return self

    def _take(self, found: _qkv.AttentionMap) -> None:
        self._found = found
        self.source, self.target = found.source, found.target
        self.tokens = [TokenAttribution(x.piece, x.log_probability, x.baseline, x.sum) for x in found.tokens]
        self.kinds = {
            x.name: AttentionKind(x.name, x.causal, x.rows, x.columns, x.weights(), x.method, x.values())
            for x in found.kinds
        }

    def merge_words(self) -> AttentionMap:
        """Returns a map of words: the sums of the weights over the columns of a word, averaged over its rows.

        >>> found = qkv.AttentionMap([[0.5, 0.25, 0.25]], ["▁Hund"], ["▁the", "▁do", "g"])
        >>> words = found.merge_words().kinds["custom"]
        >>> words.columns, words.weights[0, 0].tolist()
        (['▁the', '▁dog'], [[0.5, 0.5]])
        """
        return AttentionMap._of(self._found.merge_words())

    def to_text(self, kind: str | None = None, *, layer: int = 0, head: int | str = 1, numbers: bool = False) -> str:
        """Returns the weights of one head for a terminal: a row for each token, and a shade for each weight.

        kind: of kinds; by default the last. layer: counted from 1; 0 is the last. head: counted from 1; "mean" is the
        mean of all heads of the layer. numbers: two digits after the point instead of shades.

        >>> print(qkv.AttentionMap([[0.75, 0.25], [0.1, 0.9]], ["a", "b"]).to_text())
        custom attention, layer 1 of 1, head 1 of 1: rows look at columns
        <BLANKLINE>
          a b
        a ██▒▒
        b ▒▒██
        <BLANKLINE>
        weight:  · less  ░ from 0.02  ▒ from 0.1  ▓ from 0.3  █ from 0.6
        <BLANKLINE>

        Raises qkv.Error for a kind, layer or head that the map lacks.
        """
        names = list(self.kinds)
        if kind is not None and kind not in names:
            raise _qkv.Error(f"kind must be one of {', '.join(names)} (is {kind!r})")
        chosen = names[-1] if kind is None else kind
        layers, heads = self.kinds[chosen].weights.shape[:2]
        number = 1 if head == "mean" else head
        for option, value, least, most in (("layer", layer, 0, layers), ("head", number, 1, heads)):
            if not isinstance(value, int) or not least <= value <= most:
                raise _qkv.Error(f"{option} must be an integer from {least} to {most} (is {value!r})")
        return self._found.to_text(names.index(chosen), (layer or layers) - 1, int(number) - 1, head == "mean", numbers)

    def to_html(self) -> str:
        """Returns a self-contained HTML page that shows the weights of every layer and head.

        >>> page = qkv.AttentionMap([[0.75, 0.25], [0.1, 0.9]], ["a", "b"]).to_html()
        >>> page.startswith("<!DOCTYPE html>")
        True
        """
        return self._found.to_html()

    def to_json(self) -> str:
        """Returns JSON with every weight.

        >>> import json
        >>> found = json.loads(qkv.AttentionMap([[0.75, 0.25], [0.1, 0.9]], ["a", "b"], name="mine").to_json())
        >>> found["attention"][0]["kind"], found["attention"][0]["rows"]
        ('mine', ['a', 'b'])
        """
        return self._found.to_json()

    def _repr_html_(self) -> str:
        """Returns the page in a frame, for notebooks. The frame's height can be changed with the mouse."""
        style = "width: 100%; height: 720px; border: 0; resize: vertical"
        page = html.escape(self.to_html(), quote=True)
        return f'<iframe sandbox="allow-scripts" title="Attention" style="{style}" srcdoc="{page}"></iframe>'

    def __repr__(self) -> str:
        return f"AttentionMap(source={self.source!r}, target={self.target!r}, kinds={list(self.kinds)})"


def _checked_weights(weights: Any, rows: int, columns: int) -> NDArray[np.float32]:
    """Returns weights as an array [layers, heads, rows, columns]."""
    import numpy as np

    try:
        array = np.ascontiguousarray(weights, np.float32)
    except (TypeError, ValueError, RuntimeError) as error:
        problem = str(error).partition("\n")[0]
        raise _qkv.Error(f"weights must be an array of 2 to 4 axes ({problem})") from None
    if not 2 <= array.ndim <= 4 or array.shape[-2:] != (rows, columns) or 0 in array.shape:
        raise _qkv.Error(
            f"weights must have the shape [{rows}, {columns}], of rows and columns, or with layers and heads before it "
            f"(is {list(array.shape)})"
        )
    bad = np.argwhere(~((array >= 0) & (array <= 1 + 1e-3)))  # the sum of a row is not exact
    if len(bad):
        place = tuple(int(i) for i in bad[0])
        raise _qkv.Error(f"weights must be between 0 and 1 (weights{list(place)} is {array[place]})")
    return array.reshape((1,) * (4 - array.ndim) + array.shape)
