"""`qkv heads`: the report of runs of each kind, its errors, smaller runs, and the page in a browser."""

import json

import pytest
from conftest import qkv

CAT = "The cat sat on the mat."


def tree(*words):
    """A sentence of CoNLL-U, of words with their heads and relations."""
    rows = [[i, form, "_", "_", "_", "_", head, relation, "_", "_"] for i, (form, head, relation) in enumerate(words, 1)]
    return "".join("\t".join(map(str, row)) + "\n" for row in rows) + "\n"


TREES = tree(("The", 2, "det"), ("cat", 3, "nsubj"), ("sat", 0, "root"), ("on", 6, "case"), ("the", 6, "det"), ("mat", 3, "obl"),
             (".", 3, "punct")) + \
    tree(("The", 2, "det"), ("dog", 3, "nsubj"), ("sees", 0, "root"), ("the", 6, "det"), ("old", 6, "amod"), ("man", 3, "obj"),
         (".", 3, "punct"))


def write(path, text):
    path.write_text(text)
    return path


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pair")
    return [write(folder / "data", f"{CAT}\nThe dog sees the old man.\n"),
            write(folder / "target", "Die Katze sitzt auf der Matte.\nDer Hund sieht den alten Mann.\n")]


def report_of(*arguments):
    return json.loads(qkv("heads", *arguments, "--json", "-")[1])


def test_a_translator_is_described_head_by_head(trained, pair, tmp_path):
    alignment = write(tmp_path / "alignment", "0-0 1-1 2-2 3-3 4-4 5-5\n0-0 1-1\n")
    trees = write(tmp_path / "trees", TREES)
    arguments = [trained, "--data", pair[0], "--target", pair[1], "--alignment", alignment, "--conllu", trees]
    report = report_of(*arguments, "--ablate", "sublayers", "--importance")
    assert [head["kind"] for head in report["heads"]] == 4 * ["encoder"] + 4 * ["decoder"] + 4 * ["cross"]
    assert len(report["ablations"]) == 5 and all("importance" in head for head in report["heads"])
    relations = {a["relation"]: a["pairs"] for a in report["heads"][0]["agreements"] if a["direction"] == "dependent to head"}
    assert relations == {"det": 4, "nsubj": 2, "case": 1, "obl": 1, "punct": 2, "amod": 1, "obj": 1}
    assert report["heads"][-1]["agreements"][0]["pairs"] == 8
    for ablation in report["ablations"]:
        assert ablation["loss"]["low"] <= ablation["loss"]["value"] <= ablation["loss"]["high"]
    best = {best["relation"]: best for best in report["best"] if best.get("direction") != "head to dependent"}
    assert {"token before", "token to predict", "aligned word", "nsubj", "det"} <= set(best)
    assert best["nsubj"]["kind"] == "encoder" and best["aligned word"]["kind"] == "cross"
    text = qkv("heads", *arguments)[1]
    assert "encoder attention" in text and "cross attention" in text and "\n  nsubj, dependent to head  " in text


def test_bleu_is_that_of_greedy_translations(trained, pair, tmp_path):
    greedy = ["translate", trained, "--beam", 1, "--sentences", "line", "--protected-parts", "none"]
    translations = qkv(*greedy, text=pair[0].read_text())[1]
    report = report_of(trained, "--data", pair[0], "--target", pair[1], "--ablate", "sublayers", "--bleu")
    hypotheses = write(tmp_path / "hypotheses", translations)
    score = json.loads(qkv("score", "bleu", "--ref", pair[1], "--hyp", hypotheses, "--json")[1])["score"]
    assert report["bleu"] == pytest.approx(score)
    assert all(ablation["bleu"]["low"] <= ablation["bleu"]["high"] for ablation in report["ablations"])


def test_the_report_does_not_depend_on_threads(trained, pair):
    arguments = [trained, "--data", pair[0], "--target", pair[1], "--ablate", "heads", "--replace-by", "mean"]
    assert report_of(*arguments, "--threads", 1) == report_of(*arguments, "--threads", 3)


def test_recommenders_and_language_models_are_analysed(films, counting, tmp_path):
    report = report_of(films / "run", "--ablate", "heads", "--lines", 50)
    assert report["kind"] == "recommender" and report["texts"] == 50 and 0 <= report["ndcg10"] <= 1
    assert all("ndcg10" in ablation for ablation in report["ablations"])
    text = write(tmp_path / "text", "0123456789\n" * 3)
    report = report_of(counting, "--data", text, "--ablate", "attention")
    # Each digit follows from the one before it, which the model needs no attention for.
    assert report["kind"] == "language_model" and report["loss"] < 1
    assert qkv("heads", counting, "--data", text)[1].startswith(f"{counting}: language_model, 3 texts, ")


