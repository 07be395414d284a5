"""Hidden states, the logit lens, rollout, attribution and activation patching of runs, against plain NumPy and peers."""

import importlib.util
import json
import pathlib
import shutil

import numpy as np
import pytest
from plain_models import PlainRecommender, PlainTranslator, read_pieces

import qkv

GOLDEN = pathlib.Path(__file__).resolve().parent.parent / "golden"
PAIR = ("The dog sees the cat.", "Der Hund sieht die Katze.")


@pytest.fixture(scope="module")
def translator(trained):
    return qkv.Translator(trained)


@pytest.fixture(scope="module")
def generator(counting):
    return qkv.Generator(counting)


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    out = tmp_path_factory.mktemp("bert") / "run"
    qkv.import_model(GOLDEN / "bert/sentence", out, tokens=True)
    return qkv.Embedder(out)


SOURCES = ("The dog sees the cat.", "The cat sees the dog.")  # of as many tokens
PLACES = [("encoder", "residual", ""), ("encoder", "attention", ".self_attention"), ("encoder", "feed-forward", ".feed_forward"),
          ("encoder", "head", ".self_attention.heads"), ("decoder", "residual", ""), ("decoder", "attention", ".self_attention"),
          ("decoder", "cross-attention", ".cross_attention"), ("decoder", "feed-forward", ".feed_forward"),
          ("decoder", "head", ".self_attention.heads"), ("decoder", "cross-head", ".cross_attention.heads")]


@pytest.mark.parametrize("stack, part, output", PLACES)
def test_patching_of_a_translator_equals_plain_numpy(stack, part, output, trained, translator):
    model = PlainTranslator(pathlib.Path(trained))
    ids = read_pieces(pathlib.Path(trained) / "tokenizer.model")
    found = translator.patch(*SOURCES, part=part, stack=stack, prefix="Der")
    assert (found.part, found.stack) == (part, stack)
    clean, corrupted = ([ids[piece] for piece in translator.hidden(text, "Der").encoder.pieces] for text in SOURCES)
    read = [ids[piece] for piece in translator.hidden(SOURCES[0], "Der").decoder.pieces]
    assert [ids[piece] for piece in found.clean] == (clean if stack == "encoder" else read)

    def score(source):
        memory = model.stack("encoder", model.embed(source))[0][-1]
        logits = model.logits(model.stack("decoder", model.embed(read), memory)[0][-1])[-1]
        return logits[ids[found.answer]] - (logits[ids[found.wrong]] if found.wrong else np.log(np.exp(logits).sum()))

    outputs = {}
    model.see = lambda name, x: outputs.setdefault(name, x)
    np.testing.assert_allclose(found.clean_score, score(clean), atol=1e-5)
    model.see = lambda name, x: x
    np.testing.assert_allclose(found.corrupted_score, score(corrupted), atol=1e-5)
    names = [f"{stack}.layers.{layer}{output}" for layer in range(model.config[f"{stack}_layers"])]
    names = [f"{stack}.embedding"] * (part == "residual") + names
    heads = model.config["heads"]
    assert found.scores.shape == (len(names), heads if "head" in part else len(found.clean))
    for layer, name in enumerate(names):
        width = outputs[name].shape[1] // heads
        for column in range(found.scores.shape[1]):
            place = np.s_[:, column * width:(column + 1) * width] if "head" in part else np.s_[column]

            def see(seen, x):
                if seen != name:
                    return x
                x = x.copy()
                x[place] = outputs[name][place]
                return x
            model.see = see
            np.testing.assert_allclose(found.scores[layer, column], score(corrupted), atol=1e-5)


@pytest.mark.parametrize("options", [{"beam": 4}, {"beam": 3, "length_penalty": 0}, {"beam": 1},
                                     {"beam": 2, "max_length": 2}, {"beam": 3, "early_stopping": "never"}], ids=str)
