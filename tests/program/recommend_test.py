"""qkv recommend: histories, users, JSON lines, titles and errors."""

import csv
import json
import os
import shutil
import subprocess

import pytest
from conftest import QKV, qkv

KEYS = ["items", "popular", "read", "unknown"]


def ask(films, *arguments, text=None):
    """Returns the objects of the answer and the messages on standard error."""
    _, output, notes = qkv("recommend", films / "run", *arguments, "--json", text=text)
    return [json.loads(line) for line in output.splitlines()], notes


def names(answer):
    return [item["item"] for item in answer["items"]]


def test_a_history_is_answered_with_the_best_items_in_order(films):
    (answer,), notes = ask(films, "--history", "f0000,f0001", "--top", 5)
    assert notes == "" and list(answer) == KEYS and not answer["popular"]
    assert [item["rank"] for item in answer["items"]] == [1, 2, 3, 4, 5]
    scores = [item["score"] for item in answer["items"]]
    assert scores == sorted(scores, reverse=True) and len(set(names(answer))) == 5
    assert answer["read"] == ["f0000", "f0001"] and not set(names(answer)) & set(answer["read"])
    lines = qkv("recommend", films / "run", "--history", "f0000,f0001", "--top", 5)[1].splitlines()
    assert [line.split() for line in lines] == [[str(i + 1), f"{item['score']:.3f}", item["item"]]
                                                for i, item in enumerate(answer["items"])]


def test_titles_may_contain_commas(films, tmp_path):
    titles = ["--titles", films / "titles.csv"]
    by_id, _ = ask(films, "--history", "f0000, f0001", *titles)
    by_title, notes = ask(films, "--history", "Silent Harbour, Part 1, silent harbour, part 2", *titles)
    assert by_title == by_id and notes == ""
    assert all(item["title"].count(", Part ") == 1 for item in by_id[0]["items"])
    (tmp_path / "history").write_text("Silent Harbour, Part 1\n")
    assert ask(films, "--history-file", tmp_path / "history", "--item", "Silent Harbour, Part 2", *titles)[0] == by_id
    lines = qkv("recommend", films / "run", "--history", "f0000,f0001", *titles)[1].splitlines()
    assert [line.split(maxsplit=2)[2] for line in lines] == [item["title"] for item in by_id[0]["items"]]


def test_unknown_and_ambiguous_titles_are_reported_with_similar_ones(films, tmp_path):
    (tmp_path / "titles.csv").write_text("item,title\nf0000,Heat (1995)\nf0001,Heat (1986)\nf0002,Fargo (1996)\nx,Lost\n")
    (answer,), notes = ask(films, "--history", "Heat, Fergo, f0002, Lost", "--titles", tmp_path / "titles.csv")
    assert answer["read"] == ["f0002"] and answer["unknown"] == ["Fergo", "x"]
    assert answer["ambiguous"] == {"Heat": ["f0000", "f0001"]}
    assert notes.splitlines() == [
        'qkv: "Heat" is ambiguous and ignored; use one of the ids: f0000 (Heat (1995)), f0001 (Heat (1986))',
        'qkv: "Fergo" is unknown to the model and ignored; similar titles: Fargo (1996)',
        'qkv: "Lost" is unknown to the model and ignored']
    (answer,), notes = ask(films, "--item", "nothing")
    assert answer["popular"] and answer["unknown"] == ["nothing"]
    assert notes.splitlines()[1] == "qkv: the history has no known item; these are the most popular items"


def test_a_user_stands_for_the_events_of_the_log_and_new_events_count_immediately(films):
    events = [line.split(",")[1] for line in (films / "log.csv").read_text().splitlines() if line.startswith("u0007,")]
    (user,), _ = ask(films, "--user", "u0007")
    (history,), _ = ask(films, "--history", ",".join(events))
    assert user.pop("user") == "u0007" and user == history and user["read"] == events[-20:]
    (later,), _ = ask(films, "--user", "u0007", "--item", names(user)[0])
    assert names(user)[0] not in names(later) and later["read"] == (events + names(user)[:1])[-20:]
    status, output, error = qkv("recommend", films / "run", "--user", "nobody", ok=False)
    assert (status, output) == (1, "") and error.startswith('qkv: unknown user "nobody" (the run has ')


