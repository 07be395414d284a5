"""The Transformer on the CPU: exact attention over NumPy, PyTorch and other DLPack arrays, translation, recommendation,
generation, vectors of texts.

qkv.attention, qkv.attention_backward   the op and its gradients
qkv.Translator                          translates with run directories, scores given targets, shows what it attends to
qkv.Embedder                            vectors of texts, with run directories of encoders and others
qkv.Recommender                         the next items after a history, with a run directory
qkv.Generator                           goes on from a text, with the run directory of a language model
"""

from importlib.metadata import version as _version

from ._attention import attention, attention_backward
from ._embedder import Embedder
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
    "fma_peak",
    "set_threads",
    "threads",
]
