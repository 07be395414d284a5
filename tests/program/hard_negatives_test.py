"""qkv embed --negatives: rows with hard negatives, on which an embedder is trained."""

import csv
import json
import random
import signal
import subprocess
import time

import pytest
from conftest import QKV, qkv


@pytest.fixture(scope="module")
def pairs(tmp_path_factory):
    """Pairs of texts of letters, several with the same anchor."""
    path, numbers = tmp_path_factory.mktemp("rows") / "pairs.csv", random.Random(1)
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["question", "id", "answer"])
        for i in range(120):
            anchor = numbers.choices("abcdefgh", k=3)
            writer.writerow([" ".join(anchor), i, f"{anchor[0]}, \"{numbers.choice('abcdefgh')}\" {anchor[2]}"])
    return path


def rows_of(path):
    with open(path, newline="") as file:
        return list(csv.reader(file))


def mine(bert, pairs, out, *options, **kinds):
    return qkv("embed", bert, "--file", pairs, "--columns", "question,answer", "--negatives", out, *options, **kinds)


def test_rows_get_negatives_and_train_an_embedder(bert, pairs, tmp_path):
    out = tmp_path / "triplets.csv"
    status, printed, err = mine(bert, pairs, out, "--relative-margin", "-1")
    given, rows = rows_of(pairs)[1:], rows_of(out)
    assert (status, printed) == (0, "")
    lines = err.splitlines()
    assert lines[0] == f'qkv: {pairs}: columns "question", "answer"; not used: "id" (choose with columns)'
    assert lines[-1].startswith(f"qkv: {out}: {len(rows) - 1} rows with 3 negatives each, of ") and len(lines) <= 3
    assert rows[0] == ["anchor", "positive", "negative_1", "negative_2", "negative_3"]
    of_anchor = {}
    for question, _, answer in given:
        of_anchor.setdefault(question, set()).add(answer)
    answers = set().union(*of_anchor.values())
    assert len(rows) > 100 and all(row[1] in of_anchor[row[0]] for row in rows[1:])
    for anchor, _, *negatives in rows[1:]:
        assert len(set(negatives)) == 3 and set(negatives) <= answers - of_anchor[anchor]
    _, _, err = qkv("train", "embed", "--init", bert, "--train", out, "--out", tmp_path / "run", "--max-steps", 3,
                    "--examples", 8, "--dev-share", 0.2)
    assert "rows of 5 texts" in err and "loss info_nce" in err
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith("triplets")] == ["triplets.csv"]


def test_formats_threads_and_batches_give_the_same_rows(bert, pairs, tmp_path):
    options = ["--negatives-per-row", 2, "--sample-from", 5, "--skip-nearest", 1, "--relative-margin", -1, "--seed", 7]
    mine(bert, pairs, tmp_path / "a.csv", *options)
    mine(bert, pairs, tmp_path / "b.csv", *options, "--threads", 1, "--batch-tokens", 16)
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()
    mine(bert, pairs, tmp_path / "a.jsonl", *options)
    mine(bert, pairs, tmp_path / "a.tsv", *options)
    rows = rows_of(tmp_path / "a.csv")
    assert [list(json.loads(line).values()) for line in open(tmp_path / "a.jsonl")] == rows[1:]
    assert [line.rstrip("\n").split("\t") for line in open(tmp_path / "a.tsv")] == rows
    mine(bert, pairs, tmp_path / "c.csv", *options[:-1], 8)
    assert (tmp_path / "c.csv").read_bytes() != (tmp_path / "a.csv").read_bytes()
    qkv("embed", bert, "--columns", "1,3", "--negatives", tmp_path / "d.csv", *options, text=pairs.read_text())  # by a pipe
    header = f"{rows[0][0]},"
    assert (tmp_path / "d.csv").read_text().startswith(header)


def test_more_negatives_are_added_to_those_of_a_row(bert, pairs, tmp_path):
    options = ["--relative-margin", -1, "--negatives-per-row"]  # every row has enough
    mine(bert, pairs, tmp_path / "one.csv", *options, 1)
    qkv("embed", bert, "--file", tmp_path / "one.csv", "--negatives", tmp_path / "two.csv", *options, 1)
    mine(bert, pairs, tmp_path / "both.csv", *options, 2)
    assert (tmp_path / "two.csv").read_bytes() == (tmp_path / "both.csv").read_bytes()


