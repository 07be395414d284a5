"""The site in Chromium from file: URLs: the search, narrow and wide screens, light and dark, and axe-core."""

import pathlib

import pytest

import page_browser

PAGES = ("index.html", "guide/questions.html", "guide/notebooks/films.html", "tasks/decoding.html",
         "reference/cpp/translator.html", "reference/python-names/qkv-batch.html", "explanation/architecture.html",
         "explanation/items.html",
         "search.html?q=beam", "source/src/text/tokenizer_json/added_tokens.cc.html")
LARGE = "reference/python-names/qkv-layers.html"  # for axe, which takes half a minute for it
LONG_PAGES = ("explanation/math.html", "reference/commands.html", "reference/http.html", "results/results.html")

# Rules that the theme breaks: its buttons for narrow screens are labels without a role, and its sections for screen
# readers lie outside of the landmarks.
OF_THE_THEME = {"region", "landmark-unique", "landmark-complementary-is-top-level", "skip-link"}

QUESTIONS = {  # question -> pages of which one must be among the first three results
    "how do I train on my own text files?": ("guide/questions.html", "guide/first-translation-model.html"),
    "how much memory does a step need?": ("guide/questions.html", "reference/run-directory.html"),
    "which license?": ("guide/questions.html",),
    "how do I serve on port 80 behind nginx?": ("guide/serve-a-model.html",),
    "how do I continue an interrupted run?": ("guide/questions.html", "reference/run-directory.html"),
    "how do I use GPT-2?": ("guide/questions.html", "guide/import-and-fine-tune.html"),
    "what does beam do?": ("guide/questions.html", "tasks/decoding.html"),
    "how do I get attention weights in Python?": ("guide/questions.html", "tasks/python.html"),
    "how do I run on 4 machines?": ("guide/questions.html", "guide/cluster.html"),
    "is it deterministic?": ("guide/questions.html", "design/determinism.html"),
    "positional encoding": ("explanation/math.html",),
    "mistakes in textbooks": ("explanation/math.html",),
    "figure of the architecture": ("explanation/math.html",),
    "how do I stop training early": ("guide/questions.html",),
    "API key": ("guide/questions.html", "tasks/serve.html"),
    "authentication": ("guide/questions.html", "tasks/serve.html"),
    "who can use my server": ("guide/questions.html", "tasks/serve.html"),
    "troubleshooting": ("guide/questions.html",),
    "my loss does not fall": ("guide/questions.html",),
    "smaller and faster model": ("guide/questions.html",),
    "quantization": ("guide/questions.html", "reference/run-directory.html"),
    "what does quantization cost in quality": ("guide/questions.html",),
    "run a GGUF model and stream text": ("tasks/import.html", "guide/questions.html"),
    "disk full during training": ("guide/questions.html", "explanation/reliability.html"),
    "rate limit of requests": ("guide/questions.html", "tasks/serve.html"),
    "how do I stop the server": ("guide/serve-a-model.html", "tasks/serve.html"),
    "recommend JSON with reasons": ("guide/first-recommender.html", "tasks/recommend.html"),
    "train on four machines": ("guide/questions.html", "guide/cluster.html"),
    "is the ABI stable": ("reference/versions.html",),
    "semantic search": ("guide/questions.html", "tasks/embed.html"),
    "supported models": ("tasks/models.html",),
    "resum": ("reference/run-directory.html",),
    "translate_async": ("reference/python-names/qkv.html", "reference/cpp/translator.html"),
    "--label-smoothing": ("reference/commands.html", "explanation/math.html"),
    "POST /v1/embeddings": ("reference/http.html",),
}


class SiteBrowser(page_browser.Browser):
    def open(self, url):
        self.url = ("file:", "data:")  # beginnings of requests that are not to elsewhere
        self.driver.get("about:blank")
        self.driver.get_log("browser"), self.driver.get_log("performance")
        self.driver.get(url)


@pytest.fixture(scope="module")
def browser(site):
    if page_browser.missing():
        pytest.skip(page_browser.missing())
    found = SiteBrowser()
    yield found
    found.quit()


def url(site, page):
    path, _, query = page.partition("?")
    return pathlib.Path(site, path).as_uri() + (f"?{query}" if query else "")


def results(browser):
    return browser.script("all('#search-results a').map(link => link.href)")


@pytest.mark.parametrize("question", QUESTIONS)
def test_the_search_answers_questions(site, browser, question):
    browser.open(url(site, "search.html"))
    browser.script("document.getElementById('query').focus()")
    browser.keys(question)
    first = results(browser)[:3]
    assert any(f"/{page}" in link for page in QUESTIONS[question] for link in first), first
    assert browser.complaints() == []


