"""Writes the directories next to it: small random models as a version of sentence-transformers saves them, and its
vectors or scores of a few texts.

    python make.py NAME…      with torch, transformers, tokenizers, sentencepiece and the version that NAME ends with

Names: mean, dense and cross, each with 3, 5 or 6 (sentence-transformers 3.4, 5.3, 6.2); labels6, qwen3_5, qwen3_6,
causal_6, gemma3_5, nomic_6, gte_6, modernbert_6.

texts.txt, pairs.txt: the texts, one per line, and the pairs of a cross-encoder, separated by a tab

expected.safetensors: vectors               [texts, width], as the directory says
                      query                 [texts, width], with the prompt "query"
                      cls, max, …           [texts, d], by each mode of Pooling, without prompt and other modules
                      scores                [pairs, labels], of a cross-encoder
                      ids, offsets          the tokens of the texts, one text after the other
"""

import json
import pathlib
import shutil
import sys

import sentence_transformers
import torch
import transformers
from safetensors.torch import save_file
from sentence_transformers import CrossEncoder, SentenceTransformer
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

try:
    from sentence_transformers.sentence_transformer.modules import Dense, Normalize, Pooling, Transformer
except ImportError:
    from sentence_transformers.models import Dense, Normalize, Pooling, Transformer

HERE = pathlib.Path(__file__).parent
TEXTS = ["the cat sat", "", "Dogs run!", "a dog sat on the mat and the cat ran to the end of a long story about a dog"]
PAIRS = [("the cat sat", "a dog"), ("Dogs run", "the cat sat on the mat and ran and ran and ran to the end of it")]
WORDS = "the cat sat on mat a dog and ran run to end of long story about it query passage is".split()
PROMPTS = {"query": "query: ", "passage": "passage: "}
MODES = {"cls": "cls_token", "max": "max_tokens", "mean": "mean_tokens", "mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
         "weightedmean": "weightedmean_tokens", "lasttoken": "lasttoken"}
QWEN_PATTERN = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|"
                r"\s+(?!\S)|\s+")
SIZES = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 24}


def randomize(model):
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    for name, parameter in model.named_parameters():
        if "norm" in name.lower() and name.endswith("weight"):
            parameter.data += 1
    return model.eval()


def word_pieces(lowercase=True):
    letters = sorted(set("abcdefghijklmnopqrstuvwxyz:!"))
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS, *letters, *("##" + letter for letter in letters)]
    vocabulary = {piece: i for i, piece in enumerate(dict.fromkeys(pieces))}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=lowercase)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    return transformers.BertTokenizerFast(tokenizer_object=tokenizer, model_max_length=20, do_lower_case=lowercase)


def byte_pieces(end):
    """A byte-level tokenizer with Qwen2's pattern, which puts `end` after a text."""
    pieces = [*sorted(pre_tokenizers.ByteLevel.alphabet()), "Ġt", "th", "he", "Ġthe", "at", "og", "<|endoftext|>",
              "<|im_start|>", "<|im_end|>"]
    merges = [("Ġ", "t"), ("t", "h"), ("h", "e"), ("Ġt", "he"), ("a", "t"), ("o", "g")]
    tokenizer = Tokenizer(models.BPE({piece: i for i, piece in enumerate(pieces)}, merges))
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(QWEN_PATTERN), "isolated"), pre_tokenizers.ByteLevel(False, use_regex=False)])
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(piece, special=True, normalized=False) for piece in pieces[-3:]])
    byte_level = processors.ByteLevel(trim_offsets=False)
    template = processors.TemplateProcessing(single=f"$A {end}", pair=f"$A {end} $B:1 {end}:1",
                                             special_tokens=[(end, pieces.index(end))])
    tokenizer.post_processor = processors.Sequence([byte_level, template]) if end else byte_level
    return transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<|im_end|>",
                                                pad_token="<|endoftext|>", model_max_length=40, padding_side="left")


def sentence_pieces(directory):
    """Gemma's kind of tokenizer: SentencePiece's BPE with bytes, <bos> before and <eos> after a text."""
    import sentencepiece

    file = directory / "tokenizer.model"
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter([" ".join(WORDS)] * 9 + TEXTS), model_prefix=str(directory / "tokenizer"), vocab_size=330,
        model_type="bpe", pad_id=0, eos_id=1, bos_id=2, unk_id=3, pad_piece="<pad>", eos_piece="<eos>",
        bos_piece="<bos>", unk_piece="<unk>", byte_fallback=True, add_dummy_prefix=False, minloglevel=3,
        normalization_rule_name="identity", remove_extra_whitespaces=False, num_threads=1, hard_vocab_limit=False,
        user_defined_symbols=["<start_of_turn>"])
    (directory / "tokenizer.vocab").unlink()
    return transformers.GemmaTokenizerFast(vocab_file=str(file), add_bos_token=True, add_eos_token=True,
                                           model_max_length=40)


