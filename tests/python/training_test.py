"""The training functions: the bytes of the program's runs, callbacks, Ctrl-C and errors."""

import _thread
import hashlib
import json
import signal
import subprocess
import sys
import threading
import time
import types

import pytest

import qkv

LANGUAGE = {"d_model": 16, "heads": 2, "decoder_layers": 1, "ffn": 16, "max_length": 16, "batch_tokens": 64,
            "dropout": 0.1, "eval_every": 5, "max_steps": 10}
TRANSLATION = {"encoder_layers": 1, "decoder_layers": 1, "d_model": 32, "ffn": 32, "vocab_size": 300,
               "batch_tokens": 256, "max_length": 40, "warmup_steps": 20, "max_steps": 8, "eval_every": 4}
ENCODER = {"d_model": 16, "heads": 2, "encoder_layers": 1, "ffn": 16, "max_length": 16, "batch_tokens": 256,
           "vocab_size": 40, "warmup_steps": 2, "max_steps": 8}
CLASSIFIER = {"examples": 4, "learning_rate": 0.01, "max_steps": 6, "eval_every": 3, "dev_share": 0.2}
RECOMMENDATION = {"d_model": 16, "ffn": 16, "max_length": 20, "batch_tokens": 512, "max_steps": 8}


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    count = qkv.threads()
    qkv.set_threads(1)
    yield
    qkv.set_threads(count)


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    path = tmp_path_factory.mktemp("text") / "text.txt"
    path.write_text("0123456789\n" * 50)
    return path


def flags(options):
    """The options of the command line with these values."""
    pairs = (("--" + name.replace("_", "-"), value) for name, value in options.items())
    return [text for name, value in pairs for text in (name, str(value).lower() if isinstance(value, bool) else value)]


def contents(run):
    """The SHA-256 of each file of a run except metrics.jsonl, which contains times."""
    return {str(path.relative_to(run)): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in run.rglob("*") if path.is_file() and path.name != "metrics.jsonl"}


def expect_same_bytes(a, b):
    assert "model.safetensors" in contents(a)
    assert contents(a) == contents(b)


def language(text, out, **options):
    return qkv.train_language_model(text, out, progress=False, **{**LANGUAGE, **options})


def test_a_translator_has_the_bytes_of_the_program(corpus, run_program, tmp_path):
    run_program("train", "translate", *corpus, "--out", tmp_path / "program", "--preset", "tiny-modern",
                *flags(TRANSLATION), "--threads", 1)
    result = qkv.train_translator(corpus[1:3], corpus[4:6], tmp_path / "python", preset="tiny-modern", progress=False,
                                  **TRANSLATION)
    expect_same_bytes(tmp_path / "program", tmp_path / "python")
    assert (result.run, result.finished, result.steps) == (str(tmp_path / "python"), True, 8)
    assert result.evaluation.step == 8 and set(result.evaluation.measures) == {"loss", "perplexity", "bleu"}
    assert result.messages[-1].startswith("done after 8 steps")


def test_an_encoder_has_the_bytes_of_the_program(text, run_program, tmp_path):
    run_program("train", "encoder", "--text", text, "--out", tmp_path / "program", "--lines", *flags(ENCODER),
                "--threads", 1)
    result = qkv.train_encoder(text, tmp_path / "python", lines=True, progress=False, **ENCODER)
    expect_same_bytes(tmp_path / "program", tmp_path / "python")
    assert set(result.evaluation.measures) == {"loss", "perplexity"}
    vectors = qkv.Embedder(tmp_path / "python").embed(["0123", "9876"])
    assert vectors.shape == (2, 16)
    further = qkv.train_encoder(text, tmp_path / "further", init=tmp_path / "python", lines=True, max_steps=2,
                                batch_tokens=256, progress=False)
    assert further.messages[0].startswith(f"starting from {tmp_path / 'python'}: learning_rate 0.0002")


