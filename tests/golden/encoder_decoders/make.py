"""Writes the models of this folder: small random encoder-decoders of transformers, with their answers.

    python make.py [NAME ...]    # all by default; needs torch, transformers, tokenizers and sentencepiece;
                                 # written with 2.15, 5.23, 0.22 and 0.2

NAME/ holds the files of a model as the hub has them, and its answers in float64:

    expected.safetensors   `memory` [tokens of all sources, d], `logits` [tokens of all targets, V], rounded to float32
    expected.json          start      tokens that the decoder starts from: the start token and what is forced after it
                           sources, targets   token ids; `forced` log p of each token of a target, given the source
                           max_tokens   of a hypothesis, without `start`; greedy, beam, scores: what generate() returns,
                                        with 4 beams, early_stopping=True and length_penalty=1
                           texts      lines of text with their ids, the greedy answer and its text without special tokens
"""
import json
import pathlib
import shutil
import sys

import sentencepiece
import tokenizers
import torch
import transformers as t
from safetensors.torch import save_file

HERE = pathlib.Path(__file__).parent
MAX, BEAM = 12, 4
LINES = ["the dog runs in the park .", "a cat sees the dog .", "we saw two dogs and three cats today .",
         "der Hund läuft im Park .", "eine Katze sieht den Hund .", "heute sahen wir zwei Hunde und drei Katzen ."]
SHAPE = dict(d_model=16, encoder_layers=2, decoder_layers=1, encoder_attention_heads=2, decoder_attention_heads=2,
             encoder_ffn_dim=24, decoder_ffn_dim=24, max_position_embeddings=40, dropout=0.0, attention_dropout=0.0)


def pieces(path, kind, size=70):
    """A SentencePiece model: <unk>, <s>, </s>, and pieces of LINES."""
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(LINES * 3), model_prefix="pieces", vocab_size=size,
                                             model_type=kind, hard_vocab_limit=False, normalization_rule_name="identity", minloglevel=3)
    shutil.move("pieces.model", path)
    pathlib.Path("pieces.vocab").unlink()
    model = sentencepiece.SentencePieceProcessor(model_file=str(path))
    return [model.id_to_piece(i) for i in range(model.get_piece_size())]


