"""qkv.batch: columns of batches of each kind, and parts with the bytes of the command line."""

import os
import pickle
import signal
import subprocess
import sys
import time

import pytest

import qkv

np = pytest.importorskip("numpy")

TEXTS = ["the dog sees the cat", "", "a man runs"]
SAMPLING = {"sampling": True, "seed": 1, "max_length": 9}  # text of a model that has learned little
FLAGS = ["--sampling", "--seed", "1", "--max-length", "9"]


@pytest.fixture
def translate(trained):
    return qkv.batch.Translate(trained, **SAMPLING)


@pytest.fixture
def expected(trained):
    return [found.text for found in qkv.Translator(trained).translate(TEXTS, **SAMPLING)]


@pytest.fixture
def parts(tmp_path):
    folder = tmp_path / "parts"
    folder.mkdir()
    for i in range(4):
        (folder / f"{i}.txt").write_text("the dog sees the cat\n" * (i + 1))
    return folder


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_a_dict_of_arrays_gets_a_column(translate, expected):
    for texts in (np.array(TEXTS), np.array(TEXTS, object), TEXTS):
        batch = {"id": np.arange(3), "text": texts}
        found = translate(batch)
        assert list(batch) == ["id", "text"] and list(found) == ["id", "text", "translation"]
        assert found["id"] is batch["id"] and list(found["translation"]) == expected
        assert found["translation"].dtype == object


def test_a_data_frame_keeps_its_index_and_columns(translate, expected, trained):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"text": TEXTS, "id": [3, 1, 2]}, index=[7, 5, 9])
    found = translate(frame)
    assert type(found) is pd.DataFrame and list(found) == ["text", "id", "translation"]
    assert list(found["translation"]) == expected and list(found.index) == [7, 5, 9] and len(frame.columns) == 2
    assert len(translate(frame[:0])) == 0 and list(translate(frame[1:])["translation"]) != expected
    vectors = qkv.batch.Embed(trained)(frame)["vector"]
    assert np.array_equal(np.stack(vectors), qkv.Embedder(trained).embed(TEXTS))


def test_arrow_tables_and_batches_keep_their_schema(translate, expected, trained, films):
    pa = pytest.importorskip("pyarrow")
    schema = pa.schema([pa.field("text", pa.string(), nullable=False)], metadata={"a": "b"})
    for batch in (pa.table({"text": TEXTS}, schema=schema), pa.record_batch({"text": TEXTS}, schema=schema)):
        found = translate(batch)
        assert type(found) is type(batch) and found["translation"].to_pylist() == expected
        assert found.schema.metadata == {b"a": b"b"} and found.schema.field("text") == schema.field("text")
        assert translate(batch[:0] if isinstance(batch, pa.RecordBatch) else batch.slice(0, 0)).num_rows == 0
        vectors = qkv.batch.Embed(trained)(batch)
        assert vectors.schema.field("vector").type == pa.list_(pa.float32())
        assert np.array_equal(vectors["vector"].to_pylist(), qkv.Embedder(trained).embed(TEXTS))
        assert qkv.batch.Embed(trained)(batch.slice(0, 0)).num_rows == 0
    histories = pa.table({"history": [["f0000", "f0010"], []]})
    found = qkv.batch.Recommend(films / "run", top=2)(histories)
    assert found.schema.field("items").type == pa.list_(pa.string())
    assert [len(items) for items in found["items"].to_pylist()] == [2, 2]
    assert qkv.batch.Recommend(films / "run")(histories.slice(0, 0)).num_rows == 0


def test_recommendations_are_those_of_the_recommender(films):
    histories = [["f0000", "f0010"], ["f0001"], []]
    batch = qkv.batch.Recommend(films / "run", top=3)({"history": histories})
    answers = qkv.Recommender(films / "run").recommend_all(histories, top=3)
    assert list(batch["items"]) == [answer.names for answer in answers]


@pytest.mark.parametrize("batch, message", [
    ({"line": TEXTS}, r"^column must be one of line \(is 'text'\)$"),
    ({"text": TEXTS, "translation": TEXTS}, r"^to must be the name of a new column \('translation' exists\)$"),
    (TEXTS, r"^batch must be a dict of arrays, or a table of pandas or pyarrow \(is a builtins.list\)$"),
    ({"text": [None]}, r"must be a str \(is None\)$"),
])
def test_batches_that_do_not_fit_are_errors(translate, batch, message):
    with pytest.raises(qkv.Error, match=message):
        translate(batch)


