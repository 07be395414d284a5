"""Options: keyword arguments, types and docstrings are generated from one description."""

import typing

import pytest

import qkv
from qkv import _options, _qkv

METHODS = {
    "TranslateOptions": qkv.Translator.translate,
    "SummaryOptions": qkv.Translator.summarize,
    "GenerateOptions": qkv.Generator.generate_all,
    "ScoreOptions": qkv.Generator.score,
    "RecommendOptions": qkv.Recommender.recommend_all,
    "EmbedOptions": qkv.Embedder.embed,
    "HardNegativeOptions": qkv.Embedder.mine_hard_negatives,
    "ClassifyOptions": qkv.Classifier.classify,
    "RerankOptions": qkv.Classifier.rerank,
    "HeadsOptions": qkv.analyse_heads,
    "ImportOptions": qkv.import_model,
    "TranslationRecipe": qkv.train_translator,
    "RecommendationRecipe": qkv.train_recommender,
    "LanguageRecipe": qkv.train_language_model,
    "EncoderRecipe": qkv.train_encoder,
    "ClassifierRecipe": qkv.train_classifier,
    "EmbedderRecipe": qkv.train_embedder,
}


@pytest.mark.parametrize("name", METHODS)
def test_every_option_has_a_type_and_a_docstring_entry(name):
    fields = _qkv.option_fields()[name]
    assert len(fields) > 2
    assert list(typing.get_type_hints(getattr(_options, name))) == [field["name"] for field in fields]
    for field in fields:
        words = " ".join(METHODS[name].__doc__.split())
        assert f"{field['name']}: {field['help']} (default {field['default']})." in words


def test_unknown_options_raise_type_error(trained):
    translator = qkv.Translator(trained)
    with pytest.raises(TypeError, match=r"translate\(\) got an unexpected keyword argument 'beams'"):
        translator.translate(["a"], beams=3)


def test_sampling_filters_can_leave_only_the_most_probable_token(trained):
    translator = qkv.Translator(trained)
    best = translator.translate(["He sleeps."], beam=1)[0].text
    for options in ({"min_p": 1.0}, {"top_k": 1}, {"temperature": 0}):
        assert translator.translate(["He sleeps."], sampling=True, seed=5, **options)[0].text == best