def test_an_embedder_has_the_bytes_of_the_program(text, run_program, tmp_path):
    encoder, rows = tmp_path / "encoder", tmp_path / "rows.csv"
    qkv.train_encoder(text, encoder, lines=True, progress=False, **ENCODER)
    rows.write_text("sentence1,sentence2,score\n" + "".join(f"{i},{i + j},{j}\n" for i in range(10) for j in range(3)))
    options = {"max_steps": 4, "examples": 8, "dense": 6, "learning_rate": 0.001}
    run_program("train", "embed", "--init", encoder, "--train", rows, "--out", tmp_path / "program", *flags(options),
                "--matryoshka", "4,2", "--threads", 1)
    result = qkv.train_embedder(rows, tmp_path / "python", init=encoder, matryoshka=[4, 2], progress=False, **options)
    expect_same_bytes(tmp_path / "program", tmp_path / "python")
    assert set(result.evaluation.measures) == {"loss", "spearman", "spearman (4)", "spearman (2)"}
    assert qkv.Embedder(tmp_path / "python").embed(["0123", "9876"]).shape == (2, 6)


def test_an_embedder_is_trained_on_tables(text, tmp_path):
    polars = pytest.importorskip("polars")
    encoder, rows = tmp_path / "encoder", tmp_path / "rows.jsonl"
    qkv.train_encoder(text, encoder, lines=True, progress=False, **ENCODER)
    table = {"a": ["1", "2", 'a "line"\n', "4"] * 5, "b": ["5", "6", "7", "8"] * 5}
    rows.write_text("".join(json.dumps({"a": a, "b": b}) + "\n" for a, b in zip(*table.values())))
    options = {"init": encoder, "columns": ["b", "a"], "max_steps": 2, "examples": 8, "progress": False}
    qkv.train_embedder(rows, tmp_path / "file", **options)
    qkv.train_embedder(polars.DataFrame(table), tmp_path / "table", **options)
    expect_same_bytes(tmp_path / "file", tmp_path / "table")
    with pytest.raises(qkv.Error, match=r"^train.jsonl:2: column \"a\" is empty$"):
        qkv.train_embedder(polars.DataFrame({"a": ["1", ""], "b": ["1", "2"]}), tmp_path / "none", **options)
def test_a_classifier_has_the_bytes_of_the_program(text, run_program, tmp_path):
    encoder = tmp_path / "encoder"
    qkv.train_encoder(text, encoder, lines=True, progress=False, **{**ENCODER, "max_steps": 1})
    rows = [(f"{i % 10}{i % 7} {i}", "odd" if i % 2 else "even") for i in range(60)]
    (tmp_path / "rows.csv").write_text("digits,kind\n" + "".join(f"{text},{label}\n" for text, label in rows))
    run_program("train", "classify", "--init", encoder, "--train", tmp_path / "rows.csv", "--columns", "digits,kind",
                "--out", tmp_path / "program", *flags(CLASSIFIER), "--threads", 1)
    arguments = {"init": encoder, "columns": ["digits", "kind"], "progress": False, **CLASSIFIER}
    result = qkv.train_classifier(tmp_path / "rows.csv", tmp_path / "python", **arguments)
    expect_same_bytes(tmp_path / "program", tmp_path / "python")
    assert set(result.evaluation.measures) == {"loss", "accuracy", "f1_macro", "f1_micro"}
    classifier = qkv.Classifier(tmp_path / "python")
    assert classifier.labels == ["even", "odd"]
    assert sum(found.score for found in classifier.classify(["12 3"], top=0)[0]) == pytest.approx(1)
    with pytest.raises(qkv.Error, match="^training: init must name the run that training starts from$"):
        qkv.train_classifier(tmp_path / "rows.csv", tmp_path / "none", init="")
    with pytest.raises(TypeError, match="unexpected keyword argument 'd_model'"):
        qkv.train_classifier(tmp_path / "rows.csv", tmp_path / "none", init=encoder, d_model=3)

    polars = pytest.importorskip("polars")
    table = polars.DataFrame({"kind": [label for _, label in rows], "digits": [text for text, _ in rows]})
    qkv.train_classifier(table, tmp_path / "table", **arguments)
    expect_same_weights(tmp_path / "python", tmp_path / "table")
    with pytest.raises(qkv.Error, match=r'^train\.jsonl:2: the text is empty$'):
        qkv.train_classifier(polars.DataFrame({"text": ["a", ""], "label": ["x", "y"]}), tmp_path / "none", init=encoder)
    with pytest.raises(qkv.Error, match="^train.jsonl: must have two columns"):
        qkv.train_classifier(table["digits"], tmp_path / "none", init=encoder)


