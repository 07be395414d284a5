"""qkv serve: the routes of Gorse, with plain HTTP and with its official client."""

import http.client
import json
import resource
import urllib.error
import urllib.parse
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timezone

import pytest
from conftest import ROOT, qkv
from serving import ServeProcess

RUN = ROOT / "tests/golden/runs/recommender"
LOG = ROOT / "tests/golden/runs/log/log.csv"
HEADER = "user\titem\ttimestamp:s\tfeedback\tvalue\tfollowing"
LATER = 1_800_000_000  # after the log, in seconds since 1970; 2027-01-15T08:00:00Z


def ask(server, path, body=None, method=None, headers=None):
    """Returns the status, the answer and its media type; the answer is an object if it is JSON."""
    data = None if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
    headers = {**({"Content-Type": "application/json"} if data is not None else {}), **(headers or {})}
    request = urllib.request.Request(server.url + path, data, headers, method=method)
    try:
        answer = urllib.request.urlopen(request, timeout=60)
    except urllib.error.HTTPError as error:
        answer = error
    text = answer.read().decode()
    media = answer.headers.get_content_type()
    return answer.status, json.loads(text) if media == "application/json" else text, media


def event(user, item, time="2027-01-15T08:00:00Z", **others):
    return {"FeedbackType": "view", "UserId": user, "ItemId": item, "Timestamp": time, "Value": 1, **others}


def items_of(*arguments):
    """The items and scores that `qkv recommend` gives."""
    answer = json.loads(qkv("recommend", RUN, *arguments, "--json")[1])
    return [item["item"] for item in answer["items"]], [item["score"] for item in answer["items"]]


def recommended(server, user, **query):
    status, items, _ = ask(server, f"/api/recommend/{user}?{urllib.parse.urlencode(query)}")
    assert status == 200, items
    return items


def line_answer(**line):
    """The items that `qkv recommend` gives for a JSON line."""
    return [item["item"] for item in json.loads(qkv("recommend", RUN, text=json.dumps(line))[1])["items"]]


def log_of(user):
    rows = [line.split(",") for line in LOG.read_text().splitlines()[1:]]
    return [(item, int(time)) for name, item, time in rows if name == user]


@pytest.fixture(scope="module")
def server():
    with ServeProcess([RUN]) as started:
        yield started


@pytest.fixture
def events(tmp_path):
    return tmp_path / "events.tsv"


def test_a_user_of_the_log_gets_the_items_of_qkv_recommend(server):
    items, scores = items_of("--user", "u0005", "--top", 10)
    assert ask(server, "/api/recommend/u0005") == (200, items, "application/json")
    status, pairs, _ = ask(server, "/api/recommend/u0005/", headers={"X-API-Version": "2"})
    assert status == 200 and [pair["Id"] for pair in pairs] == items
    assert [pair["Score"] for pair in pairs] == pytest.approx(scores, rel=1e-6)
    assert recommended(server, "u0005", n=3) == items[:3]
    assert recommended(server, "u0005", n=4, offset=3) == items[3:7]
    assert recommended(server, "u0005", n=5, offset=10_000) == []


def test_an_unknown_user_gets_the_popular_items(server):
    popular, counts = items_of("--history", "nothing", "--top", 5)
    assert recommended(server, "nobody", n=5) == popular
    pairs = ask(server, "/api/recommend/nobody?n=5", headers={"X-API-Version": "2"})[1]
    assert [pair["Score"] for pair in pairs] == counts


def test_a_get_may_have_a_content_type_and_a_body(server):
    items = recommended(server, "u0005")
    connection = http.client.HTTPConnection(server.url.removeprefix("http://"), timeout=60)
    for headers, body in (({"Content-Type": "application/json"}, None), ({"Content-Type": "application/json"}, b"[]")):
        connection.request("GET", "/api/recommend/u0005", body, headers)
        answer = connection.getresponse()
        assert answer.status == 200 and json.loads(answer.read()) == items


@pytest.mark.parametrize("path, error", [
    ("/api/recommend/u0005/films", "categories are not supported: request /api/recommend/USER"),
    ("/api/recommend/u0005?category=films", "categories are not supported: request /api/recommend/USER"),
    ("/api/recommend/u0005?n=0", '"n" must be an integer between 1 and 16384 (is "0")'),
    ("/api/recommend/u0005?n=ten", '"n" must be an integer between 1 and 16384 (is "ten")'),
    ("/api/recommend/u0005?offset=99999", '"offset" must be an integer between 0 and 16384 (is "99999")'),
    ("/api/recommend/u0005?n=16384&offset=1", "n + offset must be at most 16384 (is 16385)"),
    ("/api/recommend/u0005?write-back-type=read", "write-back-type is not supported"),
])
def test_wrong_requests_for_a_user_are_refused_as_text(server, path, error):
    assert ask(server, path) == (400, error + "\n", "text/plain")


