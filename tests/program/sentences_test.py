"""`qkv data sentences` and `qkv data abbreviations`."""

import shutil
import subprocess

import pytest
from conftest import QKV, qkv


def sentences(text, *arguments):
    return qkv("data", "sentences", *arguments, text=text)[1]


def test_sentences_of_a_line_are_lines_with_an_empty_line_after_them():
    assert sentences("One. Two!\n\n  \nDr. Who? Yes.") == "One.\nTwo!\n\n\n\nDr. Who?\nYes.\n\n"
    assert sentences("") == ""


def test_files_are_read_in_their_order(tmp_path):
    (tmp_path / "a").write_text("A cat. A dog.\n")
    (tmp_path / "b").write_text("今天下雨。我们走吧！\n", encoding="utf-8")
    found = sentences("In between.", "--input", tmp_path / "a", "--input", "-", "--input", tmp_path / "b")
    assert found == "A cat.\nA dog.\n\nIn between.\n\n今天下雨。\n我们走吧！\n\n"


def test_bytes_that_are_not_utf8_are_kept():
    done = subprocess.run([QKV, "data", "sentences"], input=b"A \xff. B\xc3.\n", capture_output=True, check=True)
    assert done.stdout == b"A \xff.\nB\xc3.\n\n"


def test_a_line_is_answered_before_the_next_one_arrives():
    with subprocess.Popen([QKV, "data", "sentences"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as program:
        for line in (b"One. Two.\n", b"Three.\n"):
            program.stdin.write(line)
            program.stdin.flush()
            found = b""
            while not found.endswith(b"\n\n"):
                found += program.stdout.readline()
            assert found.replace(b"\n", b" ").split() == line.split()
        program.stdin.close()
        assert program.wait(60) == 0


def test_abbreviations_are_learned_and_used(tmp_path):
    text = "Die Abtlg. Kunst ist hier.\nDas ist die Abtlg. Musik der Schule.\n" * 40
    (tmp_path / "text").write_text(text)
    learned = qkv("data", "abbreviations", "--input", tmp_path / "text")[1]
    assert learned == qkv("data", "abbreviations", text=text)[1] == "abtlg\n"
    (tmp_path / "list").write_text(learned)
    line = "Die Abtlg. Kunst. Gut.\n"
    assert sentences(line) == "Die Abtlg.\nKunst.\nGut.\n\n"
    assert sentences(line, "--abbreviations", tmp_path / "list") == "Die Abtlg. Kunst.\nGut.\n\n"


@pytest.mark.parametrize("arguments, status, message", [
    (["sentences", "--input", "/nonexistent"], 1, "/nonexistent: cannot be opened"),
    (["sentences", "--abbreviations", "/nonexistent"], 1, "/nonexistent"),
    (["sentences", "/nonexistent"], 1, "/nonexistent: is not a run directory"),
    (["sentences", "run", "more"], 2, "more"),
    (["abbreviations", "--input", "/nonexistent"], 1, "/nonexistent: cannot be opened")])
def test_errors_are_one_line(arguments, status, message):
    found, output, error = qkv("data", *arguments, text="", ok=False)
    assert found == status and output == "" and error.count("\n") == 1 and message in error


def test_the_abbreviations_of_a_run_are_used(trained, films, tmp_path):
    line = "Die Abtlg. Kunst und die Ufz. Musik. Gut.\n"
    assert sentences(line, trained) == sentences(line)
    run = tmp_path / "run"
    shutil.copytree(trained, run)
    (run / "abbreviations.txt").write_text("abtlg\n")
    (tmp_path / "list").write_text("ufz.\n")
    assert sentences(line, run) == "Die Abtlg. Kunst und die Ufz.\nMusik.\nGut.\n\n"
    assert sentences(line, run, "--abbreviations", tmp_path / "list") == line.replace(" Gut.", "\nGut.") + "\n"

    (run / "abbreviations.txt").write_text("z. B.\n")
    for arguments, message in (([run], f"{run}/abbreviations.txt: line 1 has 2 words, expected one abbreviation"),
                               ([films / "run"], f"{films}/run is a recommender; expected a translator (try: qkv recommend)")):
        status, output, error = qkv("data", "sentences", *arguments, text=line, ok=False)
        assert (status, output, error) == (1, "", f"qkv: {message}\n")


def test_a_list_with_several_words_in_a_line_is_refused(tmp_path):
    (tmp_path / "list").write_text("abt.\nz. B.\n")
    status, output, error = qkv("data", "sentences", "--abbreviations", tmp_path / "list", text="A. B.", ok=False)
    assert (status, output) == (1, "")
    assert error == f"qkv: {tmp_path / 'list'}: line 2 has 2 words, expected one abbreviation\n"