def test_a_trace_is_the_search_of_the_translation(options, trained, translator):
    """Probabilities are those of the logits of each hypothesis, and the best that ended is the translation."""
    trace, pieces = translator.trace(SOURCES[0], **options), read_pieces(pathlib.Path(trained) / "tokenizer.model")
    wanted, = translator.translate([SOURCES[0]], n_best=1, sentences="line", **options)
    assert (trace.source, trace.translation, trace.beam) == (SOURCES[0], wanted.text, options["beam"])
    live, ended = [((), 0.0)], []  # tokens and log p
    for t, step in enumerate(trace.steps):
        known = translator.logits([SOURCES[0]] * len(live), [list(tokens) for tokens, _ in live])
        logs = [rows[-1].astype(np.float64) - np.log(np.exp(rows[-1].astype(np.float64)).sum()) for rows in known]

        def extended(one):
            tokens, total = live[one.parent]
            assert one.token_log_probability == pytest.approx(logs[one.parent][pieces[one.token]], abs=1e-5)
            assert one.log_probability == pytest.approx(total + one.token_log_probability, abs=1e-5)
            return (*tokens, one.token), one.log_probability
        for one in step.ended:
            assert one.score == pytest.approx(one.log_probability / (t + 1) ** options.get("length_penalty", 1))
        ended += [(one.score, extended(one)[0]) for one in step.ended]
        live = [extended(one) for one in step.live]
        assert len(live) <= options["beam"] and [p for _, p in live] == sorted((p for _, p in live), reverse=True)
    assert not live
    score, tokens = max(ended, key=lambda one: one[0])
    best = wanted.hypotheses[0]
    assert score == pytest.approx(best.score, abs=1e-6)
    assert [token for token in tokens if token != "</s>"] == [token for token in best.tokens if token != "</s>"]


@pytest.fixture(scope="module")
def plain(trained, translator):
    """The pair as NumPy computes it: states and weights of both sides, and the probabilities after each layer."""
    model = PlainTranslator(pathlib.Path(trained))
    ids = read_pieces(pathlib.Path(trained) / "tokenizer.model")
    states = translator.hidden(*PAIR)
    source, own, _ = model.stack("encoder", model.embed([ids[p] for p in states.encoder.pieces]))
    target, masked, cross = model.stack("decoder", model.embed([ids[p] for p in states.decoder.pieces]), source[-1])
    names = {number: piece for piece, number in ids.items()}
    return {"encoder": source, "decoder": target, "weights": (own, masked, cross), "lens": model.probabilities(target),
            "names": names}


def test_hidden_states_of_a_translator_equal_plain_numpy(translator, plain):
    found = translator.hidden(*PAIR)
    assert found.translation == PAIR[1]
    for side, wanted in (("encoder", found.encoder), ("decoder", found.decoder)):
        assert wanted.values.dtype == np.float32
        np.testing.assert_allclose(wanted.values, plain[side], atol=1e-5)
    output, = translator.encode(PAIR[:1])
    np.testing.assert_allclose(found.encoder.values[-1], output, atol=1e-6)
    assert translator.hidden(PAIR[0]).translation == translator.translate([PAIR[0]])[0].text


@pytest.mark.parametrize("count", [1, 7, 30])  # events, more than the model reads
def test_hidden_states_of_a_recommender_equal_plain_numpy(films, count):
    recommender, model = qkv.Recommender(films / "run"), PlainRecommender(films / "run")
    history = [recommender.items[i * 31 % len(recommender.items)] for i in range(count)]
    states = recommender.hidden(history)
    read = history[-recommender.max_length:]
    assert states.pieces == read and states.values.dtype == np.float32
    np.testing.assert_allclose(states.values, model.states([recommender.items.index(item) for item in read]), atol=1e-5)
    for wrong, message in (([], "history: must have an event"), (["nothing"], 'history: the item "nothing" is not in')):
        with pytest.raises(qkv.Error, match=message):
            recommender.hidden(wrong)