def test_a_session_is_sorted_by_its_times(server):
    items, scores = items_of("--history", "f0030,f0001,f0002", "--top", 4)
    # The run has time gaps, so that these count.
    line = {"history": ["f0030", "f0001", "f0002"], "times": [LATER, LATER + 60, LATER + 3600], "top": 4}
    session = [event("s", "f0002", "2027-01-15T09:00:00Z"), event("s", "f0001", "2027-01-15T09:01:00+01:00"),
               event("s", "f0030", "2027-01-15 08:00:00")]
    status, pairs, _ = ask(server, "/api/session/recommend?n=4", session)
    assert status == 200 and [pair["Id"] for pair in pairs] == line_answer(**line)
    untimed = [{"ItemId": item} for item in ("f0030", "f0001", "f0002")]
    status, pairs, _ = ask(server, "/api/session/recommend?n=4", untimed)
    assert status == 200 and [pair["Id"] for pair in pairs] == items
    assert [pair["Score"] for pair in pairs] == pytest.approx(scores, rel=1e-6)
    assert len(ask(server, "/api/session/recommend", [])[1]) == 10


@pytest.mark.parametrize("body, error", [
    ({}, "body: must be an array of events"),
    ([1], "event 1: must be an object"),
    ([{"ItemId": "f0001"}, {"ItemId": 3}], 'event 2: "ItemId" must be a string (is 3)'),
    ([{"UserId": "u"}], 'event 1: "ItemId" must not be empty'),
    ([event("u", "i"), {"ItemId": "j"}], "all events must have a Timestamp, or none"),
    ([event("u", "i", "yesterday")],
     'event 1: "Timestamp" must be a date from 1970 on, such as 2024-05-01T10:30:00Z (is "yesterday")'),
    ([event("u", "i", 12)], 'event 1: "Timestamp" must be a string (is 12)'),
    ([{}] * 10_001, "body: must have at most 10000 events (has 10001)"),
])
def test_wrong_sessions_are_refused_as_text(server, body, error):
    assert ask(server, "/api/session/recommend", body) == (400, error + "\n", "text/plain")


def test_bodies_must_be_json(server):
    status, error, media = ask(server, "/api/session/recommend", b"[", headers={"Content-Type": "application/json"})
    assert status == 400 and error.startswith("body: ") and media == "text/plain"
    assert ask(server, "/api/session/recommend", b"[]", headers={"Content-Type": "text/plain"})[0] == 415


def test_feedback_needs_a_file_of_events(server):
    refusal = (403, "feedback is disabled on this server\n", "text/plain")
    assert ask(server, "/api/feedback", [event("u0005", "f0001")]) == refusal
    assert ask(server, "/api/feedback", [event("u0005", "f0001")], "PUT") == refusal


def test_feedback_counts_from_the_next_request_on_and_after_a_restart(events):
    times = [*(time for _, time in log_of("u0005")), LATER, LATER + 1]
    items = [*(item for item, _ in log_of("u0005")), "f0001", "f0002"]
    with ServeProcess([RUN, "--events", events]) as server:
        before = recommended(server, "u0005")
        later = event("u0005", "f0002", "2027-01-15T08:00:01Z", Comment="ignored")
        assert ask(server, "/api/feedback", [later, event("u0005", "f0001")]) == (200, {"RowAffected": 2},
                                                                                  "application/json")
        after = recommended(server, "u0005")
        assert after == line_answer(history=items, times=times) != before
        assert ask(server, "/api/feedback", [event("new", "f0030"), event("new", "unknown")], "PUT")[0] == 200
        for_new = recommended(server, "new")
        assert for_new == line_answer(history=["f0030", "unknown"], times=[LATER, LATER])
        assert ask(server, "/api/feedback", [])[1] == {"RowAffected": 0}
    assert events.read_text().splitlines() == [
        HEADER, f"u0005\tf0002\t{LATER + 1}\tview\t1\t1", f"u0005\tf0001\t{LATER}\tview\t1\t0",
        f"new\tf0030\t{LATER}\tview\t1\t1", f"new\tunknown\t{LATER}\tview\t1\t0"]
    with ServeProcess([RUN, "--events", events]) as server:
        assert recommended(server, "u0005") == after and recommended(server, "new") == for_new