def expect_same_weights(a, b):
    for name in ("model.safetensors", "classifier.safetensors"):
        assert (a / name).read_bytes() == (b / name).read_bytes()


def test_a_fine_tuned_translator_has_the_bytes_of_the_program(trained, corpus, run_program, tmp_path):
    values = {"max_steps": 3, "batch_tokens": 256, "freeze": ["encoder", "embedding"]}
    (tmp_path / "values.json").write_text(json.dumps({**values, "max_steps": 9}))
    run_program("train", "translate", *corpus, "--out", tmp_path / "program", "--init", trained, "--config",
                tmp_path / "values.json", "--max-steps", 3, "--threads", 1)
    for name, config in (("file", tmp_path / "values.json"), ("dict", values)):
        qkv.train_translator(corpus[1:3], corpus[4:6], tmp_path / name, init=trained, config=config, max_steps=3,
                             progress=False)
        expect_same_bytes(tmp_path / "program", tmp_path / name)


def test_memory_chooses_the_batch_of_the_program(corpus, run_program, tmp_path):
    values = {name: value for name, value in TRANSLATION.items() if name != "batch_tokens"} | {"max_steps": 1}
    run_program("train", "translate", *corpus, "--out", tmp_path / "program", *flags(values), "--memory", "4M",
                "--threads", 1)
    for name, memory in (("text", "4M"), ("bytes", 4 << 20)):
        qkv.train_translator(corpus[1:3], corpus[4:6], tmp_path / name, memory=memory, progress=False, **values)
        expect_same_bytes(tmp_path / "program", tmp_path / name)


def test_a_recommender_has_the_bytes_of_the_program(films, run_program, tmp_path):
    log, table = films / "log.csv", films / "titles.csv"
    run_program("train", "recommend", "--data", log, "--out", tmp_path / "program", "--columns", "1,2,3", "--features",
                table, "--feature-columns", "item,genre", *flags(RECOMMENDATION), "--threads", 1)
    result = qkv.train_recommender(log, tmp_path / "python", columns=["1", "2", "3"], features=table,
                                   feature_columns=("item", "genre"), progress=False, **RECOMMENDATION)
    expect_same_bytes(tmp_path / "program", tmp_path / "python")
    assert list(result.evaluation.baselines) == ["popularity", "markov"]
    assert "NDCG@10" in result.evaluation.baselines["popularity"]


def test_a_language_model_has_the_bytes_of_the_program(text, run_program, tmp_path):
    run_program("train", "lm", "--text", text, "--dev", text, "--out", tmp_path / "program", *flags(LANGUAGE),
                "--threads", 1)
    language([text], tmp_path / "python", dev=text)
    expect_same_bytes(tmp_path / "program", tmp_path / "python")


def test_callbacks_are_called_in_order(text, tmp_path):
    seen = []
    result = language(text, tmp_path / "run", on_step=seen.append, on_evaluation=seen.append,
                      on_message=lambda line: seen.append(line.split(":")[0]))
    assert seen[0] == "text"
    reports = [report for report in seen if not isinstance(report, str)]
    assert [report.step for report in reports] == [1, 2, 3, 4, 5, 5, 6, 7, 8, 9, 10, 10]
    assert isinstance(reports[5], qkv.EvaluationReport) and reports[-1] == result.evaluation
    first = reports[0]
    assert isinstance(first, qkv.StepReport) and first.epoch == 1 and first.max_steps == 10
    assert first.loss >= first.nll > 0 and first.target_tokens > 0 and first.tokens_per_second > 0


