"""qkv.Classifier with imported models, compared with the program and with transformers."""

import json
import pathlib

import pytest

import qkv

GOLDEN = pathlib.Path(__file__).resolve().parent.parent / "golden/classify"


def imported(name, run_program, tmp_path_factory):
    run = tmp_path_factory.mktemp(name) / "run"
    run_program("import", GOLDEN / name, run)
    return run


@pytest.fixture(scope="module")
def run(run_program, tmp_path_factory):
    return imported("bert", run_program, tmp_path_factory)


@pytest.fixture(scope="module")
def classifier(run):
    return qkv.Classifier(run)


@pytest.fixture(scope="module")
def cross(run_program, tmp_path_factory):
    return qkv.Classifier(imported("cross", run_program, tmp_path_factory))


def expected(name):
    return json.loads((GOLDEN / name / "expected.json").read_text())


@pytest.mark.filterwarnings("ignore:.* were truncated")
def test_scores_match_transformers(classifier):
    inputs = expected("bert")["inputs"]
    texts = [each["text"] if each["pair"] is None else (each["text"], each["pair"]) for each in inputs]
    for found, each in zip(classifier.classify(iter(texts), top=0), inputs, strict=True):
        assert {label: pytest.approx(score, rel=1e-5) for label, score in zip(classifier.labels, each["scores"])} == dict(
            found)
        assert [label.score for label in found] == sorted((label.score for label in found), reverse=True)


def test_the_best_labels_come_first(classifier):
    (best,), (two,) = classifier.classify(["a b"]), classifier.classify(["a b"], top=2)
    assert best == two[:1] and len(two) == 2
    assert best[0].label in classifier.labels and 0 < best[0].score < 1
    assert classifier.classify([]) == []


def test_texts_are_ranked_by_their_pair_with_the_query(cross):
    texts = ["a", "b c", "a", "h g f"]
    ranked = cross.rerank("e d", iter(texts))
    scores = [best[0].score for best in cross.classify([("e d", text) for text in texts])]
    assert ranked == sorted(enumerate(scores), key=lambda pair: -pair[1])
    assert cross.rerank("e d", texts, top=1) == ranked[:1]


def test_truncated_texts_give_a_warning(classifier):
    with pytest.warns(UserWarning, match="1 of 2 texts had more than 6 tokens and were truncated"):
        classifier.classify(["a b c d e", ("a", "b")], max_length=6)


@pytest.mark.parametrize("call, message", [
    (lambda c: c.classify("a"), "texts must be a list of str and pairs of str (is 'a')"),
    (lambda c: c.classify(["a", 3]), "texts[1] must be a str (is 3)"),
    (lambda c: c.classify([("a", 3)]), "texts[0][1] must be a str (is 3)"),
    (lambda c: c.classify(["a"], scores="max"), "scores must be one of softmax, sigmoid, none (is 'max')"),
    (lambda c: c.classify(["a"], top=-1), "top must be between 0 and 16777216 (is -1)"),
    (lambda c: c.rerank(3, ["a"]), "query must be a str (is 3)"),
    (lambda c: c.rerank("a", ["b"]), "label must be one of negative, neutral, positive: the model has several"),
])
def test_errors_name_the_argument(classifier, call, message):
    with pytest.raises(qkv.Error) as error:
        call(classifier)
    assert str(error.value) == message