def test_lists_and_seen_items(films, tmp_path):
    (all_items,), _ = ask(films, "--history", "f0000", "--top", 2000)
    best = names(all_items)
    (tmp_path / "allow").write_text("\n".join(best[:6] + ["f0000", "nothing"]) + "\n")
    (tmp_path / "deny").write_text(best[0] + "\n")
    (some,), notes = ask(films, "--history", "f0000", "--allow", tmp_path / "allow", "--deny", tmp_path / "deny")
    assert some["items"] == [dict(item, rank=i + 1) for i, item in enumerate(all_items["items"][1:6])]
    assert notes == f'qkv: {tmp_path}/allow: 1 items are not in the model (first: "nothing")\n'
    assert some["unknown_listed"] == ["nothing"]
    (seen,), _ = ask(films, "--history", "f0000", "--top", 2000, "--include-seen")
    assert len(seen["items"]) == len(best) + 1 and set(names(seen)) == {*best, "f0000"}


def test_explanations_are_the_score_without_each_event(films):
    (answer,), _ = ask(films, "--history", "f0000,f0010,f0001", "--explain", "--top", 3)
    for item in answer["items"]:
        assert len(item["effects"]) == 3
        for effect, rest in zip(item["effects"], ["f0010,f0001", "f0000,f0001", "f0000,f0010"]):
            (without,), _ = ask(films, "--history", rest, "--top", 2000, "--include-seen")
            score = next(other["score"] for other in without["items"] if other["item"] == item["item"])
            assert effect == item["score"] - score
    lines = qkv("recommend", films / "run", "--history", "f0000,f0010,f0001", "--explain", "--top", 1)[1].splitlines()
    effects = answer["items"][0]["effects"]
    largest = max(range(3), key=lambda event: abs(effects[event]))
    assert lines[1].split(",")[0].split() == [answer["read"][largest], f"{effects[largest]:+.3f}"]


def test_json_lines_are_answered_in_order_even_after_an_invalid_one(films):
    requests = ['{"history": ["f0000", "f0001"], "top": 2}', "{", '{"user": "u0003", "id": [1, "x"]}', "[]", "",
                '{"user": "u0003", "history": ["f0100"], "explain": true, "top": 1}', '{"history": "f0000"}',
                '{"history": [], "top": 0}', '{"top": 3}', '{"history": [], "depth": 1}', '{"user": "nobody"}',
                '{"history": [' + "[" * 100000, '{"history": ["f0000"], "allow": ["f0005", "f0004"], "deny": ["f0005"]}',
                '{"history": ["f0000", 12], "include_seen": true}', '{"history": 1, "id": {"n": 9}}']
    answers, notes = ask(films, text="\n".join(requests))
    assert notes == "" and len(answers) == len(requests)
    (first,), _ = ask(films, "--history", "f0000,f0001", "--top", 2)
    assert answers[0] == first
    (user,), _ = ask(films, "--user", "u0003")
    assert answers[2] == {"id": [1, "x"], **user}
    assert answers[5]["read"][-1] == "f0100" and len(answers[5]["items"][0]["effects"]) == len(answers[5]["read"])
    assert names(answers[12]) == ["f0004"]
    assert answers[13]["unknown"] == ["12"] and len(answers[13]["items"]) == 10
    assert answers[14] == {"id": {"n": 9}, "error": 'line 15: "history" must be a list of names (is 1)'}
    for line, part in [(2, "not valid JSON"), (4, "not a JSON object"), (5, "not valid JSON"),
                       (7, '"history" must be a list of names (is "f0000")'),
                       (8, '"top" must be an integer between 1 and 1073741824 (is 0)'),
                       (9, 'must have "history", "user" or "similar"'),
                       (10, 'unknown name "depth" (choose from history, times, user, similar, include_seen, top'),
                       (11, 'unknown user "nobody"'), (12, "JSON must have at most 4 levels")]:
        assert list(answers[line - 1]) == ["error"]
        assert answers[line - 1]["error"].startswith(f"line {line}: ") and part in answers[line - 1]["error"]