def test_arguments_that_do_not_fit_are_errors(trained, films, parts, tmp_path):
    with pytest.raises(qkv.Error, match=r"row 1 \(from 0\): expected a list of str \(is 'f0001'\)"):
        qkv.batch.Recommend(films / "run")({"history": [["f0000"], "f0001"]})
    with pytest.raises(TypeError, match="unexpected keyword argument 'beams'"):
        qkv.batch.Translate(trained, beams=2)({"text": TEXTS})
    with pytest.raises(qkv.Error, match="^fn must be a Translate"):
        qkv.batch.Parts(len, parts, tmp_path / "done")
    with pytest.raises(qkv.Error, match=r"^form must be text or json for a Translate \(is 'npy'\)$"):
        qkv.batch.Parts(qkv.batch.Translate(trained), parts, tmp_path / "done", form="npy")
    with pytest.raises(qkv.Error, match="outputs require a separate folder"):
        qkv.batch.Parts(qkv.batch.Translate(trained), parts, parts).names()
    with pytest.raises(qkv.Error, match="^nowhere"):
        qkv.batch.Parts(qkv.batch.Translate("nowhere"), parts, tmp_path / "done")(["0.txt"])
    with pytest.raises(qkv.Error, match="^n_best"):
        qkv.batch.Parts(qkv.batch.Translate(trained, n_best=9, beam=2), parts, tmp_path / "done")(["0.txt"])
    with pytest.raises(qkv.Error, match=r"^worker must be between 1 and the number of workers \(is 3 of 2\)$"):
        qkv.batch.Parts(qkv.batch.Translate(trained), parts, tmp_path / "done").names(3, 2)


@pytest.mark.parametrize("kind, form, command, flags", [
    ("Translate", "text", "translate", FLAGS), ("Translate", "json", "translate", [*FLAGS, "--json"]),
    ("Embed", "text", "embed", []), ("Embed", "json", "embed", ["--json"]), ("Embed", "npy", "embed", ["--npy"])])
def test_parts_have_the_bytes_of_the_command_line(trained, parts, tmp_path, run_program, kind, form, command, flags):
    run_program(command, trained, "--in", parts, "--out", tmp_path / "program", *flags)
    fn = getattr(qkv.batch, kind)(trained, **(SAMPLING if kind == "Translate" else {}))
    job = qkv.batch.Parts(fn, parts, tmp_path / "done", form=form)
    assert job(job.names()) == ["written"] * 4 and job(job.names(2, 2)) == ["present"] * 2
    assert contents(tmp_path / "done") == contents(tmp_path / "program")


def test_parts_of_requests_have_the_bytes_of_the_command_line(films, tmp_path, run_program):
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts/a").write_text('{"history": ["f0000"], "id": 1}\n{"similar": "f0001"}\nnone\n')
    run_program("recommend", films / "run", "--in", tmp_path / "parts", "--out", tmp_path / "program", "--top", 3)
    job = qkv.batch.Parts(qkv.batch.Recommend(films / "run", top=3), tmp_path / "parts", tmp_path / "done")
    assert job(["a"]) == ["written"] and contents(tmp_path / "done") == contents(tmp_path / "program")


def test_parts_that_fail_are_reported_and_the_others_are_done(translate, parts, tmp_path):
    (parts / "1.txt").write_bytes(b"\xff\n")
    hostile = os.fsdecode(b"\xfe\n")
    (parts / hostile).write_text("the dog\n")
    job = qkv.batch.Parts(translate, parts, tmp_path / "done")
    assert set(job.names()) == {"0.txt", "1.txt", "2.txt", "3.txt", hostile}
    found = job({"item": np.array(["0.txt", "1.txt", "../parts/2.txt", "3.txt", hostile])})
    assert [state.partition(":")[0] for state in found["done"]] == ["written", "failed", "failed", "written", "written"]
    assert found["done"][1] == f"failed: {parts}/1.txt: line 1: byte 1 is not valid UTF-8"
    assert sorted(contents(tmp_path / "done")) == ["0.txt", "3.txt", hostile]
    with pytest.raises(qkv.Error, match=r"^names of parts must be str \(is 3\)$"):
        job([3])