def test_a_repeated_event_counts_once(events):
    with ServeProcess([RUN, "--events", events]) as server:
        assert ask(server, "/api/feedback", [event("u0005", "f0001")])[0] == 200
        once = recommended(server, "u0005")
        item, time = log_of("u0005")[-1]
        logged = event("u0005", item, datetime.fromtimestamp(time, timezone.utc).isoformat())
        assert ask(server, "/api/feedback", [event("u0005", "f0001"), logged])[1] == {"RowAffected": 2}
        assert recommended(server, "u0005") == once


@pytest.mark.parametrize("wrong, error", [
    (event("", "i"), "event 2: the user must have 1 to 256 bytes (has 0)"),
    (event("u", ""), "event 2: the item must have 1 to 256 bytes (has 0)"),
    (event("u" * 257, "i"), "event 2: the user must have 1 to 256 bytes (has 257)"),
    (event("u", "a\tb"), 'event 2: the item must have no control characters (is "a\\tb")'),
    (event("u", "a\nb"), 'event 2: the item must have no control characters (is "a\\nb")'),
    (event("u", "i", FeedbackType="\r"), 'event 2: the feedback type must have no control characters (is "\\r")'),
    (event("u", "i", Value="1"), 'event 2: "Value" must be a number'),
    (event("u", "i", "1969-12-31T23:59:59Z"), 'event 2: "Timestamp" must be a date from 1970 on'),
    ("u", "event 2: must be an object"),
])
def test_wrong_feedback_is_refused_as_a_whole(events, wrong, error):
    with ServeProcess([RUN, "--events", events]) as server:
        status, text, media = ask(server, "/api/feedback", [event("u0005", "f0001"), wrong])
        assert status == 400 and text.startswith(error) and media == "text/plain"
    assert events.read_text() == HEADER + "\n"


def test_an_event_without_a_time_happens_now(events):
    with ServeProcess([RUN, "--events", events]) as server:
        assert ask(server, "/api/feedback", [{"UserId": "u", "ItemId": "f0001", "FeedbackType": "like"},
                                             event("u", "f0002", "0001-01-01T00:00:00Z")])[0] == 200
    rows = [line.split("\t") for line in events.read_text().splitlines()[1:]]
    assert [row[1] for row in rows] == ["f0001", "f0002"] and rows[0][2] == rows[1][2]
    assert float(rows[0][2]) > 1_700_000_000 and rows[0][3:] == ["like", "0", "1"]


def test_the_file_is_a_log_to_train_with(events, tmp_path):
    with ServeProcess([RUN, "--events", events]) as server:
        body = [event(f"u{n % 7}", f"f{n % 11:04}", f"2027-01-15T08:{n:02}:30.25Z") for n in range(60)]
        assert ask(server, "/api/feedback", body)[1] == {"RowAffected": 60}
    report = qkv("train", "recommend", "--data", LOG, events, "--out", tmp_path / "run", "--d-model", 8, "--ffn", 8,
                 "--max-length", 12, "--max-steps", 2, "--threads", 1)[2]
    assert 'events.tsv: tab-separated, user "user", item "item", time "timestamp:s"' in report
    log = LOG.read_text().splitlines()[1:]
    assert f"{len(log) + 62} lines, {len(log) + 60} events" in report
    with ServeProcess([tmp_path / "run", "--events", events]) as server:
        again = json.loads(qkv("recommend", tmp_path / "run", "--user", "u1", "--json")[1])
        assert recommended(server, "u1") == [item["item"] for item in again["items"]]


def test_what_a_crash_left_incomplete_does_not_count(events, tmp_path):
    with ServeProcess([RUN, "--events", events]) as server:
        assert ask(server, "/api/feedback", [event("u0005", "f0001")])[0] == 200
        first = recommended(server, "u0005")
        whole = events.read_bytes()
        assert ask(server, "/api/feedback", [event("u0005", "f0002"), event("u0005", "f0003")])[0] == 200
        second = recommended(server, "u0005")
        server.process.kill()
    full = events.read_bytes()
    for size in (len(whole), len(whole) + 1, len(full) - 20, len(full) - 1, len(full)):  # event_store_test.cc: all
        torn = tmp_path / "torn.tsv"
        torn.write_bytes(full[:size])
        with ServeProcess([RUN, "--events", torn]) as server:
            assert recommended(server, "u0005") == (second if size == len(full) else first)
        assert torn.read_bytes() == (full if size == len(full) else whole)


