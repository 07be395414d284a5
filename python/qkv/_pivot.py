"""Translation through a language in between, with a chain of run directories."""

from __future__ import annotations

import os
import warnings
from typing import TYPE_CHECKING, Any, Iterable, Mapping

from . import _qkv
from ._arguments import checked_texts, documents_options
from ._translator import Translation, _translate_document, _translation

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._options import TranslateOptions


class PivotTranslator:
    """A chain of translators: each translates what the one before has translated, as from German to English to French.

    >>> chain = qkv.PivotTranslator(["runs/en-de", "runs/de-en"])
    >>> result = chain.translate(["He sleeps."])[0]
    >>> result.source, len(result.pivot)
    ('He sleeps.', 1)

    run_directories: those of the translators, in order. Methods are thread-safe.

    Raises qkv.Error, a ValueError, naming the file, if a run is incomplete or damaged, and if there is none.
    """

    def __init__(self, run_directories: Iterable[str | os.PathLike[str]]) -> None:
        if isinstance(run_directories, (str, bytes)):
            raise _qkv.Error(f"run_directories must be a list of paths (is {run_directories!r})")
        runs = [os.fspath(run) for run in run_directories]
        self._chain = _qkv.PivotTranslator(runs)
        self._defaults = [_qkv.default_translate_options(run) for run in runs]

    @documents_options("TranslateOptions")
    def translate(
        self,
        lines: Iterable[str],
        *,
        prefixes: Iterable[str] = (),
        pivot_languages: Iterable[str] = (),
        **options: Unpack[TranslateOptions],
    ) -> list[Translation]:
        """Translates lines, as Translator.translate does; result i belongs to line i.

        Each model splits its text into sentences. Parts that are protected in a line are protected in the texts in
        between, too. Translation.pivot has those texts. A hypothesis has the tokens of the last model, with an alignment
        to the tokens of the line; its score and log_probability are the sums over all models.

        >>> chain = qkv.PivotTranslator(["runs/en-de", "runs/de-en"])
        >>> "{name}" in chain.translate(["He sees {name}."])[0].text
        True

        prefixes: one for each line, the beginning of its hypotheses.
        pivot_languages: for models with several languages, the code of each text in between.
        options: of all models, each of which has its own defaults; n_best and alternatives are those of the last one,
            and a chain has no attention and no glossary. source_language is that of the lines, target_language that of
            the translations.

        Raises qkv.Error, a ValueError, that names the invalid line or option, and TypeError for an unknown option.
        """
        found, notes = self._chain.translate(
            checked_texts("lines", lines), self._options(options), checked_texts("pivot_languages", pivot_languages),
            checked_texts("prefixes", prefixes))
        for note in notes:
            warnings.warn(note, stacklevel=2)
        return [_translation(t) for t in found]

    def translate_document(
        self,
        document: str | os.PathLike[str] | bytes,
        out: str | os.PathLike[str] | None = None,
        *,
        format: str = "",
        columns: Iterable[str] = (),
        languages: tuple[str, str] = ("", ""),
        pivot_languages: Iterable[str] = (),
        **options: Unpack[TranslateOptions],
    ) -> bytes | None:
        """Translates the text of a document, as Translator.translate_document does.

        >>> chain = qkv.PivotTranslator(["runs/en-de", "runs/de-en"])
        >>> chain.translate_document(b"<p class=x>He sleeps.</p>", format="html", beam=2)[:11]
        b'<p class=x>'

        Takes arguments, returns and raises as it does; options and pivot_languages are those of translate.
        """
        values, between = self._options(options), checked_texts("pivot_languages", pivot_languages)
        return _translate_document(
            document, out, format,
            lambda name, content, wanted: self._chain.translate_bytes(
                name, content, values, between, format, wanted, languages),
            lambda path, to, wanted: self._chain.translate_file(path, to, values, between, format, wanted, languages),
            columns)

    def _options(self, options: Mapping[str, object]) -> list[dict[str, Any]]:
        if options.get("glossary") and len(self._defaults) > 1:
            raise _qkv.Error("glossary cannot be combined with several models in a chain")
        return [{**defaults, **options} for defaults in self._defaults]
