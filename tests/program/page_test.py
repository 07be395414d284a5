"""The page of `qkv serve` in a browser: by keyboard alone, and for people who see, hear or move differently."""

import math
import re
import urllib.request

import pytest
from page_fixtures import (  # noqa: F401
    KINDS, SENTENCE, chromium, generate, mock, needs_a_browser, open_tab, page, recommend, served, site, translate,
    translator_run)
from page_mock import page_and_policy

pytestmark = needs_a_browser


def test_the_program_sends_the_page_that_the_mock_server_sends(translator_run, films, counting):
    with served(translator_run, films, counting) as url, urllib.request.urlopen(url) as answer:
        assert (answer.read().decode(), answer.headers["Content-Security-Policy"]) == page_and_policy()
        assert answer.headers["Referrer-Policy"] == "no-referrer"
        assert answer.headers["Cross-Origin-Opener-Policy"] == "same-origin"


def test_the_program_its_models_and_languages_are_named(site):
    assert re.match(r"qkv \d+\.\d+\.\d+ \(\w+\): en-de \(translator, [\d,]+ parameters\), films", site.text("served"))
    assert [site.text("from-name"), site.text("to-name")] == ["English", "German"]


# ---- By keyboard alone


def test_translating_needs_no_mouse(site):
    site.tab_to("tab-translate")
    site.tab_to("source")
    site.keys(SENTENCE)
    site.wait("!$('attention').hidden")
    translation = site.text("translation")
    assert translation and site.script("said") == [translation]

    site.tab_to("word")
    first = site.text("looked")
    assert " looks at " in first and site.script("all('#mirror mark').length")
    site.keys("ARROW_RIGHT")
    assert site.text("looked") != first
    site.keys("END", "HOME")
    assert site.text("looked") == first

    site.keys("ENTER")
    site.wait("all('#choices input').length > 1 && document.activeElement.type === 'radio'")
    site.keys("ARROW_DOWN")
    site.wait("$('attention-of').textContent.endsWith($('translation').textContent)")
    assert site.text("translation") != translation
    assert site.text("translation") == site.script("document.querySelector(':checked + span').textContent")
    site.keys("ESCAPE")
    assert site.focused() == "word here" and site.script("$('alternatives').hidden")


def test_a_document_is_translated_and_offered(site, tmp_path):
    path = tmp_path / "letter.html"
    path.write_text("<p class=a>The dog <b>sleeps</b>.</p>")
    shown = "new MutationObserver(() => window.most = Math.max(window.most ?? 0, $('bar').value))"
    site.script(f"{shown}.observe($('bar'), {{attributes: true}})")
    site.driver.find_element("id", "file").send_keys(str(path))
    site.wait("!$('result').hidden")
    assert site.script("window.most") == 1 and site.script("$('bar').hidden")
    assert (site.text("result"), site.script("$('result').download")) == ("letter.de.html", "letter.de.html")
    path.rename(tmp_path / "letter.pdf")
    site.driver.find_element("id", "file").send_keys(str(tmp_path / "letter.pdf"))
    site.wait("$('document-note').textContent")
    assert "file format not supported" in site.text("document-note") and site.script("$('result').hidden")
    assert not site.complaints({400})


def test_the_maps_need_no_mouse(site):
    translate(site)
    site.script("$('file').focus()")
    site.keys("TAB")
    assert site.focused() == "Cross-attention"
    site.keys("ARROW_LEFT")
    assert site.focused() == "Decoder self-attention" and "masked" in site.text("about")
    site.keys("TAB", "SPACE")  # whole words
    site.wait("!$('dot').hidden")
    site.keys("TAB", "ARROW_UP", "ARROW_UP", "ARROW_UP", "ARROW_UP")
    assert site.text("name").startswith("Layer 1,")
    site.tab_to("map")
    before = site.text("readout")
    site.keys("ARROW_DOWN")
    assert site.text("readout") != before
    site.keys("TAB", "ENTER")  # the map as a table
    rows = site.wait("all('#table tr').length")
    assert rows == 1 + len(site.texts("#rows div"))
    weights = [float(cell) for cell in site.texts("#table tr:last-child td")]
    assert abs(sum(weights) - 1) < 0.01 * len(weights)