def pooling(mode, width):
    if sentence_transformers.__version__ < "5.4":
        return Pooling(width, **{"pooling_mode_mean_tokens": False, "pooling_mode_" + MODES[mode]: True})
    return Pooling(width, mode)


def transformer(model, tokenizer, directory, length=None):
    """A Transformer module around a model."""
    source = directory / "source"
    model.save_pretrained(source)
    tokenizer.save_pretrained(source)
    module = Transformer(str(source)) if length is None else Transformer(str(source), max_seq_length=length)
    shutil.rmtree(source)
    return module


def tokens_of(model, texts):
    ids = [model.tokenizer(text, truncation=True, max_length=model.max_seq_length)["input_ids"] for text in texts]
    offsets = [0]
    for text in ids:
        offsets.append(offsets[-1] + len(text))
    return {"ids": torch.tensor(sum(ids, []), dtype=torch.int32), "offsets": torch.tensor(offsets, dtype=torch.int32)}


def encode(model, texts=TEXTS, **options):
    rows = [model.encode([text], convert_to_tensor=True, **options)[0] for text in texts]  # without padding
    return torch.stack(rows).float().cpu().contiguous()


def expected(directory, modes=False):
    model = SentenceTransformer(str(directory), device="cpu")  # as it was saved
    tensors = tokens_of(model, TEXTS) | {"vectors": encode(model)}
    if model.prompts.get("query"):
        tensors["query"] = encode(model, prompt_name="query")
    if modes:
        for mode in MODES:
            bare = SentenceTransformer(modules=[model[0], pooling(mode, SIZES["hidden_size"])], device="cpu")
            tensors[mode] = encode(bare)
    save_file(tensors, directory / "expected.safetensors")
    (directory / "README.md").unlink(missing_ok=True)


def new_directory(name):
    directory = HERE / name
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir()
    torch.manual_seed(1)
    return directory


def bert(tokenizer, **options):
    config = transformers.BertConfig(vocab_size=len(tokenizer) + 1, max_position_embeddings=32, **SIZES, **options)
    return config


def write_mean(name):
    """Prompts, a default prompt and a length below that of the tokenizer."""
    directory = new_directory(name)
    tokenizer = word_pieces()
    model = randomize(transformers.BertModel(bert(tokenizer)))
    modules = [transformer(model, tokenizer, directory, 18), pooling("mean", 16), Normalize()]
    SentenceTransformer(modules=modules, prompts=PROMPTS, default_prompt_name="passage",
                        device="cpu").save(str(directory))
    expected(directory, modes=True)


def write_dense(name):
    """Two linear layers, the first with an activation; text that is lower-cased by the Transformer module."""
    directory = new_directory(name)
    tokenizer = word_pieces(lowercase=False)
    model = randomize(transformers.BertModel(bert(tokenizer)))
    module = transformer(model, tokenizer, directory)
    module.do_lower_case = True
    modules = [module, pooling("cls", 16), Dense(16, 20, activation_function=torch.nn.Tanh()),
               Dense(20, 8, bias=False, activation_function=torch.nn.Identity()), Normalize()]
    for dense in modules[2:4]:
        randomize(dense)
    saved = SentenceTransformer(modules=modules, device="cpu")
    saved.save(str(directory), safe_serialization=not name.endswith("3"))
    expected(directory)


def write_cross(name, labels=1, activation=None):
    directory = new_directory(name)
    tokenizer = word_pieces()
    config = bert(tokenizer, num_labels=labels)
    config.id2label = {i: f"LABEL_{i}" for i in range(labels)}
    source = directory / "source"
    randomize(transformers.BertForSequenceClassification(config)).save_pretrained(source)
    tokenizer.save_pretrained(source)
    key = "default_activation_function" if sentence_transformers.__version__ < "4" else "activation_fn"
    model = CrossEncoder(str(source), max_length=16, device="cpu",
                         **{key: activation or torch.nn.Identity()})
    shutil.rmtree(source)
    model.save_pretrained(str(directory))
    (directory / "README.md").unlink(missing_ok=True)
    loaded = CrossEncoder(str(directory), device="cpu")
    scores = torch.stack([loaded.predict([pair], convert_to_tensor=True)[0] for pair in PAIRS])
    save_file({"scores": scores.reshape(len(PAIRS), -1).float().contiguous()}, directory / "expected.safetensors")


