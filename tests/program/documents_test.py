"""qkv translate --document: files, folders, and what is refused."""

import os
import subprocess

import pytest
from conftest import QKV, qkv

HTML = '<html><body class="x">\n<p>The dog <b>sees</b> the cat.</p>\n<pre>The dog</pre>\n</body>\n'


def sentence(run, text):
    return qkv("translate", run, text=text + "\n")[1].strip("\n")


def document(run, path, out, *arguments, code=0):
    found = qkv("translate", run, "--document", path, "--out", out, *arguments, ok=False)
    assert found[0] == code, found[2]
    return found


def test_a_document_keeps_all_but_its_text(trained, tmp_path):
    (tmp_path / "a.html").write_text(HTML)
    error = document(trained, tmp_path / "a.html", tmp_path / "b.html")[2]
    assert error == f"{tmp_path}/a.html: 1 texts translated\n"
    html = (tmp_path / "b.html").read_text()
    assert html.startswith('<html><body class="x">\n<p>') and html.endswith("</p>\n<pre>The dog</pre>\n</body>\n")
    text = html.split("<p>")[1].split("</p>")[0]
    assert text.count("<b>") == text.count("</b>") == 1
    assert text.replace("<b>", "").replace("</b>", "") == sentence(trained, "The dog sees the cat.")


def test_lines_of_text_are_those_that_the_command_translates(trained, tmp_path):
    text = "The dog sees the cat. He sleeps.\r\n\r\n  He sleeps.\r\n"
    (tmp_path / "a.txt").write_bytes(text.encode())
    document(trained, tmp_path / "a.txt", tmp_path / "b.txt")
    both, sleeps = sentence(trained, "The dog sees the cat. He sleeps."), sentence(trained, "He sleeps.")
    assert (tmp_path / "b.txt").read_bytes().decode() == f"{both}\r\n\r\n  {sleeps}\r\n"


def test_standard_input_and_output(trained, tmp_path):
    found = subprocess.run([QKV, "translate", trained, "--document", "-", "--out", "-", "--document-format", "html"],
                           input=HTML.encode(), capture_output=True)
    (tmp_path / "a.html").write_text(HTML)
    document(trained, tmp_path / "a.html", tmp_path / "b.html")
    assert (found.returncode, found.stdout) == (0, (tmp_path / "b.html").read_bytes())
    assert found.stderr == b"standard input: 1 texts translated\n"


def test_the_output_follows_what_is_there(trained, tmp_path):
    (tmp_path / "a.txt").write_text("He sleeps.\n")
    command = f"{{ echo begin; {QKV} translate {trained} --document {tmp_path}/a.txt --out OUT; echo end; }}"
    wanted = sentence(trained, "He sleeps.")
    for out in ("-", "/dev/stdout"):
        joined = tmp_path / "joined"
        subprocess.run(["bash", "-c", f"{command.replace('OUT', out)} > {joined}"], check=True, stderr=subprocess.PIPE)
        assert joined.read_text() == f"begin\n{wanted}\nend\n", out


def test_a_folder_is_translated_with_its_folders(trained, tmp_path):
    source, out = tmp_path / "in", tmp_path / "out"
    (source / "sub" / ".git").mkdir(parents=True)
    for name in ("a.txt", "sub/b.HTML", "sub/.git/c.txt", ".d.txt"):
        (source / name).write_text("He sleeps.")
    (source / "picture.png").write_text("He sleeps.")
    error = document(trained, source, out)[2]
    assert error.splitlines() == [
        f"{source}/a.txt: 1 texts translated", f"{source}/sub/b.HTML: 1 texts translated",
        "2 documents: 2 written, 0 present, 0 failed; 1 files of other formats left out"]
    assert sorted(str(p.relative_to(out)) for p in out.rglob("*") if p.is_file()) == ["a.txt", "sub/b.HTML"]
    assert (out / "a.txt").read_text() == sentence(trained, "He sleeps.")
    (out / "a.txt").write_text("kept")
    (source / "bad.txt").write_bytes(b"\xff")
    status, _, error = document(trained, source, out, code=1)
    assert error.splitlines() == [
        f"qkv: {source}/bad.txt: the text must be UTF-8 (byte 1 is not)",
        "3 documents: 0 written, 2 present, 1 failed; 1 files of other formats left out",
        "qkv: 1 of 3 documents failed"]
    assert (out / "a.txt").read_text() == "kept" and not (out / "bad.txt").exists()


@pytest.mark.parametrize("arguments, error", [
    (["--document", "a.txt"], "--document requires --out"),
    (["--out", "b.txt"], "--out requires --in or --document"),
    (["--document", "a.txt", "--out", "b.txt", "--json"], "--json excludes --document"),
    (["--document", "a.txt", "--out", "b.txt", "--in", "x"], "--in excludes --document"),
    (["--columns", "1"], "--columns requires --document"),
])
def test_options_that_do_not_fit(trained, arguments, error):
    status, _, message = qkv("translate", trained, *arguments, ok=False)
    assert status == 2 and message.startswith(f"qkv: {error}")


def test_what_cannot_be_translated_is_one_line(trained, tmp_path):
    def error(path, out, *arguments):
        found = document(trained, path, out, *arguments, code=1)[2]
        assert found.count("\n") == 1 and found.startswith("qkv: ")
        return found[5:-1]

    text = tmp_path / "a.txt"
    text.write_text("He sleeps.")
    (tmp_path / "a.docx").write_bytes(b"PK\x03\x04" + bytes(100))
    assert error(tmp_path / "no.txt", tmp_path / "b") == f"{tmp_path}/no.txt: cannot be opened: No such file or directory"
    assert error(tmp_path / "a.pdf", tmp_path / "b").startswith(
        f"{tmp_path}/a.pdf is not a document that can be translated (known: .csv .docx")
    assert error(text, tmp_path / "b", "--document-format", "pdf").startswith(
        "unknown format pdf of a document (known: csv docx")
    assert error(text, text) == f"{text}: is the document itself; its translation requires another name"
    assert error(text, tmp_path / "no" / "b").startswith(f"{tmp_path}/no/b: cannot be written: No such file")
    assert error(tmp_path / "a.docx", tmp_path / "b").startswith(f"{tmp_path}/a.docx: the archive is damaged: ")
    assert error(tmp_path, tmp_path / "out").endswith("translations require a separate folder")
    assert sorted(os.listdir(tmp_path)) == ["a.docx", "a.txt"] and text.read_text() == "He sleeps."
    assert error(text, tmp_path / "b", "--columns", "1") == f"{text}: columns require a CSV or TSV document (is text)"
    assert error(text, tmp_path) == f"{tmp_path}: is a folder"
    (tmp_path / "in").mkdir()
    for arguments in (["-"], [tmp_path / "out", "--document-format", "text"]):
        assert error(tmp_path / "in", *arguments) == (
            f"{tmp_path}/in: a folder requires a folder as --out, and no --document-format")
    (tmp_path / "in").rmdir()
    if os.path.exists("/dev/full"):
        (tmp_path / "a.html").write_text(HTML)
        assert error(tmp_path / "a.html", "/dev/full") == "/dev/full: cannot be written: No space left on device"