def test_recommending_needs_no_mouse(site):
    site.tab_to("tab-translate")
    site.keys("ARROW_RIGHT")
    assert site.focused() == "tab-recommend"
    site.wait("$('suggestions').children.length == 10")
    assert "popular" in site.text("basis")
    site.tab_to("search")
    for _ in range(2):
        site.keys("part")
        site.wait("$('found').children.length > 1")
        site.keys("ARROW_DOWN", "ARROW_DOWN")
        assert site.script("$(document.activeElement.getAttribute('aria-activedescendant')).ariaSelected") == "true"
        site.keys("ENTER")
    site.wait("all('#suggestions .effects i').length > 2")
    assert site.script("said.at(-1)") == "10 suggestions"

    suggested = site.texts("#suggestions .item")[0]
    site.tab_to("quiet")  # the first button that is not disabled moves the first item down
    site.tab_to("quiet", limit=1)
    history = site.texts("#history span")
    site.script("document.querySelector('#suggestions button').focus()")
    site.keys("ENTER")
    site.wait("$('history').children.length == 3")
    assert suggested.startswith(site.texts("#history span")[-1])
    site.script("document.querySelector('#history button:not(:disabled)').focus()")
    site.keys("ENTER")
    assert site.texts("#history span")[:2] == [history[1], history[0]]
    assert site.script("document.activeElement.ariaLabel") == "Move down " + history[0]
    site.keys("TAB", "SPACE")
    assert site.texts("#history span") == [history[1], site.texts("#history span")[1]]
    site.wait("$('basis').textContent.includes('2 events')")


def test_generating_needs_no_mouse(site):
    site.tab_to("tab-translate")
    site.keys("END")
    assert site.focused() == "tab-generate"
    site.tab_to("prompt")
    site.keys(*"012")
    site.tab_to("temperature")
    site.keys("HOME")
    assert site.text("warmth") == "0.00"
    site.tab_to("length")
    site.keys("HOME", "DELETE", "DELETE", "DELETE", "9")
    site.tab_to("go")
    site.keys("ENTER")
    site.wait("$('finish').textContent.startsWith('Generated 9 tokens')")
    assert site.script("said") == [site.text("tokens")]
    site.tab_to("token")
    first = site.texts("#considered tbody th")
    assert len(first) > 1
    site.keys("ARROW_RIGHT", "ARROW_RIGHT")
    assert site.script("document.activeElement.ariaSelected") == "true" and site.texts("#considered tbody th") != first
    assert abs(float(site.texts("#considered .taken td")[0].rstrip(" %")) - 50) <= 50


def test_the_focus_is_always_visible(page):
    translate(page)
    page.script("document.activeElement.blur()")
    seen = []
    for _ in range(30):
        page.keys("TAB")
        seen.append(page.focused())
        style = page.script("const e = document.activeElement; return e === document.body ? 'page' : "
                            "getComputedStyle(e.closest('.editor') ?? e).outlineStyle")
        assert style != "none", seen[-1]
    assert {"tab-translate", "source", "swap", "word here", "map"} <= set(seen)


# ---- Accessibility


@pytest.mark.parametrize("scheme", ("light", "dark"))
@pytest.mark.parametrize("width", (1280, 320))
def test_axe_finds_nothing(chromium, mock, scheme, width):
    chromium.open(mock.url)
    chromium.show_as(scheme, width)
    translate(chromium, "The old teacher has not seen the small dog.")
    chromium.script("all('.word')[1].focus()")
    chromium.keys("ENTER")
    chromium.wait("all('#choices input').length > 1")
    chromium.script("$('as-table').open = true; all('.word')[2].focus(); return 0")
    wide = "document.documentElement.scrollWidth > innerWidth"
    assert not chromium.findings() and not chromium.script(wide)
    chromium.script("all('#tabs button')[1].click()")
    assert not chromium.findings() and not chromium.script(wide)
    recommend(chromium, "silent", "golden", "part")
    chromium.script("$('length').value = 12")
    chromium.keys("part")
    chromium.wait("!$('found').hidden")
    chromium.keys("ARROW_DOWN")
    assert not chromium.findings() and not chromium.script(wide)
    mock.refusals["/v1/completions"] = [(400, {})]
    generate(chromium)
    chromium.wait("$('generate-note').textContent")
    assert not chromium.findings()
    chromium.script("$('go').click()")
    chromium.wait("$('finish').textContent.startsWith('Generated')")
    chromium.script("all('.token')[2].focus()")
    assert not chromium.findings() and not chromium.script(wide)
    assert not chromium.complaints({400})


def test_axe_finds_nothing_in_the_dialog(chromium, mock):
    mock.key = "a key of 20 letters."
    chromium.open(mock.url)
    assert not chromium.findings() and not chromium.complaints({401})


def test_every_target_is_at_least_24_pixels(page):
    page.show_as(width=320)
    translate(page)
    recommend(page, "silent", "golden")
    small = []
    for name in KINDS:
        open_tab(page, name)
        small += page.script("""return all('button, select, input, summary, textarea')
            .map(e => [e.id || e.textContent, (e.closest('label') ?? e).getBoundingClientRect()])
            .filter(([, box]) => box.width && (box.width < 24 || box.height < 24)).map(([name]) => name)""")
    assert small == []