def write_json(path, value):
    path.write_text(json.dumps(value, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


def bart(path):
    library = tokenizers.ByteLevelBPETokenizer()
    special = ["<s>", "<pad>", "</s>", "<unk>"]
    library.train_from_iterator(LINES * 3, vocab_size=330, min_frequency=2, special_tokens=special)
    library.save_model(str(path))
    vocabulary = json.loads((path / "vocab.json").read_text(encoding="utf-8"))
    vocabulary["<mask>"] = len(vocabulary)
    write_json(path / "vocab.json", vocabulary)
    write_json(path / "tokenizer_config.json", {"tokenizer_class": "BartTokenizer"})
    config = t.BartConfig(**SHAPE, vocab_size=len(vocabulary), forced_eos_token_id=None)
    model = t.BartForConditionalGeneration(config)
    model.generation_config.forced_bos_token_id = 0
    return model, t.BartTokenizer.from_pretrained(path), [2, 0], None


def fairseq(path, kind, name, languages):
    """The files of mBART and NLLB; returns the number of embeddings."""
    count = len(pieces(path / "sentencepiece.bpe.model", kind)) + 1 + len(languages) + 1
    write_json(path / "tokenizer_config.json", {"tokenizer_class": name, "additional_special_tokens": languages})
    return count


def mbart(path):
    from transformers.models.mbart.tokenization_mbart import FAIRSEQ_LANGUAGE_CODES as languages
    count = fairseq(path, "unigram", "MBartTokenizer", languages)
    tokenizer = t.MBartTokenizer.from_pretrained(path, src_lang="en_XX", tgt_lang="de_DE")
    start = tokenizer.convert_tokens_to_ids("de_DE")
    model = t.MBartForConditionalGeneration(t.MBartConfig(
        **SHAPE, vocab_size=count, scale_embedding=True, forced_eos_token_id=None, decoder_start_token_id=start))
    return model, tokenizer, [start], ("en", "de")


def mbart50(path):
    from transformers.models.mbart50.tokenization_mbart50 import FAIRSEQ_LANGUAGE_CODES as languages
    count = fairseq(path, "unigram", "MBart50Tokenizer", languages)
    tokenizer = t.MBart50Tokenizer.from_pretrained(path, src_lang="de_DE", tgt_lang="en_XX")
    model = t.MBartForConditionalGeneration(t.MBartConfig(
        **SHAPE, vocab_size=count, scale_embedding=True, activation_function="relu", forced_eos_token_id=None,
        decoder_start_token_id=2))
    return model, tokenizer, [2, tokenizer.convert_tokens_to_ids("en_XX")], ("de_DE", "en_XX")


def m2m_100(path):
    names = pieces(path / "sentencepiece.bpe.model", "bpe")
    listed = ["<s>", "<pad>", "</s>", "<unk>", *names[3:]]
    write_json(path / "vocab.json", {piece: i for i, piece in enumerate(listed)})
    from transformers.models.m2m_100.tokenization_m2m_100 import FAIRSEQ_LANGUAGE_CODES as languages
    write_json(path / "special_tokens_map.json",
               {"additional_special_tokens": [f"__{language}__" for language in languages["m2m100"]]})
    write_json(path / "tokenizer_config.json", {"tokenizer_class": "M2M100Tokenizer"})
    tokenizer = t.M2M100Tokenizer.from_pretrained(path, src_lang="en", tgt_lang="de")
    config = t.M2M100Config(**SHAPE, vocab_size=len(listed) + 100 + 8)
    model = t.M2M100ForConditionalGeneration(config)
    return model, tokenizer, [2, tokenizer.get_lang_id("de")], ("en", "de")


def nllb(path):
    languages = ["deu_Latn", "eng_Latn", "zho_Hans"]
    count = fairseq(path, "bpe", "NllbTokenizer", languages) + 2  # rows that no token uses
    # The hub has the order of fairseq: <mask> comes after the languages.
    t.NllbTokenizer.from_pretrained(path, extra_special_tokens=languages).save_pretrained(path)
    library = json.loads((path / "tokenizer.json").read_text(encoding="utf-8"))
    first = count - 2 - len(languages) - 1
    library["added_tokens"] = [token for token in library["added_tokens"] if token["id"] < first] + [
        dict(id=first + i, content=token, single_word=False, lstrip=False, rstrip=False, normalized=False, special=True)
        for i, token in enumerate([*languages, "<mask>"])]
    library["post_processor"] = None
    write_json(path / "tokenizer.json", library)
    tokenizer = t.NllbTokenizer.from_pretrained(path, src_lang="eng_Latn", tgt_lang="deu_Latn")
    model = t.M2M100ForConditionalGeneration(t.M2M100Config(**SHAPE, vocab_size=count))
    return model, tokenizer, [2, tokenizer.convert_tokens_to_ids("deu_Latn")], ("eng_Latn", "deu_Latn")


def pegasus(path):
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(LINES * 3), model_prefix="pieces", vocab_size=70, model_type="unigram",
        hard_vocab_limit=False, normalization_rule_name="identity", minloglevel=3, pad_id=0, eos_id=1, unk_id=2, bos_id=-1)
    shutil.move("pieces.model", path / "spiece.model")
    pathlib.Path("pieces.vocab").unlink()
    write_json(path / "tokenizer_config.json", {"tokenizer_class": "PegasusTokenizer"})
    count = sentencepiece.SentencePieceProcessor(model_file=str(path / "spiece.model")).get_piece_size() + 103
    config = t.PegasusConfig(**SHAPE, vocab_size=count, scale_embedding=True, activation_function="relu",
                             forced_eos_token_id=None)
    return t.PegasusForConditionalGeneration(config), None, [0], None


def t5_pieces(path, special, **ids):
    """A SentencePiece model with these special tokens; returns it."""
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(LINES * 3), model_prefix="pieces", vocab_size=70, model_type="unigram",
        hard_vocab_limit=False, minloglevel=3, user_defined_symbols=special, normalization_rule_name="identity", **ids)
    shutil.move("pieces.model", path / "spiece.model")
    pathlib.Path("pieces.vocab").unlink()
    return sentencepiece.SentencePieceProcessor(model_file=str(path / "spiece.model"))


T5 = dict(d_model=20, d_kv=6, d_ff=24, num_layers=2, num_decoder_layers=1, num_heads=2, dropout_rate=0.0,
          relative_attention_num_buckets=8, relative_attention_max_distance=10, decoder_start_token_id=0)


def t5_model(kind, config, shared):
    model = kind(config)
    if not shared:
        model.config.tie_word_embeddings = False
        model.lm_head.weight = torch.nn.Parameter(torch.zeros_like(model.shared.weight))
    return model


