"""Makes the files of this folder with Hugging Face's `tokenizers`: small tokenizers with the patterns and normalizers of
well-known models, learned from examples/grammar and the texts below, and what they make of these texts.

    python3 tests/golden/tokenizers/make.py      # pip install tokenizers

NAME.json is a tokenizer.json, NAME.ids.json a list of texts and their ids, without and with what the tokenizer puts
around a text. The library settles ties between word pieces at random: those files change each time, together.
"""
import json
from pathlib import Path

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, processors, trainers
from tokenizers.pre_tokenizers import BertPreTokenizer, ByteLevel, Digits, Sequence, Split

HERE = Path(__file__).parent
GRAMMAR = HERE.parent.parent.parent / "examples" / "grammar"
MODERN = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}%s| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
          r"|\s+(?!\S)|\s+")
QWEN_3_5 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+"
            r"|\s+(?!\S)|\s+")

TEXTS = [
    "", " ", "  ", "\n", "a", "the dog  sees the cat.\n\n  It's red,  isn't it?\t\tYes   \n", "   leading and trailing   ",
    "I'LL we'Ve don'T 's'S 't 'ſ ' '' can't’s O'Reilly'd", "1 12 123 1234 12345678 3.14 $1,000.00 ½ Ⅷ ٣٤٥٦ ² x2y3",
    "Zürich café naïve ÀÉÎ ẞß İı Σίσυφος ΑΣ ǅ ﬁﬀ K Å", "cafe\u0301 e\u0301t a\u0316\u0301 \u0301x q\u0301\u0316 \u1112\u1161\u11ab",
    "你好，世界！日本語のテキストです。한국어 \U00020000\U0002B820豈", "العربية لغة جميلة، أليس كذلك؟ שלום עולם \u202e\u200f",
    "क्षि नमस्ते ไทย \u0d3c\u0301", "🎉👩‍👩‍👧‍👦 🇩🇪 \U0001F9D1\U0001F3FD ☃\ufe0f", "\x00\x01\x07\x1b\x7f\x80\x85\xa0\xad\u2028\u3000\ufeff\ufffd\u200bx\x0b\x0cy\x1cz",
    " " * 40 + "x" + "\n" * 20 + "\r\n\r\n \r \n  y\t \t", "!!! ... --- ~~ ``x`` _a_b_ #tag @me http://a.b/c?d=e&f [x]{y}",
    "one<|endoftext|>two <|im_start|>user\nhi<|im_end|> <s>a</s> <mask>  b <mask>", "x<|endoftext|>", "<|endoftext|><|endoftext|>",
    "<|end <|endoftext <|ENDOFTEXT|> <| endoftext|>", "[CLS] a [MASK] b[SEP] [unk] [UNK]", "word swords word, aword _word word1",
    "the then   the   end", "doggedly unbelievableness " + "dog" * 50, "ab" * 300, "\u0378\U0001FAE8 \ue000 \U000E0001",
]


def added(text, **how):
    return AddedToken(text, **{"normalized": False, "special": True, **how})


def save(name, tokenizer):
    tokenizer.save(str(HERE / f"{name}.json"), pretty=False)
    cases = [[text, tokenizer.encode(text, add_special_tokens=False).ids, tokenizer.encode(text).ids] for text in TEXTS]
    (HERE / f"{name}.ids.json").write_text(json.dumps(cases, separators=(",", ":")) + "\n", encoding="utf-8")


def lines():
    return (GRAMMAR / "train.en").read_text(encoding="utf-8").splitlines(True)[:3000] + TEXTS * 20


def byte_level(name, words, normalizer=None, tokens=(), around=None, **model):
    tokenizer = Tokenizer(models.BPE(**model))
    tokenizer.pre_tokenizer, tokenizer.decoder = words, decoders.ByteLevel()
    if normalizer:
        tokenizer.normalizer = normalizer
    trainer = trainers.BpeTrainer(vocab_size=420, initial_alphabet=ByteLevel.alphabet(), show_progress=False)
    tokenizer.train_from_iterator(lines(), trainer)
    for token in tokens:
        (tokenizer.add_special_tokens if token.special else tokenizer.add_tokens)([token])
    if around:
        tokenizer.post_processor = around(tokenizer)
    save(name, tokenizer)


def split(expression, behavior="isolated", invert=False):
    return Sequence([Split(Regex(expression), behavior, invert), ByteLevel(add_prefix_space=False, use_regex=False)])


def word_pieces(name, **cleaning):
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(**cleaning)
    tokenizer.pre_tokenizer, tokenizer.decoder = BertPreTokenizer(), decoders.WordPiece()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    trainer = trainers.WordPieceTrainer(vocab_size=500, show_progress=False, special_tokens=special, min_frequency=3)
    tokenizer.train_from_iterator(lines(), trainer)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    save(name, tokenizer)


def roberta_around(tokenizer):
    return processors.RobertaProcessing(*((token, tokenizer.token_to_id(token)) for token in ("</s>", "<s>")))


def llama_around(tokenizer):
    begin = "<|begin_of_text|>"
    template = processors.TemplateProcessing(single=f"{begin} $A", pair=f"{begin} $A $B",
                                             special_tokens=[(begin, tokenizer.token_to_id(begin))])
    return processors.Sequence([processors.ByteLevel(trim_offsets=False), template])


def modernbert_around(tokenizer):
    return processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[(token, tokenizer.token_to_id(token)) for token in ("[CLS]", "[SEP]")])


if __name__ == "__main__":
    end = added("<|endoftext|>")
    byte_level("gpt2", ByteLevel(add_prefix_space=False), tokens=[added("<|endoftext|>", normalized=True)])
    byte_level("roberta", ByteLevel(add_prefix_space=True), around=roberta_around,
               tokens=[added("<s>", normalized=True), added("</s>"), added("<mask>", lstrip=True, normalized=True)])
    byte_level("qwen2", split(MODERN % ""), normalizers.NFC(),
               tokens=[end, added("<|im_start|>"), added("<|im_end|>"), added("<think>", special=False)])
    byte_level("llama3", split(MODERN % "{1,3}", "removed", True), around=llama_around, ignore_merges=True,
               tokens=[added("<|begin_of_text|>"), end])
    byte_level("qwen3.5", split(QWEN_3_5), normalizers.NFC(), tokens=[end])
    byte_level("digits", Sequence([Digits(individual_digits=True), ByteLevel(add_prefix_space=True)]), normalizers.NFC(),
               tokens=[end, added("  ", special=False), added("    ", special=False),
                       added("e\u0301t", special=False, normalized=True), added("word", special=False, single_word=True),
                       added("the", special=False, lstrip=True, rstrip=True)])
    byte_level("modernbert", ByteLevel(add_prefix_space=False), normalizers.NFC(), around=modernbert_around,
               tokens=[added("|||IP_ADDRESS|||", special=False, normalized=True),
                       added("    ", special=False, normalized=True), added("  ", special=False, normalized=True),
                       added("[UNK]"), added("[CLS]"), added("[SEP]"), added("[PAD]"), added("[MASK]", lstrip=True)])
    word_pieces("bert-uncased", lowercase=True)
    word_pieces("bert-cased", lowercase=False)