def write_embedder(name, model, tokenizer, mode, normalize=True, dense=(), prompts=None, length=None, **options):
    directory = HERE / name
    modules = [transformer(randomize(model), tokenizer, directory, length), pooling(mode, model.config.hidden_size)]
    modules += [randomize(layer) for layer in dense]
    modules += [Normalize()] if normalize else []
    SentenceTransformer(modules=modules, prompts=prompts or {}, device="cpu", **options).save(str(directory))
    expected(directory)


def write_qwen3(name):
    new_directory(name)
    tokenizer = byte_pieces("<|endoftext|>")
    config = transformers.Qwen3Config(vocab_size=len(tokenizer) + 5, head_dim=8, num_key_value_heads=2,
                                      max_position_embeddings=64, tie_word_embeddings=name.endswith("5"), **SIZES)
    write_embedder(name, transformers.Qwen3Model(config), tokenizer, "lasttoken",
                   prompts={"query": "Instruct: find\nQuery:", "document": ""})


def write_causal(name):
    """A decoder that attends in both directions, by is_causal."""
    new_directory(name)
    tokenizer = byte_pieces("<|im_end|>")
    config = transformers.MistralConfig(vocab_size=len(tokenizer), num_key_value_heads=2, max_position_embeddings=64,
                                        sliding_window=6, is_causal=False, **SIZES)
    write_embedder(name, transformers.MistralModel(config), tokenizer, "mean", normalize=False)


def write_gemma3(name):
    directory = new_directory(name)
    tokenizer = sentence_pieces(directory)
    config = transformers.Gemma3TextConfig(
        vocab_size=len(tokenizer), head_dim=8, num_key_value_heads=2, max_position_embeddings=64, sliding_window=8,
        query_pre_attn_scalar=8, layer_types=["sliding_attention", "full_attention"], pad_token_id=0, eos_token_id=1,
        bos_token_id=2, **SIZES)
    config.use_bidirectional_attention = True  # given to the class, the window would be halved twice
    identity = torch.nn.Identity()
    write_embedder(name, transformers.Gemma3TextModel(config), tokenizer, "mean",
                   dense=[Dense(16, 24, bias=False, activation_function=identity),
                          Dense(24, 16, bias=False, activation_function=identity)],
                   prompts={"query": "task: search | query:", "document": "title: none | text:"})  # 5.3 strips texts


def write_nomic(name):
    new_directory(name)
    tokenizer = word_pieces()
    config = transformers.NomicBertConfig(vocab_size=len(tokenizer) + 1, max_position_embeddings=32, **SIZES)
    write_embedder(name, transformers.NomicBertModel(config), tokenizer, "mean")


def write_gte(name):
    new_directory(name)
    tokenizer = word_pieces()
    config = transformers.GteConfig(vocab_size=len(tokenizer) + 1, max_position_embeddings=32, **SIZES)
    write_embedder(name, transformers.GteModel(config), tokenizer, "cls")


def write_modernbert(name):
    new_directory(name)
    tokenizer = word_pieces()
    config = transformers.ModernBertConfig(
        vocab_size=len(tokenizer), max_position_embeddings=32, local_attention=8, pad_token_id=0, cls_token_id=2,
        sep_token_id=3, bos_token_id=2, eos_token_id=3, **SIZES | {"num_hidden_layers": 4})
    write_embedder(name, transformers.ModernBertModel(config), tokenizer, "cls", normalize=False)


def main():
    version = sentence_transformers.__version__
    (HERE / "texts.txt").write_text("".join(text + "\n" for text in TEXTS))
    (HERE / "pairs.txt").write_text("".join("\t".join(pair) + "\n" for pair in PAIRS))
    for name in sys.argv[1:]:
        if not name.endswith(version[0]):
            raise SystemExit(f"{name}: needs sentence-transformers {name[-1]} (is {version})")
        if name.startswith("labels"):
            write_cross(name, 3, torch.nn.Sigmoid())
        else:
            globals()["write_" + name[:-1].rstrip("_")](name)


if __name__ == "__main__":
    main()
