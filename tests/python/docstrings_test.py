"""Docstrings: every public class, function and method has one, with an example whose output is as shown."""

import doctest
import importlib
import importlib.util
import inspect
import pathlib

import pytest

import qkv

np = pytest.importorskip("numpy")
TESTS = pathlib.Path(__file__).resolve().parent.parent
MODULES = ["qkv", "qkv.batch", "qkv.layers"] + ["qkv.torch"] * (importlib.util.find_spec("torch") is not None)
MODELS = {"sentiment": "classify/bert", "reranker": "classify/cross", "encoder": "bert/sentence",
          "bart": "encoder_decoders/bart"}  # of tests/golden


def documented():
    """The public modules, classes, functions and methods by name. Methods of private bases are those of their classes."""
    found = {}
    for module in map(importlib.import_module, MODULES):
        found[module.__name__] = module
        for name in module.__all__:
            thing = getattr(module, name)
            if inspect.isclass(thing) or callable(thing):
                found[f"{module.__name__}.{name}"] = thing
            for own, method in inspect.getmembers(thing, inspect.isroutine) if inspect.isclass(thing) else ():
                if not own.startswith("_") and (getattr(method, "__module__", None) or "").startswith("qkv"):
                    found[f"{module.__name__}.{method.__qualname__}"] = method
    return found


@pytest.fixture(scope="module")
def runs(trained, counting, films, tmp_path_factory):
    """The run directories that the examples read, by their name."""
    folder = tmp_path_factory.mktemp("imported")
    for name, model in MODELS.items():
        qkv.import_model(TESTS / "golden" / model, folder / name)
    return {"en-de": trained, "de-en": trained, "lm": counting, "films": films / "run"} | {name: folder / name for name in MODELS}


@pytest.fixture
def folder(runs, corpus, counting, films, tmp_path, monkeypatch):
    """An empty working directory with the files that the examples read."""
    files = {path.name: path for path in [*corpus[1:3], *corpus[4:6], counting.parent / "text.txt", films / "log.csv",
                                          films / "titles.csv"]}
    for name, path in {**files, "bert": TESTS / "golden/bert/sentence"}.items():
        (tmp_path / name).symlink_to(path)
    (tmp_path / "labels.tsv").write_text("a b\tpositive\nc\tnegative\n" * 10)
    (tmp_path / "pairs.csv").write_text("sentence1,sentence2,score\n" + "".join(f"a man,a cat,{i}\n" for i in range(40)))
    (tmp_path / "answers.tsv").write_text("a b\tc\nd e\tf\ng h\tb a\n")
    (tmp_path / "runs").mkdir()
    for name, run in runs.items():
        (tmp_path / "runs" / name).symlink_to(run)
    monkeypatch.chdir(tmp_path)
    count = qkv.threads()
    yield tmp_path
    qkv.set_threads(count)


@pytest.mark.parametrize("name", documented())
def test_a_public_name_has_a_docstring_whose_examples_hold(name, folder):
    thing = documented()[name]
    if name == "qkv.torch.register_transformers":
        pytest.importorskip("transformers")
    names = {"np": np, "qkv": qkv}
    (example,) = doctest.DocTestFinder(recurse=False).find(thing, name, module=False, globs=names) or (None,)
    assert example is not None and example.examples, f"{name} has no docstring with an example"
    report = []
    doctest.DocTestRunner().run(example, out=report.append)
    assert not report, "".join(report)


def test_the_walk_finds_functions_classes_and_methods():
    assert {"qkv", "qkv.attention", "qkv.Error", "qkv.Translator", "qkv.Translator.attend", "qkv.layers.Linear",
            "qkv.layers.Module.backward"} <= set(documented())
