"""qkv train --init, --freeze and --lora-rank, and qkv merge."""

import importlib.util
import json
import random
import shutil
import signal
import subprocess
import time

import pytest
from conftest import QKV, ROOT, qkv
from resume_test import contents

SHAKESPEARE = ROOT.parent / "shared/data/shakespeare/train.txt"
TUNE = ["--batch-tokens", 256, "--threads", 1, "--warmup-steps", 5, "--learning-rate", 0.003, "--eval-every", 10]


@pytest.fixture(scope="module")
def other(corpus, tmp_path_factory):
    """Options for other text than that of the `trained` run."""
    folder = tmp_path_factory.mktemp("other")
    for name, path in zip(("en", "de"), corpus[1:3]):
        (folder / name).write_text("".join(path.read_text().splitlines(keepends=True)[200:]))
    return ["--train", folder / "en", folder / "de", *corpus[3:]]


def tune(init, text, out, *options, steps=20, ok=True):
    return qkv("train", "translate", *text, "--init", init, "--out", out, *TUNE, "--max-steps", steps, *options, ok=ok)


def tensors(path):
    """The bytes of each tensor of a safetensors file."""
    data = path.read_bytes()
    size = int.from_bytes(data[:8], "little")
    entries = json.loads(data[8:8 + size])
    return {name: data[8 + size + e["data_offsets"][0]:8 + size + e["data_offsets"][1]]
            for name, e in entries.items() if name != "__metadata__"}


def test_training_starts_from_the_weights_and_keeps_shape_and_tokenizer(trained, other, tmp_path):
    report = tune(trained, other, tmp_path / "run")[2]
    assert f"starting from {trained}: learning_rate 0.003, warmup_steps 5, schedule constant" in report
    for name in ("tokenizer.model", "translation.json", "text.json"):
        assert (tmp_path / "run" / name).read_bytes() == (trained / name).read_bytes(), name
    assert tensors(tmp_path / "run/start.safetensors") == tensors(trained / "model.safetensors")
    config = [json.loads((run / "config.json").read_text()) for run in (trained, tmp_path / "run")]
    assert config[0] == config[1]
    tune(trained, other, tmp_path / "dropout", "--dropout", 0.05, steps=1)


def test_the_new_run_does_not_need_the_initial_one(trained, other, tmp_path):
    whole, parts, init = tmp_path / "whole", tmp_path / "parts", tmp_path / "init"
    shutil.copytree(trained, init)
    tune(init, other, whole, "--dropout", 0.2)
    tune(init, other, parts, "--dropout", 0.2, steps=10)
    shutil.rmtree(init)
    tune(init, other, parts, "--dropout", 0.2)
    for run in (whole, parts):
        (run / "training.json").unlink()  # holds the first command's limits
    assert contents(parts) == contents(whole)


@pytest.mark.parametrize("options", [["--dropout", 0.2, "--freeze", "encoder.layers.0"], ["--lora-rank", 3]])
def test_kills_change_no_byte(trained, other, tmp_path, options):
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    options = [*options, "--save-every", 3]
    begin = time.monotonic()
    tune(trained, other, whole, *options, "--threads", 2)
    duration = time.monotonic() - begin
    command = ["train", "translate", *other, "--init", trained, "--out", broken, *TUNE, "--max-steps", 20, *options]
    moments = random.Random(3)
    for _ in range(6):
        process = subprocess.Popen([QKV, *map(str, command)], stderr=subprocess.DEVNULL)
        try:
            process.wait(timeout=moments.uniform(0.1, 0.6) * duration)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.wait()
    qkv(*command)
    assert contents(broken) == contents(whole)


@pytest.mark.parametrize("options, error", [
    (["--d-model", 64], "d_model is 32, here 64; training from a run keeps it"),
    (["--positions", "rotary"], "positions is interleaved, here rotary; training from a run keeps it"),
    (["--vocab-size", 77], "vocab_size is 300, here 77; training from a run keeps it"),
    (["--lowercase"], "lowercase is false, here true; training from a run keeps it")])
def test_another_shape_or_tokenizer_is_refused(trained, other, tmp_path, options, error):
    status, _, found = tune(trained, other, tmp_path / "run", *options, ok=False)
    assert (status, found) == (1, f"qkv: {trained}: {error}\n")
    assert not (tmp_path / "run").exists()


