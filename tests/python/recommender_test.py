"""qkv.Recommender with a trained run, compared with the program."""

import json
import threading

import pytest

import qkv


@pytest.fixture(scope="module")
def recommender(films):
    return qkv.Recommender(films / "run")


def program(run_program, films, *arguments):
    return json.loads(run_program("recommend", films / "run", *arguments, "--json")[1])


@pytest.mark.parametrize("options", [{}, {"top": 3}, {"exclude_seen": False}, {"explain": True, "top": 2}])
def test_recommendations_match_the_program(recommender, films, run_program, options):
    arguments = {"top": ["--top", options.get("top")], "exclude_seen": ["--include-seen"], "explain": ["--explain"]}
    history = ["f0000", "nothing", "f0010"]
    wanted = program(run_program, films, "--history", ",".join(history), *sum((arguments[x] for x in options), []))
    found = recommender.recommend(history, **options)
    assert found.names == [item["item"] for item in wanted["items"]]
    assert [item.score for item in found.items] == [item["score"] for item in wanted["items"]]
    assert [item.effects for item in found.items] == [item.get("effects", []) for item in wanted["items"]]
    assert (found.popular, found.read, found.unknown) == (wanted["popular"], wanted["read"], wanted["unknown"])
    assert recommender.recommend(iter(history), **options) == recommender.recommend_all([history], **options)[0]


def test_lists_of_items(recommender):
    best = recommender.recommend(["f0000"], top=6).names
    found = recommender.recommend(["f0000"], allow=iter(best[:4] + ["x"]), deny=(best[1], "y"))
    assert found.names == [best[0], best[2], best[3]] and found.unknown_listed == ["x", "y"]
    assert recommender.recommend(["f0000"], allow=[]).items == []


def test_similar_items_match_the_program(recommender, films, run_program):
    wanted = json.loads(run_program("recommend", films / "run", "--similar", "f0000", "--top", 4, "--json")[1])
    found = recommender.similar("f0000", top=4)
    assert found.names == [item["item"] for item in wanted["items"]]
    assert [item.score for item in found.items] == [item["score"] for item in wanted["items"]]
    assert found.read == ["f0000"] and not found.popular
    assert recommender.similar("f0000", top=3, deny=found.names[:1]).names == found.names[1:]


def test_conditions_and_diversity_match_the_program(films, run_program):
    catalogued = qkv.Recommender(films / "run", catalogue=films / "titles.csv", item_column="item")
    options = ["--catalogue", films / "titles.csv", "--where", "genre=crime", "--where", "title~part 2", "--diversity", 0.4]
    wanted = program(run_program, films, "--history", "f0000", *options)
    found = catalogued.recommend(["f0000"], where=("genre=crime", "title~part 2"), diversity=0.4)
    assert found.names == [item["item"] for item in wanted["items"]] and len(found.names) == 10
    assert catalogued.similar("f0000", where=["genre=crime"], top=3) != catalogued.similar("f0000", top=3)


def test_new_items_need_a_run_with_features(films, run_program, tmp_path):
    run_program("train", "recommend", "--data", films / "log.csv", "--out", tmp_path / "run", "--d-model", 16, "--ffn", 16,
                "--max-length", 20, "--batch-tokens", 512, "--max-steps", 3, "--threads", 1,
                "--features", films / "titles.csv", "--feature-columns", "item,genre")
    (tmp_path / "new.csv").write_text("item,genre\nn1,Crime\n")
    found = qkv.Recommender(tmp_path / "run", new_items=tmp_path / "new.csv")
    assert found.items[-1] == "n1" and found.messages[0].startswith(f"{tmp_path}/new.csv: 1 new items")
    assert "n1" in found.recommend(["f0000", "n1"], top=2000, exclude_seen=False).names
    with pytest.raises(qkv.Error, match="new items require a run that was trained with features"):
        qkv.Recommender(films / "run", new_items=tmp_path / "new.csv")


def test_the_order_within_a_basket_does_not_matter(recommender):
    items = [recommender.items[i] for i in (9, 2, 30)]
    assert recommender.basket(items + ["x"]) == recommender.basket(reversed(["x"] + items)) == [
        items[1], items[0], items[2], "x"]
    with pytest.raises(qkv.Error, match="items must be a list of str"):
        recommender.basket("f0000")


def test_history_of_a_user_with_new_events(recommender, films, run_program):
    assert len(recommender.items) > 100 and recommender.users[:2] == ["u0000", "u0001"]
    history = recommender.history("u0001")
    before = recommender.recommend(history)
    assert before.names == [item["item"] for item in program(run_program, films, "--user", "u0001")["items"]]
    assert before.read == history[-recommender.max_length:]
    assert recommender.recommend(history + before.names[:1]).names != before.names
    assert recommender.recommend([]).popular


