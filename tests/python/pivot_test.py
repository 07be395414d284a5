"""qkv.PivotTranslator: translation through a language in between."""

import pathlib

import pytest

import qkv

pytestmark = pytest.mark.filterwarnings("ignore:line ")  # its model reads few tokens
RUN = pathlib.Path(__file__).resolve().parent.parent / "golden/runs/translator"
LINES = ["He sleeps.", "The dog sees {name}. He sleeps.", ""]


@pytest.fixture(scope="module")
def chain():
    return qkv.PivotTranslator([RUN, RUN])


def test_a_chain_translates_what_the_first_has_translated(chain):
    one = qkv.Translator(RUN)
    for found, line in zip(chain.translate(LINES, alignment=True), LINES, strict=True):
        first = one.translate([line])[0]
        second = one.translate([first.text])[0]
        assert found.source == line and found.pivot == [first.text] and first.pivot == []
        assert found.text == second.text and found.source_tokens == first.source_tokens
        best = found.hypotheses[0]
        assert best.score == pytest.approx(first.hypotheses[0].score + second.hypotheses[0].score)
        assert all(0 <= source < len(found.source_tokens) for source, _ in best.alignment)


def test_options_are_for_all_models_and_lists_for_the_last(chain):
    found = chain.translate(["He sleeps."], prefixes=["The"], beam=3, n_best=3)[0]
    assert len(found.hypotheses) == 3 and found.text.startswith("The")
    with pytest.raises(qkv.Error, match="attention cannot be combined with several models"):
        chain.translate(LINES, attention=True)
    with pytest.raises(qkv.Error, match="glossary cannot be combined with several models"):
        chain.translate(LINES, glossary="dog\tHund\n")
    with pytest.raises(TypeError):
        chain.translate(LINES, beams=3)
    with pytest.raises(qkv.Error, match="pivot languages must be 1, one for each text in between \\(are 2\\)"):
        chain.translate(LINES, pivot_languages=["en", "fr"])


def test_documents_keep_their_markup(chain, tmp_path):
    html = chain.translate_document(b"<p class=x>The <b>dog</b> sleeps.</p>", format="html")
    assert html.startswith(b"<p class=x>") and html.count(b"<b>") == html.count(b"</b>") == 1
    (tmp_path / "a.txt").write_text("He sleeps.\n")
    assert chain.translate_document(tmp_path / "a.txt", tmp_path / "b.txt") is None
    assert (tmp_path / "b.txt").read_text() == chain.translate(["He sleeps."])[0].text + "\n"


def test_runs_are_checked(counting):
    with pytest.raises(qkv.Error, match="at least one translator"):
        qkv.PivotTranslator([])
    with pytest.raises(qkv.Error, match="must be a list of paths"):
        qkv.PivotTranslator(str(RUN))
    with pytest.raises(qkv.Error, match=str(counting)):
        qkv.PivotTranslator([RUN, counting])
    one = qkv.PivotTranslator([RUN])
    assert [t.text for t in one.translate(LINES)] == [t.text for t in qkv.Translator(RUN).translate(LINES)]
