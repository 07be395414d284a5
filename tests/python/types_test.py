"""Types: mypy --strict on the module and on typing_example.py, and the stubs against what they describe."""

import ast
import importlib.util
import inspect
import pathlib
import subprocess
import sys

import pytest

import qkv
from qkv import _qkv

HERE = pathlib.Path(__file__).parent
PACKAGE = pathlib.Path(qkv.__file__).parent
HAS_TORCH = importlib.util.find_spec("torch") is not None


def stub(name):
    return ast.parse((PACKAGE / name).read_text(encoding="utf-8")).body


@pytest.fixture
def config(tmp_path):
    """A configuration of mypy. PyTorch and transformers, which the module imports on demand, may be missing."""
    file = tmp_path / "mypy.ini"
    file.write_text("[mypy]\n" + ("" if HAS_TORCH else "[mypy-torch.*,transformers.*]\nignore_missing_imports = true\n"))
    return str(file)


@pytest.fixture
def run(tmp_path):
    """Runs a module of mypy; it must find no error."""
    pytest.importorskip("mypy")

    def run(module, *arguments):
        done = subprocess.run([sys.executable, "-m", module, *arguments], capture_output=True, text=True, cwd=tmp_path)
        assert done.returncode == 0, done.stdout + done.stderr

    return run


def test_the_module_and_its_use_pass_a_strict_type_check(run, config):
    paths = [path.relative_to(PACKAGE.parent).with_suffix("") for path in PACKAGE.rglob("*.py")]
    names = [".".join(path.parts).removesuffix(".__init__") for path in paths]
    modules = [name for name in names if HAS_TORCH or name != "qkv.torch"]
    run("mypy", "--strict", "--config-file", config, *(text for name in modules for text in ("-m", name)))
    run("mypy", "--strict", "--config-file", config, str(HERE / "typing_example.py"))


def test_the_stubs_match_the_module(run, config, tmp_path):
    allowed = tmp_path / "allowed.txt"
    allowed.write_text((HERE / "stubtest_allowed.txt").read_text() + ("" if HAS_TORCH else "qkv.torch\n"))
    run("mypy.stubtest", "qkv", "--allowlist", str(allowed), "--mypy-config-file", config)


def test_the_stub_of_the_extension_names_all_that_it_has():
    """stubtest does not see the functions of nanobind."""
    named = {node.name for node in stub("_qkv.pyi") if isinstance(node, (ast.ClassDef, ast.FunctionDef))}
    assert named == {name for name in vars(_qkv) if not name.startswith("_")}


@pytest.mark.parametrize("function", [qkv.attention, qkv.attention_backward])
def test_the_typed_options_of_attention_are_its_keyword_arguments(function):
    """stubtest does not expand Unpack."""
    options = next(node for node in stub("_attention.pyi") if isinstance(node, ast.ClassDef) and node.name == "_Options")
    parameters = inspect.signature(function).parameters.values()
    keywords = [p.name for p in parameters if p.kind is p.KEYWORD_ONLY and not p.name.startswith("return_")]
    assert [field.target.id for field in options.body] == keywords