def test_the_defaults_of_a_run_are_those_of_its_analyses(trained, tmp_path):
    shutil.copytree(trained, tmp_path / "run")
    (tmp_path / "run/decoding.json").write_text(json.dumps({"source_prefix": "The dog sees: ", "max_length": 3}))
    translator = qkv.Translator(tmp_path / "run")
    wanted, = translator.translate(PAIR[:1])
    assert len(wanted.hypotheses[0].tokens) <= 3
    states, lens, attention = translator.hidden(PAIR[0]), translator.lens(PAIR[0]), translator.attend(PAIR[0])
    assert states.translation == lens.target == attention.target == wanted.text
    assert states.encoder.pieces == wanted.source_tokens == attention.kinds["encoder"].rows
    assert len(wanted.source_tokens) > len(qkv.Translator(trained).hidden(*PAIR).encoder.pieces)


def test_attention_and_its_rollout_equal_plain_numpy(translator, plain):
    own, masked, cross = plain["weights"]
    weights = translator.attend(*PAIR)
    for kind, wanted in zip(("encoder", "decoder", "cross"), (own, masked, cross)):
        np.testing.assert_allclose(weights.kinds[kind].weights, np.stack(wanted), atol=1e-5)

    def mixed(layer):
        return (layer.mean(0) + np.eye(len(layer[0]))) / 2

    source = np.eye(own[0].shape[1])
    found = translator.attend(*PAIR, method="rollout")
    for layer, shares in zip(own, found.kinds["encoder"].weights):
        source = mixed(layer) @ source
        np.testing.assert_allclose(shares[0], source, atol=1e-5)
    target, of_source = np.eye(masked[0].shape[1]), np.zeros(cross[0].shape[1:])
    for l, (layer, other) in enumerate(zip(masked, cross)):
        target = mixed(layer) @ target / 2
        of_source = mixed(layer) @ of_source / 2 + other.mean(0) @ source / 2
        np.testing.assert_allclose(found.kinds["decoder"].weights[l, 0], target, atol=1e-5)
        np.testing.assert_allclose(found.kinds["cross"].weights[l, 0], of_source, atol=1e-5)
    np.testing.assert_allclose(target.sum(1) + of_source.sum(1), 1)
    assert {kind.method for kind in found.kinds.values()} == {"rollout"} and not found.tokens
    assert found.to_text().startswith("cross attention rollout, layers 1 to 1 of 1: shares of columns in rows; the rest of each row is in decoder\n")


def test_the_rollout_of_several_layers_is_the_product_of_their_weights(encoder):
    weights = encoder.attend("a b c").kinds["encoder"].weights.astype(np.float64)
    found = encoder.attend("a b c", method="rollout").kinds["encoder"].weights
    assert found.shape == (2, 1, 5, 5)
    product = np.eye(5)
    for layer, shares in zip(weights, found):
        product = (layer.mean(0) + np.eye(5)) / 2 @ product
        np.testing.assert_allclose(shares[0], product, atol=1e-6)


def test_the_flow_of_one_layer_is_its_weights_and_of_more_is_limited_by_the_narrowest(translator, encoder):
    weights = encoder.attend("a b c").kinds["encoder"].weights.astype(np.float64)
    mixed = [(layer.mean(0) + np.eye(5)) / 2 for layer in weights]
    found = encoder.attend("a b c", method="flow").kinds["encoder"].weights[:, 0]
    np.testing.assert_allclose(found[0], mixed[0], atol=1e-6)
    # Two layers: every path has one state between its ends, and no two paths share an edge.
    flow = np.minimum(mixed[1][:, :, None], mixed[0][None]).sum(1)
    np.testing.assert_allclose(found[1], flow / flow.sum(1, keepdims=True), atol=1e-6)
    kinds = translator.attend(*PAIR, method="flow").kinds
    np.testing.assert_allclose(kinds["decoder"].weights.sum(-1) + kinds["cross"].weights.sum(-1), 1, atol=1e-6)
    assert {kind.method for kind in kinds.values()} == {"flow"}


