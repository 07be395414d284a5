"""CTranslate2's side of decode.py: makes a model and measures the speed of translation.

    python ctranslate2_models.py make DIR --size tiny|base --text FILE...
    python ctranslate2_models.py speed DIR --text FILE [--beam 4] [--batch 32] [--lines 256] [--compute float32|int8]
        [--workers 1]

`make` writes a MarianMT model as transformers does, with random weights and a vocabulary of 8,001 pieces learned from
the texts, and the same converted for CTranslate2 in DIR/ct2. If the texts are too short for 8,001, the rest of the
vocabulary is unused. `speed` translates lines to 24 tokens each with two threads: one worker with both, or two with
one each. It prints JSON: the best of three rounds, without tokenization, and the time to open the model.
"""

import json
import shutil
import time
import warnings
from pathlib import Path

from common import LENGTH, PIECES, TRANSLATORS, run_model_command, train_vocabulary

THREADS = 2


def make_tokenizer(folder, texts):
    """Writes the files of the tokenizer; returns the size of the vocabulary, whose last piece is the padding."""
    pieces = train_vocabulary(folder / "source.spm", texts)
    shutil.copy(folder / "source.spm", folder / "target.spm")
    names = [pieces.id_to_piece(i) for i in range(pieces.get_piece_size())]
    names += [f"<unused {i}>" for i in range(len(names), PIECES)] + ["<pad>"]
    (folder / "vocab.json").write_text(json.dumps({name: i for i, name in enumerate(names)}))
    (folder / "tokenizer_config.json").write_text(json.dumps({
        "tokenizer_class": "MarianTokenizer", "source_lang": "en", "target_lang": "de", "unk_token": "<unk>",
        "eos_token": "</s>", "pad_token": "<pad>", "model_max_length": 512, "sp_model_kwargs": {},
        "separate_vocabs": False}))
    return len(names)


def make_model(size, vocabulary):
    """Returns a MarianMT model in the shape of OPUS-MT's, in which no gain, bias or logit bias has its default."""
    import torch
    from transformers import GenerationConfig, MarianConfig, MarianMTModel

    width, heads, inner, layers = TRANSLATORS[size]
    padding = vocabulary - 1
    ids = {"pad_token_id": padding, "decoder_start_token_id": padding, "eos_token_id": 0, "forced_eos_token_id": 0}
    torch.manual_seed(0)
    model = MarianMTModel(MarianConfig(
        vocab_size=vocabulary, decoder_vocab_size=vocabulary, d_model=width, encoder_layers=layers,
        decoder_layers=layers, encoder_attention_heads=heads, decoder_attention_heads=heads, encoder_ffn_dim=inner,
        decoder_ffn_dim=inner, activation_function="swish", scale_embedding=True, max_position_embeddings=512,
        static_position_embeddings=True, normalize_embedding=False, normalize_before=False, add_final_layer_norm=False,
        add_bias_logits=False, bos_token_id=0, init_std=0.05, **ids)).eval()
    model.generation_config = GenerationConfig(bad_words_ids=[[padding]], num_beams=4, early_stopping=True, max_length=512, **ids)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if "layer_norm.weight" in name:
                weight.add_(0.2 * torch.randn_like(weight))
            elif name.endswith(".bias"):
                weight.add_(0.1 * torch.randn_like(weight))
        model.model.shared.weight[padding].zero_()
        model.final_logits_bias.add_(0.5 * torch.randn_like(model.final_logits_bias))
        model.final_logits_bias[0, 0] -= 1.0
    return model


def make(a):
    import ctranslate2

    folder = Path(a.folder)
    folder.mkdir(parents=True, exist_ok=True)
    make_model(a.size, make_tokenizer(folder, a.text)).save_pretrained(folder)
    ctranslate2.converters.TransformersConverter(a.folder).convert(f"{a.folder}/ct2", force=True)
    print(folder)


def speed(a):
    import ctranslate2
    from transformers import MarianTokenizer

    tokenizer = MarianTokenizer.from_pretrained(a.folder)
    lines = [line.strip() for line in Path(a.text).read_text(encoding="utf-8").splitlines()[:a.lines]]
    sources = [tokenizer.convert_ids_to_tokens(tokenizer(line).input_ids) for line in lines]
    start = time.perf_counter()
    translator = ctranslate2.Translator(f"{a.folder}/ct2", device="cpu", compute_type=a.compute,
                                        inter_threads=a.workers, intra_threads=THREADS // a.workers)
    opened = time.perf_counter() - start
    options = {"beam_size": a.beam, "max_batch_size": a.batch, "min_decoding_length": LENGTH,
               "max_decoding_length": LENGTH}

    def translate():
        if a.batch > 1:
            return translator.translate_batch(sources, **options)
        return [translator.translate_batch([source], **options)[0] for source in sources]

    translator.translate_batch(sources[:a.batch], **options)
    seconds = []
    for _ in range(3):
        start = time.perf_counter()
        results = translate()
        seconds.append(time.perf_counter() - start)
    tokens = sum(len(result.hypotheses[0]) for result in results)
    print(json.dumps({"peer": "ctranslate2", "compute": a.compute, "beam": a.beam, "batch": a.batch,
                      "workers": a.workers, "lines": len(lines), "out_tokens": tokens,
                      "seconds": round(min(seconds), 3), "tokens_per_s": round(tokens / min(seconds)),
                      "load_ms": round(1e3 * opened, 1)}))


warnings.filterwarnings("ignore")  # transformers recommends sacremoses, which is not needed here
run_model_command(__doc__, make, speed, {
    "--text": {"required": True}, "--compute": {"choices": ["float32", "int8"], "default": "float32"},
    "--workers": {"type": int, "default": 1}})