@pytest.mark.parametrize("way", ["interrupt", "exception", "true", "evaluation"])
def test_a_stopped_run_is_resumed_with_the_same_bytes(text, tmp_path, way, interruptible):
    def on_step(report):
        if report.step == 7 and way == "interrupt":
            _thread.interrupt_main()
        if report.step == 7 and way == "exception":
            raise LookupError("enough")
        return report.step == 7 and way == "true"

    def stopped():
        if way == "true":
            return language(text, tmp_path / "run", on_step=on_step)
        if way == "evaluation":
            return language(text, tmp_path / "run", on_evaluation=lambda report: report.step == 5)
        with pytest.raises(KeyboardInterrupt if way == "interrupt" else LookupError):
            language(text, tmp_path / "run", on_step=on_step)

    result, step = stopped(), 5 if way == "evaluation" else 7
    assert result is None or (result.finished, result.steps) == (False, step)
    assert (tmp_path / "run/checkpoints/state.safetensors").exists()
    resumed = language(text, tmp_path / "run")
    assert f"resumed at step {step} (epoch 1)" in resumed.messages and resumed.steps == 10 - step
    assert language(text, tmp_path / "whole").steps == 10
    expect_same_bytes(tmp_path / "whole", tmp_path / "run")


def test_an_exception_of_a_message_stops_after_a_step(text, tmp_path):
    steps = []

    def fail(line):
        raise LookupError(line)

    with pytest.raises(LookupError, match="^text: "):
        language(text, tmp_path / "run", on_message=fail, on_step=steps.append)
    assert not steps  # no callback is called after one has failed
    assert "resumed at step 1 (epoch 1)" in language(text, tmp_path / "run").messages


LONG = """
import signal, sys
import qkv
signal.signal(signal.SIGINT, signal.default_int_handler)  # needed if this runs in the background
try:
    qkv.train_language_model(sys.argv[1], sys.argv[2], max_steps=10**6, eval_every=0, save_every=0, progress=False,
                             on_message=lambda line: print(line.split(":")[0], flush=True))
except KeyboardInterrupt:
    print("interrupted")
"""


def test_ctrl_c_saves_the_state(text, tmp_path):
    command = [sys.executable, "-c", LONG, str(text), str(tmp_path / "run")]
    program = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert "memory\n" in iter(program.stdout.readline, "")
    time.sleep(0.2)
    program.send_signal(signal.SIGINT)
    output, _ = program.communicate(timeout=60)
    assert (output, program.returncode) == ("interrupted\n", 0)
    assert (tmp_path / "run/checkpoints/state.safetensors").exists()


def test_other_threads_run_during_training(text, tmp_path):
    results, turns = [], 0
    call = threading.Thread(target=lambda: results.append(language(text, tmp_path / "run", max_steps=200)))
    call.start()
    while call.is_alive():
        call.join(0.001)
        turns += 1
    assert results[0].finished and turns > 10


class Bar:
    made = []

    def __init__(self, total, initial, unit):
        self.total, self.count, self.closed = total, initial, False
        Bar.made.append(self)

    def set_postfix(self, loss, refresh):
        self.loss = loss

    def update(self, steps):
        self.count += steps

    def close(self):
        self.closed = True


def test_a_progress_bar_is_shown_if_tqdm_is_installed(text, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "tqdm", types.ModuleType("tqdm"))
    monkeypatch.setitem(sys.modules, "tqdm.auto", types.SimpleNamespace(tqdm=Bar))
    for progress, shown in ((None, 1), (True, 1), (False, 0)):
        Bar.made.clear()
        qkv.train_language_model(text, tmp_path / str(progress), progress=progress, **LANGUAGE)
        assert [(bar.total, bar.count, bar.closed) for bar in Bar.made] == [(10, 10, True)] * shown
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    qkv.train_language_model(text, tmp_path / "none", **LANGUAGE)
    with pytest.raises(qkv.Error, match="progress is True, which requires the package tqdm"):
        qkv.train_language_model(text, tmp_path / "more", progress=True, **LANGUAGE)
    assert not (tmp_path / "more").exists()