def test_the_lens_of_a_translator_equals_plain_numpy(translator, plain):
    lens = translator.lens(*PAIR)
    assert (lens.source, lens.target, lens.read[0]) == (*PAIR, "<s>")
    answers = plain["lens"][-1].argmax(-1)
    assert lens.answers == [plain["names"][i] for i in answers]
    for layer, wanted in zip(lens.layers, plain["lens"], strict=True):
        for found, row, answer in zip(layer, wanted, answers, strict=True):
            assert found.probability == pytest.approx(row.max(), abs=1e-5)
            assert found.answer_probability == pytest.approx(row[answer], abs=1e-5)
            assert row[list(plain["names"].values()).index(found.token)] == pytest.approx(row.max(), abs=1e-5)
            assert abs(found.answer_rank - 1 - (row > row[answer]).sum()) <= (abs(row - row[answer]) < 1e-6).sum() - 1
    assert json.loads(lens.to_json())["answers"] == lens.answers


def test_attributions_add_up_and_favour_what_is_read(translator):
    # ReLU makes the gradient jump, so that a quadrature of n points has errors of about 1 / n.
    found = translator.attend(*PAIR, method="integrated", steps=400)
    assert list(found.kinds) == ["decoder", "cross"] and found.kinds["cross"].rows[-1] == "</s>"
    score, = translator.score(PAIR[:1], PAIR[1:])
    for token, log_p in zip(found.tokens, score.hypotheses[0].token_scores, strict=True):
        assert token.log_probability == pytest.approx(log_p, abs=1e-4)
        assert token.sum == pytest.approx(token.log_probability - token.baseline, abs=5e-3)
    values = [kind.values[0, 0] for kind in found.kinds.values()]
    sums = sum(x.sum(1) for x in values)
    np.testing.assert_allclose(sums, [token.sum for token in found.tokens], atol=1e-4)
    size = sum(abs(x).sum(1) for x in values)
    for kind, x in zip(found.kinds.values(), values):
        np.testing.assert_allclose(kind.weights[0, 0], abs(x) / size[:, None], atol=1e-5)
    assert not np.triu(values[0], 1).any()
    written = json.loads(found.to_json())
    assert written["attention"][0]["method"] == "integrated" and len(written["tokens"]) == len(found.tokens)
    np.testing.assert_allclose(written["attention"][1]["values"], found.kinds["cross"].values)
    words = found.merge_words()
    assert words.kinds["cross"].values.sum() == pytest.approx(values[1].sum(), abs=1e-4)
    assert sum(t.sum for t in words.tokens) == pytest.approx(sum(t.sum for t in found.tokens), abs=1e-4)
    assert "cross-integrated" in found.to_html()


def test_a_counting_model_reads_the_last_digit(generator):
    kind = generator.attend("12345", method="gradient").kinds["decoder"]
    assert kind.rows == ["1", "2", "3", "4", "5", "6"] and kind.columns == ["<s>", "1", "2", "3", "4", "5"]
    assert (abs(kind.values[0, 0]).argmax(1)[1:] == np.arange(1, 6)).all()
    lens = generator.lens("12345")
    assert lens.answers[1:] == ["2", "3", "4", "5", "6"]
    assert all(p.answer_rank == 1 and p.token == a for p, a in zip(lens.layers[-1], lens.answers))


def test_patching_recovers_all_or_nothing_where_it_must(generator):
    found = generator.patch("12345", "12346")
    assert (found.part, found.answer, found.wrong) == ("residual", "6", "7")
    assert found.clean[:-1] == found.corrupted[:-1] and found.recovered.shape == (2, 6)
    np.testing.assert_allclose(found.recovered[:, :-1], 0, atol=1e-6)  # tokens that the texts share
    np.testing.assert_allclose(found.recovered[:, -1], 1, atol=1e-6)
    assert found.scores[0, 0] == pytest.approx(found.corrupted_score, abs=1e-5)
    for part, shape in (("attention", (1, 6)), ("feed-forward", (1, 6)), ("head", (1, 2))):
        assert generator.patch("12345", "12346", part=part).recovered.shape == shape
    same = generator.patch("12345", "91345", answer="67")
    assert (same.answer, same.wrong) == ("6", None) and same.clean_score < 0


