"""Going on from a text with a trained run directory of a language model."""

from __future__ import annotations

import codecs
import os
import queue
import threading
from dataclasses import dataclass
from typing import Any, Callable, Iterable, Iterator, overload

from . import _qkv
from ._arguments import checked_texts, set_options
from ._translator import AttentionMap


@dataclass(frozen=True)
class TokenAlternative:
    """A token that the model could have said."""

    text: str
    log_probability: float
    end: bool  # it would have ended the text


@dataclass(frozen=True)
class GeneratedToken:
    """One token of a text. What is no whole character of it is "\\ufffd"."""

    text: str
    log_probability: float  # the model's own, whatever changed the draw
    alternatives: list[TokenAlternative]  # if asked for: the most probable first, itself perhaps among them


@dataclass(frozen=True)
class Generation:
    """What a model went on with."""

    text: str  # without the prompt
    tokens: list[GeneratedToken]  # all that were generated, those of a stop text too
    end: str  # why it ended: "document" (the model ended it), "stop", "length" (max_tokens) or "context" (max_length)

    def __str__(self) -> str:
        return self.text


class Generator:
    """A language model from a run directory. Any number of threads may call it at the same time.

    What it has read of the last texts is kept in up to `cache_bytes`: a prompt that begins like one of them is read from
    where it differs. Raises qkv.Error, a ValueError, naming the file, if the directory does not hold a whole and sound
    run of a language model.
    """

    def __init__(self, run_directory: str | os.PathLike[str], *, cache_bytes: int = 1 << 28) -> None:
        self._generator = _qkv.Generator(os.fspath(run_directory), cache_bytes)

    @overload
    def generate(self, prompt: str, **options: Any) -> Generation: ...

    @overload
    def generate(self, prompt: Iterable[str], **options: Any) -> list[Generation]: ...

    def generate(self, prompt: str | Iterable[str], **options: Any) -> Generation | list[Generation]:
        """What the model goes on with after a prompt, or after each of several; the options are those of generate_all."""
        if isinstance(prompt, str):
            return self.generate_all([prompt], **options)[0]
        return self.generate_all(prompt, **options)

    def generate_all(
        self,
        prompts: Iterable[str],
        *,
        max_tokens: int = 256,
        temperature: float = 1.0,
        top_k: int = 0,
        top_p: float = 1.0,
        min_p: float = 0.0,
        repetition_penalty: float = 1.0,
        stop: Iterable[str] = (),
        seed: int = 1,
        slide: bool = True,
        alternatives: int = 0,
        batch: int = 8,
        on_text: Callable[[str], object] | None = None,
        on_done: Callable[[int, Generation], object] | None = None,
    ) -> list[Generation]:
        """Text i goes on from prompt i, the same alone and in any company.

        max_tokens: where a text ends that does not end before.
        temperature: tokens are drawn from p^(1/temperature); 0 takes the most probable one each time. Of all tokens
            those with min_p of the highest probability, of these the top_k most probable ones (0: all), of these the
            fewest with the probability top_p together. The draws depend on the seed and the prompt alone.
        repetition_penalty: multiplies log p of tokens that stand in the text.
        stop: texts that end it; they are left out.
        slide: at the model's max_length its older half is forgotten; else the text ends there.
        alternatives: so many of the most probable tokens are told beside each token.
        batch: texts that grow side by side, at most. It changes none of them.
        on_text: called with each text as it grows, piece by piece; of several the first one first. on_done: called with
            the number of a prompt and its text when it and all before it are complete.
        Ctrl-C stops it after a token.
        """
        options = set_options(
            _qkv.GenerateOptions(),
            "generate",
            max_tokens=max_tokens,
            temperature=temperature,
            top_k=top_k,
            top_p=top_p,
            min_p=min_p,
            repetition_penalty=repetition_penalty,
            stop=checked_texts("generate", "stop text", stop),
            seed=seed,
            slide=slide,
            alternatives=alternatives,
            batch=batch,
        )
        decoder = codecs.getincrementaldecoder("utf-8")("replace")

        def tell(text: str) -> None:
            if text and on_text is not None:
                on_text(text)

        def done(number: int, found: _qkv.Generation) -> None:
            tell(decoder.decode(b"", final=True))
            if on_done is not None:
                on_done(number, _generation(found))

        found = self._generator.generate(
            checked_texts("generate", "prompt", prompts), options, lambda piece: tell(decoder.decode(piece)), done
        )
        return [_generation(g) for g in found]

    def stream(self, prompt: str, **options: Any) -> Iterator[str]:
        """generate for one prompt: gives the text piece by piece, from a thread that works ahead of the caller."""
        pieces: queue.Queue[str | BaseException | None] = queue.Queue()
        count, stopped = _qkv.threads(), threading.Event()

        def take(piece: str) -> None:
            if stopped.is_set():
                raise InterruptedError("the stream was closed")
            pieces.put(piece)

        def work() -> None:
            _qkv.set_threads(count)  # a thread of its own begins with the number that the environment says
            try:
                self.generate(prompt, on_text=take, **options)
                pieces.put(None)
            except BaseException as error:
                pieces.put(error)

        threading.Thread(target=work, daemon=True).start()
        try:
            while (piece := pieces.get()) is not None:
                if isinstance(piece, BaseException):
                    raise piece
                yield piece
        finally:
            stopped.set()

    def attend(self, text: str, more: int = 0) -> AttentionMap:
        """What each token looks at while the model reads `text` and goes on with up to `more` tokens, the most probable
        one each time: one kind, "decoder". Raises qkv.Error if that is beyond the model's length.
        """
        return AttentionMap(self._generator.attend(checked_texts("attend", "text", [text])[0], more))


def _generation(g: _qkv.Generation) -> Generation:
    tokens = [
        GeneratedToken(
            t.text, t.log_probability, [TokenAlternative(a.text, a.log_probability, a.end) for a in t.alternatives]
        )
        for t in g.tokens
    ]
    return Generation(g.text, tokens, g.end)