@pytest.mark.parametrize("content, error", [
    ("user,item\n1,2\n", '1: expected the first line "user\\titem\\ttimestamp:s\\tfeedback\\tvalue\\tfollowing"'),
    ("no line end", "1: expected the first line"),
    (HEADER + "\na\tb\n", "2: expected 6 columns (found 2)"),
    (HEADER + "\na\tb\tc\td\t1\t0\n", '2: the time must be a number from 1970 to 9999 (is "c")'),
    (HEADER + "\na\t\t1\td\t1\t0\n", "2: the item must have 1 to 256 bytes (has 0)"),
    (HEADER + "\na\tb\t1\td\tnan\t0\n", "2: the value must be a finite number"),
    (HEADER + "\na\tb\t1\td\t1\t1\na\tb\t1\td\t1\t1\n", "3: following must be 0 (is 1)"),
    (HEADER + "\na\tb\t1\td\t1\t10000\n", "2: following must be less than 10000 (is 10000)"),
    (HEADER + "\n" + "a" * 5000 + "\n", "2: a line has more than 4096 bytes"),
])
def test_a_file_of_another_kind_is_refused_and_stays_as_it_is(events, content, error):
    events.write_text(content)
    status, _, text = qkv("serve", RUN, "--listen", "127.0.0.1:0", "--events", events, ok=False)
    assert status == 1 and f"{events}:{error}" in text and events.read_text() == content


def test_a_file_has_one_server(events):
    with ServeProcess([RUN, "--events", events]):
        status, _, text = qkv("serve", RUN, "--listen", "127.0.0.1:0", "--events", events, ok=False)
        assert status == 1 and f"{events}: is in use by another process" in text


def test_a_full_disk_is_reported_and_nothing_of_the_request_counts(events):
    with ServeProcess([RUN, "--events", events]) as server:
        resource.prlimit(server.pid, resource.RLIMIT_FSIZE, (4096, 4096))  # as a full disk: EFBIG for ENOSPC
        assert ask(server, "/api/feedback", [event("u0005", "f0001")])[0] == 200
        whole, before = events.read_bytes(), recommended(server, "u0005")
        status, text, _ = ask(server, "/api/feedback", [event("u0005", f"f{n:04}") for n in range(200)])
        assert (status, text) == (503, "the events cannot be stored: File too large\n")
        assert events.read_bytes() == whole and recommended(server, "u0005") == before
        assert ask(server, "/api/feedback", [event("u0005", "f0002")])[0] == 200
        assert recommended(server, "u0005") != before


def test_concurrent_requests_are_all_stored(events):
    with ServeProcess([RUN, "--events", events]) as server, ThreadPoolExecutor(16) as pool:
        def send(n):
            return ask(server, "/api/feedback", [event(f"u{n}", f"f{k:04}") for k in range(3)])[1]
        assert list(pool.map(send, range(100))) == [{"RowAffected": 3}] * 100
    rows = [line.split("\t") for line in events.read_text().splitlines()[1:]]
    assert sorted({row[0] for row in rows}) == sorted(f"u{n}" for n in range(100))
    assert [row[5] for row in rows] == ["2", "1", "0"] * 100  # a request is not interrupted by another one


@pytest.mark.release
def test_the_official_client_works(events):
    gorse = pytest.importorskip("gorse")
    with ServeProcess([RUN, "--events", events]) as server:
        client = gorse.Gorse(server.url, "")
        items, scores = items_of("--user", "u0005", "--top", 10)
        found = client.get_recommend("u0005")
        assert [item.id for item in found] == items and [item.score for item in found] == pytest.approx(scores, rel=1e-6)
        assert [item.id for item in client.get_recommend("u0005", n=2, offset=2)] == items[2:4]
        with pytest.raises(gorse.GorseException) as caught:
            client.get_recommend("u0005", "films")
        assert caught.value.status_code == 400 and caught.value.message.startswith("categories are not supported")
        session = client.session_recommend([event("s", "f0030")], n=3)
        assert len(session) == 3 and set(session[0]) == {"Id", "Score"}
        assert client.insert_feedback("like", "new", "f0030", "2027-01-15T08:00:00+00:00", 5.0) == {"RowAffected": 1}
        assert client.insert_feedbacks([event("new", "f0001"), event("new", "f0002", "2027-01-16")]) == {"RowAffected": 2}
        assert not {"f0030", "f0001", "f0002"} & {item.id for item in client.get_recommend("new", n=30)}


@pytest.mark.release
def test_the_official_asynchronous_client_works(events):
    gorse = pytest.importorskip("gorse")
    import asyncio

    async def talk(url):
        client = gorse.AsyncGorse(url, "key")
        assert await client.insert_feedback("like", "new", "f0030", "2027-01-15T08:00:00Z") == {"RowAffected": 1}
        return [item.id for item in await client.get_recommend("new", n=3)]

    with ServeProcess([RUN, "--events", events]) as server:
        assert asyncio.run(talk(server.url)) == line_answer(history=["f0030"], times=[LATER], top=3)
