"""Tables and columns that export Arrow data: of pandas, polars and pyarrow if they are installed, and made by hand."""

import csv
import importlib.util
import os
import struct

import pytest

import qkv
from qkv import _tables
from arrow_objects import Column, integers, strings, table

EVENTS = {"user": ["b", "a", "b", "a", "b"], "item": ["f0003", "f0001", "f0002", "f0004", "f0003"],
          "time": [3, 1, 2, 5, 3]}


def optional(name):
    return importlib.import_module(name) if importlib.util.find_spec(name) else None


pandas, polars, pyarrow = map(optional, ("pandas", "polars", "pyarrow"))
needs_pyarrow = pytest.mark.skipif(not pyarrow, reason="needs pyarrow")
MAKERS = [pytest.param(lambda columns: pandas.DataFrame(columns), id="pandas",
                       marks=pytest.mark.skipif(not (pandas and pyarrow), reason="needs pandas and pyarrow")),
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


def test_strings_of_many_rows_with_nulls_elsewhere():
    pyarrow = pytest.importorskip("pyarrow")
    texts = [f"{i}" * (i % 40) for i in range(3000)]
    for type in (pyarrow.utf8(), pyarrow.large_utf8(), pyarrow.string_view()):
        column = pyarrow.array([None, *texts, None], type)
        assert qkv._qkv.arrow_texts(column[1:-1], "texts") == texts
        with pytest.raises(qkv.Error, match=r"^texts, row 3000 \(from 0\): the value is null$"):
            qkv._qkv.arrow_texts(column[1:], "texts")


def read(column):
    return qkv._qkv.arrow_texts(column, "texts")


def test_a_column_made_by_hand_is_read_and_released():
    column = strings(TEXTS)
    assert read(column) == TEXTS and len(column.released) == 2
    assert read(strings(TEXTS, null_count=-1)) == TEXTS
    values = strings(["x", "y"])
    assert read(Column("C", [None, bytes([1, 0, 1])], 2, offset=1, dictionary=values)) == ["x", "y"]
    assert read(Column("u", [None, None, None], 0)) == []


def views(*parts, sizes=(20,), buffers=(b"a" * 20,)):
    """A column of views, each of a length, a prefix, a buffer and an offset."""
    return Column("vu", [None, struct.pack(f"{4 * len(parts)}i", *sum(parts, ())), *buffers,
                         struct.pack(f"{len(sizes)}q", *sizes)], len(parts))


INVALID = [
    (lambda: strings(["ab"], offset=-1), "of length 1 and offset -1"),
    (lambda: Column("u", [None, struct.pack("2i", 0, 2), b"ab"], -1), "of length -1"),
    (lambda: Column("u", [None, struct.pack("3i", 0, 5, 2), b"ab"], 2), "row 0 (from 0): the offsets 0 and 5"),
    (lambda: Column("u", [None, struct.pack("3i", 0, 2, 1), b"ab"], 2), "row 0 (from 0): the offsets 0 and 2"),
    (lambda: Column("u", [None, struct.pack("2i", -3, 2), b"ab"], 1), "the offsets -3 and 2"),
    (lambda: Column("U", [None, struct.pack("2q", 0, 2), None], 1), "the offsets 0 and 2"),
    (lambda: Column("u", [None, None, b"ab"], 1), "lacks a buffer"),
    (lambda: Column("u", [None, b"1234"], 1), "with 2 buffers is invalid"),
    (lambda: Column("vu", [None, b"1" * 16], 1), "with 2 buffers is invalid"),
    (lambda: Column("u", [None, struct.pack("2i", 0, 2), b"\xff\xfe"], 1), "row 0 (from 0): the string is not valid"),
    (lambda: strings(["a"], null_count=1), "lacks a buffer"),
    (lambda: views((13, 0, 0, 8)), "row 0 (from 0): the view of 13 bytes at 8 of buffer 0"),
    (lambda: views((13, 0, 0, 7), (13, 0, 1, 0)), "row 1 (from 0): the view of 13 bytes at 0 of buffer 1"),
    (lambda: views((13, 0, -1, 0)), "of buffer -1"),
    (lambda: views((13, 0, 0, -1)), "at -1 of buffer 0"),
    (lambda: views((-1, 0, 0, 0)), "the view of -1 bytes"),
    (lambda: views((2**31 - 1, 0, 0, 2**31 - 1)), "the view of 2147483647 bytes"),
    (lambda: Column("c", [None, b"\x02"], 1, dictionary=strings(["x", "y"])), "of 2 values has no index 2"),
    (lambda: Column("c", [None, b"\xff"], 1, dictionary=strings(["x", "y"])), "of 2 values has no index -1"),
    (lambda: Column("L", [None, b"\xff" * 8], 1, dictionary=strings(["x"])), "does not fit into 64 bits"),
    (lambda: Column("u", [None, b"\x00" * 8, b""], 1, dictionary=strings(["x"])), "must have integers as indices"),
    (lambda: Column("z", [None, b"\x00" * 8, b""], 1), 'has the Arrow type "z"; expected strings'),
    (lambda: Column("z\n" + "ü" * 99, [], 1), 'has the Arrow type "z ' + "ü" * 39 + '…"; expected strings'),
    (lambda: Column("+r", [], 1), 'has the Arrow type "+r"'),
    (lambda: strings(["ab"], offset=2**63 - 1), "of length 1 and offset 9223372036854775807"),
    (lambda: integers([1]), 'expected a string (is of the Arrow type "l")'),
    (lambda: Column("n", [], 1), "the value is null"),
    (lambda: table(1, strings(["a"])), "texts is a table, expected a column of strings"),
    (lambda: 3, "is of type int, expected a table or column"),
]


@pytest.mark.parametrize("make, message", INVALID)
def test_invalid_columns_are_errors_of_one_line(make, message):
    column = make()
    with pytest.raises(qkv.Error) as error:
        read(column)
    assert message in str(error.value) and "\n" not in str(error.value) and str(error.value).startswith("texts")
    if isinstance(column, Column):
        assert len(column.released) == 2


class Exports:
    def __init__(self, result):
        self.result = result

    def __arrow_c_stream__(self, requested_schema=None):
        if isinstance(self.result, BaseException):
            raise self.result
        return self.result


def test_invalid_exports_are_errors():
    with pytest.raises(qkv.Error, match="^texts exports int, expected a capsule \"arrow_array_stream\"$"):
        read(Exports(3))
    with pytest.raises(qkv.Error, match="^texts cannot be exported by Arrow: first$"):
        read(Exports(ValueError("first\nsecond")))
    with pytest.raises(KeyboardInterrupt):
        read(Exports(KeyboardInterrupt()))
    column = strings(["a"])
    read(column)
    with pytest.raises(qkv.Error, match="was read before"):
        read(column)


def test_a_table_made_by_hand_gives_a_dict(recommender):
    events = table(5, *[strings(EVENTS[x], name=x) for x in ("user", "item")], integers(EVENTS["time"], name="time"))
    found = recommender.recommend_all(events, top=1)
    assert found["user"] == ["b", "a"] and list(found) == ["user", "item", "rank", "score"]


@pytest.mark.parametrize("columns, message", [
    ([strings(["u"], name="user"), strings(["i"], name="thing"), strings(["i"], name="other")],
     "histories: cannot determine which of the 3 columns"),
    ([strings(["u"], name="user"), Column("u", [b"\x00", struct.pack("2i", 0, 0), b""], 1, null_count=1, name="item")],
     'histories: column "item", row 0 (from 0): the value is null'),
    ([strings(["u"], name="user"), strings(["i"], name="item"), strings(["1"], name="time")],
     'histories: column "time", row 0 (from 0): expected an integer, a float or a timestamp'),
    ([strings(["u"], name="user"), strings(["i"], name="item"),
      Column("g", [None, struct.pack("d", float("nan"))], 1, name="time")],
     'histories: column "time", row 0 (from 0): the time must be finite'),
    ([strings(["u"], name="user"), strings([], name="item")], 'histories: column "item": an Arrow array of length 0'),
    ([strings(["u"], name="user"), Column("u", [None, struct.pack("3i", 0, 100, 2), b"ab"], 2, name="item")],
     'histories: column "item", row 0 (from 0): the offsets 0 and 100 are not within a text of 2 bytes'),
    ([Column("z", [], 1, name="user\n"), strings(["i"], name="item")], 'histories: column "user " has the Arrow type "z"'),
    ([strings(["u"], name="user"), Column("g", [None, b"0" * 8], 1, name="item")],
     'histories: column "item", row 0 (from 0): expected a string'),
    ([strings(["u"], name="user"), integers([1], name="item")], "column 'item' has integers, but the model's item 'f0"),
])
def test_invalid_tables_are_errors_that_name_column_and_row(recommender, columns, message):
    with pytest.raises(qkv.Error) as error:
        recommender.recommend_all(table(1, *columns))
    assert str(error.value).startswith(message) and "\n" not in str(error.value)


def test_lengths_of_a_table_are_checked():
    for length, offset in ((2**63 - 1, 0), (1, 2**63 - 1), (-1, 0), (2**60, 0)):
        events = table(length, strings(["u"], name="user"), strings(["i"], name="item"))
        events.array.offset = offset
        with pytest.raises(qkv.Error, match=f"^log: an Arrow array of length {length} and offset {offset} is invalid$"):
            qkv._qkv.read_events(events, "log", [])


def test_bytes_that_are_not_utf8_become_replacement_characters():
    column = strings(["a"], name="user")
    column.schema.format = b"\xff"
    with pytest.raises(qkv.Error, match='^log: column "user" has the Arrow type "\ufffd"'):
        qkv._qkv.read_events(table(1, column, strings(["i"], name="item")), "log", [])


def test_arguments_that_do_not_fit_a_table_are_errors(recommender, films):
    events = table(1, strings(["u"], name="user"), strings(["f0001"], name="item"))
    for arguments, message in (({"times": [[1]]}, "times must be a column of the table"),
                               ({"explain": True}, "explain requires that histories are lists"),
                               ({"columns": ["user", "film"]}, 'histories: no column "film"')):
        with pytest.raises(qkv.Error, match=message):
            recommender.recommend_all(events, **arguments)
    with pytest.raises(qkv.Error, match="columns requires that histories is a table"):
        recommender.recommend_all([["f0001"]], columns=["user", "item"])
    with pytest.raises(qkv.Error, match="source must be paths or tables"):
        qkv.evaluate([films / "log.csv", events])
    with pytest.raises(qkv.Error, match="^source: "):
        qkv.evaluate(table(1, strings(["u"], name="user"), strings(["f0001"], name="item")))


def test_logs_and_texts_are_written_as_the_library_reads_them(tmp_path):
    events = table(3, strings(['a "b", c', "x\ny", "für"], name="User ID"), integers([-7, 0, 2**63 - 1], name="item"),
                   Column("tsm:UTC", [None, struct.pack("3q", -1250, 2000, 2001)], 3, name="time"))
    qkv._qkv.write_events(events, "log", [], str(tmp_path / "log"))
    assert (tmp_path / "log").read_text() == (
        'user,item,time\n"a ""b"", c",-7,-1.250000\n"x\ny",0,2\n"für",9223372036854775807,2.001000\n')
    qkv._qkv.write_texts(strings(TEXTS), "texts", str(tmp_path / "texts"), "\n")
    assert (tmp_path / "texts").read_text() == "\n".join(TEXTS) + "\n"
    qkv._qkv.write_texts(strings(["a\nb", "\nc"]), "texts", str(tmp_path / "texts"), "<end>")
    assert (tmp_path / "texts").read_text() == "a\nb<end>\n\nc<end>\n"
    for text, separator, message in (("b\nc", "\n", "row 1 (from 0): the string contains a line break"),
                                     ("b<end>", "<end>", "row 1 (from 0): the string contains <end>"),
                                     ("b", "", "strings need a separator")):
        with pytest.raises(qkv.Error) as error:
            qkv._qkv.write_texts(strings(["a", text]), "texts", str(tmp_path / "texts"), separator)
        assert message in str(error.value)
    with pytest.raises(qkv.Error, match="cannot be written"):
        qkv._qkv.write_texts(strings(["a"]), "texts", str(tmp_path / "none/texts"), "\n")


def test_temporary_files_are_deleted_and_named_as_the_argument(tmp_path):
    given = [strings(["a", "b"]), tmp_path / "file"]
    with pytest.raises(qkv.Error, match=r"^lines\[0\]: line 3 is bad$"), _tables.text_files("lines", given) as paths:
        with open(paths[0], encoding="utf-8") as file:
            assert file.read() == "a\nb\n" and paths[1] == str(tmp_path / "file")
        raise qkv.Error(f"{paths[0]}: line 3 is bad")
    assert not os.path.exists(paths[0])
    tables = [table(1, strings(["u"], name="who"), strings([item], name="what")) for item in "xy"]
    with _tables.log_files("data", tables, ["who", "what"]) as (paths, columns):
        assert [os.path.basename(path) for path in paths] == ["data[0]", "data[1]"] and columns == []
        assert [open(path, encoding="utf-8").read() for path in paths] == [f'user,item\n"u","{i}"\n' for i in "xy"]
    assert not any(map(os.path.exists, paths))
    with _tables.log_files("data", "log.csv", ["who", "what"]) as found:
        assert found == (["log.csv"], ["who", "what"])


def test_a_column_whose_library_lacks_its_exporter_is_iterated(trained):
    class Series(list):  # of pandas without pyarrow
        def __arrow_c_stream__(self, requested_schema=None):
            raise ImportError("needs pyarrow")

    translator = qkv.Translator(trained)
    assert translator.translate(Series(["the dog"])) == translator.translate(["the dog"])
    with pytest.raises(ImportError, match="^needs pyarrow$"):
        qkv.evaluate(Series())