def test_objects_pickle_as_their_arguments(translate, parts, tmp_path, films):
    translate({"text": TEXTS})
    job = qkv.batch.Parts(translate, parts, tmp_path / "done", form="json")
    for thing in (translate, qkv.batch.Embed("run"), qkv.batch.Recommend(films / "run"), job, job.frames):
        assert len(pickle.dumps(thing)) < 1000
    again = pickle.loads(pickle.dumps(job))
    assert again(["1.txt"]) == ["written"] and job(["1.txt"]) == ["present"]
    assert pickle.loads(pickle.dumps(translate))({"text": TEXTS})["translation"][0]


def test_a_run_is_opened_at_first_use_and_once_in_a_process(trained, translate, expected):
    qkv.batch.Translate("nowhere")
    translate({"text": TEXTS})
    others = [qkv.batch.Translate(trained, to=to) for to in ("a", "b")]
    assert {id(other._translator()) for other in others} == {id(translate._translator())}


def test_threads_are_those_of_the_argument_and_restored(trained):
    before, seen = qkv.threads(), []

    class Seeing(qkv.batch.Translate):
        def _values(self, column):
            seen.append(qkv.threads())
            return super()._values(column)

    qkv.set_threads(2)
    try:
        Seeing(trained, threads=3, **SAMPLING)({"text": TEXTS})
        Seeing(trained, **SAMPLING)({"text": TEXTS})
        with pytest.raises(qkv.Error):
            Seeing(trained, threads=0)({"text": TEXTS})
        assert seen == [3, 2] and qkv.threads() == 2
    finally:
        qkv.set_threads(before)


def test_frames_does_each_batch(translate, expected):
    batches = list(translate.frames(iter([{"text": TEXTS}, {"text": TEXTS}])))
    assert [list(batch["translation"]) for batch in batches] == [expected, expected]


def forked(work):
    """Returns whether work() ran in a process that was forked from this one."""
    child = os.fork()
    if child == 0:
        try:
            work()
            os._exit(0)
        finally:
            os._exit(1)
    end = time.monotonic() + 240
    while os.waitpid(child, os.WNOHANG) == (0, 0):
        if time.monotonic() > end:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return False
        time.sleep(0.01)
    return True


def test_workers_may_be_forked_after_the_run_was_opened(trained, parts, tmp_path):
    """A process that has called qkv with several threads, and its children, which call it with theirs."""
    fn = qkv.batch.Translate(trained, threads=2, **SAMPLING)
    fn({"text": TEXTS})
    for worker in range(1, 5):
        job = qkv.batch.Parts(fn, parts, tmp_path / "done")
        assert forked(lambda: job(job.names(worker, 4)))
    whole = qkv.batch.Parts(fn, parts, tmp_path / "whole")
    assert whole(whole.names()) == ["written"] * 4
    assert contents(tmp_path / "done") == contents(tmp_path / "whole")


def test_a_pool_of_forked_processes_does_all_parts(translate, parts, tmp_path):
    import multiprocessing

    translate({"text": TEXTS})
    job = qkv.batch.Parts(translate, parts, tmp_path / "done")
    with multiprocessing.get_context("fork").Pool(2) as pool:
        found = pool.map_async(job, [[name] for name in job.names()]).get(timeout=240)
    assert found == [["written"]] * 4 and len(contents(tmp_path / "done")) == 4


def test_ctrl_c_leaves_no_half_output(trained, parts, tmp_path):
    (parts / "4.txt").write_text("the dog sees the cat\n" * 50000)
    code = (f"import qkv\njob = qkv.batch.Parts(qkv.batch.Translate({str(trained)!r}, batch_tokens=64, threads=1), "
            f"{str(parts)!r}, {str(tmp_path / 'done')!r})\njob(['0.txt', '4.txt'])\n")
    worker = subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE, text=True)
    end = time.monotonic() + 240
    while not list(tmp_path.glob("done/.4.txt*")):
        assert time.monotonic() < end
        time.sleep(0.01)
    worker.send_signal(signal.SIGINT)
    assert "KeyboardInterrupt" in worker.communicate(timeout=240)[1]
    assert os.listdir(tmp_path / "done") == ["0.txt"]