def test_similar_items_are_those_with_the_largest_cosines(films, tmp_path):
    titles = ["--titles", films / "titles.csv"]
    (answer,), notes = ask(films, "--similar", "Silent Harbour, Part 1", "--top", 5, *titles)
    assert notes == "" and list(answer) == ["similar", "items"] and answer["similar"] == "f0000"
    scores = [item["score"] for item in answer["items"]]
    assert scores == sorted(scores, reverse=True) and 0 < scores[0] <= 1 and "f0000" not in names(answer)
    lines = qkv("recommend", films / "run", "--similar", "f0000", "--top", 5)[1].splitlines()
    assert [line.split()[1:] for line in lines] == [[f"{item['score']:.3f}", item["item"]] for item in answer["items"]]
    requests = [{"similar": "f0000", "top": 5, "id": 1}, {"history": ["f0000"], "top": 5},
                {"similar": names(answer)[0], "top": 5}, {"similar": "f0000", "deny": names(answer)[:1], "top": 4}]
    answers, _ = ask(films, *titles, text="".join(json.dumps(request) + "\n" for request in requests))
    assert answers[0] == {"id": 1, **answer} and answers[1] == ask(films, "--history", "f0000", "--top", 5, *titles)[0][0]
    assert "f0000" in names(answers[2]) and names(answers[3]) == names(answer)[1:]
    (tmp_path / "titles.csv").write_text("item,title\nf0000,Heat (1995)\nf0001,Heat (1986)\n")
    for arguments, message in [(["nothing"], '"nothing" is unknown to the model'),
                               (["Heat"], '"Heat" is ambiguous; use one of the ids: f0000, f0001'),
                               (["Heta (1995)"], '"Heta (1995)" is unknown to the model; similar titles: Heat (1995)'),
                               (["f0000", "--explain"], "explain must be false for similar items, which have no history")]:
        status, output, error = qkv("recommend", films / "run", "--titles", tmp_path / "titles.csv", "--similar",
                                    *arguments, ok=False)
        assert (status, output) == (1, "") and error.startswith(f"qkv: {message}") and error.count("\n") == 1
    assert qkv("recommend", films / "run", "--similar", "f0000", "--history", "f0001", ok=False)[0] == 2
    for request, message in [({"similar": 3.5}, '"similar" must be a string or an integer (is 3.5)'),
                             ({"similar": ["f0000"]}, '"similar" must be a string or an integer'),
                             ({"similar": "nothing"}, '"nothing" is unknown to the model'),
                             ({"similar": "a\nb"}, '"a\\nb" is unknown to the model'),
                             ({"de\npth": 1}, 'unknown name "de\\npth" (choose from history'),
                             ({"similar": "f0000", "history": []}, '"similar" must stand without "history"'),
                             ({"similar": "f0000", "times": []}, '"similar" must stand without "history"'),
                             ({"similar": "f0000", "explain": True}, '"similar" must stand without "explain"')]:
        (answer,), _ = ask(films, text=json.dumps(request))
        assert answer["error"].startswith(f"line 1: {message}")


