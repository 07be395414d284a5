"""The program under test (environment variable QKV) and small trained runs that the tests share."""

import importlib.util
import os
import pathlib
import signal
import string
import subprocess

import pytest

# A shell starts commands in the background with signals ignored, which the programs under test would inherit.
for ignored in (signal.SIGINT, signal.SIGHUP):
    if signal.getsignal(ignored) == signal.SIG_IGN:
        signal.signal(ignored, signal.default_int_handler if ignored == signal.SIGINT else signal.SIG_DFL)

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
QKV = os.environ.get("QKV", str(ROOT / "build/dev/qkv"))
TEXT = ROOT / "examples/grammar"
SMALL = ["--preset", "tiny", "--encoder-layers", "1", "--decoder-layers", "1", "--d-model", "32", "--ffn", "32",
         "--vocab-size", "300", "--batch-tokens", "256", "--max-length", "40", "--warmup-steps", "20", "--threads", "1"]


def qkv(*arguments, text=None, ok=True):
    """Runs the program; returns (status, standard output, standard error)."""
    done = subprocess.run([QKV, *map(str, arguments)], input=text, capture_output=True, text=True, timeout=300)
    if ok:
        assert done.returncode == 0, done.stderr
    return done.returncode, done.stdout, done.stderr


def package(name):
    """The folder of a package of PyPI; skips the test if it is not installed."""
    found = importlib.util.find_spec(name)
    if found is None or found.origin is None:
        pytest.skip(f"the package {name} is not installed")
    return pathlib.Path(found.origin).parent


def check_translated_as_they_arrive(runs, lines, wanted):
    """Types lines one by one, and waits for the translation of each."""
    with subprocess.Popen([QKV, "translate", *map(str, runs)], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as program:
        for line, translation in zip(lines, wanted, strict=True):
            program.stdin.write(line.encode() + b"\n")
            program.stdin.flush()
            assert program.stdout.readline().decode() == translation + "\n"
        program.stdin.close()
        assert program.stdout.read() == b""
    assert program.returncode == 0


def peak_memory(command, text):
    """Runs a command on a text, and returns the most memory that it had, in KiB."""
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as program:
        program.stdin.write(text.encode())
        program.stdin.close()
        _, status, usage = os.wait4(program.pid, 0)
        program.returncode = os.waitstatus_to_exitcode(status)
    assert program.returncode == 0
    return usage.ru_maxrss


def head(path, lines, to):
    to.write_text("".join(path.read_text().splitlines(keepends=True)[:lines]))
    return to


@pytest.fixture(scope="module")
def browser():
    """A headless Chromium for the pages of one test file; skips the test where it is absent."""
    import page_browser  # which only tests of pages need

    if lacking := page_browser.missing():
        pytest.skip(lacking)
    found = page_browser.Browser()
    yield found
    found.quit()


@pytest.fixture(scope="session")
def corpus(tmp_path_factory):
    """Options for a small part of the example text."""
    folder = tmp_path_factory.mktemp("corpus")
    names = {split: [head(TEXT / f"{split}.{side}", lines, folder / f"{split}.{side}") for side in ("en", "de")]
             for split, lines in (("train", 400), ("dev", 20))}
    return ["--train", *names["train"], "--dev", *names["dev"]]


@pytest.fixture(scope="session")
def trained(corpus, tmp_path_factory):
    """A run directory of a translator, trained for 40 steps."""
    run = tmp_path_factory.mktemp("runs") / "small"
    qkv("train", "translate", *corpus, *SMALL, "--out", run, "--max-steps", 40, "--eval-every", 20)
    return run


@pytest.fixture(scope="session")
def films(tmp_path_factory):
    """A folder with log.csv, titles.csv and run: a recommender trained for 30 steps on part of the example log."""
    folder = tmp_path_factory.mktemp("films")
    subprocess.run(["python3", ROOT / "examples/films/generate.py", "--out", folder], check=True, timeout=60)
    head(folder / "log.csv", 3000, folder / "log.csv")
    qkv("train", "recommend", "--data", folder / "log.csv", "--out", folder / "run", "--d-model", 16, "--ffn", 16,
        "--max-length", 20, "--batch-tokens", 512, "--max-steps", 30, "--threads", 1)
    return folder


@pytest.fixture(scope="session")
def timed_run(films):
    """A recommender on the same log with time_gaps."""
    qkv("train", "recommend", "--data", films / "log.csv", "--out", films / "timed", "--time-gaps", "true",
        "--d-model", 16, "--ffn", 16, "--max-length", 20, "--batch-tokens", 512, "--max-steps", 30, "--threads", 1)
    return films / "timed"


@pytest.fixture(scope="session")
def counting(tmp_path_factory):
    """A language model of a text that repeats the digits 0 to 9."""
    folder = tmp_path_factory.mktemp("lm")
    (folder / "text.txt").write_text("0123456789\n" * 200)
    train = ["train", "lm", "--text", folder / "text.txt", "--out", folder / "run", "--d-model", 32, "--heads", 2, "--ffn", 64,
             "--decoder-layers", 1, "--max-length", 32, "--batch-tokens", 256, "--max-steps", 120, "--warmup-steps", 10,
             "--learning-rate", 0.01, "--eval-every", 60, "--threads", 1]
    _, _, report = qkv(*train)
    assert "12 distinct tokens" in report and "bits/byte 0.0" in report
    assert "resumed at step 120" in qkv(*train)[2]
    return folder / "run"


def kept_releases():
    """The module that writes the runs of a release (tests/golden/releases/make.py)."""
    spec = importlib.util.spec_from_file_location("kept_releases", ROOT / "tests/golden/releases/make.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def fresh_runs(tmp_path_factory):
    """A folder with the runs that are kept of a release, written by the program under test."""
    folder = tmp_path_factory.mktemp("fresh")
    kept_releases().make_runs(str(pathlib.Path(QKV).resolve()), folder)
    return folder


def train_letters(folder, lines):
    """Returns the run of an encoder of single letters that has seen one batch."""
    (folder / "text.txt").write_text("".join(f"{line}\n" for line in lines))
    qkv("train", "encoder", "--text", folder / "text.txt", "--lines", "--vocab-size", 30, "--d-model", 32, "--heads", 2,
        "--ffn", 64, "--encoder-layers", 2, "--max-length", 32, "--dropout", 0, "--max-steps", 1, "--out", folder / "run",
        "--threads", 1)
    return folder / "run"


@pytest.fixture(scope="session")
def bert(tmp_path_factory):
    """A small BERT of sentence-transformers."""
    run = tmp_path_factory.mktemp("encoder") / "run"
    qkv("import", ROOT / "tests/golden/bert/sentence", run)
    return run


@pytest.fixture(scope="session")
def chat_run(tmp_path_factory):
    """A language model of all printable characters: the golden run does not know those of a chat template."""
    folder = tmp_path_factory.mktemp("chat")
    (folder / "text.txt").write_text(string.printable * 40)
    qkv("train", "lm", "--text", folder / "text.txt", "--out", folder / "run", "--d-model", 16, "--heads", 2, "--ffn", 16,
        "--decoder-layers", 1, "--max-length", 64, "--batch-tokens", 256, "--max-steps", 4, "--threads", 1)
    return folder / "run"