@pytest.fixture(scope="module")
def timed(timed_run):
    return qkv.Recommender(timed_run)


def test_times_matter_only_to_a_model_with_time_gaps(timed, recommender):
    history, times = timed.history("u0001"), timed.times("u0001")
    assert len(times) == len(history) and times == sorted(times)
    with_times = timed.recommend(history, times=times)
    assert with_times == timed.recommend(history, times=[time + 7 for time in times])
    assert with_times != timed.recommend(history) == timed.recommend(history, times=[None] * len(history))
    assert recommender.recommend(history, times=times) == recommender.recommend(history)
    later = [times + [times[-1] + 60], times + [None]]
    answers = timed.recommend_all([history + ["f0000"]] * 2, times=later)
    assert answers == [timed.recommend(history + ["f0000"], times=t) for t in later] and answers[0] != answers[1]


def test_concurrent_recommendations_match_a_single_thread(recommender):
    histories = [[item] for item in recommender.items[:300]]
    wanted = recommender.recommend_all(histories)
    found = {}
    threads = [threading.Thread(target=lambda i=i: found.update({i: recommender.recommend(histories[i])}))
               for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [found[i] for i in range(8)] == wanted[:8]


@pytest.mark.parametrize("call, message", [
    (lambda r: r.recommend("f0000"), "histories[0] must be a list of str (is 'f0000')"),
    (lambda r: r.recommend([3]), "histories[0][0] must be a str (is 3)"),
    (lambda r: r.recommend(["\ud800"]), "histories[0][0] is not valid Unicode"),
    (lambda r: r.recommend([], top=0), "top must be between 1 and 1073741824 (is 0)"),
    (lambda r: r.recommend([], top="3"), "top must be a whole number (is '3')"),
    (lambda r: r.recommend([], explain=2), "explain must be True or False (is 2)"),
    (lambda r: r.recommend([], deny="f0000"), "deny must be a list of str (is 'f0000')"),
    (lambda r: r.recommend(["f0000"], times=[1, 2]), "times must be one for each of 1 events (are 2)"),
    (lambda r: r.recommend(["f0000"] * 2, times=[3, 1]), "times must be ascending (event 2 has 1 after 3)"),
    (lambda r: r.recommend(["f0000"], times=["1"]), "times[0][0] must be an integer of 64 bits or None (is '1')"),
    (lambda r: r.recommend(["f0000"], times=[2**63]), "times[0][0] must be an integer of 64 bits or None (is 9223372036854775808)"),
    (lambda r: r.recommend_all([[], []], times=[[]]), "times must be given for each of 2 histories (are given for 1)"),
    (lambda r: r.times("nobody"), 'unknown user "nobody" (the run has '),
    (lambda r: r.history("nobody"), 'unknown user "nobody" (the run has '),
    (lambda r: qkv.Recommender("nowhere"), "nowhere: is not a run directory"),
    (lambda r: qkv.Recommender("nowhere", new_items="new.csv"), "nowhere: is not a run directory"),
    (lambda r: r.similar("nothing"), 'unknown item "nothing" (the run has '),
    (lambda r: r.similar(3), "item must be a str (is 3)"),
    (lambda r: r.similar("f0000", explain=True), "explain must be false for similar items, which have no history"),
    (lambda r: r.recommend([], where="genre=comedy"), "where must be a list of str (is 'genre=comedy')"),
    (lambda r: r.recommend([], where=["genre=comedy"]), "where requires a catalogue"),
    (lambda r: r.recommend([], diversity=1.5), "diversity must be between 0 and 1 (is 1.5)"),
    (lambda r: r.recommend([], diversity="x"), "diversity must be a number (is 'x')"),
])
def test_errors_name_the_invalid_argument(recommender, call, message):
    with pytest.raises(qkv.Error) as error:
        call(recommender)
    assert str(error.value).startswith(message)


def test_lists_before_the_test_are_those_of_the_evaluation(films, tmp_path):
    qkv.evaluate(films / "run", lists=tmp_path / "lists.csv")
    rows = [line.split(",") for line in (tmp_path / "lists.csv").read_text().splitlines()[1:]]
    before = qkv.Recommender(films / "run", before="test")
    for user in dict.fromkeys(user for user, _, _ in rows[:200]):
        expected = [item for other, item, _ in rows if other == user]
        assert before.recommend(before.history(user), top=20).names == expected
    with pytest.raises(qkv.Error, match="before must be test or validation"):
        qkv.Recommender(films / "run", before="tests")