def test_conditions_filter_by_the_catalogue(films, tmp_path):
    genres = {row.split(",")[0]: row.rsplit(",", 1)[1] for row in (films / "titles.csv").read_text().splitlines()}
    catalogue = ["--catalogue", films / "titles.csv"]
    (everything,), _ = ask(films, "--history", "f0000", "--top", 2000)
    (comedies,), _ = ask(films, "--history", "f0000", "--top", 2000, *catalogue, "--where", "genre=comedy")
    wanted = [item for item in everything["items"] if genres[item["item"]] == "Comedy"]
    assert len(wanted) > 50 and comedies["items"] == [dict(item, rank=i + 1) for i, item in enumerate(wanted)]
    both = ["--where", "genre=comedy|drama", "--where", "title~part 1"]
    (few,), _ = ask(films, "--history", "f0000", "--top", 2000, *catalogue, *both)
    requests = [{"history": ["f0000"], "top": 2000, "where": ["genre=comedy|drama", "title~part 1"]},
                {"history": ["f0000"], "where": ["genre"]}, {"history": ["f0000"], "where": "genre=comedy"},
                {"history": ["f0000"], "where": [1]}, {"history": ["f0000"], "where": ["genre=comedy"] * 101},
                {"history": ["f0000"], "where": ["year<1990"], "id": 5}, {"similar": "f0000", "where": ["genre=comedy"]}]
    answers, _ = ask(films, *catalogue, text="".join(json.dumps(request) + "\n" for request in requests))
    assert answers[0] == few and 0 < len(few["items"]) < len(wanted)
    assert "line 2: where \"genre\": must be a column" in answers[1]["error"]
    assert answers[2]["error"] == 'line 3: "where" must be a list of texts (is "genre=comedy")'
    assert answers[3]["error"] == 'line 4: "where" must be a list of texts (is [1])'
    assert answers[4]["error"] == "line 5: where must have at most 100 conditions (has 101)"
    assert answers[5] == {"id": 5, "error": 'line 6: where "year<1990": no column "year" (choose from title, genre)'}
    assert {genres[item] for item in names(answers[6])} == {"Comedy"} and len(names(answers[6])) == 10
    (none,), notes = ask(films, "--history", "f0000", *catalogue, "--where", "genre=none")
    assert none["items"] == [] and notes == "qkv: no item satisfies the conditions\n"
    for arguments, message in [(["--where", "genre=comedy"], "where requires a catalogue"),
                               ([*catalogue, "--where", "genre"], 'where "genre": must be a column'),
                               (["--catalogue", tmp_path / "missing"], f"{tmp_path}/missing"),
                               ([*catalogue, "--item-column", "title"], "the item column contains none of the run's")]:
        for request in ([], ["--history", "f0000"]):
            status, output, error = qkv("recommend", films / "run", *request, *arguments, text="", ok=False)
            assert (status, output) == (1, "") and message in error and error.count("\n") == 1


def test_diversity_reorders_the_list(films):
    (plain,), _ = ask(films, "--history", "f0000,f0001")
    (diverse,), _ = ask(films, "--history", "f0000,f0001", "--diversity", 0.5)
    assert names(diverse)[0] == names(plain)[0] and names(diverse) != names(plain) and len(set(names(diverse))) == 10
    (off,), _ = ask(films, "--history", "f0000,f0001", "--diversity", 0)
    assert off == plain
    requests = [{"history": ["f0000", "f0001"], "diversity": value} for value in (0.5, 0, 1.5, "x", True, None)]
    requests.append({"history": [], "diversity": 0.5, "top": 1001})
    answers, _ = ask(films, text="".join(json.dumps(request) + "\n" for request in requests))
    assert answers[:2] == [diverse, plain]
    for line, value in ((3, "1.5"), (4, '"x"'), (5, "true"), (6, "null")):
        assert answers[line - 1]["error"] == f'line {line}: "diversity" must be a number between 0 and 1 (is {value})'
    assert answers[6]["error"] == "line 7: top must be at most 1000 with diversity (is 1001)"
    assert qkv("recommend", films / "run", "--history", "f0000", "--diversity", 2, ok=False)[0] == 2


def test_a_run_with_repeats_ranks_and_recommends_what_users_had(tmp_path):
    log = tmp_path / "log.txt"  # everyone repeats one of five items, then takes the next
    log.write_text("".join(f"u{u} i{(u + t // 3) % 5}\n" for u in range(20) for t in range(11)))
    for name, options in (("run", ["--repeats"]), ("plain", ["--repeats", "false"])):
        qkv("train", "recommend", "--data", log, "--out", tmp_path / name, "--d-model", 16, "--ffn", 16, "--max-length", 20,
            "--batch-tokens", 256, "--max-steps", 40, "--loss", "sampled_softmax", "--negatives", 3, "--threads", 1, *options)
    assert json.loads((tmp_path / "run/recommendation.json").read_text())["repeats"] is True

    def items(run, *options):
        return names(json.loads(qkv("recommend", tmp_path / run, "--history", "i0,i1", "--json", *options)[1]))

    assert set(items("run")) == {"i0", "i1", "i2", "i3", "i4"} and set(items("plain")) == {"i2", "i3", "i4"}
    assert set(items("run", "--exclude-seen")) == {"i2", "i3", "i4"} and len(items("plain", "--include-seen")) == 5
    assert qkv("recommend", tmp_path / "run", "--exclude-seen", "--include-seen", ok=False)[0] == 2
    lines = qkv("recommend", tmp_path / "run", text='{"history": ["i0"]}\n{"history": ["i0"], "include_seen": false}\n'
                '{"history": ["i0"], "exclude_seen": 1}\n')[1].splitlines()
    assert [len(json.loads(line).get("items", [])) for line in lines] == [5, 4, 0] and "true or false" in lines[2]
    figures = {name: json.loads(qkv("evaluate", tmp_path / name, "--json")[1]) for name in ("run", "plain")}
    logs = {name: json.loads(qkv("evaluate", log, "--json", *options)[1])
            for name, options in (("run", ["--repeats"]), ("plain", []))}
    for name in figures:
        assert figures[name]["baselines"]["popularity"] == logs[name]["baselines"]["popularity"]
        assert figures[name]["description"] == logs[name]["description"]
        assert ("all items but those" in logs[name]["description"]) == (name == "plain")
    assert figures["run"]["baselines"]["popularity"] != figures["plain"]["baselines"]["popularity"]
    sampled = json.loads(qkv("evaluate", tmp_path / "run", "--json", "--protocol", "sampled-4")[1])
    assert "training part lacks" not in sampled["description"]
    status, _, error = qkv("evaluate", tmp_path / "run", "--repeats", ok=False)
    assert status == 2 and "applies to logs only" in error


