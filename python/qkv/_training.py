"""Training of all kinds of models into run directories."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Callable, Iterable, Mapping, Union

from . import _qkv
from ._arguments import check_separator, check_text, checked_texts, documents_options
from ._reports import EvaluationReport, Reporter, StepReport, TrainingResult
from ._tables import Tabular, is_tabular, listed, log_files, row_file, text_files

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._options import (
        ClassifierRecipe, EmbedderRecipe, EncoderRecipe, LanguageRecipe, RecommendationRecipe, TranslationRecipe,
    )

Path = Union[str, "os.PathLike[str]"]
Texts = Union[Path, Tabular]  # a file, or a table or column of pandas, polars or pyarrow
_DOCUMENT_END = "<|endoftext|>"  # the default of the option
Train = Callable[[dict[str, Any], dict[str, Any], tuple[Callable[..., bool], ...]], bool]


@documents_options("TranslationRecipe")
def train_translator(
    train: Texts | Iterable[Texts],
    dev: Texts | Iterable[Texts],
    out: Path,
    *,
    source_tokenizer: Path | None = None,
    target_tokenizer: Path | None = None,
    init: Path | None = None,
    memory: int | str | None = None,
    preset: str | None = None,
    config: Path | Mapping[str, Any] | None = None,
    on_step: Callable[[StepReport], object] | None = None,
    on_evaluation: Callable[[EvaluationReport], object] | None = None,
    on_message: Callable[[str], object] | None = None,
    progress: bool | None = None,
    **options: Unpack[TranslationRecipe],
) -> TrainingResult:
    """Trains a translator on parallel text into the run directory `out`, as `qkv train translate` does.

    The same arguments give the same bytes as the program. If `out` exists, training resumes from its last saved state.
    Ctrl-C stops training after the current step, saves its state and raises KeyboardInterrupt; so does any exception of
    a callback. The same call then resumes, and ends with the same bytes as if it had not been stopped.

    >>> result = qkv.train_translator(["train.en", "train.de"], ["dev.en", "dev.de"], "runs/trained", preset="tiny",
    ...                               d_model=16, ffn=16, vocab_size=300, max_steps=2, progress=False)
    >>> result.finished, result.steps, sorted(result.evaluation.measures)
    (True, 2, ['bleu', 'loss', 'perplexity'])

    train: training text: two line-aligned files, or one file of lines "source TAB target". A file may also be a column
        of strings without line breaks, of pandas, polars or pyarrow.
    dev: text for evaluation, in the same form.
    out: run directory to write.
    source_tokenizer: SentencePiece model of the source, or of both sides with a joint vocabulary; trained if None.
    target_tokenizer: SentencePiece model of the target; trained if None.
    init: run to fine-tune; its shape, tokenizers and special tokens are kept (docs/fine-tuning.md).
    memory: chooses the largest batch_tokens with which training fits into this much: bytes, or text such as "4G".
    preset: "tiny", "tiny-modern", "small" or "base"; None is "tiny", or the values for fine-tuning with init.
    config: JSON file with options, or a dict of them; those given as keyword arguments take precedence.
    on_step: called after each step; a true result stops training after its state is saved.
    on_evaluation: called after each evaluation on the dev text; a true result stops training likewise.
    on_message: called with lines about the data, memory and the reason for the end, which the result has as well.
    progress: False shows no progress bar; None shows one if tqdm is installed; True requires tqdm.

    The options below have the defaults of the preset "tiny". qkv.set_threads sets the number of threads.

    Raises qkv.Error, a ValueError, that names the file or option, and TypeError for an unknown option.
    """
    if memory is not None and "batch_tokens" in options:
        raise _qkv.Error(f"memory chooses batch_tokens: only one of them can be given (are {memory!r} and "
                         f"{options['batch_tokens']!r})")
    with text_files("train", train) as train_paths, text_files("dev", dev) as dev_paths, \
            Reporter(on_step, on_evaluation, on_message, progress) as reporter:
        arguments = {
            "train": train_paths, "dev": dev_paths, "source_tokenizer": _path(source_tokenizer),
            "target_tokenizer": _path(target_tokenizer), "init": _path(init),
            "memory": "" if memory is None else str(memory),
        }
        return _train(_qkv.train_translator, arguments, out, preset, config, options, reporter)


@documents_options("RecommendationRecipe")
def train_recommender(
    data: Texts | Iterable[Texts],
    out: Path,
    *,
    columns: Iterable[str] = (),
    separator: str = "",
    time_format: str = "",
    skip_bad_lines: bool = False,
    features: Path | None = None,
    feature_columns: Iterable[str] = (),
    init: Path | None = None,
    preset: str | None = None,
    config: Path | Mapping[str, Any] | None = None,
    on_step: Callable[[StepReport], object] | None = None,
    on_evaluation: Callable[[EvaluationReport], object] | None = None,
    on_message: Callable[[str], object] | None = None,
    progress: bool | None = None,
    **options: Unpack[RecommendationRecipe],
) -> TrainingResult:
    """Trains a recommender on a log of users and items into the run directory `out`, as `qkv train recommend` does.

    The same arguments give the same bytes as the program. A run is resumed, and training is stopped, as by
    train_translator.

    >>> result = qkv.train_recommender("log.csv", "runs/recommender", d_model=16, ffn=16, max_steps=2, progress=False)
    >>> result.finished, "NDCG@10" in result.evaluation.measures, list(result.evaluation.baselines)
    (True, True, ['popularity', 'markov'])

    data: one or more logs: CSV, MovieLens (::), JSON lines, or lines USER ITEM in time order; or one or more tables of
        pandas, polars or pyarrow.
    out: run directory to write.
    columns: columns of user, item and time: names, or numbers from "1"; by default usual names or the usual order.
    separator: the text between the columns of files, such as "|"; by default found by the first line.
    time_format: the format of times in files in the directives of strptime, such as "%d.%m.%Y %H:%M"; by default
        numbers or ISO 8601.
    skip_bad_lines: skips lines of files that cannot be read, and counts them.
    features: table with categories and words of items.
    feature_columns: columns of that table: item and features, such as ["movieId", "genres", "title:words"].
    init: run whose weights training starts from; its items keep their ids.
    preset: "auto" (fits the log), "films" or "sasrec"; None is "auto".
    config: JSON file with options, or a dict of them; those given as keyword arguments take precedence.
    on_step: called after each step; a true result stops training after its state is saved.
    on_evaluation: called after each evaluation on the validation; a true result stops training likewise.
    on_message: called with lines about the data, memory and the reason for the end, which the result has as well.
    progress: False shows no progress bar; None shows one if tqdm is installed; True requires tqdm.

    The options below have the defaults of the preset "auto" before it chooses values that fit the log: those of the
    model's size, batches, loss, dropout, schedule and length of training that are not given. qkv.set_threads sets the
    number of threads.

    Raises qkv.Error, a ValueError, that names the file or option, and TypeError for an unknown option.
    """
    check_text("time_format", time_format)
    check_separator(listed(data), separator)
    with log_files("data", data, checked_texts("columns", columns)) as (paths, names), \
            Reporter(on_step, on_evaluation, on_message, progress) as reporter:
        arguments = {
            "data": paths, "columns": names, "separator": separator, "time_format": time_format,
            "skip_bad_lines": skip_bad_lines, "features": _path(features), "feature_columns": feature_columns,
            "init": _path(init),
        }
        return _train(_qkv.train_recommender, arguments, out, preset, config, options, reporter)


@documents_options("LanguageRecipe")
def train_language_model(
    text: Texts | Iterable[Texts],
    out: Path,
    *,
    dev: Texts | Iterable[Texts] = (),
    tokenizer_model: Path | None = None,
    init: Path | None = None,
    preset: str | None = None,
    config: Path | Mapping[str, Any] | None = None,
    on_step: Callable[[StepReport], object] | None = None,
    on_evaluation: Callable[[EvaluationReport], object] | None = None,
    on_message: Callable[[str], object] | None = None,
    progress: bool | None = None,
    **options: Unpack[LanguageRecipe],
) -> TrainingResult:
    """Trains a language model on plain text into the run directory `out`, as `qkv train lm` does.

    The same arguments give the same bytes as the program. A run is resumed, and training is stopped, as by
    train_translator.

    >>> seen = []
    >>> result = qkv.train_language_model("text.txt", "runs/language", d_model=16, heads=2, decoder_layers=1, ffn=16,
    ...                                   max_steps=3, on_step=lambda report: seen.append(report.step), progress=False)
    >>> seen, "bits/byte" in result.evaluation.measures
    ([1, 2, 3], True)

    text: one or more files of plain text. A file may also be a column of strings, each a document, of pandas, polars or
        pyarrow; document_end then has its default unless it is given.
    out: run directory to write.
    dev: text for evaluation; by default the end of the text.
    tokenizer_model: SentencePiece model, for the unit "pieces"; trained if None.
    init: run to fine-tune; its shape and tokenizer are kept (docs/fine-tuning.md).
    preset: "lm-small", "lm-med" or "gpt2"; None is "lm-small", or the values for fine-tuning with init.
    config: JSON file with options, or a dict of them; those given as keyword arguments take precedence.
    on_step: called after each step; a true result stops training after its state is saved.
    on_evaluation: called after each evaluation; a true result stops training likewise.
    on_message: called with lines about the data, memory and the reason for the end, which the result has as well.
    progress: False shows no progress bar; None shows one if tqdm is installed; True requires tqdm.

    The options below have the defaults of the preset "lm-small". qkv.set_threads sets the number of threads.

    Raises qkv.Error, a ValueError, that names the file or option, and TypeError for an unknown option.
    """
    return _train_on_text(_qkv.train_language_model, (text, dev), tokenizer_model, init, (out, preset, config, options),
                          Reporter(on_step, on_evaluation, on_message, progress))


@documents_options("EncoderRecipe")
def train_encoder(
    text: Texts | Iterable[Texts],
    out: Path,
    *,
    dev: Texts | Iterable[Texts] = (),
    tokenizer_model: Path | None = None,
    init: Path | None = None,
    preset: str | None = None,
    config: Path | Mapping[str, Any] | None = None,
    on_step: Callable[[StepReport], object] | None = None,
    on_evaluation: Callable[[EvaluationReport], object] | None = None,
    on_message: Callable[[str], object] | None = None,
    progress: bool | None = None,
    **options: Unpack[EncoderRecipe],
) -> TrainingResult:
    """Trains an encoder on plain text into the run directory `out`, as `qkv train encoder` does.

    Some tokens are masked, and the model predicts them (docs/encoders.md). qkv.Embedder loads the run. The same
    arguments give the same bytes as the program. A run is resumed, and training is stopped, as by train_translator.

    >>> result = qkv.train_encoder("text.txt", "runs/masked", d_model=16, heads=2, encoder_layers=1, ffn=16,
    ...                            vocab_size=60, max_steps=3, progress=False)
    >>> "perplexity" in result.evaluation.measures, qkv.Embedder("runs/masked").width
    (True, 16)

    text: one or more files of plain text. A file may also be a column of strings, each a document, of pandas, polars or
        pyarrow; document_end then has its default, and lines is False, unless they are given. With lines, no string may
        contain a line break.
    out: run directory to write.
    dev: text for evaluation; by default the end of the text.
    tokenizer_model: SentencePiece model with a piece "<mask>" or "[MASK]"; trained if None.
    init: run of an encoder to train further; its shape and tokenizer are kept.
    preset: "encoder-tiny", "bert-base" or "modernbert-base"; None is "encoder-tiny", or the values for fine-tuning with
        init.
    config: JSON file with options, or a dict of them; those given as keyword arguments take precedence.
    on_step: called after each step; a true result stops training after its state is saved.
    on_evaluation: called after each evaluation; a true result stops training likewise.
    on_message: called with lines about the data, memory and the reason for the end, which the result has as well.
    progress: False shows no progress bar; None shows one if tqdm is installed; True requires tqdm.

    The options below have the defaults of the preset "encoder-tiny". qkv.set_threads sets the number of threads.

    Raises qkv.Error, a ValueError, that names the file or option, and TypeError for an unknown option.
    """
    return _train_on_text(_qkv.train_encoder, (text, dev), tokenizer_model, init, (out, preset, config, options),
                          Reporter(on_step, on_evaluation, on_message, progress))


@documents_options("EmbedderRecipe")
def train_embedder(
    train: Texts,
    out: Path,
    *,
    init: Path,
    dev: Texts | None = None,
    columns: Iterable[str] = (),
    dev_columns: Iterable[str] = (),
    teacher: Path | None = None,
    config: Path | Mapping[str, Any] | None = None,
    on_step: Callable[[StepReport], object] | None = None,
    on_evaluation: Callable[[EvaluationReport], object] | None = None,
    on_message: Callable[[str], object] | None = None,
    progress: bool | None = None,
    **options: Unpack[EmbedderRecipe],
) -> TrainingResult:
    """Trains an embedder of texts on rows of texts into the run directory `out`, as `qkv train embed` does.

    Texts with similar meanings get similar vectors (docs/train-embedders.md). qkv.Embedder loads the run. The same
    arguments give the same bytes as the program. A run is resumed, and training is stopped, as by train_translator.

    >>> result = qkv.train_embedder("pairs.csv", "runs/embedder", init="runs/encoder", examples=2, max_steps=2,
    ...                             progress=False)
    >>> result.finished, "spearman" in result.evaluation.measures
    (True, True)

    train: rows of texts, CSV, TSV or JSON lines, or a table of pandas, polars or pyarrow: an anchor, a positive and
        negatives; two texts, or three, and a score; or one text.
    out: run directory to write.
    init: run to start from: an encoder, a classifier or a language model.
    dev: rows for evaluation; by default some of the training rows, chosen at random.
    columns: columns to read: names, or numbers from "1"; by default usual names, or all columns.
    dev_columns: the same of dev; by default those of columns.
    teacher: run that embeds texts, or .npy file with a vector of float32 for each text of train, row by row; the vectors
        are learned (distillation).
    config: JSON file with options, or a dict of them; those given as keyword arguments take precedence.
    on_step: called after each step; a true result stops training after its state is saved.
    on_evaluation: called after each evaluation; a true result stops training likewise.
    on_message: called with lines about the data, memory and the reason for the end, which the result has as well.
    progress: False shows no progress bar; None shows one if tqdm is installed; True requires tqdm.

    qkv.set_threads sets the number of threads.

    Raises qkv.Error, a ValueError, that names the file or option, and TypeError for an unknown option.
    """
    with row_file("train", train) as train_path, row_file("dev", dev) as dev_path, \
            Reporter(on_step, on_evaluation, on_message, progress) as reporter:
        arguments = {
            "train": train_path, "dev": dev_path, "init": _path(init), "teacher": _path(teacher),
            "columns": checked_texts("columns", columns), "dev_columns": checked_texts("dev_columns", dev_columns),
        }
        return _train(_qkv.train_embedder, arguments, out, None, config, options, reporter)


@documents_options("ClassifierRecipe")
def train_classifier(
    train: Texts,
    out: Path,
    *,
    init: Path,
    dev: Texts | None = None,
    columns: Iterable[str] = (),
    dev_columns: Iterable[str] = (),
    config: Path | Mapping[str, Any] | None = None,
    on_step: Callable[[StepReport], object] | None = None,
    on_evaluation: Callable[[EvaluationReport], object] | None = None,
    on_message: Callable[[str], object] | None = None,
    progress: bool | None = None,
    **options: Unpack[ClassifierRecipe],
) -> TrainingResult:
    """Trains a classifier or a cross-encoder on labelled texts into the run directory `out`, as `qkv train classify`
    does.

    qkv.Classifier loads the run (docs/train-classifiers.md). The same arguments give the same bytes as the program. A
    run is resumed, and training is stopped, as by train_translator.

    >>> result = qkv.train_classifier("labels.tsv", "runs/labels", init="runs/encoder", max_steps=3, progress=False)
    >>> "accuracy" in result.evaluation.measures, qkv.Classifier("runs/labels").labels
    (True, ['negative', 'positive'])

    train: rows of one or two texts and a label: CSV, TSV or JSON lines; or a table of pandas, polars or pyarrow.
    out: run directory to write.
    init: run that training starts from: an encoder, a classifier or a language model.
    dev: rows for evaluation, in the same form; by default some of the rows to train on.
    columns: columns of the texts and the label: names, or numbers from "1"; by default usual names, or all columns.
    dev_columns: the same of dev; by default those of columns.
    config: JSON file with options, or a dict of them; those given as keyword arguments take precedence.
    on_step: called after each step; a true result stops training after its state is saved.
    on_evaluation: called after each evaluation; a true result stops training likewise.
    on_message: called with lines about the data, memory and the reason for the end, which the result has as well.
    progress: False shows no progress bar; None shows one if tqdm is installed; True requires tqdm.

    The options below have defaults for fine-tuning. Those of dropout are the initial run's; without warmup_steps, the
    learning rate rises for a tenth of the steps; with max_steps and without max_epochs, there is no limit of epochs.
    qkv.set_threads sets the number of threads.

    Raises qkv.Error, a ValueError, that names the file or option, and TypeError for an unknown option.
    """
    with row_file("train", train) as train_path, row_file("dev", dev) as dev_path, \
            Reporter(on_step, on_evaluation, on_message, progress) as reporter:
        arguments = {
            "train": train_path, "dev": dev_path, "columns": checked_texts("columns", columns),
            "dev_columns": checked_texts("dev_columns", dev_columns), "init": _path(init),
        }
        return _train(_qkv.train_classifier, arguments, out, None, config, options, reporter)


def _train_on_text(
    train: Train,
    texts: tuple[Texts | Iterable[Texts], Texts | Iterable[Texts]],
    tokenizer_model: Path | None,
    init: Path | None,
    choice: tuple[Path, str | None, Path | Mapping[str, Any] | None, Any],
    reporter: Reporter,
) -> TrainingResult:
    (text, dev), (out, preset, config, options) = [listed(own) for own in texts], choice
    has_columns = any(is_tabular(own) for own in [*text, *dev])
    end = _set_separator(options, config, train is _qkv.train_encoder) if has_columns else _DOCUMENT_END
    with text_files("text", text, end) as text_paths, text_files("dev", dev, end) as dev_paths, reporter:
        arguments = {
            "text": text_paths, "dev": dev_paths, "tokenizer_model": _path(tokenizer_model), "init": _path(init),
        }
        return _train(train, arguments, out, preset, config, options, reporter)


def _set_separator(options: dict[str, Any], config: Path | Mapping[str, Any] | None, has_lines: bool) -> str:
    """Returns what ends each string of a column.

    Adds the options that say so: without them, those of a run to train further would be used.
    """
    given = {**_config_values(config), **options}
    options["document_end"] = given.get("document_end", _DOCUMENT_END)
    if has_lines:
        options["lines"] = given.get("lines", False)
    return "\n" if has_lines and options["lines"] else options["document_end"]


def _config_values(config: Path | Mapping[str, Any] | None) -> dict[str, Any]:
    """Returns options; those of a file that cannot be read are none, and training raises the error."""
    if config is None or isinstance(config, Mapping):
        return dict(config or {})
    import json

    try:
        with open(config, encoding="utf-8") as file:
            values = json.load(file)
    except (OSError, ValueError):
        return {}
    return values if isinstance(values, dict) else {}


def _path(path: Path | None) -> str:
    return "" if path is None else os.fspath(path)


def _train(
    train: Train,
    arguments: dict[str, Any],
    out: Path,
    preset: str | None,
    config: Path | Mapping[str, Any] | None,
    options: Mapping[str, Any],
    reporter: Reporter,
) -> TrainingResult:
    values, file = dict(options), ""
    if isinstance(config, Mapping):
        values = {**config, **values}
    else:
        file = _path(config)
    shared = {"out": os.fspath(out), "preset": preset or "", "config": file}
    finished = train({**arguments, **shared}, values, reporter.callables())
    return TrainingResult(shared["out"], finished, reporter.steps, reporter.evaluation, reporter.messages)
