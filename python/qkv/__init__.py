"""The Transformer on the CPU: exact attention over NumPy, PyTorch and other DLPack arrays, translation, recommendation,
text generation, text embeddings and text classification.

qkv.attention, qkv.attention_backward   scaled dot-product attention and its gradients
qkv.layers                              single layers, forward and backward
qkv.Translator                          translates, scores given targets, and returns attention weights
qkv.Embedder                            text embeddings
qkv.Classifier                          labels of texts, and the order of texts by a query
qkv.Recommender                         the next items after a history
qkv.evaluate                            evaluation of a recommender
qkv.Generator                           text generation with a language model
qkv.import_model                        models of other projects, also from the Hugging Face hub
qkv.torch                               attention inside of PyTorch; a module of its own, which imports torch
"""

from importlib.metadata import version as _version

from . import layers
from ._attention import attention, attention_backward
from ._attention_map import AttentionKind, AttentionMap
from ._classifier import Classifier, LabelScore, RankedText
from ._embedder import Embedder
from ._evaluate import evaluate
from ._generator import GeneratedToken, Generation, Generator, TokenAlternative
from ._import import import_model
from ._qkv import DownloadProgress, Error, ImportReport, TokenReport
from ._recommender import Recommendation, Recommendations, Recommender
from ._translator import Hypothesis, Translation, Translator
from ._system import active_isa, fma_peak, set_threads, threads

__version__ = _version("qkv")
Error.__module__ = "qkv"

__all__ = [
    "AttentionKind",
    "AttentionMap",
    "Classifier",
    "DownloadProgress",
    "Embedder",
    "Error",
    "GeneratedToken",
    "Generation",
    "Generator",
    "Hypothesis",
    "ImportReport",
    "LabelScore",
    "RankedText",
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
    "import_model",
    "layers",
    "set_threads",
    "threads",
]
