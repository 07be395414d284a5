"""qkv export: transformers loads the directories and gives the same results. Those tests are skipped without transformers."""

import importlib.util
import json
import math

import pytest
from conftest import head, qkv

needs_transformers = pytest.mark.skipif(importlib.util.find_spec("transformers") is None, reason="no transformers")

SHAPE = ["--d-model", 32, "--heads", 4, "--ffn", 48, "--max-steps", 40, "--warmup-steps", 5, "--eval-every", 40, "--threads", 1]
TEXT = SHAPE + ["--decoder-layers", 2, "--max-length", 48, "--batch-tokens", 256]
MODERN = ["--norm", "rms", "--positions", "rotary", "--gated-ffn", "true", "--activation", "silu", "--ffn-bias", "false"]
PROMPT = "A dog runs\nacross the "


@pytest.fixture(scope="module")
def language_run(corpus, tmp_path_factory):
    """Trains a language model on the example's sentences."""

    def train(*options):
        run = tmp_path_factory.mktemp("lm") / "run"
        qkv("train", "lm", "--text", corpus[1], "--out", run, *TEXT, *options)
        return run

    return train


def test_a_run_becomes_a_directory(counting, tmp_path):
    _, out, _ = qkv("export", counting, tmp_path / "out")
    assert out.startswith(f"{tmp_path}/out: starcoder2 model, ") and out.endswith(" parameters\n")
    files = {path.name for path in (tmp_path / "out").iterdir()}
    assert files == {"config.json", "generation_config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"}
    status, _, error = qkv("export", counting, tmp_path / "out", ok=False)
    assert (status, error) == (1, f"qkv: {tmp_path}/out: already exists\n")
    status, _, error = qkv("export", counting, tmp_path / "other", "--dtype", "int4", ok=False)
    assert (status, error) == (2, "qkv: --dtype: must be one of float32, float16, bfloat16 (is int4)\n")


def test_a_model_without_a_class_is_one_line(language_run, timed_run, tmp_path):
    run = language_run("--unit", "bytes", "--positions", "alibi")
    status, _, error = qkv("export", run, tmp_path / "out", ok=False)
    assert status == 1 and error == f"qkv: {run}/config.json: positions must be learned for the nearest class, gpt2 (is alibi)\n"
    status, _, error = qkv("export", timed_run, tmp_path / "out", ok=False)
    assert status == 1 and error.count("\n") == 1 and "gap_buckets must be 0 (is 66)" in error
    assert not list(tmp_path.iterdir())


def expect_same_text(run, folder, model_type):
    """Compares the most probable text and its log-probabilities."""
    import torch
    import transformers

    qkv("export", run, folder)
    likely = ["--prompt", PROMPT, "--max-tokens", 20, "--temperature", 0, "--json"]
    ours = json.loads(qkv("generate", run, *likely)[1])
    model = transformers.AutoModelForCausalLM.from_pretrained(folder)
    pieces = (folder / "tokenizer.model").exists()
    tokenizer = (transformers.LlamaTokenizer if pieces else transformers.AutoTokenizer).from_pretrained(folder)
    assert model.config.model_type == model_type
    ids = tokenizer(PROMPT, return_tensors="pt")["input_ids"]
    with torch.no_grad():
        generated = model.generate(ids, attention_mask=torch.ones_like(ids), do_sample=False, max_new_tokens=20)[0]
        p = model(generated[None]).logits[0].log_softmax(-1)
    begin = ids.shape[1]
    theirs = [p[i - 1, generated[i]].item() for i in range(begin, len(generated))]
    assert tokenizer.decode(ids[0], skip_special_tokens=True) == PROMPT
    assert tokenizer.decode(generated[begin:], skip_special_tokens=True) == ours["text"]
    found = [token["log_probability"] for token in ours["tokens"]]
    assert found == pytest.approx(theirs[: len(found)], abs=1e-4) and len(theirs) - len(found) in (0, 1)  # the end token


@needs_transformers
@pytest.mark.parametrize("model_type, options", [
    ("starcoder2", ["--unit", "characters"]),
    ("starcoder2", ["--unit", "bytes", "--ffn-bias", "true", "--window", 7, "--key-value-heads", 2]),
    ("gpt2", ["--unit", "characters", "--positions", "learned"]),
    ("gpt2", ["--unit", "bytes", "--preset", "gpt2", "--positions", "interleaved", "--scale-embeddings", "true"]),
    ("gpt2", ["--unit", "pieces", "--vocab-size", 400, "--positions", "learned"]),
    ("gpt_neox", ["--unit", "characters", "--sublayers", "parallel", "--rotary-width", 4]),
    ("llama", ["--unit", "bytes", *MODERN]),
    ("llama", ["--unit", "characters", *MODERN, "--rotary-scaling", "yarn", "--rotary-scale", 4, "--rotary-context", 16,
               "--key-value-heads", 2, "--tied-output", "false"]),
    ("mistral", ["--unit", "characters", *MODERN, "--window", 7]),
    ("phi", ["--unit", "bytes", "--sublayers", "parallel_shared_norm", "--rotary-width", 6, "--output-bias", "true"]),
    ("qwen2", ["--unit", "pieces", "--vocab-size", 400, *MODERN, "--attention-input-bias", "true"]),
    ("qwen3", ["--unit", "bytes", *MODERN, "--query-key-norm", "true"]),
    ("olmo2", ["--unit", "bytes", *MODERN, "--norm-position", "branch", "--query-key-norm", "true",
               "--query-key-norm-over-heads", "true"]),
    ("smollm3", ["--unit", "characters", *MODERN, "--layer-pattern", "gn"]),
    ("phi3", ["--unit", "bytes", *MODERN, "--window", 7, "--rotary-width", 4]),
    ("gemma2", ["--unit", "characters", *MODERN, "--norm-position", "sandwich", "--layer-pattern", "lg", "--window", 5,
                "--softcap", 20, "--output-softcap", 10, "--scale-embeddings", "true"]),
    ("gemma3_text", ["--unit", "bytes", *MODERN, "--norm-position", "sandwich", "--layer-pattern", "lg", "--window", 5,
                     "--rotary-local-base", 100, "--query-key-norm", "true", "--scale-embeddings", "true"]),
])
def test_language_models_generate_the_same(language_run, tmp_path, model_type, options):
    expect_same_text(language_run(*options), tmp_path / "out", model_type)