def test_a_dev_text_that_the_initial_run_was_trained_on_is_refused(trained, other, corpus, tmp_path):
    status, _, error = tune(trained, [*other[:3], "--dev", *corpus[1:3]], tmp_path / "run", ok=False)
    assert (status, error) == (1, f"qkv: {trained}: was trained on {corpus[1]} and {corpus[2]}, so that scores on it would be "
                                  "too high; use another dev text\n")
    assert not (tmp_path / "run").exists()


def test_wrong_uses_are_one_line(trained, other, films, counting, corpus, tmp_path):
    run = tmp_path / "run"
    small = ["train", "translate", *other, "--out", run, "--max-steps", 1]
    for arguments, status, text in [
        ([*small, "--init", trained, "--preset", "tiny"], 2, "--preset excludes --init"),
        ([*small, "--init", trained, "--source-tokenizer", "x"], 1, "source_tokenizer and target_tokenizer must be empty"),
        ([*small, "--init", films / "run"], 1, "is a recommender; expected a translator"),
        ([*small, "--init", counting], 1, "is a language model; expected a translator"),
        ([*small, "--init", tmp_path / "none"], 1, "is not a run directory"),
        ([*small, "--init", trained, "--freeze", "encodr"], 1,
         'freeze: no parameter matches "encodr" (there are embedding.weight, encoder.layers.0, decoder.layers.0)'),
        ([*small, "--init", trained, "--freeze", "*"], 1, "freeze: leaves no parameter to train"),
        ([*small, "--lora-rank", 4], 1, "lora_rank requires init"),
        ([*small, "--init", trained, "--lora-alpha", 4], 1, "lora_alpha requires lora_rank above 0"),
        ([*small, "--init", trained, "--lora-rank", 4, "--freeze", "encoder"], 1, "freeze requires lora_rank = 0"),
        ([*small, "--init", trained, "--lora-rank", 4, "--memory", "1G"], 1, "memory requires lora_rank = 0"),
        ([*small, "--init", trained, "--lora-rank", 4, "--lora-targets", "embedding"], 1,
         'lora_targets: no parameter matches "embedding" (there are encoder.layers.0, decoder.layers.0)'),
        (["train", "lm", "--text", other[1], "--init", counting, "--out", run, "--max-steps", 1], 1,
         "is not in the vocabulary"),
        (["train", "lm", "--text", other[1], "--init", counting, "--out", run, "--unit", "bytes"], 1,
         "unit is characters, here bytes; training from a run keeps it"),
        (["merge", trained, run], 1, "is not an adapter of another run"),
        (["merge", trained, films], 1, "already exists"),
    ]:
        found_status, _, error = qkv(*arguments, ok=False)
        last = error.splitlines()[-1]
        assert found_status == status and last.startswith("qkv: ") and text in last, error
        assert not run.exists()
    qkv("quantize", trained, "--int8", "--out", tmp_path / "int8")
    for options in ([], ["--lora-rank", 4]):
        error = qkv(*small, "--init", tmp_path / "int8", *options, ok=False)[2]
        assert "has quantized weights; training requires float32: use the run that it was made from" in error
        assert not run.exists()
    status, _, error = tune(trained, other, trained, ok=False)
    assert status == 1 and "was not started from another run; omit init or use another directory" in error


def test_frozen_parameters_keep_their_bytes(trained, other, tmp_path):
    report = tune(trained, other, tmp_path / "all")[2]
    frozen_report = tune(trained, other, tmp_path / "run", "--freeze", "embeddings", "--freeze", "encoder,decoder.layers.0.*_norm")[2]
    assert json.loads((tmp_path / "run/training.json").read_text())["freeze"] == ["embeddings", "encoder", "decoder.layers.0.*_norm"]
    before, after = tensors(trained / "model.safetensors"), tensors(tmp_path / "run/model.safetensors")
    assert before.keys() == after.keys()
    for name in before:
        frozen = name.startswith(("embedding", "encoder")) or "_norm." in name
        assert (before[name] == after[name]) == frozen, name
    size = [float(text.split("optimizer ")[1].split(",")[0]) for text in (report, frozen_report)]
    state = [(tmp_path / run / "checkpoints/state.safetensors").stat().st_size for run in ("all", "run")]
    assert size[1] < size[0] and state[1] < 0.7 * state[0]


