"""Text generation with the run directory of a language model."""

from __future__ import annotations

import codecs
import json
import os
import queue
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Callable, Iterable, Iterator, Mapping, Sequence, overload

from . import _qkv
from ._analysis import HiddenStates, LogitLens, Patching
from ._arguments import check_text, checked_texts, documents_options
from ._attention_map import AttentionMap

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._options import GenerateOptions, ScoreOptions


@dataclass(frozen=True)
class TokenAlternative:
    """A token that the model could have chosen.

    >>> text = qkv.Generator("runs/lm").generate("45", max_tokens=1, temperature=0, alternatives=3)
    >>> [other.log_probability > -0.5 for other in text.tokens[0].alternatives]
    [True, False, False]
    """

    text: str
    log_probability: float
    end: bool  # it would end the text


@dataclass(frozen=True)
class GeneratedToken:
    """One token of a text. Incomplete characters are "\\ufffd".

    >>> text = qkv.Generator("runs/lm").generate("45", max_tokens=3, temperature=0)
    >>> [token.text for token in text.tokens]
    ['6', '7', '8']
    """

    text: str
    log_probability: float  # of the model, without penalties and filters
    alternatives: list[TokenAlternative]  # most probable first; only with the option alternatives


@dataclass(frozen=True)
class Generation:
    """A continuation of a prompt.

    >>> text = qkv.Generator("runs/lm").generate("45", temperature=0, stop=["8"])
    >>> text.text, str(text), len(text.tokens), text.end
    ('67', '67', 3, 'stop')
    """

    text: str  # without the prompt
    tokens: list[GeneratedToken]  # all generated tokens, including those of a stop text
    end: str  # why it ended: "document" (the model ended it), "stop", "length" (max_tokens) or "context" (max_length)

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class TextScore:
    """How probable a language model finds a text.

    >>> score = qkv.Generator("runs/lm").score("4567")
    >>> score.scored, [token.text for token in score.tokens]
    (4, ['4', '5', '6', '7'])

    A token without tokens before it has the log-probability NaN: the first one, unless the model puts a start token
    before texts; with a stride as long as the context also the first one of each window.
    """

    tokens: list[GeneratedToken]
    log_probability: float  # sum over the tokens that have one
    scored: int  # their number
    perplexity: float  # exp(-log_probability / scored); NaN if scored is 0