def t5(path):
    """With extra ids, rows that no token uses, and a shared table whose products are scaled."""
    library = t5_pieces(path, [], pad_id=0, eos_id=1, unk_id=2, bos_id=-1)
    write_json(path / "tokenizer_config.json", {"tokenizer_class": "T5Tokenizer", "extra_ids": 3})
    config = t.T5Config(**T5, vocab_size=library.get_piece_size() + 3 + 5)
    return t5_model(t.T5ForConditionalGeneration, config, True), text_of(library, [1]), [0], None


def flan_t5(path):
    """T5 1.1: a gate, and an output layer of its own."""
    library = t5_pieces(path, [], pad_id=0, eos_id=1, unk_id=2, bos_id=-1)
    write_json(path / "tokenizer_config.json", {"tokenizer_class": "T5Tokenizer"})
    config = t.T5Config(**T5, vocab_size=library.get_piece_size() + 100, feed_forward_proj="gated-gelu",
                        tie_word_embeddings=False)
    return t5_model(t.T5ForConditionalGeneration, config, False), text_of(library, [1]), [0], None


def mt5(path):
    library = t5_pieces(path, [], pad_id=0, eos_id=1, unk_id=2, bos_id=-1)
    write_json(path / "tokenizer_config.json", {"tokenizer_class": "T5Tokenizer", "extra_ids": 0})
    config = t.MT5Config(**T5, vocab_size=library.get_piece_size() + 12, feed_forward_proj="gated-gelu",
                         tie_word_embeddings=False)
    return t5_model(t.MT5ForConditionalGeneration, config, False), text_of(library, [1]), [0], None


def madlad(path):
    """The token of the target's language stands before the source."""
    library = t5_pieces(path, ["<2de>", "<2en>"], unk_id=0, bos_id=1, eos_id=2)
    write_json(path / "tokenizer_config.json", {"tokenizer_class": "T5Tokenizer", "extra_ids": 0})
    config = t.T5Config(**T5 | dict(num_decoder_layers=2), vocab_size=library.get_piece_size(), pad_token_id=1,
                        eos_token_id=2, feed_forward_proj="gated-silu", tie_word_embeddings=False)
    return (t5_model(t.T5ForConditionalGeneration, config, False),
            text_of(library, [2], [library.piece_to_id("<2de>")]), [0], ("", "de"))


class text_of:
    """The tokenizer of a model: the ids of a line, and the tokens around it."""

    def __init__(self, library, after, before=()):
        self.library, self.after, self.before = library, list(after), list(before)

    def __call__(self, line):
        return {"input_ids": self.before + self.library.encode(line) + self.after}

    def decode(self, ids, skip_special_tokens):
        assert skip_special_tokens
        special = {*self.before, *self.after, *range(self.library.get_piece_size(), 10000)}
        return self.library.decode([i for i in ids if i not in special])


def opus(path):
    """An OPUS-MT directory as the hub has it, with the weights as pytorch_model.bin."""
    names = ["</s>", "<unk>"]
    for side in ("source", "target"):
        names += [piece for piece in pieces(path / f"{side}.spm", "unigram", 50)[3:] if piece not in names]
    names.append("<pad>")
    write_json(path / "vocab.json", {piece: i for i, piece in enumerate(names)})
    write_json(path / "tokenizer_config.json", {"tokenizer_class": "MarianTokenizer", "source_lang": "en",
                                                "target_lang": "de"})
    write_json(path / "metadata.json", {"opus-mt": "a model", "source": "en", "target": "de"})
    pad = len(names) - 1
    config = t.MarianConfig(**SHAPE, vocab_size=len(names), scale_embedding=True, activation_function="silu",
                            pad_token_id=pad, eos_token_id=0, decoder_start_token_id=pad, bos_token_id=0,
                            forced_eos_token_id=None)
    model = t.MarianMTModel(config)
    model.generation_config.bad_words_ids = [[pad]]
    return model, t.MarianTokenizer.from_pretrained(path), [pad], None


MODELS = {"bart": bart, "mbart": mbart, "mbart50": mbart50, "m2m_100": m2m_100, "nllb": nllb, "pegasus": pegasus,
          "opus": opus, "t5": t5, "flan_t5": flan_t5, "mt5": mt5, "madlad": madlad}


ENDS = {"m2m_100": 3.0, "nllb": 1.5, "pegasus": 3.0}  # how much more the end token is like the hidden states


