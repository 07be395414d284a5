"""Tables and columns of pandas, polars and pyarrow, if they are installed."""

import csv
import datetime
import importlib.util
import os

import pytest

import qkv
from qkv import _tables

EVENTS = {"user": ["b", "a", "b", "a", "b"], "item": ["f0003", "f0001", "f0002", "f0004", "f0003"],
          "time": [3, 1, 2, 5, 3]}


def optional(name):
    return importlib.import_module(name) if importlib.util.find_spec(name) else None


pandas, polars, pyarrow = map(optional, ("pandas", "polars", "pyarrow"))
needs_pyarrow = pytest.mark.skipif(not pyarrow, reason="needs pyarrow")
MAKERS = [pytest.param(lambda columns: pandas.DataFrame(columns), id="pandas",
                       marks=pytest.mark.skipif(not pandas, reason="needs pandas")),
          pytest.param(lambda columns: polars.DataFrame(columns), id="polars",
                       marks=pytest.mark.skipif(not polars, reason="needs polars")),
          pytest.param(lambda columns: pyarrow.table(columns), id="pyarrow", marks=needs_pyarrow)]


def columns_of(table):
    """The columns of a table as lists."""
    if pandas and isinstance(table, pandas.DataFrame):
        return table.to_dict("list")
    return table.to_pydict() if pyarrow and isinstance(table, pyarrow.Table) else table.to_dict(as_series=False)


@pytest.fixture(scope="module")
def recommender(films):
    return qkv.Recommender(films / "run")