def test_a_search_without_results_leads_to_the_questions(site, browser):
    browser.open(url(site, "search.html?q=xyzzy"))
    assert browser.text("search-status") == "No sections"
    browser.driver.find_element("css selector", "#search-hint a").click()
    browser.wait("document.title.startsWith('Questions and answers')")


def test_the_search_of_each_page_leads_to_results(site, browser):
    browser.show_as("light", 1280)
    browser.open(url(site, "explanation/math.html"))
    browser.driver.find_element("css selector", ".sidebar-search").send_keys("positional encoding\n")
    browser.wait("document.getElementById('search-status')")
    assert "sections" in browser.text("search-status")
    browser.driver.find_element("css selector", "#search-results a").click()
    browser.wait("!document.title.startsWith('Search')")


@pytest.mark.parametrize("width", [360, 1280])
@pytest.mark.parametrize("page", (*PAGES, LARGE, *LONG_PAGES))
def test_a_page_is_as_wide_as_the_screen(site, browser, page, width):
    browser.show_as("light", width)
    browser.open(url(site, page))
    assert browser.script("document.documentElement.scrollWidth") <= width
    assert browser.complaints() == []


def test_formulas_are_whole_and_their_signs_stretch(site, browser):
    browser.show_as("light", 1280)
    browser.open(url(site, "explanation/math.html"))
    browser.wait("document.fonts.status == 'loaded' && [...document.fonts].some(font => font.status == 'loaded')")
    assert browser.script("all('.formula').filter(f => f.scrollWidth > f.clientWidth).map(f => f.textContent)") == []
    heights = browser.script("""all('mrow').filter(row => [...row.children].slice(1, -1).some(part => part.tagName == 'mfrac') &&
        row.firstElementChild.textContent == '(' && row.lastElementChild.textContent == ')').map(row =>
        [...row.children].map(part => part.getBoundingClientRect().height))""")
    assert len(heights) > 3 and all(min(row[0], row[-1]) >= 0.9 * max(row) for row in heights)
    bars = browser.script("all('.overline').map(bar => [bar, bar.firstElementChild].map(e => e.getBoundingClientRect().width))")
    assert len(bars) > 3 and all(bar >= base > 0 for bar, base in bars)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_drawings_are_readable_on_a_phone(site, browser, scheme):
    browser.show_as(scheme, 360)
    browser.open(url(site, "explanation/math.html"))
    assert browser.script("all('.drawing').length") == 2
    outside = browser.script("""return all('.drawing a').filter(link => {
        const box = link.querySelector('rect').getBoundingClientRect();
        return [...link.querySelectorAll('text')].map(text => text.getBoundingClientRect()).some(text =>
            text.left < box.left || text.right > box.right || text.top < box.top || text.bottom > box.bottom);
    }).map(link => link.getAttribute('aria-label'))""")
    assert outside == []
    heights = browser.script("""return all('.drawing a text').map(text => parseFloat(getComputedStyle(text).fontSize) *
        text.ownerSVGElement.getScreenCTM().a)""")
    assert len(heights) > 40 and min(heights) >= 11
    browser.driver.execute_script(page_browser.axe())
    found = browser.driver.execute_async_script("axe.run('.drawing').then(arguments[arguments.length - 1])")
    assert found["passes"] and [rule["id"] for rule in found["violations"]] == []


@pytest.mark.parametrize("theme, scheme, color", [("dark", "light", "#131416"), ("light", "dark", "#ffffff"),
                                                  ("auto", "dark", "#131416"), ("auto", "light", "#ffffff")])
def test_drawings_follow_the_theme_that_is_selected(site, browser, theme, scheme, color):
    browser.show_as(scheme, 1280)
    browser.open(url(site, "explanation/math.html"))
    browser.script(f"document.body.dataset.theme = '{theme}'")
    assert browser.script("getComputedStyle(all('.drawing')[0]).getPropertyValue('--page').trim()") == color


def test_excerpts_of_the_search_have_the_symbols_of_formulas(site, browser):
    browser.open(url(site, "search.html?q=biased variance divisor"))
    browser.wait("all('#search-results p').length > 0")
    texts = browser.script("all('#search-results p').map(text => text.textContent)")
    assert any("γ and β of shape [d]" in text for text in texts), texts[:3]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("page", [*PAGES, pytest.param(LARGE, marks=pytest.mark.release)])
def test_axe_finds_nothing(site, browser, page, scheme):
    browser.show_as(scheme, 1280)
    browser.open(url(site, page))
    assert [found for found in browser.findings() if found[0] not in OF_THE_THEME] == []
