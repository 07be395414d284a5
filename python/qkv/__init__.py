"""The Transformer on the CPU: exact attention over NumPy, PyTorch and other DLPack arrays, translation, recommendation,
text generation and text embeddings.

qkv.attention, qkv.attention_backward   scaled dot-product attention and its gradients
qkv.Translator                          translates, scores given targets, and returns attention weights
qkv.Embedder                            text embeddings
qkv.Recommender                         the next items after a history
qkv.evaluate                            evaluation of a recommender
qkv.Generator                           text generation with a language model
"""

from importlib.metadata import version as _version

from ._attention import attention, attention_backward
from ._embedder import Embedder
from ._evaluate import evaluate
from ._generator import GeneratedToken, Generation, Generator, TokenAlternative
from ._qkv import Error, TokenReport
from ._recommender import Recommendation, Recommendations, Recommender
from ._translator import AttentionKind, AttentionMap, Hypothesis, Translation, Translator
from ._system import active_isa, fma_peak, set_threads, threads

__version__ = _version("qkv")
Error.__module__ = "qkv"

__all__ = [
    "AttentionKind",
    "AttentionMap",
    "Embedder",
    "Error",
    "GeneratedToken",
    "Generation",
    "Generator",
    "Hypothesis",
    "Recommendation",
    "Recommendations",
    "Recommender",
    "TokenAlternative",
    "TokenReport",
    "Translation",
    "Translator",
    "__version__",
    "active_isa",
    "attention",
    "attention_backward",
    "evaluate",
    "fma_peak",
    "set_threads",
    "threads",
]