def test_an_adapter_is_trained_merged_and_bound_to_its_base(trained, other, corpus, tmp_path):
    base, run, merged = tmp_path / "base", tmp_path / "adapter", tmp_path / "merged"
    shutil.copytree(trained, base)
    tune(base, other, run, "--lora-rank", 4, "--lora-alpha", 6, "--lora-targets", "self_attention,decoder.layers.0.feed_forward",
         steps=40)
    config = json.loads((run / "adapter_config.json").read_text())
    assert (config["peft_type"], config["r"], config["lora_alpha"], config["task_type"]) == ("LORA", 4, 6, "SEQ_2_SEQ_LM")
    assert "model.encoder.layers.0.self_attn.q_proj" in config["target_modules"] and len(config["target_modules"]) == 10
    assert not (run / "model.safetensors").exists() and not (run / "start.safetensors").exists()
    weights = tensors(run / "adapter_model.safetensors")
    assert len(weights) == 20 and "base_model.model.model.decoder.layers.0.fc1.lora_B.weight" in weights
    assert any(weights["base_model.model.model.decoder.layers.0.fc1.lora_B.weight"])

    line = corpus[4].read_text().splitlines()[0] + "\n"
    adapted = qkv("translate", run, "--scores", text=line)[1]
    assert adapted != qkv("translate", base, "--scores", text=line)[1]
    out = qkv("merge", run, merged)[1]
    assert out.startswith(f"{merged}: {base} with 10 changed layers, ")
    assert qkv("translate", merged, "--scores", text=line)[1] == adapted
    before, after = tensors(base / "model.safetensors"), tensors(merged / "model.safetensors")
    for name in before:
        changed = name.endswith("weight") and "_norm" not in name and ("self_attention" in name or name.startswith("decoder.layers.0.feed_forward"))
        assert (before[name] != after[name]) == changed, name
    assert "float32" in qkv("inspect", run)[1]
    qkv("export", run, tmp_path / "exported")
    qkv("quantize", run, "--int8", "--out", tmp_path / "int8")
    tune(run, other, tmp_path / "next", steps=1)
    status, _, error = tune(run, other, tmp_path / "nested", "--lora-rank", 4, ok=False)
    assert status == 1 and "is an adapter of another run; merge it first (qkv merge)" in error

    shutil.copy(merged / "model.safetensors", base / "model.safetensors")
    for command in (["translate", run], ["inspect", run], ["merge", run, tmp_path / "other"]):
        status, _, error = qkv(*command, text=line, ok=False)
        assert status == 1 and f"{base}/model.safetensors: was changed since the adapter {run} was trained" in error
    shutil.rmtree(base)
    status, _, error = qkv("translate", run, text=line, ok=False)
    assert status == 1 and f'{run}/base.json: the base run {base} is missing; if it was moved, change "base"' in error
    assert error.count("\n") == 1


def test_a_broken_adapter_is_one_line(trained, other, tmp_path):
    run = tmp_path / "adapter"
    tune(trained, other, run, "--lora-rank", 4, "--lora-targets", "encoder", steps=1)
    whole = (run / "base.json").read_text()
    for old, new, text in [
        ('"rank": 4', '"rank": 5', "must be F32 [5, 32]"), ('"rank": 4', '"rank": -1', "rank must be between 1 and"),
        ('"rank": 4', '"rank": 60000', "must be F32 [60000, 32]"), ('"groups": 1', '"groups": 7', "groups must divide"),
        ('"base":', '"other":', "base is missing"), ("encoder.layers.0.self_attention.q.weight", "nothing", "has no weight"),
        ("encoder.layers.0.self_attention.q.weight", "encoder.layers.0.self_attention.q.bias", "has no weight"),
        ('"alpha": 8', '"alpha": "8', "base.json"), ('"alpha": 8.0', '"alpha": 1e300', "not finite"),
        ('"base": "', '"base": "a\\n', "without control characters"), ('q_proj"', 'r_proj"', "is missing")]:
        assert old in whole
        (run / "base.json").write_text(whole.replace(old, new, 1))
        status, _, error = qkv("inspect", run, ok=False)
        assert status == 1 and error.startswith("qkv: ") and error.count("\n") == 1 and text in error, (new, error)


