"""`qkv data check` and `qkv data clean`, on the example text and on the corpora of ../shared."""

import gzip
import json
import random

import pytest
from conftest import ROOT, TEXT, qkv

SHARED = ROOT.parent / "shared/data"


def check(*arguments):
    return json.loads(qkv("data", "check", *arguments, "--json")[1])


def counts(report):
    return {defect["name"]: defect["pairs"] for defect in report["defects"] if defect["pairs"]}


def files(split):
    return TEXT / f"{split}.en", TEXT / f"{split}.de"


def test_text_and_json_agree():
    report, text = check("--train", *files("train"), "--dev", *files("dev")), qkv(
        "data", "check", "--train", *files("train"), "--dev", *files("dev"))[1]
    train = report["train"]
    assert f"{train['pairs']} pairs, {train['kept']} pass all filters" in text
    assert all(f"{pairs:>9}  {name}" in text for name, pairs in counts(train).items())
    assert all(f"- {line}\n" in text for line in report["advice"])


def test_cleaning_keeps_what_the_check_counts_and_is_repeatable(tmp_path):
    outputs = [[tmp_path / f"{name}.{side}" for side in ("en", "de")] for name in ("a", "b")]
    for out in outputs:
        qkv("data", "clean", "--train", *files("train"), "--dev", *files("dev"), "--out", *out)
    kept = check("--train", *files("train"), "--dev", *files("dev"))["train"]["kept"]
    for a, b in zip(*outputs):
        assert a.read_bytes() == b.read_bytes() and a.read_bytes().count(b"\n") == kept
    again = check("--train", *outputs[0], "--dev", *files("dev"))["train"]
    assert again["kept"] == again["pairs"] and not again["changed_spaces"]


def test_a_log_is_checked(films):
    report = check("--data", films / "log.csv")
    assert report["events"] > 0 and report["has_times"]
    assert f"{report['users']} users" in qkv("data", "check", "--data", films / "log.csv")[1]


@pytest.mark.parametrize("arguments, status, message", [
    (["check"], 2, "--train or --data"),
    (["check", "--dev", "x"], 2, "--dev requires --train"),
    (["check", "--train", "/nonexistent"], 1, "/nonexistent: does not exist"),
    (["check", "--train", "/dev/null"], 1, "/dev/null: must be a regular file"),
    (["clean", "--train", TEXT / "train.en", TEXT / "dev.de", "--out", "/nonexistent/a", "/nonexistent/b"], 1,
     "/nonexistent"),
    (["clean", "--train", TEXT / "train.en", "--out", "a", "b"], 1, "as many files")])
def test_errors_are_one_line(arguments, status, message):
    found, output, error = qkv("data", *arguments, ok=False)
    assert found == status and output == "" and error.count("\n") == 1 and message in error


def test_files_of_different_lengths_leave_no_output(tmp_path):
    out = tmp_path / "a.en", tmp_path / "a.de"
    _, _, error = qkv("data", "clean", "--train", TEXT / "train.en", TEXT / "dev.de", "--out", *out, ok=False)
    assert "both must have the same number" in error and not list(tmp_path.iterdir())


@pytest.mark.skipif(not SHARED.exists(), reason="../shared has no data")
def test_good_corpora_pass_nearly_whole():
    multi30k = check("--train", *(SHARED / f"multi30k/train.{side}" for side in ("en", "de")), "--dev",
                     *(SHARED / f"multi30k/val.{side}" for side in ("en", "de")))
    tatoeba = check("--train", SHARED / "tatoeba/train.tsv", "--dev", SHARED / "tatoeba/dev.tsv")
    for report in (multi30k, tatoeba):
        found = counts(report["train"])
        assert report["train"]["kept"] > 0.99 * report["train"]["pairs"], found
        assert found.get("swapped", 0) + found.get("language", 0) <= 0.001 * report["train"]["pairs"], found


@pytest.mark.skipif(not SHARED.exists(), reason="../shared has no data")
def test_defects_in_a_corpus_are_found(tmp_path):
    pairs = (SHARED / "tatoeba/train.tsv").read_text(encoding="utf-8").splitlines()
    chosen = random.Random(1).sample(range(1000, len(pairs)), 600)
    swapped, repeated = chosen[:300], chosen[300:]
    for line in swapped:
        pairs[line] = "\t".join(reversed(pairs[line].split("\t")))
    for line in repeated:
        pairs[line] = pairs[line - 1000]
    (tmp_path / "bad.tsv").write_text("\n".join(pairs) + "\n", encoding="utf-8")
    found = counts(check("--train", tmp_path / "bad.tsv")["train"])
    long_enough = [line for line in swapped if min(map(len, pairs[line].split("\t"))) >= 12]
    assert found["swapped"] + found["language"] >= 0.9 * len(long_enough)
    assert found["duplicate"] >= 290


def test_a_compressed_text_is_named(tmp_path):
    for side in ("en", "de"):
        (tmp_path / f"train.{side}.gz").write_bytes(gzip.compress(b"one\ntwo\n"))
        (tmp_path / f"train.{side}.zst").write_bytes(b"\x28\xb5\x2f\xfd\x00\x38\x21\x00\x00one\n")
    files = [tmp_path / "train.en.gz", tmp_path / "train.de.gz"]
    status, output, error = qkv("data", "check", "--train", *files, ok=False)
    assert (status, output) == (1, "") and error.startswith(f"qkv: {files[0]}: is compressed") and "gunzip" in error
    error = qkv("data", "check", "--train", tmp_path / "train.en.zst", tmp_path / "train.de.zst", ok=False)[2]
    assert error.startswith(f"qkv: {tmp_path / 'train.en.zst'}: is compressed") and "unzstd" in error