@pytest.mark.parametrize("call, message", [
    (lambda g: g.patch("1", "12"), "clean and corrupted must have the same number of tokens, at least 1 (have 2: \"<s> 1\" and 3: \"<s> 1 2\")"),
    (lambda g: g.patch("1", "1"), "clean and corrupted have the same score"),
    (lambda g: g.patch("1", "2", answer="34", wrong="35"), 'answer and wrong begin with the same token, "3"'),
    (lambda g: g.attend("1", steps=7), "steps must not be set if method is weights; only integrated has steps (is 7)"),
    (lambda g: g.attend("1", method="rollout", baseline="2"),
     'baseline must not be set if method is rollout; only gradient and integrated have a baseline (is "2")'),
    (lambda g: g.patch("1", "2", part="layer"), "part must be one of residual, attention, cross-attention, feed-forward, head, cross-head"),
    (lambda g: g.patch("1" * 40, "2"), "clean must have at most 32 tokens, the start token included (has 41)"),
    (lambda g: g.lens("1" * 40), "text must have at most 32 tokens, the start token included (has 41)"),
    (lambda g: g.hidden("1" * 40), "text must have at most 32 tokens, the start token included (has 41)"),
    (lambda g: g.attend("1", method="paths"), "method must be one of weights, rollout, flow, gradient, integrated"),
    (lambda g: g.attend("1", method="integrated", steps=0), "steps must be between 1 and 1000 (is 0)"),
])
def test_invalid_arguments_are_errors(generator, call, message):
    with pytest.raises(qkv.Error) as error:
        call(generator)
    assert message in str(error.value)


def test_an_encoder_embeds_the_states_of_a_layer(encoder):
    texts = ["a b c", "h g"]
    states = [encoder.hidden(text) for text in texts]
    assert states[0].pieces == encoder.attend("a b c").kinds["encoder"].rows
    for layer in range(3):
        wanted = np.stack([x.values[layer].mean(0) for x in states])
        found = encoder.embed(texts, layer=layer, pooling="mean", normalize=False)
        np.testing.assert_allclose(found, wanted, atol=1e-6)
        assert (encoder.embed(texts, layer=layer - 3, pooling="mean", normalize=False) == found).all()
    assert (encoder.embed(texts, layer=2) == encoder.embed(texts)).all()
    for layer in (3, -4):
        with pytest.raises(qkv.Error, match=rf"^layer must be between -3 and 2 \(is {layer}\)$"):
            encoder.embed(texts, layer=layer)
    with pytest.raises(qkv.Error, match=r"^method must be weights, rollout or flow for an encoder \(is gradient\)$"):
        encoder.attend("a", method="gradient")


def test_hidden_states_of_other_runs_are_refused(trained):
    with pytest.raises(qkv.Error, match="^hidden: the run is a translator or a language model, expected an encoder$"):
        qkv.Embedder(trained).hidden("a")


def test_states_of_an_encoder_equal_those_of_transformers(encoder):
    torch, transformers = pytest.importorskip("torch"), pytest.importorskip("transformers")
    model = transformers.AutoModel.from_pretrained(GOLDEN / "bert/sentence").eval()
    found = encoder.hidden("a c b")
    names = (GOLDEN / "bert/sentence/vocab.txt").read_text().split("\n")
    with torch.no_grad():
        theirs = model(torch.tensor([[names.index(piece.strip("▁")) for piece in found.pieces]]), output_hidden_states=True)
    np.testing.assert_allclose(found.values, torch.cat(theirs.hidden_states).numpy(), atol=1e-5)


def test_kept_numbers_are_those_of_torch_transformers_and_captum():
    for module in ("torch", "transformers", "captum", "safetensors"):
        pytest.importorskip(module)
    spec = importlib.util.spec_from_file_location("make_analysis", GOLDEN / "analysis/make.py")
    make = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(make)
    for name, tensors in make.all_tensors().items():
        kept = make.load_file(GOLDEN / f"analysis/{name}.safetensors")
        assert set(kept) == set(tensors)
        for key, found in tensors.items():
            size = max(1, abs(kept[key]).max().item())
            np.testing.assert_allclose(found.numpy(), kept[key].numpy(), atol=1e-6 * size, err_msg=f"{name} {key}")