def test_a_language_model_is_fine_tuned(counting, tmp_path):
    (tmp_path / "text").write_text("9876543210\n" * 200)
    command = ["train", "lm", "--text", tmp_path / "text", "--init", counting, "--batch-tokens", 256, "--max-steps", 60,
               "--learning-rate", 0.01, "--warmup-steps", 5, "--threads", 1]
    for name, options in {"full": [], "adapter": ["--lora-rank", 8]}.items():
        qkv(*command, *options, "--out", tmp_path / name)
        prompt = ["--prompt", "98765", "--temperature", 0, "--max-tokens", 5]
        assert qkv("generate", tmp_path / name, *prompt)[1].startswith("9876543210")


def test_a_recommender_starts_from_a_run_by_the_old_option_too(films, tmp_path):
    command = ["train", "recommend", "--data", films / "log.csv", "--max-steps", 2, "--threads", 1]
    for option in ("--init", "--warm-start"):
        qkv(*command, option, films / "run", "--out", tmp_path / option)
    assert contents(tmp_path / "--init") == contents(tmp_path / "--warm-start")
    status, _, error = qkv(*command, "--freeze", "embeddings", "--out", tmp_path / "run", ok=False)
    assert status == 2 and 'unknown option "--freeze"' in error


needs_transformers = pytest.mark.skipif(importlib.util.find_spec("transformers") is None, reason="no transformers")
needs_peft = pytest.mark.skipif(importlib.util.find_spec("peft") is None, reason="no peft")


@pytest.fixture(scope="module")
def gpt2(tmp_path_factory):
    """A small random GPT-2 of transformers with a tokenizer of its text, the run imported from it, and the text."""
    import tokenizers
    import torch
    import transformers

    folder = tmp_path_factory.mktemp("gpt2")
    text = SHAKESPEARE if SHAKESPEARE.exists() else ROOT / "examples/grammar/train.en"
    (folder / "text").write_text(text.read_text()[:60000])
    tokenizer = tokenizers.ByteLevelBPETokenizer()
    tokenizer.train([str(folder / "text")], vocab_size=400, special_tokens=["<|endoftext|>"])
    torch.manual_seed(1)
    config = transformers.GPT2Config(vocab_size=tokenizer.get_vocab_size(), n_positions=64, n_embd=48, n_layer=2, n_head=4,
                                     bos_token_id=0, eos_token_id=0, resid_pdrop=0.05, attn_pdrop=0.05, embd_pdrop=0.05)
    transformers.GPT2LMHeadModel(config).save_pretrained(folder / "model")
    tokenizer.save(str(folder / "model/tokenizer.json"))
    qkv("import", folder / "model", folder / "run")
    return folder


def tune_model(text, init, out, *options):
    """Fine-tunes a run and returns the bits per byte of its evaluations."""
    report = qkv("train", "lm", "--text", text, "--init", init, "--out", out, "--learning-rate", 0.003, "--warmup-steps", 10,
                 "--batch-tokens", 512, "--max-steps", 60, "--eval-every", 30, "--threads", 1, *options)[2]
    return [float(line.split("bits/byte ")[1].split()[0]) for line in report.splitlines() if "dev:" in line]


def expect_same_logits(run, model, text):
    """Compares the log-probability of each token of a text with those of a model of transformers."""
    import torch

    prompt = text[:60]
    ours = json.loads(qkv("generate", run, "--prompt", prompt, "--temperature", 0, "--max-tokens", 12, "--json")[1])
    from tokenizers import Tokenizer
    tokenizer = Tokenizer.from_file(str(model[1] / "tokenizer.json"))
    ids = tokenizer.encode(prompt).ids
    with torch.no_grad():
        for token in ours["tokens"]:
            p = model[0](torch.tensor([ids])).logits[0, -1].log_softmax(-1)
            best = int(p.argmax())
            assert token["log_probability"] == pytest.approx(p[best].item(), abs=1e-4)
            ids.append(best)
    assert tokenizer.decode(ids[-len(ours["tokens"]):]) == ours["text"]