def translator(**options):
    return qkv.train_translator("nowhere.tsv", "nowhere.tsv", "nowhere", progress=False, **options)


@pytest.mark.parametrize("call, error, message", [
    (lambda: translator(beam=3), TypeError, "train_translator() got an unexpected keyword argument 'beam'"),
    (lambda: translator(config={"beam": 3}), TypeError, "train_translator() got an unexpected keyword argument 'beam'"),
    (lambda: translator(sparse_updates=True), TypeError, "train_translator() got an unexpected keyword argument"),
    (lambda: translator(d_model="16"), qkv.Error, "d_model must be a whole number (is '16')"),
    (lambda: translator(lowercase=1), qkv.Error, "lowercase must be True or False (is 1)"),
    (lambda: translator(dropout=None), qkv.Error, "dropout must be a number (is None)"),
    (lambda: translator(freeze="encoder"), qkv.Error, "freeze must be a list of str (is 'encoder')"),
    (lambda: translator(activation="tanh"), qkv.Error, 'recipe: activation must be one of relu, gelu, '),
    (lambda: translator(learning_rate=-1), qkv.Error, "training: learning_rate must be at least 0 (is -1)"),
    (lambda: translator(learning_rate=float("nan")), qkv.Error, 'recipe: learning_rate must be a number (is "nan")'),
    (lambda: translator(), qkv.Error, "nowhere.tsv: "),
    (lambda: translator(preset="huge"), qkv.Error, 'unknown preset "huge" (choose from tiny, '),
    (lambda: translator(preset="tiny", init="run"), qkv.Error, "training: preset must be empty with init"),
    (lambda: translator(init="nowhere"), qkv.Error, "nowhere: is not a run directory"),
    (lambda: translator(config="nowhere.json"), qkv.Error, "nowhere.json: cannot be opened: "),
    (lambda: translator(memory="4G", batch_tokens=9), qkv.Error,
     "memory chooses batch_tokens: only one of them can be given (are '4G' and 9)"),
    (lambda: translator(memory="much"), qkv.Error, "memory must be a size in bytes, such as "),
    (lambda: translator(memory=0), qkv.Error, "memory must be between 1 and 1024T (is \"0\")"),
    (lambda: translator(preset=3), qkv.Error, "preset must be a str (is 3)"),
    (lambda: qkv.train_translator(["a", "b", "c"], "d", "nowhere"), qkv.Error, "parallel text: 3 files, "),
    (lambda: qkv.train_translator(3, "d", "nowhere"), TypeError, ""),
    (lambda: qkv.train_recommender("nowhere.csv", "nowhere"), qkv.Error, "nowhere.csv: "),
    (lambda: qkv.train_recommender("nowhere.csv", "nowhere", columns="user,item"), qkv.Error,
     "columns must be a list of str (is 'user,item')"),
    (lambda: qkv.train_recommender("nowhere.csv", "nowhere", lora_rank=3), TypeError,
     "train_recommender() got an unexpected keyword argument 'lora_rank'"),
    (lambda: qkv.train_language_model("nowhere.txt", "nowhere"), qkv.Error, "nowhere.txt: "),
    (lambda: qkv.train_encoder("nowhere.txt", "nowhere"), qkv.Error, "nowhere.txt: "),
    (lambda: qkv.train_encoder("nowhere.txt", "nowhere", mask_share=2), qkv.Error,
     "training: mask_share must be above 0 and below 1 (is 2)"),
    (lambda: qkv.train_encoder("nowhere.txt", "nowhere", decoder_layers=2), TypeError,
     "train_encoder() got an unexpected keyword argument 'decoder_layers'"),
    (lambda: qkv.train_embedder("nowhere.csv", "nowhere", init="nowhere"), qkv.Error, "nowhere: is not a run directory"),
    (lambda: qkv.train_embedder("nowhere.csv", "nowhere", init="nowhere", matryoshka=["a"]), qkv.Error,
     "matryoshka[0] must be a whole number (is 'a')"),
    (lambda: qkv.train_embedder("nowhere.csv", "nowhere", init="nowhere", columns="a,b"), qkv.Error,
     "columns must be a list of str (is 'a,b')"),
    (lambda: qkv.train_language_model("nowhere.txt", "nowhere", unit="words"), qkv.Error,
     "recipe: unit must be one of characters, bytes, "),
])
def test_errors_name_the_invalid_argument(call, error, message):
    with pytest.raises(error) as found:
        call()
    assert str(found.value).startswith(message)


