"""The layers of the Transformer, one by one, forward and backward.

Construct a layer from its sizes, set its parameters by name, and run it on arrays of NumPy, PyTorch or any library that
supports DLPack. These are the layers that training uses; qkv/layers.h is the same in C++. Results are copied once out
of the memory of the pass, so that an array that the caller keeps does not hold the activations.

>>> import numpy as np
>>> import qkv
>>> layer = qkv.layers.Linear(3, 2)
>>> layer.load_state_dict({"weight": [[1, 0, 0], [0, 1, 1]], "bias": [0, 10]})
>>> layer(np.array([[1, 2, 3]], np.float32))
array([[ 1., 15.]], dtype=float32)
>>> layer.backward(np.ones((1, 2), np.float32))  # the gradient of the input
array([[1., 1., 1.]], dtype=float32)
>>> layer.gradients()["weight"]
array([[1., 2., 3.],
       [1., 2., 3.]], dtype=float32)
"""

from ._attention import MultiHeadAttention
from ._decoder import Decoder, DecoderLayer, Transformer
from ._encoder import Encoder, EncoderLayer
from ._functions import cross_entropy, positional_encoding, softmax, softmax_backward
from ._module import Module
from ._rows import Embedding, FeedForward, LayerNorm, Linear, RMSNorm

__all__ = [
    "Decoder",
    "DecoderLayer",
    "Embedding",
    "Encoder",
    "EncoderLayer",
    "FeedForward",
    "LayerNorm",
    "Linear",
    "Module",
    "MultiHeadAttention",
    "RMSNorm",
    "Transformer",
    "cross_entropy",
    "positional_encoding",
    "softmax",
    "softmax_backward",
]