@pytest.mark.skipif(importlib.util.find_spec("ctranslate2") is None or importlib.util.find_spec("transformers") is None,
                    reason="no ctranslate2")
@pytest.mark.parametrize("options", [[], ["--positions", "halves", "--activation", "gelu"], ["--positions", "learned"]])
def test_ctranslate2_converts_a_translator_and_translates_the_same(corpus, tmp_path, options):
    import ctranslate2
    import ctranslate2.converters

    run = tmp_path / "run"
    qkv("train", "translate", *corpus, "--out", run, *SHAPE, "--encoder-layers", 2, "--decoder-layers", 1, "--max-length", 150,
        "--vocab-size", 200, "--batch-tokens", 512, *options)
    qkv("export", run, tmp_path / "out")
    ctranslate2.converters.TransformersConverter(str(tmp_path / "out")).convert(str(tmp_path / "ct2"))
    translator = ctranslate2.Translator(str(tmp_path / "ct2"))
    lines = head(corpus[4], 8, tmp_path / "lines").read_text()
    ours = [json.loads(line) for line in
            qkv("translate", run, "--beam", 1, "--json", "--max-length", 30, text=lines)[1].splitlines()]
    found = translator.translate_batch([line["source_tokens"] + ["</s>"] for line in ours], beam_size=1,
                                       max_decoding_length=29, return_scores=True)
    for line, theirs in zip(ours, found, strict=True):
        tokens = [token for token in line["hypotheses"][0]["tokens"] if token != "</s>"]
        assert theirs.hypotheses[0] == tokens[:29]


@needs_transformers
@pytest.mark.parametrize("options", [[], ["--positions", "halves", "--tied-output", "false", "--activation", "gelu"],
                                     ["--shared-embeddings", "false", "--positions", "learned", "--attention-input-bias", "false"],
                                     ["--joint-vocabulary", "false", "--shared-embeddings", "false"]])
def test_translators_translate_the_same(corpus, tmp_path, options):
    import torch
    import transformers

    run = tmp_path / "run"
    qkv("train", "translate", *corpus, "--out", run, *SHAPE, "--encoder-layers", 2, "--decoder-layers", 1, "--max-length", 150,
        "--vocab-size", 200, "--batch-tokens", 512, *options)
    qkv("export", run, tmp_path / "out")
    model = transformers.AutoModelForSeq2SeqLM.from_pretrained(tmp_path / "out")
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "out")
    assert type(model).__name__ == "MarianMTModel" and type(tokenizer).__name__ == "MarianTokenizer"
    lines = head(corpus[4], 8, tmp_path / "lines").read_text().splitlines()
    ours = [json.loads(line)["hypotheses"][0] for line in
            qkv("translate", run, "--beam", 1, "--json", "--max-length", 30, text="\n".join(lines) + "\n")[1].splitlines()]
    for line, found in zip(lines, ours, strict=True):
        source = tokenizer([line], return_tensors="pt")
        with torch.no_grad():
            ids = model.generate(**source, do_sample=False, num_beams=1, max_new_tokens=30)
            p = model(**source, decoder_input_ids=ids[:, :-1]).logits[0].log_softmax(-1)
        scores = [p[i, ids[0, i + 1]].item() for i in range(ids.shape[1] - 1)]
        assert tokenizer.decode(ids[0], skip_special_tokens=True) == found["text"]
        assert found["token_scores"] == pytest.approx(scores, abs=1e-4)


@needs_transformers
def test_recommenders_score_the_same(films, tmp_path):
    import torch
    import transformers

    qkv("export", films / "run", tmp_path / "out")
    model = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "out")
    items = json.loads((tmp_path / "out/vocab.json").read_text())
    history = list(items)[:5]
    with torch.no_grad():
        scores = model(torch.tensor([[items[name] for name in history]])).logits[0, -1]
    answer = json.loads(qkv("recommend", films / "run", "--history", ",".join(history), "--top", 20, "--json")[1])
    for item in answer["items"]:
        assert math.isclose(item["score"], scores[items[item["item"]]], rel_tol=1e-4, abs_tol=1e-4)