@pytest.mark.parametrize("content, options, message", [
    ("a,b\nc,\n", [], "rows.csv:2: column 2 is empty"),
    ("a,b\nc\n", [], "rows.csv:2: expected 2 columns as in the first line (found 1)"),
    ("a,b\nc,\"d\n", [], "rows.csv:2: a quoted field is not closed on its line"),
    ("a\nb\n", [], "rows.csv: expected rows of an anchor, a positive and perhaps negatives (has one column)"),
    ("sentence1,sentence2,score\na,b,1\n", [], "rows.csv: column \"score\" has scores"),
    ("a,b\nc,d\n", ["--columns", "1,x"], "rows.csv:1: no column \"x\" in the first line (found \"a\", \"b\")"),
    ("a,b\nc,d\n", ["--columns", "1,1"], "columns must be different columns (names \"1\" twice)"),
    ("a,b\nc,d\n", [], "rows.csv: no row has 3 negatives among the 2 different positives (relative_margin is 0.05)"),
    ("a,b\nc,d\n", ["--sample-from", "2"], "sample_from must be 0 or at least negatives_per_row, 3 (is 2)"),
    ("a,b\nc,d\n", ["--max-length", "17"], "max_length must be between 3 and 16 (is 17)"),
    ("", [], "rows.csv: contains no rows"),
])
def test_errors_are_one_line_and_leave_no_file(bert, tmp_path, content, options, message):
    rows = tmp_path / "rows.csv"
    rows.write_text(content)
    status, out, err = qkv("embed", bert, "--file", rows, "--negatives", tmp_path / "out.csv", *options, ok=False)
    assert status == 1 and out == "" and message in err.splitlines()[-1]
    assert [path.name for path in tmp_path.iterdir()] == ["rows.csv"]


def test_outputs_that_are_refused(bert, pairs, tmp_path):
    for out, message in ((tmp_path / "x.txt", "the name of a file of rows to write must end in .csv, .tsv or .jsonl"),
                         (tmp_path / "none/x.csv", "cannot be written: No such file or directory")):
        status, _, err = mine(bert, pairs, out, ok=False)
        assert status == 1 and err.splitlines()[-1] == f"qkv: {out}: {message}"
    status, _, err = mine(bert, pairs, pairs, ok=False)
    assert (status, err) == (1, f"qkv: --negatives: {pairs} is the input of --file, expected another file\n")
    (tmp_path / "breaks.jsonl").write_text("".join(json.dumps({"anchor": a, "positive": f"{a}\nb"}) + "\n" for a in "abcdef"))
    command = ["embed", bert, "--file", tmp_path / "breaks.jsonl", "--relative-margin", -10, "--negatives"]
    status, _, err = qkv(*command, tmp_path / "x.csv", ok=False)
    assert status == 1 and err.splitlines()[-1] == (
        f"qkv: {tmp_path}/breaks.jsonl:1: a text has a line break, which {tmp_path}/x.csv cannot hold; write rows to a name "
        "that ends in .jsonl")
    qkv(*command, tmp_path / "x.jsonl")
    assert len((tmp_path / "x.jsonl").read_text().splitlines()) == 6


@pytest.mark.parametrize("options", [
    ["--negatives", "x.csv", "--json"], ["--negatives", "x.csv", "--npy", "x.npy"], ["--columns", "1,2"],
    ["--negatives-per-row", 2], ["--relative-margin", 0], ["--seed", 1], ["--negatives", "x.csv", "--in", "a", "--out", "b"],
    ["--negatives", "x.csv", "--negatives-per-row", 0], ["--negatives", "x.csv", "--relative-margin", 2],
    ["--negatives", "x.csv", "--skip-nearest", -1],
])
def test_options_that_do_not_fit_are_errors_of_usage(bert, options):
    status, out, err = qkv("embed", bert, *options, text="", ok=False)
    assert status == 2 and out == "" and err


def test_an_interrupt_leaves_no_file(bert, tmp_path):
    rows = tmp_path / "rows.tsv"
    rows.write_text("".join(f"a {i}\tb {i}\n" for i in range(40000)))
    command = ["embed", bert, "--file", rows, "--negatives", tmp_path / "out.csv", "--batch-tokens", 1, "--threads", 1]
    with subprocess.Popen([QKV, *map(str, command)], stderr=subprocess.PIPE, text=True) as process:
        while len(list(tmp_path.iterdir())) < 2:  # until the temporary file of the output is there
            assert process.poll() is None, process.stderr.read()
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        assert process.wait(300) == 128 + signal.SIGINT
    assert [path.name for path in tmp_path.iterdir()] == ["rows.tsv"]