@pytest.fixture(scope="module")
def log(films):
    with open(films / "log.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    return {name: [row[name] for row in rows] for name in rows[0]}


@pytest.mark.parametrize("make", MAKERS)
def test_recommendations_for_a_table_are_a_table_of_its_kind(recommender, make):
    given = make(EVENTS)
    found = recommender.recommend_all(given, top=3)
    assert type(found) is type(given)
    answers = recommender.recommend_all([["f0002", "f0003"], ["f0001", "f0004"]], top=3)
    assert columns_of(found) == {
        "user": ["b"] * 3 + ["a"] * 3, "item": sum((answer.names for answer in answers), []), "rank": [1, 2, 3] * 2,
        "score": [item.score for answer in answers for item in answer.items]}


@pytest.mark.parametrize("make", MAKERS)
def test_a_table_is_evaluated_as_the_same_log_is(films, log, make):
    columns = {"who": log["user"], "item": log["item"], "at": [float(time) for time in log["timestamp"]]}
    expected = qkv.evaluate(films / "log.csv", segments="length")["baselines"]
    found = columns_of(qkv.evaluate(make(columns), columns=("who", "item", "at"), segments="length"))
    rows = [dict(zip(found, values)) for values in zip(*found.values())]
    for row in rows:
        model, segment = row.pop("model"), row.pop("segment")
        scores = expected[model]["segments"][segment] if segment else expected[model]
        assert row == {name: scores.get(name, row["users"]) for name in row} and row["HR@10"] == scores["HR@10"]
    assert len(rows) == sum(1 + len(scores["segments"]) for scores in expected.values())
    halves = [make({name: values[part] for name, values in columns.items()})
              for part in (slice(0, 1000), slice(1000, None))]
    assert "segment" not in columns_of(qkv.evaluate(halves, columns=("who", "item", "at")))


def test_integers_as_ids_and_dates_as_times(films, run_program, tmp_path):
    polars = pytest.importorskip("polars")
    log = tmp_path / "log.csv"
    log.write_text("user,item,time\n" + "".join(
        f"{u},{(u + t) % 7},{'2024-05-%02d 10:30:%02d.25' % (1 + t, u)}\n" for u in range(20) for t in range(6)))
    run_program("train", "recommend", "--data", log, "--out", tmp_path / "run", "--d-model", 16, "--ffn", 16,
                "--max-length", 10, "--batch-tokens", 512, "--max-steps", 3, "--threads", 1, "--seed", 1)
    recommender = qkv.Recommender(tmp_path / "run")
    table = polars.read_csv(log).with_columns(polars.col("time").str.to_datetime())
    for unit in ("ms", "us", "ns"):
        found = recommender.recommend_all(table.with_columns(polars.col("time").dt.cast_time_unit(unit)), top=2)
        users = [str(user) for user in found["user"].unique(maintain_order=True)]
        answers = recommender.recommend_all([recommender.history(u) for u in users],
                                            times=[recommender.times(u) for u in users], top=2)
        assert found["item"].to_list() == [int(name) for answer in answers for name in answer.names]
    measures = qkv.evaluate(table)
    assert measures["HR@10"].to_list() == [x["HR@10"] for x in qkv.evaluate(log)["baselines"].values()]


TEXTS = ["", "ab", "a longer text than twelve bytes", "für", 'a "b", c']


@needs_pyarrow
def test_texts_of_all_types(trained):
    translator = qkv.Translator(trained)
    texts = ["the dog", "a cat sees the old dog", "the dog", "the cat"]
    wanted = [t.text for t in translator.translate(texts)]
    utf8 = pyarrow.array(texts)
    columns = [utf8.cast(type) for type in (pyarrow.large_utf8(), pyarrow.string_view())]
    columns += [utf8, utf8.dictionary_encode(), pyarrow.chunked_array([utf8[:1], utf8[1:]]),
                pyarrow.array(["x"] + texts)[1:], pyarrow.array(["x", *texts]).dictionary_encode()[1:]]
    if pandas:
        columns += [pandas.Series(texts), pandas.Series(texts, dtype="category"), pandas.Series(texts, dtype=object)]
    if polars:
        columns += [polars.Series(texts), polars.Series(texts).cast(polars.Categorical)]
    for column in columns:
        assert [t.text for t in translator.translate(column)] == wanted
    assert [t.text for t in translator.stream(utf8)] == [t.text for t in translator.translate_async(utf8).result()]
    assert translator.score(utf8, utf8) == translator.score(texts, texts)


@pytest.mark.parametrize("make", MAKERS)
def test_a_column_of_many_rows_is_read_in_parts(make):
    texts = [str(i) for i in range(2 * _tables._ROWS + 3)]
    column = make({"text": texts})["text"]
    assert _tables.is_tabular(column) and _tables.column_values("texts", column) == texts
    assert _tables.column_values("texts", make({"text": []})["text"]) == []


@pytest.mark.parametrize("make", MAKERS)
def test_invalid_texts_are_errors_that_name_the_row(make, trained):
    translator = qkv.Translator(trained)
    with pytest.raises(qkv.Error, match=r"^lines\[1\] must be a str \(is (None|nan)\)$"):
        translator.translate(make({"text": ["a", None]})["text"])
    with pytest.raises(qkv.Error, match=r"^lines\[0\] must be a str \(is 3\)$"):
        translator.translate(make({"text": [3]})["text"])
    with pytest.raises(qkv.Error, match="^lines is a table, expected a column$"):
        translator.translate(make({"text": ["a"]}))


WRONG = [
    ({"user": ["u"], "thing": ["i"], "other": ["i"]}, "log: cannot determine which of the 3 columns"),
    ({"user": ["u", "u"], "item": ["i", None]}, r'log: column "item", row 1 \(from 0\): expected a string \(is (None|nan)\)'),
    ({"user": [0.5], "item": ["i"]}, r'log: column "user", row 0 \(from 0\): expected a string or an integer \(is 0.5\)'),
    ({"user": [True], "item": ["i"]}, r'log: column "user", row 0 \(from 0\): expected a string or an integer \(is True\)'),
    ({"user": ["u"], "item": ["i"], "time": ["1"]},
     r'log: column "time", row 0 \(from 0\): expected a finite number, a date or a timestamp \(is \'1\'\)'),
    ({"user": ["u"], "item": ["i"], "time": [float("nan")]}, 'log: column "time", row 0 .* expected a finite number'),
    ({"user": ["u"] * 2, "item": ["i"] * 2, "time": [datetime.datetime(2024, 1, 1), None]},
     'log: column "time", row 1 .* expected a finite number'),
    ({"user": ["u"] * 2, "item": ["i"] * 2, "time": [2.5, 1e15]}, r"log, row 1 \(from 0\): the time .* 64 bits"),
]


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("columns, message", WRONG)
def test_invalid_tables_are_errors_that_name_column_and_row(make, columns, message):
    with pytest.raises(qkv.Error, match=f"^{message}"):
        _tables.Histories("log", make(columns), [])


def test_strings_with_half_a_surrogate_pair_are_errors(tmp_path):
    frame = pytest.importorskip("pandas").DataFrame({"user": ["u"], "item": ["\ud800"]}, dtype=object)
    with pytest.raises(qkv.Error, match=r'^log: column "item", row 0 \(from 0\): the string is not valid Unicode$'):
        _tables.Histories("log", frame, [])
    with pytest.raises(qkv.Error, match=r"^texts, row 0 \(from 0\): the string is not valid Unicode$"):
        _tables._write_texts("texts", frame["item"], tmp_path / "texts", "\n")


@pytest.mark.parametrize("make", MAKERS)
def test_arguments_that_do_not_fit_a_table_are_errors(make, recommender, films):
    events = make({"user": ["u"], "item": ["f0001"]})
    for arguments, message in (({"times": [[1]]}, "times must be a column of the table"),
                               ({"explain": True}, "explain requires that histories are lists"),
                               ({"columns": ["user", "film"]}, 'histories: no column "film"')):
        with pytest.raises(qkv.Error, match=message):
            recommender.recommend_all(events, **arguments)
    with pytest.raises(qkv.Error, match="columns requires that histories is a table"):
        recommender.recommend_all([["f0001"]], columns=["user", "item"])
    with pytest.raises(qkv.Error, match="^histories is a column, expected a table$"):
        recommender.recommend_all(events["item"])
    with pytest.raises(qkv.Error, match="column 'item' has integers, but the model's item 'f0"):
        recommender.recommend_all(make({"user": ["u"], "item": [1]}))
    with pytest.raises(qkv.Error, match="source must be paths or tables"):
        qkv.evaluate([films / "log.csv", events])
    with pytest.raises(qkv.Error, match="^source: "):
        qkv.evaluate(events)


@pytest.mark.parametrize("make", MAKERS)
def test_logs_and_texts_are_written_as_the_library_reads_them(make, tmp_path):
    zone = datetime.timezone.utc
    times = [datetime.datetime(1969, 12, 31, 23, 59, 58, 750000, zone), datetime.datetime(1970, 1, 1, 0, 0, 2, 0, zone),
             datetime.datetime(1970, 1, 1, 0, 0, 2, 1000, zone)]
    events = {"User ID": ['a "b", c', "x\ny", "für"], "item": [-7, 0, 2**63 - 1]}
    for column, written in ((times, ("-1.250000", "2", "2.001000")), ([-1.25, 2.0, 2.001], ("-1.250000", "2", "2.001000")),
                            ([3, -1, 2**62], ("3", "-1", str(2**62))),
                            ([datetime.date(1970, 1, 2)] * 3, ("86400",) * 3)):
        with _tables.log_files("log", make({**events, "time": column}), []) as (paths, _):
            with open(paths[0], newline="", encoding="utf-8") as file:
                assert file.read() == ('user,item,time\n"a ""b"", c",-7,{}\n"x\ny",0,{}\n'
                                       '"für",9223372036854775807,{}\n').format(*written)
    texts = make({"text": TEXTS})["text"]
    with _tables.text_files("texts", texts) as paths, open(paths[0], encoding="utf-8") as file:
        assert file.read() == "\n".join(TEXTS) + "\n"
    documents = make({"text": ["a\nb", "\nc"]})["text"]
    with _tables.text_files("texts", documents, "<end>") as paths, open(paths[0], encoding="utf-8") as file:
        assert file.read() == "a\nb<end>\n\nc<end>\n"
    for text, separator, message in (("b\nc", "\n", r"row 1 \(from 0\): the string contains a line break"),
                                     ("b<end>", "<end>", r"row 1 \(from 0\): the string contains <end>"),
                                     (None, "\n", r"row 1 \(from 0\): expected a string \(is (None|nan)\)"),
                                     ("b", "", "strings need a separator")):
        with pytest.raises(qkv.Error, match=message):
            with _tables.text_files("texts", make({"text": ["a", text]})["text"], separator):
                pass


@pytest.mark.parametrize("make", MAKERS)
def test_temporary_files_are_deleted_and_named_as_the_argument(make, tmp_path):
    given = [make({"text": ["a", "b"]})["text"], tmp_path / "file"]
    with pytest.raises(qkv.Error, match=r"^lines\[0\]: line 3 is bad$"), _tables.text_files("lines", given) as paths:
        with open(paths[0], encoding="utf-8") as file:
            assert file.read() == "a\nb\n" and paths[1] == str(tmp_path / "file")
        raise qkv.Error(f"{paths[0]}: line 3 is bad")
    assert not os.path.exists(paths[0])
    tables = [make({"who": ["u"], "what": [item]}) for item in "xy"]
    with _tables.log_files("data", tables, ["who", "what"]) as (paths, columns):
        assert [os.path.basename(path) for path in paths] == ["data[0]", "data[1]"] and columns == []
        assert [open(path, encoding="utf-8").read() for path in paths] == [f'user,item\n"u","{i}"\n' for i in "xy"]
    assert not any(map(os.path.exists, paths))
    with _tables.log_files("data", "log.csv", ["who", "what"]) as found:
        assert found == (["log.csv"], ["who", "what"])
