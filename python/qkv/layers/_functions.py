"""Positional encoding, softmax and cross-entropy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import _qkv

if TYPE_CHECKING:
    from numpy.typing import NDArray


def positional_encoding(length: int, d_model: int, kind: str = "interleaved") -> NDArray[Any]:
    """Returns the sinusoidal positions 0, 1, …: [length, d_model], float32.

    kind: "interleaved", sin(p r_j) at 2j and cos(p r_j) at 2j + 1 with r_j = 10000^(-2j / d_model), as in the paper; or
    "halves", "closed_halves", "second_halves" of other systems, whose width must be even.

    >>> qkv.layers.positional_encoding(2, 4).round(3)
    array([[0.   , 1.   , 0.   , 1.   ],
           [0.841, 0.54 , 0.01 , 1.   ]], dtype=float32)
    """
    found: NDArray[Any] = _qkv.positional_encoding(length, d_model, kind)
    return found


def softmax(x: Any) -> Any:
    """Returns exp(x) / Σ exp(x) over the last axis: [..., n] -> [..., n], float32 or float64.

    A row of only -inf becomes zeros.

    >>> qkv.layers.softmax(np.array([0, np.log(3)])).round(6)
    array([0.25, 0.75])
    """
    return _qkv.softmax(x)


def softmax_backward(y: Any, grad_out: Any) -> Any:
    """Returns y ∘ (grad_out − Σ grad_out ∘ y), the gradient of x for y = softmax(x): [..., n].

    >>> qkv.layers.softmax_backward(np.array([0.25, 0.75]), np.array([1.0, 0.0]))
    array([ 0.1875, -0.1875])
    """
    return _qkv.softmax_backward(y, grad_out)


def cross_entropy(
    logits: Any, labels: Any, *, label_smoothing: float = 0.0, ignore_index: int = -100
) -> tuple[float, Any]:
    """Returns the mean loss over the labels that are not ignore_index, in nats, and the gradient of the logits.

    logits: [..., V]; labels: integers [...], from 0 to V - 1. The loss is -Σ q log softmax(logits), where q is 1 at the
    label, or with label_smoothing ε: (1 - ε) at the label, plus ε / V everywhere.

    >>> loss, gradient = qkv.layers.cross_entropy(np.array([[0, np.log(3)]]), [1])
    >>> round(loss, 6), gradient.round(6)
    (0.287682, array([[ 0.25, -0.25]]))
    """
    loss, _, _, gradient = _qkv.cross_entropy(logits, labels, label_smoothing, ignore_index)
    return loss, gradient