def test_the_order_within_a_basket_does_not_matter(films, timed_run):
    basket = ["f0003", "f0001", "f0002"]
    requests = [{"history": ["f0100", basket]}, {"history": [["f0100"], basket[::-1] + basket, []]},
                {"history": ["f0100", ["?", "f0001"]]}, {"history": [["f0100", ["f0001"]]]}, {"history": [[1.5]]},
                {"history": [["f0001"]], "times": [1, 2]}]
    answers, _ = ask(films, text="".join(json.dumps(request) + "\n" for request in requests))
    ordered = answers[0]["read"][1:]
    assert sorted(ordered) == sorted(basket) and answers[0]["read"][0] == "f0100" and answers[0] == answers[1]
    assert answers[2]["unknown"] == ["?"] and answers[2]["read"] == ["f0100", "f0001"]
    for line, message in ((4, '"history" must be a string or an integer (is ["f0001"])'),
                          (5, '"history" must be a string or an integer (is 1.5)'),
                          (6, "times must be one for each of 1 events (are 2)")):
        assert answers[line - 1] == {"error": f"line {line}: {message}"}
    assert ask(films, "--history", ",".join(["f0100", *ordered]))[0][0] == answers[0]
    assert ask(films, "--history", ",".join(["f0100", *ordered[::-1]]))[0][0] != answers[0]
    (two,), _ = ask(films, "--item", "f0100", "--basket", ",".join(basket[:2]), "--basket", basket[2])
    assert set(two["read"][1:3]) == set(basket[:2]) and two["read"][3:] == basket[2:]
    timed = [{"history": ["f0100", order], "times": [5, 900]} for order in (basket, basket[::-1])]
    timed.append({"history": ["f0100", *ordered], "times": [5, 900, 900, 900]})
    lines = qkv("recommend", timed_run, text="".join(json.dumps(request) + "\n" for request in timed))[1].splitlines()
    assert len(lines) == 3 and len(set(lines)) == 1


