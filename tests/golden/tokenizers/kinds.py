"""Makes the folder `kinds` with Hugging Face's `tokenizers`: a small tokenizer.json for each normalizer, pre-tokenizer,
model, decoder and kind of added token, and what the library makes of the 500 lines of texts.py.

    python3 tests/golden/tokenizers/kinds.py      # pip install tokenizers sentencepiece

NAME.json is a tokenizer.json; texts.json the lines. NAME.ids.json has two strings. The first has four digits for each
line: the lower half of the FNV-1a hash of the ids, four little-endian bytes each, or "----" where the library gives an
error. The second has that of the text that the ids become with skip_special_tokens, or "----" where it has U+FFFD."""
import io
import json
import shutil
from collections import Counter
from pathlib import Path

import sentencepiece
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers as n, pre_tokenizers as p
from tokenizers import processors, trainers

from texts import texts

HERE = Path(__file__).parent / "kinds"
LINES = texts()
WORDS = (Path(__file__).parents[3] / "examples" / "grammar" / "train.en").read_text(encoding="utf-8").splitlines()[:400]
SPECIAL = ["<unk>", "<s>", "</s>", "<pad>"]
COMMON = {c for c, _ in Counter("".join(LINES)).most_common(110)}
TRAINING = WORDS + ["".join(c for c in line if c in COMMON) for line in LINES]


def hash_of(data):
    h = 0x811C9DC5
    for byte in data:
        h = (h ^ byte) * 0x01000193 & 0xFFFFFFFF
    return f"{h & 0xFFFF:04x}"


def charsmap():
    """A table of a few rules, as the one of nmt_nfkc has them for thousands of characters."""
    rules = {"\u00a0": " ", "\u3000": " ", "\t": " ", "\n": " ", "\r": " ", "ﬁ": "fi", "ﬀ": "ff", "①": "1", "②": "2",
             "㈱": "(株)", "ﾃ": "テ", "か\u3099": "が", "e\u0301": "é", "n\u0303": "ñ", "A\u030a": "Å", "½": "1⁄2", "ﷺ": "صلى",
             "\u200b": "", "\u2028": " ", "\x01": "", "…": "...", "İ": "i\u0307", "ｶﾞ": "ガ", "ｶ": "カ", "\r\n": " ", "®": "(r)"}
    path = HERE / "rules.tsv"
    path.write_text("".join(" ".join(f"{ord(c):X}" for c in k) + "\t" + " ".join(f"{ord(c):X}" for c in v) + "\n"
                            for k, v in rules.items()), encoding="utf-8")
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(["a b"] * 10), model_writer=model, vocab_size=6,
                                             hard_vocab_limit=False, normalization_rule_tsv=str(path), minloglevel=3)
    path.unlink()
    from sentencepiece import sentencepiece_model_pb2
    proto = sentencepiece_model_pb2.ModelProto.FromString(model.getvalue())
    return bytes(proto.normalizer_spec.precompiled_charsmap)


def bytes_of_fallback():
    return [f"<0x{b:02X}>" for b in range(256)]


def make(name, model, trainer=None, normalizer=None, words=None, decoder=None, added=(), size=300, edit=None, **train):
    tokenizer = Tokenizer(model)
    if normalizer:
        tokenizer.normalizer = normalizer
    if words:
        tokenizer.pre_tokenizer = words
    if decoder:
        tokenizer.decoder = decoder
    if trainer:
        tokenizer.train_from_iterator(TRAINING, trainer(vocab_size=size, show_progress=False, **train))
    if edit:
        file = json.loads(tokenizer.to_str())
        edit(file)
        tokenizer = Tokenizer.from_str(json.dumps(file))
    for token in added:
        (tokenizer.add_special_tokens if token.special else tokenizer.add_tokens)([token])
    (HERE / f"{name}.json").write_text(tokenizer.to_str(pretty=False) + "\n", encoding="utf-8")
    ids = [ids_of(tokenizer, line) for line in LINES]
    decoded = ["\ufffd" if i is None else tokenizer.decode(i, skip_special_tokens=True) for i in ids]
    hashes = ["".join("----" if i is None else hash_of(b"".join(j.to_bytes(4, "little") for j in i)) for i in ids),
              "".join("----" if "\ufffd" in text else hash_of(text.encode()) for text in decoded)]
    (HERE / f"{name}.ids.json").write_text(json.dumps(hashes) + "\n")


