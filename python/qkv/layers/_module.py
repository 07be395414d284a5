"""The base class of all layers, and how layers are made from options."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Mapping

from .. import _qkv
from .._arguments import check_options
from .._attention import causal_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

DType = Literal["float32", "float64"]
_MODULES: dict[str, type[_qkv.Float32Module] | type[_qkv.Float64Module]] = {
    "float32": _qkv.Float32Module,
    "float64": _qkv.Float64Module,
}


def type_of(dtype: str) -> type[_qkv.Float32Module] | type[_qkv.Float64Module]:
    """Returns the module of the extension for a dtype. Raises Error for another one."""
    if dtype not in _MODULES:
        raise _qkv.Error(f'dtype is {dtype!r}, expected "float32" or "float64"')
    return _MODULES[dtype]


class Module:
    """The methods that all layers have.

    Initial values are random, the same for the same seed; it is 1 until initialize() sets another. dtype is "float32",
    or "float64" for checks: it uses plain loops and is slow. Inputs must have this type. They are read where they lie,
    also by backward, so they must not change in between. Results are new arrays of the kind of the first input.

    >>> layer = qkv.layers.LayerNorm(4, dtype="float64")
    >>> layer(np.eye(4)).dtype
    dtype('float64')

    One thread at a time runs a module, with all threads of the library. Errors are qkv.Error, a ValueError, that names
    the argument.
    """

    _module: _qkv.Float32Module | _qkv.Float64Module
    dtype: str

    def __init__(self, module: _qkv.Float32Module | _qkv.Float64Module, dtype: str) -> None:
        self._module = module
        self.dtype = dtype

    def parameters(self) -> dict[str, NDArray[Any]]:
        """Returns the parameters by name, as arrays that can be changed in place: `layer.parameters()["bias"][:] = 0`.

        The names are those of a run directory, such as "self_attention.q.weight".

        >>> [(name, p.shape) for name, p in qkv.layers.Linear(3, 2).parameters().items()]
        [('weight', (2, 3)), ('bias', (2,))]
        """
        return self._module.arrays(False, False)

    def gradients(self, *, torch_names: bool = False) -> dict[str, NDArray[Any]]:
        """Returns the gradients of the parameters, by the same names, or by those of state_dict.

        backward() adds to them, and clear_gradients() sets them to zero.

        >>> float(qkv.layers.Linear(3, 2).gradients()["bias"].sum())
        0.0
        """
        return self._module.arrays(True, torch_names)

    def state_dict(self) -> dict[str, NDArray[Any]]:
        """Returns the parameters by the names of the PyTorch module of the same kind, as arrays that can be changed.

        The weights of queries, keys and values are one array there, below one another.

        >>> sorted(qkv.layers.MultiHeadAttention(8, 2).state_dict())
        ['in_proj_bias', 'in_proj_weight', 'out_proj.bias', 'out_proj.weight']
        """
        return self._module.arrays(False, True)

    def load_state_dict(self, values: Mapping[str, Any]) -> None:
        """Sets all parameters, under the names of state_dict() or of parameters().

        values: arrays, tensors or nested lists; they are converted to the type of the module. Nothing changes if a
        parameter is missing or has another shape.

        >>> layer, other = qkv.layers.Linear(3, 2), qkv.layers.Linear(3, 2)
        >>> other.load_state_dict(layer.state_dict())
        """
        import numpy as np

        self._module.load([(name, np.ascontiguousarray(value, self.dtype)) for name, value in values.items()])

    def initialize(self, seed: int = 1) -> None:
        """Sets the initial values of this seed, from 0.

        >>> qkv.layers.Linear(3, 2).initialize(7)
        """
        self._module.initialize(seed)

    def clear_gradients(self) -> None:
        """Sets all gradients to zero.

        >>> qkv.layers.Linear(3, 2).clear_gradients()
        """
        self._module.clear_gradients()

    def backward(self, grad_out: Any) -> Any:
        """Returns the gradient of the input of the last forward pass, and adds to the gradients of the parameters.

        grad_out: the gradient of the output, of its shape. With several inputs the result is a tuple, in the order of
        the inputs. With lengths, gradients are zero at padding.

        >>> layer = qkv.layers.LayerNorm(4)
        >>> y = layer(np.eye(4, dtype=np.float32))
        >>> layer.backward(np.ones_like(y)).shape
        (4, 4)
        """
        found = self._module.backward(grad_out)
        if not found:
            return None
        return found[0] if len(found) == 1 else tuple(found)

    def _forward(self, inputs: list[Any], causal: Any = False, **arguments: Any) -> Any:
        names = ("offsets", "lengths", "memory_offsets", "memory_lengths", "mask", "memory_mask", "source_mask", "seed")
        given = {name: arguments.get(name) for name in names}
        return self._module.forward(_qkv.LayerArguments(inputs=inputs, causal=causal_of(causal, type(self).__name__), **given))


def configured(
    name: str, dtype: str, options: Mapping[str, Any], causal: bool = False, **sizes: Any
) -> _qkv.Float32Module | _qkv.Float64Module:
    """Returns a module of this class with these options and sizes. Raises TypeError for an unknown option."""
    check_options(name, "LayerOptions", options)
    return type_of(dtype).configured(name, {**options, **sizes}, bool(causal))
