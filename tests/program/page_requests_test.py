"""The page of `qkv serve` with a server that is slow, busy or locked, and with hostile text; models and languages."""

import math

import pytest
from page_fixtures import (  # noqa: F401
    KINDS, SENTENCE, chromium, generate, mock, needs_a_browser, page, recommend, translate, until)
from page_mock import HOSTILE

pytestmark = needs_a_browser


def test_a_key_press_aborts_the_request_before(page, mock):
    mock.limit = 1
    page.script("$('source').focus()")
    for before, words in enumerate(("The old teacher", " sees", " the dog.")):
        page.keys(words)
        until(lambda: len(mock.bodies("/v1/translate")) == before + 1 and mock.aborted["/v1/translate"] == before)
        page.wait("$('translation').className === '' && $('translation').textContent === 'Der'")
    mock.limit = math.inf
    page.wait("said.length && !$('attention').hidden")
    assert mock.aborted["/v1/translate"] == 2
    assert mock.bodies("/v1/translate")[-1] == {"model": "en-de", "text": SENTENCE, "beam": 1, "stream": True}
    assert page.script("said") == ["Der alte Lehrer sieht der Hund."]
    assert [body["target"] for body in mock.bodies("/v1/attend")] == ["Der alte Lehrer sieht der Hund."]


def test_text_that_is_typed_quickly_is_one_request(page, mock):
    page.script("""
        const [words] = arguments, source = $('source');
        const type = () => {
          if (words.length > 1) setTimeout(type, 100);  // starts before the timer of the page, and so ends before it
          source.value = `${source.value} ${words.shift()}`.trim();
          source.dispatchEvent(new InputEvent('input'));
        };
        return type();""", SENTENCE.split())
    page.wait("said.length")
    assert [body["text"] for body in mock.bodies("/v1/translate")] == [SENTENCE]


def test_stop_aborts_a_generation(page, mock):
    mock.limit = 3
    generate(page)
    page.wait("all('.token').length === 3")
    assert page.text("go") == "Stop"
    page.script("$('go').click()")
    page.wait("$('finish').textContent.startsWith('Stopped')")
    shown = page.texts(".token")
    page.wait("$('go').textContent === 'Generate'")
    until(lambda: mock.aborted == {"/v1/completions": 1})
    assert page.texts(".token") == shown and len(shown) == 3 and page.script("said") == []


def test_a_translation_grows_word_by_word(page, mock):
    mock.limit = 0
    page.script("$('source').focus()")
    page.keys("the dog sings")
    for text in ("Der", "Der Hund", "Der Hund singt"):
        assert page.script("said") == []
        mock.limit += 1
        page.wait(f"$('translation').textContent === '{text}'")
    mock.limit = math.inf
    page.wait("said.length")
    assert page.script("said") == ["Der Hund singt"]


@pytest.mark.parametrize("status", (429, 503))
def test_a_busy_server_is_asked_once_again(page, mock, status):
    mock.refusals["/v1/translate"] = [(status, {"Retry-After": "1", "retry-after-ms": "300"})]
    page.script("""
        notes = [];
        new MutationObserver(() => notes.push($('translate-note').textContent))
            .observe($('translate-note'), {childList: true});
        return $('source').focus();""")
    page.keys("The dog")
    page.wait("said.length")
    assert page.script("notes") == ["model lm: 256 requests wait already. Trying again in 1 s.", ""]
    assert page.text("translation") == "Der Hund" and page.text("translate-note") == ""
    assert len(mock.bodies("/v1/translate")) == 2


def test_a_server_that_stays_busy_is_reported(page, mock):
    mock.refusals["/v1/completions"] = [(429, {"Retry-After": "1"})] * 3
    generate(page)
    page.wait("$('generate-note').textContent === 'model lm: 256 requests wait already'")
    assert len(mock.bodies("/v1/completions")) == 2 and page.text("go") == "Generate"


def test_waiting_for_a_busy_server_can_be_stopped(page, mock):
    mock.refusals["/v1/completions"] = [(503, {"Retry-After": "60"})]
    generate(page)
    page.wait("$('generate-note').textContent.includes('Trying again in 60 s')")
    page.script("$('go').click()")
    page.wait("$('go').textContent === 'Generate'")
    assert page.text("generate-note") == "" and len(mock.bodies("/v1/completions")) == 1


@pytest.mark.parametrize("end, message", (("error", "deadline of 60 s passed"),
                                          ("cut", "The connection ended before the text was complete")))
def test_a_stream_that_ends_early_is_an_error(page, mock, end, message):
    mock.end, mock.limit = end, 3
    generate(page)
    page.wait("all('.token').length === 3")  # Chromium drops what it has not delivered when a connection ends early
    mock.limit = math.inf
    page.wait("$('generate-note').textContent")
    assert page.text("generate-note") == message and len(page.texts(".token")) == 3 and page.script("said") == []