def ids_of(tokenizer, line):
    try:
        return tokenizer.encode(line, add_special_tokens=False).ids
    except Exception:  # a character without a piece, and no unknown one
        return None


def token(text, **how):
    return AddedToken(text, **{"normalized": False, "special": False, **how})


def llama_decoder(*strip):
    return decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), *strip])


def with_bytes(file):
    """Pieces for bytes behind the others."""
    vocabulary = file["model"]["vocab"]
    if isinstance(vocabulary, list):
        vocabulary += [[piece, -20.0] for piece in bytes_of_fallback()]
    else:
        for piece in bytes_of_fallback():
            vocabulary.setdefault(piece, len(vocabulary))
    file["model"]["byte_fallback"] = True


SPECIAL_TOKENS = [token(t, special=True) for t in ("<s>", "</s>", "<unk>", "<pad>")]


def main():
    shutil.rmtree(HERE, ignore_errors=True)
    HERE.mkdir()
    (HERE / "texts.json").write_text(json.dumps(LINES, ensure_ascii=False, separators=(",", ":")) + "\n", encoding="utf-8")
    table = charsmap()
    spaces = n.Replace(" ", "▁")

    # Whole families.
    bpe_model = lambda **how: models.BPE(unk_token="<unk>", fuse_unk=True, **how)
    trained = dict(trainer=trainers.BpeTrainer, special_tokens=SPECIAL, limit_alphabet=120)
    make("llama_legacy", bpe_model(), normalizer=n.Sequence([n.Prepend("▁"), spaces]), edit=with_bytes,
         decoder=llama_decoder(decoders.Strip(" ", 1, 0)), added=SPECIAL_TOKENS, **trained)
    make("llama", bpe_model(), words=p.Metaspace("▁", "first", False), edit=with_bytes, added=SPECIAL_TOKENS,
         decoder=llama_decoder(decoders.Strip(" ", 1, 0)), **trained)
    make("gemma", bpe_model(), normalizer=spaces, words=p.Split(" ", "merged_with_previous"), edit=with_bytes,
         added=SPECIAL_TOKENS + [token("\n\n"), token("  ")], decoder=llama_decoder(), **trained)
    make("bpe_no_fallback", bpe_model(), words=p.Metaspace(), decoder=decoders.Metaspace(), **trained)
    for name, fuse in (("bpe_unknown_apart", False), ("bpe_unknown_fused", True)):
        make(name, models.BPE(unk_token="<unk>", fuse_unk=fuse), words=p.Whitespace(), **trained)
    make("bpe_suffix", models.BPE(unk_token="<unk>", end_of_word_suffix="</w>"), words=p.BertPreTokenizer(),
         decoder=decoders.WordPiece(), end_of_word_suffix="</w>", **trained)
    make("bpe_prefix", models.BPE(unk_token="<unk>", continuing_subword_prefix="##"), words=p.WhitespaceSplit(),
         decoder=decoders.WordPiece(), continuing_subword_prefix="##", **trained)
    make("bpe_whole_words", models.BPE(unk_token="<unk>", ignore_merges=True), words=p.Metaspace(),
         decoder=decoders.Metaspace(), **trained)
    make("bpe_no_unknown", models.BPE(), words=p.Metaspace("▁", "never"), decoder=decoders.Metaspace("▁", "never"), **trained)
    make("byte_level_general", models.BPE(), normalizer=n.NFKC(), decoder=decoders.ByteLevel(),
         words=p.Sequence([p.Split(Regex(r"[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}{1,2}| ?[^\s\p{L}\p{N}]+|\s+"), "isolated"),
                           p.ByteLevel(False, use_regex=False)]),
         trainer=trainers.BpeTrainer, initial_alphabet=p.ByteLevel.alphabet(), size=400)
    make("byte_level_normalizer", models.BPE(), normalizer=n.Sequence([n.NFD(), n.ByteLevel()]), decoder=decoders.ByteLevel(),
         trainer=trainers.BpeTrainer, initial_alphabet=p.ByteLevel.alphabet(), size=400)

    pieces = dict(trainer=trainers.UnigramTrainer, special_tokens=SPECIAL, unk_token="<unk>", size=260)
    compiled = n.Precompiled(table)
    make("xlmr_v4", models.Unigram(), normalizer=n.Sequence([compiled, n.Strip(False, True), n.Replace(Regex(" {2,}"), "▁")]),
         words=p.Metaspace(), decoder=decoders.Metaspace(),
         added=SPECIAL_TOKENS + [token("<mask>", special=True, lstrip=True)], **pieces)
    make("xlmr_v5", models.Unigram(), normalizer=compiled, words=p.Sequence([p.WhitespaceSplit(), p.Metaspace()]),
         decoder=decoders.Metaspace(), added=SPECIAL_TOKENS + [token("<mask>", special=True, lstrip=True, normalized=True)],
         **pieces)
    make("unigram_bytes", models.Unigram(), words=p.Metaspace("▁", "first"), edit=with_bytes,
         decoder=llama_decoder(decoders.Strip(" ", 1, 0)), added=SPECIAL_TOKENS, **pieces)
    make("unigram_nmt", models.Unigram(), normalizer=n.Sequence([n.Nmt(), n.NFKC(), n.Replace(Regex(" {2,}"), " ")]),
         words=p.Metaspace("_", "always"), decoder=decoders.Metaspace("_"), **pieces)
    make("albert", models.Unigram(), words=p.Metaspace(), decoder=decoders.Metaspace(), normalizer=n.Sequence(
        [n.Replace("``", '"'), n.Replace("''", '"'), n.NFKD(), n.StripAccents(), n.Lowercase(), compiled,
         n.Replace(Regex(" {2,}"), " ")]), **pieces)

    longest = dict(trainer=trainers.WordPieceTrainer, special_tokens=["[UNK]", "[CLS]"], size=400, limit_alphabet=150)
    wordpiece = lambda: models.WordPiece(unk_token="[UNK]")
    make("wordpiece_lower", wordpiece(), normalizer=n.Sequence([n.NFD(), n.Lowercase(), n.StripAccents(), n.Strip()]),
         words=p.Whitespace(), decoder=decoders.WordPiece(cleanup=False), **longest)
    make("wordpiece_bert", wordpiece(), normalizer=n.BertNormalizer(strip_accents=False, lowercase=True),
         words=p.Sequence([p.BertPreTokenizer(), p.Digits(True)]), decoder=decoders.WordPiece(cleanup=True), **longest)
    make("words", models.WordLevel(unk_token="<unk>"), words=p.Whitespace(), trainer=trainers.WordLevelTrainer,
         special_tokens=SPECIAL, size=300)

    # One pre-tokenizer each.
    split = lambda pattern, behavior, invert=False: p.Split(pattern, behavior, invert)
    behaviors = ("removed", "isolated", "merged_with_previous", "merged_with_next", "contiguous")
    cuts = {f"split_{b}": split(Regex(r"\p{P}|\d"), b) for b in behaviors}
    cuts |= {f"split_inverted_{b}": split(Regex(r"\w+"), b, True) for b in behaviors}
    cuts |= {f"punctuation_{b}": p.Punctuation(b) for b in behaviors}
    cuts |= {"split_string": split("a", "merged_with_next"), "digits_each": p.Digits(True), "digits_runs": p.Digits(False),
             "delimiter": p.CharDelimiterSplit("e"), "fixed": p.FixedLength(3),
             "lookaround": split(Regex(r"(?<=[a-z])(?=x)|(?i:DOG)|\b\p{Lu}+?(?!\s)|[^\S\n]+$|[\p{L}&&[^a-e]]{2,3}"), "isolated"),
             "metaspace_spaces": p.Sequence([p.WhitespaceSplit(), p.Metaspace("▁", "first")]),
             "gpt2_words": p.Sequence([p.ByteLevel(True), p.Punctuation("contiguous")])}
    small = dict(trained, size=220)
    for name, cut in cuts.items():
        make(f"cut_{name}", models.BPE(unk_token="<unk>"), words=cut, decoder=decoders.Fuse(), **small)

    # Added tokens of each kind.
    for name, normalizer in (("", None), ("_normalized", n.Sequence([n.Lowercase(), n.Strip()]))):
        make("added" + name, models.BPE(unk_token="<unk>"), normalizer=normalizer, words=p.Metaspace(), **small, added=[
            token("<tok>", lstrip=True), token("<t>", rstrip=True, normalized=True), token("word", single_word=True),
            token("<mask>", lstrip=True, rstrip=True, special=True), token("<s>", special=True),
            token("café", normalized=True), token("ab"), token("abc", normalized=True), token("  ")])


if __name__ == "__main__":
    main()