def randomize(model, end, more):
    """Weights large enough that logits differ, norms around 1, biases other than 0; sentences that end."""
    torch.manual_seed(1)
    for name, p in model.named_parameters():
        if not p.requires_grad:  # sinusoids
            continue
        p.data = torch.randn_like(p) * 0.3 + (1.0 if "norm" in name and name.endswith("weight") else 0.0)
    if hasattr(model, "final_logits_bias"):
        model.final_logits_bias.data = torch.randn_like(model.final_logits_bias) * 0.3
        model.final_logits_bias[0, end] += 2.5
    if hasattr(model, "lm_head") and not hasattr(model, "final_logits_bias"):
        model.lm_head.weight.data[end] *= 2
    if more:  # the hidden states are around the bias of the last norm
        model.model.shared.weight.data[end] += more * model.model.decoder.layer_norm.bias.data
    model.tie_weights()


def stripped(ids, start, end):
    """The tokens after `start`, up to and including the end token."""
    ids = ids.tolist()
    assert ids[:len(start)] == start, (ids, start)
    ids = ids[len(start):]
    return ids[:ids.index(end) + 1] if end in ids else ids


def generate(model, source, start, **options):
    forced = {"forced_bos_token_id": start[1]} if len(start) > 1 else {}
    return model.generate(torch.tensor([source]), do_sample=False, max_new_tokens=MAX, length_penalty=1.0,
                          early_stopping=True, return_dict_in_generate=True, output_scores=True, **forced, **options)


def make(name, build):
    path = HERE / name
    shutil.rmtree(path, ignore_errors=True)
    path.mkdir()
    torch.manual_seed(0)
    model, tokenizer, start, languages = build(path)
    model.set_attn_implementation("eager")
    model.eval()
    end, V = model.config.eos_token_id, model.config.vocab_size
    randomize(model, end, ENDS.get(name))
    model.save_pretrained(path)
    if name == "opus":
        state = {key: value.clone() for key, value in model.state_dict().items()}
        torch.save(state, path / "pytorch_model.bin")
    model = model.double()
    torch.manual_seed(2)
    draw = lambda count: torch.randint(4, V, (count,)).tolist()
    sources = [draw(count) + [end] for count in (9, 1, 5)]
    targets = [draw(count) + [end] for count in (6, 8, 1)]
    expected = dict(start=start, end=end, max_tokens=MAX - len(start) + 1, sources=sources, targets=targets, forced=[],
                    greedy=[], beam=[], scores=[], texts=[])
    memory, logits = [], []
    with torch.no_grad():
        for source, target in zip(sources, targets):
            read = torch.tensor([start + target[:-1]])
            out = model(torch.tensor([source]), decoder_input_ids=read)
            rows = out.logits[0, len(start) - 1:]
            memory.append(out.encoder_last_hidden_state[0])
            logits.append(rows)
            log_p = rows.log_softmax(-1)
            expected["forced"].append([log_p[i, token].item() for i, token in enumerate(target)])
            expected["greedy"].append(stripped(generate(model, source, start).sequences[0], start, end))
            found = generate(model, source, start, num_beams=BEAM, num_return_sequences=BEAM)
            expected["beam"].append([stripped(ids, start, end) for ids in found.sequences])
            expected["scores"].append(found.sequences_scores.tolist())
        for line in LINES[:3] if tokenizer else []:
            ids = tokenizer(line)["input_ids"]
            greedy = stripped(generate(model, ids, start).sequences[0], start, end)
            expected["texts"].append(dict(text=line, ids=ids, source_language=languages[0] if languages else "",
                                          target_language=languages[1] if languages else "", greedy=greedy,
                                          translation=tokenizer.decode(greedy, skip_special_tokens=True)))
    single = model.float()(torch.tensor([sources[0]]), decoder_input_ids=torch.tensor([start + targets[0][:-1]]))
    error = (single.logits[0, len(start) - 1:] - logits[0]).abs().max() / logits[0].abs().max()
    ended = [ids[-1] == end for beams in expected["beam"] for ids in beams]
    print(f"{name}: float32 is {error:.1e} from float64, {sum(p.numel() for p in model.parameters())} parameters, "
          f"{sum(ended)} of {len(ended)} hypotheses end, lengths {[len(b) for s in expected['beam'] for b in s]}")
    save_file({"memory": torch.cat(memory).float().contiguous(), "logits": torch.cat(logits).float().contiguous()},
              path / "expected.safetensors")
    write_json(path / "expected.json", expected)


if __name__ == "__main__":
    for name in sys.argv[1:] or MODELS:
        make(name, MODELS[name])