def test_the_key_is_asked_for_and_not_stored(chromium, mock):
    mock.key = "a key of 20 letters."
    chromium.open(mock.url)
    assert chromium.script("$('ask').open") and chromium.focused() == "secret"
    chromium.keys("wrong", "ENTER")
    chromium.wait("$('ask-label').textContent === 'This key was not accepted' && $('ask').open")
    chromium.keys(mock.key, "ENTER")
    chromium.wait("!$('pages').hidden")
    translate(chromium)
    assert not chromium.script("document.cookie + JSON.stringify({...localStorage, ...sessionStorage})").strip("{}")
    assert chromium.script("$('secret').value + location.href") == mock.url + "/#translate"
    assert len([status for status, _ in mock.errors if status == 401]) == 2
    assert not chromium.complaints({401})


def test_without_the_key_the_error_is_shown(chromium, mock):
    mock.key = "a key of 20 letters."
    chromium.open(mock.url)
    chromium.keys("ESCAPE")
    chromium.wait("$('page-note').textContent === 'a key is required'")
    assert chromium.script("$('pages').hidden") and not chromium.complaints({401})


# ---- Models, languages, lines


@pytest.mark.parametrize("name", KINDS)
def test_tabs_of_kinds_that_are_not_served_are_absent(chromium, mock, name):
    mock.kinds = (KINDS[name],)
    chromium.open(mock.url)
    assert chromium.script("all('#pages [role=tab]').map(tab => tab.id)") == ["tab-" + name]
    assert chromium.script("all('main > [role=tabpanel]').filter(e => !e.hidden).map(e => e.id)") == [name]
    assert not chromium.complaints()


def test_a_server_without_models_of_these_kinds_says_so(chromium, mock):
    mock.kinds = ()
    chromium.open(mock.url)
    assert "has no model for this page" in chromium.text("page-note")
    assert chromium.script("$('pages').hidden") and not chromium.complaints()


def test_the_languages_choose_the_model(page, mock):
    translate(page)
    lang = "['source', 'translation'].map(id => $(id).lang)"
    assert page.script(lang) == ["en", "de"]
    page.script("const from = $('from'); from.value = 'fr'; from.onchange(); return 0")
    page.wait("said.length > 1")
    assert page.script(lang) == ["fr", "de"]
    assert mock.bodies("/v1/translate")[-1] == {"model": "many", "source_language": "fr", "target_language": "de",
                                                "text": SENTENCE, "beam": 1, "stream": True}
    until(lambda: len(mock.bodies("/v1/attend")) == 2)
    assert mock.bodies("/v1/attend")[-1]["source_language"] == "fr"


def test_swapping_translates_the_translation(page, mock):
    translate(page)
    translation = page.text("translation")
    page.script("$('swap').click()")
    page.wait("said.length > 1")
    assert mock.bodies("/v1/translate")[-1]["text"] == translation
    assert mock.bodies("/v1/translate")[-1]["model"] == "de-en"


def test_lines_are_translated_apart(page, mock):
    page.script("$('source').focus()")
    page.keys("The dog", "ENTER", "ENTER", *"A cat sings")
    page.wait("said.at(-1)?.endsWith('singt')")  # a slow machine may translate a part before
    assert mock.bodies("/v1/translate")[-1]["text"] == ["The dog", "A cat sings"]
    assert page.texts("#translation p") == ["Der Hund", "", "Ein Katze singt"]
    page.wait("!$('attention').hidden")
    assert page.text("attention-of") == "The dog → Der Hund"
    page.script("all('.word')[4].focus()")
    page.wait("$('attention-of').textContent === 'A cat sings → Ein Katze singt'")
    page.wait("document.querySelector('#mirror mark')")
    marked = page.texts("#mirror mark")
    assert "The" not in marked and "sings" in marked


def test_wider_beams_show_lines_as_they_finish(page, mock):
    page.script("$('beam').value = '4'")
    translate(page)
    assert mock.bodies("/v1/translate")[-1]["beam"] == 4
    assert page.text("translation") == "Der alte Lehrer sieht der Hund."


# ---- Hostile text


def test_no_text_becomes_markup(chromium, mock):
    mock.hostile = True
    chromium.open(mock.url)
    before = chromium.script("all('script, img, style').length")
    translate(chromium, "A dog <img src=x onerror=hacked=1> </script>")
    chromium.script("all('.word')[1].focus()")
    chromium.keys("ENTER")
    chromium.wait("all('#choices input').length > 1")
    chromium.script("$('as-table').open = true; $('words').click(); return 0")
    chromium.wait("document.querySelector('#table td')")
    recommend(chromium, "part 1", "part 2")
    generate(chromium, "<img src=x onerror=hacked=1>{{script}}")
    chromium.wait("all('.token').length == 100")
    chromium.script("all('.token')[3].focus()")
    mock.refusals["/v1/completions"] = [(400, {})]
    chromium.script("$('go').click()")
    chromium.wait("$('generate-note').textContent.includes('onerror')")

    for field in ("served", "translator", "from", "choices", "suggestions", "history", "basis", "generate-note"):
        assert HOSTILE in chromium.text(field), field
    assert "<img src=x" in chromium.text("translation") and "<imgsrc=x" in chromium.text("table")
    assert chromium.script("all('script, img, style').length") == before
    assert chromium.script("typeof hacked") == "undefined"
    assert not chromium.complaints({400})