def test_times_are_used_if_the_model_was_trained_with_them(films, timed_run):
    for run, has_gaps in [(films / "run", False), (timed_run, True)]:
        assert ("decoder.gaps.weight" in qkv("inspect", run)[1]) == has_gaps
        assert "model " in qkv("evaluate", run)[1]
    events = [line.split(",") for line in (films / "log.csv").read_text().splitlines() if line.startswith("u0007,")]
    history, times = [event[1] for event in events], [int(event[2]) for event in events]
    requests = [{"history": history, "times": times}, {"user": "u0007"}, {"history": history},
                {"history": history, "times": [time // 1000 for time in times]},
                {"user": "u0007", "history": ["f0100"]},
                {"user": "u0007", "history": ["f0100"], "times": [times[-1] + 60]},
                {"history": history + ["?"], "times": times + [None], "explain": True}]
    text = "".join(json.dumps(request) + "\n" for request in requests)
    given, user, without, faster, new, soon, unknown = (
        [item["score"] for item in json.loads(line)["items"]]
        for line in qkv("recommend", timed_run, text=text)[1].splitlines())
    assert given == user == unknown and len({tuple(scores) for scores in (given, without, faster)}) == 3 and new != soon
    (plain,), _ = ask(films, text=json.dumps(requests[0]))
    assert plain == ask(films, text=json.dumps(requests[2]))[0][0]
    output = qkv("recommend", timed_run, "--user", "u0007", "--item", "f0100", "--json")[1]
    assert [item["score"] for item in json.loads(output)["items"]] == new


def test_invalid_times_are_refused_in_one_line(films, tmp_path):
    for request, part in [({"history": ["f0000"], "times": [1, 2]}, "times must be one for each of 1 events (are 2)"),
                          ({"history": ["f0000", "f0001"], "times": [3, 2]}, "times must be ascending (event 2 has 2 after 3)"),
                          ({"history": ["f0000"], "times": 3}, '"times" must be a list of times (is 3)'),
                          ({"history": ["f0000"], "times": [1.5]}, '"times" must be integers or null (is 1.5)'),
                          ({"history": ["f0000"], "times": [2 ** 63]}, "must be integers or null"),
                          ({"history": ["f0000"], "times": ["1"]}, "must be integers or null"),
                          ({"user": "u0007", "times": [5]}, "times must be one for each of 0 events (are 1)"),
                          ({"user": "u0007", "history": ["f0000"], "times": [-5]}, "has -5 after")]:
        (answer,), _ = ask(films, text=json.dumps(request))
        assert answer["error"].startswith("line 1: ") and part in answer["error"]
    (tmp_path / "log.txt").write_text("".join(f"{user} {item}\n" for user in range(9) for item in range(5)))
    status, _, error = qkv("train", "recommend", "--data", tmp_path / "log.txt", "--out", tmp_path / "run",
                           "--time-gaps", "true", ok=False)
    assert status == 1 and error == ("qkv: training: time_gaps requires a log with a time in each line "
                                     f"({tmp_path}/log.txt has none)\n")


def test_each_request_is_answered_before_the_next_one_arrives(films):
    with subprocess.Popen([QKV, "recommend", films / "run"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          text=True) as process:
        for item in ("f0000", "f0001"):
            process.stdin.write(json.dumps({"history": [item]}) + "\n")
            process.stdin.flush()
            assert json.loads(process.stdout.readline())["read"] == [item]
        process.stdin.close()
        assert process.wait(timeout=60) == 0


def test_many_lines_get_the_same_answers_as_each_alone(films, tmp_path):
    requests = [{"history": [f"f{i % 100:04}", f"f{i % 7:04}"], "top": 3 + i // 500 % 2} for i in range(1200)]
    (tmp_path / "requests").write_text("".join(json.dumps(request) + "\n" for request in requests))
    answers, _ = ask(films, "--input", tmp_path / "requests", "--threads", 2)
    for i in (0, 499, 500, 1199):
        (alone,), _ = ask(films, "--history", ",".join(requests[i]["history"]), "--top", requests[i]["top"])
        assert answers[i] == alone


def test_a_run_in_8_bits_recommends(films):
    qkv("quantize", films / "run", "--int8")
    run = films / "run-int8"
    assert {path.name for path in run.iterdir()} == {"config.json", "recommendation.json", "model.safetensors",
                                                     "interactions.safetensors", "items.json", "users.json",
                                                     "transitions.json"}
    answers = [json.loads(qkv("recommend", name, "--user", "u0001", "--top", 2000, "--json")[1])
               for name in (films / "run", run)]
    assert set(names(answers[0])) == set(names(answers[1]))
    assert qkv("translate", run, text="x\n", ok=False)[0] == 1
    shutil.rmtree(run)


@pytest.mark.parametrize("name", ["config.json", "recommendation.json", "model.safetensors", "items.json",
                                  "users.json", "interactions.safetensors"])
def test_a_run_without_a_file_is_refused(films, tmp_path, name):
    run = tmp_path / "run"
    shutil.copytree(films / "run", run)
    os.remove(run / name)
    status, output, error = qkv("recommend", run, "--history", "f0000", ok=False)
    assert (status, output) == (1, "") and error.count("\n") == 1 and name in error


@pytest.mark.parametrize("arguments", [[], ["--history", "f0000"], ["run", "--top", "0"], ["run", "--top", "x"],
                                       ["run", "--title-columns", "1"], ["run", "--nonsense"]])
def test_wrong_usage_is_one_line_and_status_2(arguments):
    status, output, error = qkv("recommend", *arguments, ok=False)
    assert status == 2 and output == "" and error.count("\n") == 1 and error.startswith("qkv: ")


def test_bench_times_requests(films):
    for arguments in ([films / "run"], ["--items", "500", "--d-model", "64", "--int8"]):
        figures = json.loads(qkv("bench", "recommend", *arguments, "--requests", 30, "--length", 20, "--json")[1])
        assert 0 < figures["p50_ms"] <= figures["p99_ms"] <= figures["max_ms"] and figures["threads"] == 1


def test_features_of_items_are_learned(films, tmp_path):
    train = ["train", "recommend", "--data", films / "log.csv", "--out", tmp_path / "run", "--d-model", 16, "--ffn", 16,
             "--max-length", 20, "--batch-tokens", 512, "--max-steps", 3, "--threads", 1]
    features = ["--features", films / "titles.csv", "--feature-columns", "item,genre,title:words"]
    _, _, report = qkv(*train, *features)
    assert "items have " in report and "skipped 0 features of a single item" in report
    known = json.loads((tmp_path / "run/features.json").read_text())
    assert {"genre: Crime", "title: silent"} <= set(known)
    assert f'"item_features": {len(known)}' in qkv("inspect", tmp_path / "run")[1]
    answer = qkv("recommend", tmp_path / "run", "--history", "f0000", "--json")[1]
    (tmp_path / "run/features.json").unlink()  # serving reads the items' sums alone
    assert qkv("recommend", tmp_path / "run", "--history", "f0000", "--json")[1] == answer
    (tmp_path / "new.csv").write_text('item,title,genre\nn1,"Silent Orchard, Part 1",Drama\nf0000,,Crime\nn2,Xyzzy,Opera\n')
    new = ["--new-items", tmp_path / "new.csv", "--top", 2000, "--json"]
    (tmp_path / "run/features.json").write_text(json.dumps(known))
    _, output, notes = qkv("recommend", tmp_path / "run", "--history", "f0000", *new)
    assert notes == (f"qkv: {tmp_path}/new.csv: 1 new items; skipped 1 rows of items that the run has, 1 items without a "
                     "known feature and 2 unknown features\n")
    assert "n1" in names(json.loads(output)) and "n2" not in output
    similar = names(json.loads(qkv("recommend", tmp_path / "run", "--similar", "n1", *new)[1]))
    assert len(similar) > 500 and "n1" not in similar
    (tmp_path / "run/features.json").unlink()
    for run, message in [(tmp_path / "run", "features.json"), (films / "run", "new items require a run that was trained")]:
        status, output, error = qkv("recommend", run, "--history", "f0000", *new, ok=False)
        assert (status, output) == (1, "") and message in error and error.count("\n") == 1
    assert "was started with 0 item features" in qkv(*train, *features, ok=False)[2]
    for options, message in [(features[2:], "requires a table of features"),
                             (features[:3] + ["item,nothing"], 'no column "nothing"'),
                             (["--features", tmp_path / "missing"], "cannot be opened")]:
        status, _, error = qkv(*train[:4], "--out", tmp_path / "other", *options, ok=False)
        assert status == 1 and message in error.splitlines()[-1]
        assert not (tmp_path / "other").exists()


def lists_of(text):
    """The items of each user in lines user,item,rank, in order."""
    lists = {}
    for row in csv.DictReader(text.splitlines()):
        lists.setdefault(row["user"], []).append(row["item"])
        assert int(row["rank"]) == len(lists[row["user"]])
    return lists


def test_all_users_get_the_answers_to_requests_for_each(films):
    users = list(dict.fromkeys(line.split(",")[0] for line in (films / "log.csv").read_text().splitlines()[1:]))
    output = qkv("recommend", films / "run", "--all-users", "--top", 3)[1]
    requests = "".join(json.dumps({"user": user}) + "\n" for user in users)
    answers = qkv("recommend", films / "run", "--top", 3, text=requests)[1]
    assert sorted(output.splitlines()) == sorted(answers.splitlines()) and len(output.splitlines()) == len(users)
    table = qkv("recommend", films / "run", "--all-users", "--top", 3, "--csv")[1]
    assert table.startswith("user,item,rank,score\n")
    by_user = {answer["user"]: names(answer) for answer in map(json.loads, output.splitlines())}
    assert lists_of(table) == by_user


def test_files_of_all_users_are_kept_and_completed(films, tmp_path):
    arguments = ["recommend", films / "run", "--all-users", "--out", tmp_path / "lists", "--csv"]
    assert "1 files: 1 written, 0 present" in qkv(*arguments)[2]
    (written,) = (tmp_path / "lists").iterdir()
    assert written.name == "users-000000000.csv"
    content = written.read_text()
    assert content == qkv("recommend", films / "run", "--all-users", "--csv")[1]
    (tmp_path / "lists/.users-000000000.csv.tmp-0123456789abcdef").write_text("half")
    assert "0 written, 1 present" in qkv(*arguments)[2]
    assert [path.name for path in (tmp_path / "lists").iterdir()] == [written.name] and written.read_text() == content
    written.unlink()
    assert "1 written, 0 present" in qkv(*arguments)[2] and written.read_text() == content


@pytest.mark.parametrize("options, part", [
    (["--all-users", "--history", "f0000"], "--history excludes --all-users"),
    (["--csv"], "--csv requires --all-users"),
    (["--out", "lists"], "--out requires --in or --all-users"),
    (["--history", "f0000", "--before", "tests"], "--before"),
])
def test_options_for_all_users_that_do_not_fit_are_refused(films, options, part):
    status, output, error = qkv("recommend", films / "run", *options, ok=False)
    assert status == 2 and output == "" and part in error


@pytest.mark.parametrize("part", ["test", "validation"])
def test_lists_before_a_part_are_those_of_the_evaluation(films, tmp_path, part):
    options = ["--validation"] if part == "validation" else []
    found = json.loads(qkv("evaluate", films / "run", "--lists", tmp_path / "lists.csv", "--json", *options)[1])
    lists = lists_of((tmp_path / "lists.csv").read_text())
    output = qkv("recommend", films / "run", "--all-users", "--before", part, "--top", 20, "--csv")[1]
    assert lists == {user: items for user, items in lists_of(output).items() if user in lists}
    events = {}
    for line in (films / "log.csv").read_text().splitlines()[1:]:
        user, item, _ = line.split(",")
        events.setdefault(user, []).append(item)
    place = -1 if part == "test" else -2
    hits = sum(events[user][place] in items[:10] for user, items in lists.items())
    assert found["HR@10"] == pytest.approx(hits / len(lists)) and hits > 0
    assert (films / "run/transitions.json").exists()
    leaking = lists_of(qkv("recommend", films / "run", "--all-users", "--top", 20, "--csv")[1])
    assert leaking != lists


def test_titles_that_contain_the_words_are_shown(films, tmp_path):
    (tmp_path / "titles.csv").write_text("id,title\nf0000,Star Maps (1997)\nf0001,Style Wars (1983)\n"
                                         "f0002,Star Wars: Episode IV (1977)\nf0003,Star Wars: Episode V (1980)\n")
    _, _, notes = qkv("recommend", films / "run", "--history", "Star Wars", "--titles", tmp_path / "titles.csv")
    assert 'similar titles: Star Wars: Episode IV (1977), Star Wars: Episode V (1980)\n' in notes
    status, _, error = qkv("recommend", films / "run", "--similar", "Star Wars", "--titles", tmp_path / "titles.csv", ok=False)
    assert status == 1 and "similar titles: Star Wars: Episode IV (1977), Star Wars: Episode V (1980)" in error


def test_ids_of_titles_that_match_no_item_are_reported(films, tmp_path):
    (tmp_path / "titles.csv").write_text("id,title\nF0000,Heat\nF0001,Fargo\n")
    notes = ask(films, "--history", "f0000", "--titles", tmp_path / "titles.csv")[1]
    assert f'qkv: {tmp_path}/titles.csv: none of the 3 ids is an item of the run (such as "F0' in notes
    assert '", where the log has "f0' in notes
    assert "none of" not in ask(films, "--history", "f0000", "--titles", films / "titles.csv")[1]