class Generator:
    """A language model from a run directory. Methods are thread-safe.

    >>> generator = qkv.Generator("runs/lm")
    >>> generator.generate("45", max_tokens=4, temperature=0).text
    '6789'

    cache_bytes: memory for the keys and values of recent texts, so that a prompt that shares a prefix with one of them
        is read only from where they differ; by default 256 MiB.

    device: where the model computes: "cpu"; "cuda", a device plugin; or "auto", which is "cuda" if a plugin finds a
        device.
    precision: what a device computes with, "float32" or "bfloat16"; "auto" is bfloat16. The CPU computes with float32.

    Raises qkv.Error, a ValueError, naming the file, if the run is not a
    language model, incomplete or damaged.
    """

    def __init__(
        self,
        run_directory: str | os.PathLike[str],
        *,
        cache_bytes: int = 1 << 28,
        device: str = "cpu",
        precision: str = "auto",
    ) -> None:
        placement = {"device": device, "precision": precision}
        self._generator = _qkv.Generator(os.fspath(run_directory), cache_bytes, placement)
        self._defaults = _qkv.default_generate_options(os.fspath(run_directory))

    @overload
    def generate(  # type: ignore[overload-overlap]  # a string is also an iterable of strings
        self,
        prompt: str,
        *,
        on_text: Callable[[str], object] | None = None,
        on_done: Callable[[int, Generation], object] | None = None,
        **options: Unpack[GenerateOptions],
    ) -> Generation: ...

    @overload
    def generate(
        self,
        prompt: Iterable[str],
        *,
        on_text: Callable[[str], object] | None = None,
        on_done: Callable[[int, Generation], object] | None = None,
        **options: Unpack[GenerateOptions],
    ) -> list[Generation]: ...

    def generate(
        self,
        prompt: str | Iterable[str],
        *,
        on_text: Callable[[str], object] | None = None,
        on_done: Callable[[int, Generation], object] | None = None,
        **options: Unpack[GenerateOptions],
    ) -> Generation | list[Generation]:
        """Continues a prompt, or each of several prompts; see generate_all.

        >>> generator = qkv.Generator("runs/lm")
        >>> generator.generate("45", max_tokens=3, temperature=0).text
        '678'
        >>> [text.text for text in generator.generate(["0", "12"], max_tokens=3, temperature=0)]
        ['123', '345']

        Returns a Generation for a prompt, and a list of them for an iterable of prompts.
        """
        prompts = [prompt] if isinstance(prompt, str) else prompt
        found = self.generate_all(prompts, on_text=on_text, on_done=on_done, **options)
        return found[0] if isinstance(prompt, str) else found

    @documents_options("GenerateOptions")
    def generate_all(
        self,
        prompts: Iterable[str],
        *,
        on_text: Callable[[str], object] | None = None,
        on_done: Callable[[int, Generation], object] | None = None,
        **options: Unpack[GenerateOptions],
    ) -> list[Generation]:
        """Continues prompts; result i belongs to prompt i and does not depend on the others. Ctrl-C stops the call after
        a token.

        >>> done = []
        >>> texts = qkv.Generator("runs/lm").generate_all(["0", "12"], max_tokens=3, temperature=0,
        ...                                               on_done=lambda number, text: done.append((number, text.text)))
        >>> done
        [(0, '123'), (1, '345')]

        prompts: texts; or a column of strings of pandas, polars or pyarrow.
        on_text: called with each new piece of a text, for one text after the other.
        on_done: called with the number of a prompt and its text, when that text and all before it are complete.

        Raises qkv.Error, a ValueError, that names the invalid prompt or option, and TypeError for an unknown option.
        """
        decoder = codecs.getincrementaldecoder("utf-8")("replace")

        def emit(text: str) -> None:
            if text and on_text is not None:
                on_text(text)

        def done(number: int, found: _qkv.Generation) -> None:
            emit(decoder.decode(b"", final=True))
            if on_done is not None:
                on_done(number, _generation(found))

        found = self._generator.generate(
            checked_texts("prompts", prompts), {**self._defaults, **options},
            lambda piece: emit(decoder.decode(piece)), done
        )
        return [_generation(g) for g in found]

    def stream(self, prompt: str, **options: Unpack[GenerateOptions]) -> Iterator[str]:
        """Continues a prompt and yields the text piece by piece. A thread generates ahead of the caller.

        >>> list(qkv.Generator("runs/lm").stream("45", max_tokens=4, temperature=0))
        ['6', '7', '8', '9']

        Options and errors are those of generate_all; an error is raised when the next piece is requested.
        """
        pieces: queue.Queue[str | BaseException | None] = queue.Queue()
        count, stopped = _qkv.threads(), threading.Event()

        def take(piece: str) -> None:
            if stopped.is_set():
                raise InterruptedError("the stream was closed")
            pieces.put(piece)

        def work() -> None:
            _qkv.set_threads(count)  # the count of a new thread is that of the environment
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

    @overload
    def score(  # type: ignore[overload-overlap]  # a string is also an iterable of strings
        self, text: str, **options: Unpack[ScoreOptions]
    ) -> TextScore: ...

    @overload
    def score(self, text: Iterable[str], **options: Unpack[ScoreOptions]) -> list[TextScore]: ...

    @documents_options("ScoreOptions")
    def score(self, text: str | Iterable[str], **options: Unpack[ScoreOptions]) -> TextScore | list[TextScore]:
        """Returns the log-probability of each token of a text after those before it, or a list of these for an iterable
        of texts, which do not depend on each other. A text that is longer than the context is read in windows, each of
        which begins `stride` tokens after the one before.

        >>> generator = qkv.Generator("runs/lm")
        >>> [token.text for token in generator.score("456").tokens]
        ['4', '5', '6']
        >>> likely, unlikely = generator.score(["4567", "7777"])
        >>> likely.perplexity < unlikely.perplexity
        True

        Raises qkv.Error, a ValueError, that names the invalid text or option, and TypeError for an unknown option.
        """
        texts = [text] if isinstance(text, str) else text
        found = [_text_score(s) for s in self._generator.score(checked_texts("texts", texts), dict(options))]
        return found[0] if isinstance(text, str) else found

    @documents_options("GenerateOptions")
    def chat(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        tools: Sequence[Mapping[str, Any]] | None = None,
        documents: Sequence[Mapping[str, Any]] | None = None,
        variables: Mapping[str, Any] | None = None,
        chat_template: str = "",
        continue_final_message: bool = False,
        on_text: Callable[[str], object] | None = None,
        **options: Unpack[GenerateOptions],
    ) -> Generation:
        """Answers a conversation, which the chat template of the model turns into its prompt.

        >>> generator = qkv.Generator("runs/lm")
        >>> numbers = "{% for m in messages %}{{ m.content }}{% endfor %}"
        >>> generator.chat([{"role": "user", "content": "45"}], chat_template=numbers, max_tokens=4, temperature=0).text
        '6789'

        messages: the conversation, as in OpenAI's API: dictionaries with role ("system", "user", "assistant", "tool") and
            content, and others that the template reads. What they spell is never a control token.
        tools, documents: what the template reads under these names.
        variables: further variables of the template, such as {"enable_thinking": False}.
        chat_template: the name of a template of the model, or of a built-in one (chatml, llama2, llama3, mistral, zephyr,
            plain), or the source of a template in Jinja; by default the model's own.
        continue_final_message: continue the last message rather than answer it.
        on_text: called with each new piece of the answer.

        Raises qkv.Error, a ValueError, with the template's own text for a conversation that it refuses, and as
        generate_all does.
        """
        decoder = codecs.getincrementaldecoder("utf-8")("replace")

        def emit(text: str) -> None:
            if text and on_text is not None:
                on_text(text)

        chat = _chat_options(tools, documents, variables, not continue_final_message, continue_final_message)
        found = self._generator.chat(
            chat_template, _json(messages), chat, {**self._defaults, **options}, lambda piece: emit(decoder.decode(piece))
        )
        emit(decoder.decode(b"", final=True))
        return _generation(found)

    def chat_text(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        tools: Sequence[Mapping[str, Any]] | None = None,
        documents: Sequence[Mapping[str, Any]] | None = None,
        variables: Mapping[str, Any] | None = None,
        chat_template: str = "",
        add_generation_prompt: bool = True,
        continue_final_message: bool = False,
    ) -> str:
        """Returns the text that the chat template makes of a conversation, as transformers' apply_chat_template does with
        tokenize=False.

        >>> qkv.Generator("runs/lm").chat_text(
        ...     [{"role": "user", "content": "45"}], chat_template="{{ messages[0].role }}: {{ messages[0].content }}")
        'user: 45'

        Parameters and errors are those of chat; add_generation_prompt ends the text with the beginning of an answer.
        """
        chat = _chat_options(
            tools, documents, variables, add_generation_prompt and not continue_final_message, continue_final_message
        )
        return self._generator.chat_text(chat_template, _json(messages), chat)

    def attend(
        self, text: str, more: int = 0, *, method: str = "weights", steps: int = 50, baseline: str = ""
    ) -> AttentionMap:
        """Returns the attention weights of `text` and of up to `more` tokens that the model continues it with, each the
        most probable one. The only kind is "decoder".

        >>> qkv.Generator("runs/lm").attend("45", 2).kinds["decoder"].rows
        ['<s>', '4', '5', '6', '7']

        method: "weights"; the attention of all layers up to one, "rollout" or "flow"; or attributions of log p of each
            token to those before it: "gradient" (times input) or "integrated" (gradients, at `steps` points). See
            AttentionKind.
        baseline: text whose first token takes the place of every token in the baseline of attributions; by default
            embeddings of zeros.

        Raises qkv.Error if the text is longer than the model's maximum.
        """
        check_text("text", text)
        attribution = {"method": method, "steps": steps, "baseline": baseline}
        return AttentionMap._of(self._generator.attend(text, more, attribution))

    def hidden(self, text: str) -> HiddenStates:
        """Returns the hidden states of all layers for a text, with the start token if the model has one.

        >>> qkv.Generator("runs/lm").hidden("45").values.dtype
        dtype('float32')

        Raises qkv.Error if the text is longer than the model's maximum.
        """
        check_text("text", text)
        return HiddenStates._of(self._generator.hidden(text))

    def lens(self, text: str) -> LogitLens:
        """Returns what the model would predict after each layer, at each token of a text (the logit lens).

        >>> qkv.Generator("runs/lm").lens("45").answers[-1]
        '6'

        Raises qkv.Error if the text is longer than the model's maximum.
        """
        check_text("text", text)
        return LogitLens._of(self._generator.lens(text))

    def patch(
        self, clean: str, corrupted: str, *, part: str = "residual", answer: str = "", wrong: str = ""
    ) -> Patching:
        """Returns how much of the answer to `clean` each part of the model carries, if its output there takes the place of
        that in a pass over `corrupted`, a text of as many tokens (activation patching).

        >>> qkv.Generator("runs/lm").patch("345", "346", answer="6", part="head").recovered.shape  # layers, heads
        (1, 2)

        part: "residual", the hidden state of a layer at a token; "attention" or "feed-forward", what one adds to it; or
            "head", the output of a head at all tokens.
        answer, wrong: texts whose first tokens are compared: logit(answer) - logit(wrong) after the last token. By
            default the most probable ones after clean and corrupted. If these are the same, log p(answer) is measured.

        Raises qkv.Error for texts of different lengths or longer than the model's maximum, and for those with the same
        score.
        """
        for name, text in (("clean", clean), ("corrupted", corrupted), ("answer", answer), ("wrong", wrong)):
            check_text(name, text)
        options = {"part": part, "answer": answer, "wrong": wrong}
        return Patching._of(self._generator.patch(clean, corrupted, options))


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _chat_options(
    tools: Any, documents: Any, variables: Any, add_generation_prompt: bool, continue_final_message: bool
) -> dict[str, Any]:
    texts = {"tools": tools, "documents": documents, "variables": variables}
    given = {name: "" if value is None else _json(value) for name, value in texts.items()}
    return {
        **given,
        "add_generation_prompt": add_generation_prompt,
        "continue_final_message": continue_final_message,
    }


def _tokens(tokens: list[_qkv.GeneratedToken]) -> list[GeneratedToken]:
    return [
        GeneratedToken(
            t.text, t.log_probability, [TokenAlternative(a.text, a.log_probability, a.end) for a in t.alternatives]
        )
        for t in tokens
    ]


def _generation(g: _qkv.Generation) -> Generation:
    return Generation(g.text, _tokens(g.tokens), g.end)


def _text_score(s: _qkv.TextScore) -> TextScore:
    return TextScore(_tokens(s.tokens), s.log_probability, s.scored, s.perplexity)