@needs_transformers
def test_the_circle_of_import_fine_tuning_and_export(gpt2, tmp_path):
    import transformers

    losses = tune_model(gpt2 / "text", gpt2 / "run", tmp_path / "tuned")
    assert losses[-1] < losses[0] - 0.05
    qkv("export", tmp_path / "tuned", tmp_path / "exported")
    text = (gpt2 / "text").read_text()
    model = transformers.GPT2LMHeadModel.from_pretrained(tmp_path / "exported").eval()
    expect_same_logits(tmp_path / "tuned", (model, gpt2 / "model"), text)
    again = transformers.GPT2LMHeadModel.from_pretrained(gpt2 / "model").eval()
    assert (model.transformer.h[0].attn.c_attn.weight != again.transformer.h[0].attn.c_attn.weight).any()


SIZES = dict(hidden_size=48, num_hidden_layers=4, num_attention_heads=4, max_position_embeddings=64, vocab_size=400,
             bos_token_id=0, eos_token_id=0, pad_token_id=None)
GATED = dict(SIZES, intermediate_size=64)
GROUPED = dict(GATED, num_key_value_heads=2)


@needs_transformers
@pytest.mark.parametrize("family, config, options", [
    ("Llama", "LlamaConfig", GROUPED), ("Mistral", "MistralConfig", dict(GROUPED, sliding_window=16)),
    ("Qwen2", "Qwen2Config", GROUPED), ("Qwen3", "Qwen3Config", dict(GROUPED, head_dim=12)),
    ("Phi", "PhiConfig", GATED), ("Phi3", "Phi3Config", GROUPED), ("Olmo2", "Olmo2Config", GROUPED),
    ("Gemma2", "Gemma2Config", dict(GROUPED, head_dim=12, sliding_window=16)),
    ("Gemma3", "Gemma3TextConfig", dict(GROUPED, head_dim=12, sliding_window=16)),
    ("SmolLM3", "SmolLM3Config", GROUPED), ("Starcoder2", "Starcoder2Config", GROUPED),
    ("GPTNeoX", "GPTNeoXConfig", dict(GATED, num_attention_heads=2)), ("OPT", "OPTConfig", dict(SIZES, ffn_dim=64, word_embed_proj_dim=48))])
def test_every_decoder_goes_through_the_circle(gpt2, tmp_path, family, config, options):
    import torch
    import transformers

    torch.manual_seed(1)
    model = getattr(transformers, family + "ForCausalLM")(getattr(transformers, config)(**options))
    model.save_pretrained(tmp_path / "model")
    shutil.copy(gpt2 / "model/tokenizer.json", tmp_path / "model/tokenizer.json")
    qkv("import", tmp_path / "model", tmp_path / "run")
    tune_model(gpt2 / "text", tmp_path / "run", tmp_path / "tuned")
    steps = [json.loads(line) for line in (tmp_path / "tuned/metrics.jsonl").read_text().splitlines()]
    losses = [step["loss"] for step in steps if "loss" in step]
    assert losses[0] > 5.8 and losses[-1] < 5  # a uniform guess has log 400 = 5.99
    qkv("export", tmp_path / "tuned", tmp_path / "exported")
    tuned = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "exported").eval()
    expect_same_logits(tmp_path / "tuned", (tuned, tmp_path / "model"), (gpt2 / "text").read_text())


@needs_transformers
@needs_peft
def test_peft_loads_what_was_trained_here_and_the_reverse(gpt2, tmp_path):
    import peft
    import torch
    import transformers

    tune_model(gpt2 / "text", gpt2 / "run", tmp_path / "adapter", "--lora-rank", 8, "--learning-rate", 0.02)
    base = transformers.GPT2LMHeadModel.from_pretrained(gpt2 / "model").eval()
    model = peft.PeftModel.from_pretrained(base, tmp_path / "adapter").eval()
    text = (gpt2 / "text").read_text()
    expect_same_logits(tmp_path / "adapter", (model, gpt2 / "model"), text)

    model = peft.get_peft_model(transformers.GPT2LMHeadModel.from_pretrained(gpt2 / "model").eval(), peft.LoraConfig(
        task_type="CAUSAL_LM", r=4, lora_alpha=6, target_modules=["c_attn", "c_fc"], fan_in_fan_out=True))
    torch.manual_seed(4)
    for name, p in model.named_parameters():
        if "lora_" in name:
            p.data = torch.randn_like(p) * 0.2
    model.save_pretrained(tmp_path / "theirs")
    qkv("import", gpt2 / "model", tmp_path / "merged", "--adapter", tmp_path / "theirs")
    expect_same_logits(tmp_path / "merged", (model, gpt2 / "model"), text)
