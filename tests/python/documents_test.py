"""Translator.translate_document: bytes, files and what is refused."""

import zipfile

import pytest

import qkv

HTML = b'<html><body>\r\n<h1>The dog sees the cat.</h1>\n<p class="a">He sleeps. <b>The dog</b> sees the cat.</p></body>'


@pytest.fixture(scope="module")
def translator(trained):
    return qkv.Translator(trained)


def test_the_text_is_translated_and_all_else_stays(translator):
    title, text = (translator.translate([part])[0].text for part in
                   ["The dog sees the cat.", "He sleeps. The dog sees the cat."])
    translated = translator.translate_document(HTML, format="html").decode()
    assert translated.count("<b>") == translated.count("</b>") == 1
    body = f'<html><body>\r\n<h1>{title}</h1>\n<p class="a">{text}</p></body>'
    assert translated.replace("<b>", "").replace("</b>", "") == body


def test_files_are_translated_by_the_end_of_their_name(translator, tmp_path):
    source, out = tmp_path / "ä.html", tmp_path / "out.html"
    source.write_bytes(HTML)
    assert translator.translate_document(source, out) is None
    assert out.read_bytes() == translator.translate_document(str(source)) == translator.translate_document(
        HTML, format="html")
    assert source.read_bytes() == HTML


def test_a_file_of_subtitles_keeps_its_times(translator, tmp_path):
    (tmp_path / "a.srt").write_text("1\n00:00:01,000 --> 00:00:02,000\n- He sleeps.\n")
    wanted = translator.translate(["He sleeps."])[0].text
    assert translator.translate_document(tmp_path / "a.srt").decode() == f"1\n00:00:01,000 --> 00:00:02,000\n- {wanted}\n"


@pytest.mark.parametrize("document, options, error", [
    (b"x", {}, "the bytes of a document require its format"),
    (b"x", {"format": "exe"}, "unknown format exe of a document (known: csv docx"),
    (b"x", {"format": "docx"}, "the document: the archive is damaged: Not a zip archive"),
    (b"\xff", {"format": "text"}, "the document: the text must be UTF-8 (byte 1 is not)"),
    (b"x", {"format": "text", "out": "y"}, "out requires the path of a document"),
    ("nowhere.exe", {"out": "y"}, "nowhere.exe is not a document that can be translated (known: .csv"),
    ("nowhere.txt", {"out": "y"}, "nowhere.txt: cannot be opened: No such file or directory"),
    (b"x", {"format": "text", "beam": 0}, "beam"),
])
def test_errors_name_the_object(translator, document, options, error):
    with pytest.raises(qkv.Error) as found:
        translator.translate_document(document, **options)
    assert str(found.value).startswith(error) and "\n" not in str(found.value)


def test_a_translation_does_not_replace_its_document_or_half_of_a_file(translator, tmp_path):
    path = tmp_path / "a.html"
    path.write_bytes(HTML)
    with pytest.raises(qkv.Error, match="is the document itself"):
        translator.translate_document(path, path)
    (tmp_path / "b.docx").write_bytes(b"no archive")
    out = tmp_path / "out.docx"
    out.write_bytes(b"kept")
    with pytest.raises(qkv.Error, match=r"b.docx: the archive is damaged"):
        translator.translate_document(tmp_path / "b.docx", out)
    assert out.read_bytes() == b"kept" and path.read_bytes() == HTML


def test_an_archive_keeps_its_other_members(translator, tmp_path):
    text = '<?xml version="1.0"?><w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main">' \
        "<w:body><w:p><w:r><w:t>He sleeps.</w:t></w:r></w:p></w:body></w:document>"
    with zipfile.ZipFile(tmp_path / "a.docx", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("[Content_Types].xml", "<Types/>")
        archive.writestr("word/document.xml", text)
        archive.writestr("word/media/image1.png", bytes(range(256)), zipfile.ZIP_STORED)
    translator.translate_document(tmp_path / "a.docx", tmp_path / "b.docx")
    wanted = translator.translate(["He sleeps."])[0].text
    with zipfile.ZipFile(tmp_path / "a.docx") as before, zipfile.ZipFile(tmp_path / "b.docx") as after:
        assert [(m.filename, m.compress_type, m.date_time) for m in after.infolist()] == [
            (m.filename, m.compress_type, m.date_time) for m in before.infolist()]
        assert after.read("word/media/image1.png") == bytes(range(256))
        assert wanted in after.read("word/document.xml").decode()