def test_columns_and_tables_train_as_files_do(corpus, text, films, tmp_path):
    polars = pytest.importorskip("polars")

    def column(path):
        return polars.Series(path.read_text(encoding="utf-8").split("\n")[:-1])

    sides = {name: [column(path) for path in paths] for name, paths in (("train", corpus[1:3]), ("dev", corpus[4:6]))}
    qkv.train_translator(corpus[1:3], corpus[4:6], tmp_path / "files", progress=False, **TRANSLATION)
    for steps in (3, 8):  # the second call resumes
        stop = lambda report: report.step == steps  # noqa: E731
        qkv.train_translator(out=tmp_path / "columns", progress=False, on_step=stop, **sides, **TRANSLATION)
    expect_same_bytes(tmp_path / "files", tmp_path / "columns")

    table = polars.read_csv(films / "log.csv").rename({"timestamp": "at"})
    (tmp_path / "log").write_text("user,item,time\n" + "".join(f'"{u}","{i}",{t}\n' for u, i, t in table.rows()))
    qkv.train_recommender(tmp_path / "log", tmp_path / "log-run", progress=False, **RECOMMENDATION)
    qkv.train_recommender(table, tmp_path / "table-run", columns=["user", "item", "at"], progress=False,
                          **RECOMMENDATION)
    expect_same_bytes(tmp_path / "log-run", tmp_path / "table-run")
    assert qkv.evaluate(tmp_path / "table-run") == qkv.evaluate(tmp_path / "log-run")

    documents = ["0123456789\n0123", "45678\n90123\n"] * 20
    (tmp_path / "documents").write_text("".join(f"{document}<|endoftext|>\n" for document in documents))
    language(tmp_path / "documents", tmp_path / "file", dev=text)
    language(polars.Series(documents), tmp_path / "column", dev=text)
    expect_same_bytes(tmp_path / "file", tmp_path / "column")
    with pytest.raises(qkv.Error, match=r"^text, row 1 \(from 0\): the string contains <\|endoftext\|>$"):
        language(polars.Series(["a", "b<|endoftext|>"]), tmp_path / "none")
    (tmp_path / "lines.txt").write_text("0123456789\n9876\n" * 50)
    lines, config = column(tmp_path / "lines.txt"), tmp_path / "lines.json"
    config.write_text('{"lines": true}')
    qkv.train_encoder(tmp_path / "lines.txt", tmp_path / "encoder", lines=True, progress=False, **ENCODER)
    ways = {"lines": {"lines": True}, "dict": {"config": {"lines": True}}, "json": {"config": config}}
    for name, options in ways.items():
        qkv.train_encoder(lines, tmp_path / name, progress=False, **options, **ENCODER)
        expect_same_bytes(tmp_path / "encoder", tmp_path / name)
    further = {"init": tmp_path / "encoder", "max_steps": 1, "batch_tokens": 256, "progress": False}
    qkv.train_encoder(polars.Series(documents), tmp_path / "further", dev=text, **further)
    assert json.loads((tmp_path / "further/encoder.json").read_text())["lines"] is False  # that of the run is true
    with pytest.raises(qkv.Error, match=r"^text, row 1 \(from 0\): the string contains a line break$"):
        qkv.train_encoder(polars.Series(["a", "b\nc"]), tmp_path / "none", lines=True)
    with pytest.raises(qkv.Error, match=r"^train\[1\], row 0 \(from 0\): the string contains a line break$"):
        qkv.train_translator([column(corpus[1]), polars.Series(["a\n"])], corpus[4:6], tmp_path / "none")
