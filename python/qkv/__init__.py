"""The Transformer on the CPU: exact attention over NumPy, PyTorch and other DLPack arrays, translation, recommendation,
text generation, text embeddings and text classification.

qkv.attention, qkv.attention_backward   scaled dot-product attention and its gradients
qkv.layers                              single layers, forward and backward
qkv.Translator                          translates, scores given targets, and returns attention weights
qkv.PivotTranslator                     translates through a language in between
qkv.Embedder                            text embeddings
qkv.Classifier                          labels of texts, and the order of texts by a query
qkv.Recommender                         the next items after a history
qkv.evaluate                            evaluation of a recommender
qkv.evaluate_texts                      evaluation of a classifier or an embedder
qkv.analyse_heads                       what the attention heads of a run do, and the effect of removing them
qkv.Generator                           text generation with a language model
qkv.train_translator, qkv.train_recommender, qkv.train_language_model, qkv.train_encoder, qkv.train_embedder,
qkv.train_classifier                    training into run directories
qkv.import_model, qkv.export_model      models of other projects, also from the Hugging Face hub
qkv.quantize                            a copy of a run with 8-bit weights
qkv.bleu, qkv.chrf                      scores of translations
qkv.batch                               jobs on tables and files, for engines such as Ray and Spark
qkv.torch                               attention inside of PyTorch; a module of its own, which imports torch

>>> import numpy as np
>>> import qkv
>>> q, k, v = np.ones((3, 2, 4, 5, 8), np.float32)  # 2 sequences, 4 heads, 5 tokens, width 8
>>> qkv.attention(q, k, v, causal=True).shape
(2, 4, 5, 8)

The examples of all docstrings begin with these two imports. Their files are small ones of the same formats as in the
documentation, and runs/en-de, runs/lm, runs/films and others are run directories of small models.
"""

from . import batch, layers
from ._analysis import (
    BeamTrace, HiddenStates, LensPrediction, LogitLens, Patching, TracedHypothesis, TracedStep, TranslationStates,
)
from ._attention import attention, attention_backward
from ._attention_map import AttentionKind, AttentionMap, TokenAttribution
from ._classifier import Classifier, LabelScore, RankedText
from ._embedder import Embedder, HardNegativeReport
from ._evaluate import evaluate, evaluate_texts
from ._export import ExportReport, QuantizeReport, export_model, quantize
from ._generator import GeneratedToken, Generation, Generator, TextScore, TokenAlternative
from ._heads import Ablation, BestHead, Change, Head, HeadsReport, PruneReport, analyse_heads
from ._import import DownloadProgress, ImportReport, import_model
from ._pivot import PivotTranslator
from ._qkv import Error, __version__
from ._recommender import Recommendation, Recommendations, Recommender
from ._reports import EvaluationReport, StepReport, TrainingResult
from ._score import BleuScore, bleu, chrf
from ._translator import Hypothesis, TokenReport, Translation, Translator
from ._system import active_isa, fma_peak, set_threads, threads
from ._training import (
    train_classifier, train_embedder, train_encoder, train_language_model, train_recommender, train_translator,
)

Error.__module__ = "qkv"
Error.__doc__ = """An invalid argument or file, described in one line: its name, what was found and what is accepted.

>>> try:
...     qkv.Translator("nowhere")
... except qkv.Error as error:
...     print(str(error).partition(":")[0], isinstance(error, ValueError))
nowhere True
"""

__all__ = [
    "Ablation",
    "AttentionKind",
    "AttentionMap",
    "BeamTrace",
    "BestHead",
    "BleuScore",
    "Change",
    "Classifier",
    "DownloadProgress",
    "Embedder",
    "Error",
    "EvaluationReport",
    "ExportReport",
    "GeneratedToken",
    "Generation",
    "Generator",
    "HardNegativeReport",
    "Head",
    "HeadsReport",
    "HiddenStates",
    "Hypothesis",
    "ImportReport",
    "LabelScore",
    "LensPrediction",
    "LogitLens",
    "Patching",
    "PivotTranslator",
    "PruneReport",
    "QuantizeReport",
    "RankedText",
    "Recommendation",
    "Recommendations",
    "Recommender",
    "StepReport",
    "TextScore",
    "TokenAlternative",
    "TokenAttribution",
    "TokenReport",
    "TracedHypothesis",
    "TracedStep",
    "TrainingResult",
    "Translation",
    "TranslationStates",
    "Translator",
    "__version__",
    "active_isa",
    "analyse_heads",
    "attention",
    "attention_backward",
    "batch",
    "bleu",
    "chrf",
    "evaluate",
    "evaluate_texts",
    "export_model",
    "fma_peak",
    "import_model",
    "layers",
    "quantize",
    "set_threads",
    "threads",
    "train_embedder",
    "train_classifier",
    "train_encoder",
    "train_language_model",
    "train_recommender",
    "train_translator",
]
