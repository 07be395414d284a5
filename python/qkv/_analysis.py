"""Analyses of what a model computes: hidden states, the logit lens, activation patching, the steps of beam search."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from . import _qkv

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True)
class HiddenStates:
    """The hidden states of all layers for one text, as output_hidden_states of transformers.

    values[0] is the input of the first layer, the embeddings with their positions; values[l] is the output of layer l,
    counted from 1, before the norm of the next layer; the last one includes the final norm, if the model has one.

    >>> states = qkv.Generator("runs/lm").hidden("45")
    >>> states.pieces, states.values.shape  # layers + 1, tokens, width
    (['<s>', '4', '5'], (2, 3, 32))
    """

    pieces: list[str]  # of the tokens; "▁" begins a word
    values: NDArray[np.float32]  # [layers + 1, tokens, width]

    @classmethod
    def _of(cls, found: _qkv.HiddenStates) -> HiddenStates:
        return cls(found.pieces, found.values())


@dataclass(frozen=True)
class TranslationStates:
    """The hidden states of a translator: of the source, and of what the decoder has read, beginning with the start token.

    >>> states = qkv.Translator("runs/en-de").hidden("He sleeps.", "Er schläft.")
    >>> states.translation, states.encoder.pieces[-1], states.decoder.pieces[0]
    ('Er schläft.', '</s>', '<s>')
    """

    translation: str
    encoder: HiddenStates
    decoder: HiddenStates


@dataclass(frozen=True)
class LensPrediction:
    """A prediction of the next token from the hidden state of one layer at one position.

    >>> last = qkv.Generator("runs/lm").lens("45").layers[-1][-1]
    >>> last.token, last.answer_rank, last.probability == last.answer_probability
    ('6', 1, True)
    """

    token: str  # the most probable one
    probability: float  # its probability
    answer_rank: int  # of the answer, 1 for the most probable token
    answer_probability: float  # of the answer


@dataclass(frozen=True)
class LogitLens:
    """Predictions of a model after each of its layers: of the final norm and the output layer on its hidden states.

    >>> lens = qkv.Generator("runs/lm").lens("45")
    >>> lens.read, lens.answers[1:], len(lens.layers), len(lens.layers[0])
    (['<s>', '4', '5'], ['5', '6'], 2, 3)
    """

    source: str  # the sentence or the text
    target: str  # its translation; of a language model ""
    read: list[str]  # the tokens that the decoder has read
    answers: list[str]  # the most probable next token after the last layer, for each of them
    layers: list[list[LensPrediction]]  # [layers + 1][tokens]; the first are those of the embeddings
    _found: _qkv.LogitLens = field(repr=False, compare=False)

    @classmethod
    def _of(cls, found: _qkv.LogitLens) -> LogitLens:
        values = json.loads(found.to_json())
        values["layers"] = [[LensPrediction(**one) for one in layer] for layer in values["layers"]]
        return cls(**values, _found=found)

    def to_text(self) -> str:
        """Returns tables for a terminal.

        >>> qkv.Generator("runs/lm").lens("45").to_text().splitlines()[0]
        'The most probable next token after each layer, with its probability'
        """
        return self._found.to_text()

    def to_json(self) -> str:
        """Returns JSON with all values.

        >>> import json
        >>> sorted(json.loads(qkv.Generator("runs/lm").lens("45").to_json()))
        ['answers', 'layers', 'read', 'source', 'target']
        """
        return self._found.to_json()


@dataclass(frozen=True)
class Patching:
    """The share of the answer to one text that each part of the model carries: activation patching.

    >>> found = qkv.Generator("runs/lm").patch("345", "346")
    >>> found.answer, found.wrong, found.recovered.shape  # layers + 1, tokens
    ('6', '7', (2, 4))
    >>> bool(found.recovered[-1, -1] == 1)  # the last hidden state is all that the prediction reads
    True
    """

    part: str  # "residual", "attention", "cross-attention", "feed-forward", "head" or "cross-head"
    stack: str  # whose layers: "encoder" or "decoder"
    clean: list[str]  # tokens that the stack reads
    corrupted: list[str]
    answer: str  # tokens whose logits are compared
    wrong: str | None  # None: log p of the answer is measured
    clean_score: float  # logit(answer) - logit(wrong) of the texts as they are
    corrupted_score: float
    scores: NDArray[np.float64]  # [layers, tokens or heads], after a replacement
    recovered: NDArray[np.float64]  # (scores - corrupted_score) / (clean_score - corrupted_score)
    _found: _qkv.Patching = field(repr=False, compare=False)

    @classmethod
    def _of(cls, found: _qkv.Patching) -> Patching:
        import numpy as np

        values = json.loads(found.to_json())
        for name in ("scores", "recovered"):
            values[name] = np.array(values[name], np.float64)
        return cls(**values, _found=found)

    def to_text(self) -> str:
        """Returns a table for a terminal: the recovered shares in percent.

        >>> qkv.Generator("runs/lm").patch("345", "346").to_text().splitlines()[1]
        'Recovered by the clean residual of each decoder layer at one token, in percent'
        """
        return self._found.to_text()

    def to_json(self) -> str:
        """Returns JSON with all values.

        >>> import json
        >>> json.loads(qkv.Generator("runs/lm").patch("345", "346", part="head").to_json())["part"]
        'head'
        """
        return self._found.to_json()


@dataclass(frozen=True)
class TracedHypothesis:
    """A hypothesis of one step of beam search, which continues one of the step before.

    >>> first = qkv.Translator("runs/en-de").trace("He sleeps.", beam=2).steps[0].live[0]
    >>> first.parent, first.score, first.log_probability == first.token_log_probability
    (0, None, True)
    """

    token: str  # the last one, as spelled in the vocabulary
    parent: int  # place of the continued hypothesis among those that lived on; 0 in the first step
    token_log_probability: float  # log p of the token
    log_probability: float  # of all tokens, by which hypotheses of a step are ordered
    score: float | None  # of one that has ended; a coverage penalty is not included


@dataclass(frozen=True)
class TracedStep:
    """A step of beam search: the hypotheses that live on, and those that ended in it, the best first.

    >>> step = qkv.Translator("runs/en-de").trace("He sleeps.", beam=2).steps[-1]
    >>> len(step.live), len(step.ended) > 0
    (0, True)
    """

    live: list[TracedHypothesis]
    ended: list[TracedHypothesis]


@dataclass(frozen=True)
class BeamTrace:
    """The beam search of a sentence, step by step.

    >>> trace = qkv.Translator("runs/en-de").trace("He sleeps.", beam=2)
    >>> trace.beam, all(len(step.live) <= 2 for step in trace.steps)
    (2, True)
    """

    source: str
    translation: str
    beam: int
    length_penalty: float
    steps: list[TracedStep]
    _found: _qkv.BeamTrace = field(repr=False, compare=False)

    @classmethod
    def _of(cls, found: _qkv.BeamTrace) -> BeamTrace:
        values = json.loads(found.to_json())
        values["steps"] = [
            TracedStep(*([TracedHypothesis(**one) for one in step[part]] for part in ("live", "ended")))
            for step in values["steps"]
        ]
        return cls(**values, _found=found)

    def to_text(self) -> str:
        """Returns the steps for a terminal.

        >>> qkv.Translator("runs/en-de").trace("He sleeps.", beam=1).to_text().splitlines()[0]
        'Beam search with 1 hypothesis. The score of one that has ended is log p / tokens^1.'
        """
        return self._found.to_text()

    def to_json(self) -> str:
        """Returns JSON with all values.

        >>> import json
        >>> sorted(json.loads(qkv.Translator("runs/en-de").trace("He sleeps.").to_json()))
        ['beam', 'length_penalty', 'source', 'steps', 'translation']
        """
        return self._found.to_json()