def test_a_pruned_run_translates_and_can_be_analysed(trained, pair, tmp_path):
    arguments = ["--data", pair[0], "--target", pair[1]]
    _, _, report = qkv("heads", trained, *arguments, "--prune", 2, "--out", tmp_path / "small")
    assert "parameters instead of" in report and report.count("removed:") == 3
    assert qkv("translate", tmp_path / "small", text=CAT + "\n")[1].count("\n") == 1
    assert len(report_of(tmp_path / "small", *arguments)["heads"]) == 6
    before, after = (json.loads(qkv("inspect", run, "--json")[1]) for run in (trained, tmp_path / "small"))
    assert before != after
    record = json.loads((tmp_path / "small/pruned_heads.json").read_text())
    assert record["heads"] == 4 and len(record["removed"]["decoder.layers.0.cross_attention"]) == 2
    assert "already exists" in qkv("heads", trained, *arguments, "--prune", 2, "--out", tmp_path / "small", ok=False)[2]


def test_errors_are_one_line(trained, films, pair, tmp_path):
    wrong = write(tmp_path / "wrong", "0-0\n")
    data = [trained, "--data", pair[0], "--target", pair[1]]
    for arguments, message, status in [
            ([trained], "needs a file of texts", 1), ([*data, "--alignment", wrong], "must have a line for each", 1),
            ([*data, "--conllu", wrong], "10 fields", 1),
            ([*data[:3], "--target-conllu", wrong], "target must be set to the translations whose trees ", 1),
            ([*data, "--target-conllu", wrong], "10 fields", 1),
            ([*data, "--prune", 4, "--out", tmp_path / "x"], "between 1 and 3", 1),
            ([trained, "--data", tmp_path / "none", "--prune", 4, "--out", tmp_path / "x"], "between 1 and 3", 1),
            ([*data, "--replace-by", "mean"], "replace_by must be zero without ablate (is mean)", 1),
            ([*data, "--prune", 1], "requires --out", 1), ([*data, "--ablate", "all"], "--ablate", 2),
            ([films / "run", "--data", pair[0]], "is a recommender", 1), ([tmp_path], "config.json", 1)]:
        found, output, error = qkv("heads", *arguments, ok=False)
        assert (found, output, error.count("\n")) == (status, "", 1), error
        assert message in error


# ---- The page


@pytest.fixture(scope="module")
def page(trained, pair, tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "heads.html"
    qkv("heads", trained, "--data", pair[0], "--target", pair[1], "--ablate", "heads", "--html", path)
    return path.as_uri()


def test_keys_select_heads_and_rows(browser, page):
    browser.driver.get(page)
    name = "document.getElementById('name').textContent"
    assert browser.script(f"return {name}") == "Cross attention, layer 1, head 4"
    browser.script("document.querySelector('.grid [aria-pressed=true]').focus()")
    browser.keys("LEFT")
    assert browser.script(f"return {name}") == "Cross attention, layer 1, head 3"
    browser.keys("UP")
    assert browser.script(f"return {name}") == "Decoder attention, layer 1, head 3"
    caption = "return document.querySelector('figcaption').textContent"
    browser.script("document.querySelector('.map .scroll').focus()")
    before = browser.script(caption)
    browser.keys("DOWN")
    assert "attends to" in before and browser.script(caption) != before
    assert "nats per token" in browser.script("return document.getElementById('effects').textContent")
    assert browser.script("return document.querySelectorAll('#parts-table tr').length") == 13
    assert browser.script("return reports") == []


def test_the_best_head_for_each_relation_is_selected_by_a_button(browser, page):
    browser.driver.get(page)
    rows = browser.script("return [...document.querySelectorAll('#best-table tr')].map(row => row.innerText.split('\\t'))")
    assert rows[0] == ["relation", "head", "score", "baseline", "loss without it", "95 %"]
    assert [row[0] for row in rows[1:4]] == ["token before", "token after", "token itself"]
    browser.script("document.querySelector('#best-table tr:nth-child(3) button').click()")
    name = browser.script("return document.getElementById('name').textContent")
    assert name.lower() == rows[2][1] and name.startswith("Encoder")  # only encoders have a token after
    effects = browser.script("return document.getElementById('effects').textContent")
    assert f"Loss without it: {rows[2][4]} (95 %: {rows[2][5]}) nats" in effects
    assert browser.script("return reports") == []


def test_a_score_of_some_heads_can_be_shown(browser, page):
    browser.driver.get(page)
    names = browser.script("return [...document.querySelectorAll('#measure option')].map(option => option.textContent)")
    assert len(names) == len(set(names)) and {"the score copying", "the score next"} <= set(names)
    browser.script("document.getElementById('measure').value = 'the score copying'")
    browser.script("document.getElementById('measure').dispatchEvent(new Event('change'))")
    widths = browser.script("return [...document.querySelectorAll('.grid button')].map(b => [b.getAttribute('aria-label'),"
                            "parseFloat(b.querySelector('.meter i').style.width)])")
    assert len(widths) == 12 and max(width for _, width in widths) == 100
    for label, width in widths:  # an encoder predicts nothing
        assert (width > 0) == (not label.startswith("encoder")), (label, width)
    assert browser.script("return reports") == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 360])
def test_the_page_is_accessible(scheme, width, browser, page):
    browser.show_as(scheme, width)
    browser.driver.get(page)
    assert browser.findings() == []
    assert browser.script("return document.documentElement.scrollWidth") <= width
    browser.show_as()