def test_narrow_pages_do_not_break_numbers(site):
    site.show_as(width=320)
    recommend(site, "part", "part")
    site.wait("all('#suggestions .effects i').length > 2")
    heights = site.script("""return ['#suggestions .effects span', '.rank']
        .map(name => Math.max(...all(name).map(e => e.offsetHeight)))""")
    assert len(site.texts(".rank")) == 10 and max(heights) < 30  # one line


@pytest.mark.parametrize("motion, moves", (("no-preference", True), ("reduce", False)))
def test_nothing_moves_for_those_who_ask_for_it(page, mock, motion, moves):
    mock.limit = 0
    page.show_as(motion=motion)
    page.script("$('source').focus()")
    page.keys("The dog sings")
    found = "document.getAnimations().map(one => one.constructor.name)"
    running, = page.wait(f"$('progress').className === 'busy' && [{found}]")
    assert "CSSAnimation" in running if moves else running == []
    mock.limit = math.inf
    page.wait("said.length")


def test_the_marked_words_have_the_largest_weights(page, mock):
    translate(page)
    page.script("all('.word')[3].focus()")
    words = page.texts("#looked bdi")
    weights = [float(number) for number in re.findall(r"\d\.\d\d", page.text("looked"))]
    assert words[0] == "sieht" and weights == sorted(weights, reverse=True) and len(weights) == 3
    strongest = page.script("all('#mirror mark').filter(e => e.style.getPropertyValue('--weight') === '1')"
                            ".map(e => e.textContent)")
    assert strongest == words[1:2]
    assert page.texts("#rows .here") == ["sieht"]
    page.script("all('#grid button')[0].click()")  # another layer and head: other weights
    assert page.texts("#looked bdi")[0] == "sieht"
    assert weights != [float(number) for number in re.findall(r"\d\.\d\d", page.text("looked"))]


def test_each_sentence_of_a_line_has_its_own_attention(page, mock):
    translate(page, "The dog sings. The teacher sees the dog.")
    assert page.text("translation") == "Der Hund singt. Der Lehrer sieht der Hund."
    assert mock.bodies("/v1/attend")[-1]["text"] == "The dog sings."
    page.script("all('.word')[5].focus()")
    page.wait("$('attention-of').textContent.startsWith('The teacher')")
    assert mock.bodies("/v1/attend")[-1]["target"] == "Der Lehrer sieht der Hund."
    page.wait("$('looked').textContent")
    assert page.texts("#looked bdi")[0] == "sieht"
    text = page.script("return $('source').value")
    marks = page.script("""let at = 0; return [...$('mirror').childNodes].flatMap(node => {
        const start = at; at += node.textContent.length; return node.nodeName === 'MARK' ? [start] : []; })""")
    assert marks and min(marks) >= text.index("The teacher")
    page.keys("ENTER")
    page.wait("all('#choices input').length > 1")
    assert mock.bodies("/v1/translate")[-1] | {"text": "The teacher sees the dog.", "prefix": "Der Lehrer"} == \
        mock.bodies("/v1/translate")[-1]
    page.script("all('#choices input')[1].click()")
    page.wait("$('translation').textContent !== 'Der Hund singt. Der Lehrer sieht der Hund.'")
    assert page.text("translation").startswith("Der Hund singt. Der Lehrer sieht")


def test_pointing_shows_the_same_as_the_focus(page):
    translate(page)
    page.script("all('.word')[2].focus()")
    focused = page.text("looked")
    page.script("document.activeElement.blur()")
    assert page.text("looked") == "" and not page.texts("#mirror mark")
    page.point_at(".word:nth-of-type(3)")
    assert page.text("looked") == focused and page.texts("#mirror mark") and page.texts(".word.here") == ["Lehrer"]
    page.point_at("h1")
    assert page.text("looked") == "" and not page.texts("#mirror mark")
    generate(page)
    page.wait("$('finish').textContent.startsWith('Generated')")
    page.point_at(".token:nth-of-type(2)")
    assert page.texts("#considered .taken th") == ["␣soft!"] and page.texts(".token[aria-selected=true]") == [" soft!"]


def test_the_address_opens_a_tab(page, mock):
    page.open(mock.url + "/#generate")
    assert page.script("document.querySelector('#pages [aria-selected=true]').id") == "tab-generate"
    open_tab(page, "recommend")
    assert page.script("location.hash") == "#recommend"
    page.wait("$('suggestions').children.length")
