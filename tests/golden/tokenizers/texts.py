"""500 lines of text in many scripts, the same each time: words drawn from small lists, joined by odd spaces, with marks,
control characters, emoji, digits and tokens that tokenizers add."""
import random

WORDS = {
    "Latin": "the dog sees cats Zürich café naïve ÀÉÎ ẞß İıI ﬁne oﬀer Ǆǅ Łódź São façade l'été O'Reilly's don't I'LL",
    "combining": "cafe\u0301 e\u0301\u0316t a\u0316\u0301 q\u0307\u0323 \u0301x A\u030a \u1112\u1161\u11ab n\u0303o o\u0302\u0309 x\u20dd",
    "Cyrillic": "Привет мир Ёлка ёж й Щука съёмка ПОДЪЕЗД Київ ґанок",
    "Greek": "Σίσυφος ΑΣ ὀδυσσεύς Άνθρωπος λόγος ᾳ ΐ",
    "Arabic": "العربية لغة جميلة السَّلامُ ﷺ ٣٤٥ \u0600\u0661 \u202eمرحبا",
    "Hebrew": "שלום עולם בְּרֵאשִׁית יִשְׂרָאֵל \u200fאבג",
    "Devanagari": "नमस्ते क्षि हिन्दी विश्व १२३ क़ \u0915\u093c",
    "Thai": "สวัสดี ภาษาไทย กำลัง น้ำ ๑๒๓",
    "Chinese": "你好 世界！ 中文，句子。 \U00020000\U0002B820 豈 ㈱ ①②",
    "Japanese": "日本語 テキスト ﾃｷｽﾄ が か\u3099 ｶﾞ ー 、。",
    "Korean": "안녕하세요 한국어 \u1100\u1161 각 힣",
    "emoji": "🎉 👩‍👩‍👧‍👦 🇩🇪 🧑🏽 ☃\ufe0f ❤\ufe0f‍🔥 1\ufe0f\u20e3 ©\u0301",
    "control": "\x00 \x01a \x07 \x1b[0m \x7f \x80 \x85 \xad \u200b \u200d \u2028 \u2060 \ufeff \ufffd \ue000 \U000E0001 \u0378",
    "numbers": "1 12 1234 3.14 1,000.00 ½ Ⅷ ² x2y3 0x1F ५६ ٠١",
    "marks": "! ... --- ~~ ``x`` ''y'' _a_ #tag @me http://a.b/c?d=e&f [x]{y} “q” «z» … ¿que? ▁ ▁a a▁ %$^+=|<>",
    "tokens": "<s> </s> <unk> <pad> <mask> [CLS] [SEP] [UNK] [MASK] <|endoftext|> <extra> word swords <tok> <T> <0x0A>",
    "letters": "a ab abc aaaa aaaaaaaaaaaaaaaaaaaa bbbbbb dogged unbelievableness ab1 A B 'S 't ſ",
}
SPACES = [" "] * 30 + ["", "", "  ", "   ", "\t", "\n", "\r\n", "\u00a0", "\u3000", "\u2003", " \t ", "\n\n", "\u1680", "\x0b", "\x1c"]


def texts():
    random.seed(20)
    words = {script: line.split(" ") for script, line in WORDS.items()}
    scripts, lines = sorted(words), ["", " ", "  ", "\n", "a", " a", "a ", "▁", "▁ ", " ▁", "</s>", "</s>a", "a</s>", "a </s> b"]
    while len(lines) < 500:
        some = random.sample(scripts, random.choice([1, 1, 1, 2, 3, 5]))
        line = random.choice(["", "", "", "", " ", "  ", "\t", "\n"])
        for _ in range(random.choice([1, 2, 3, 5, 8, 12])):
            line += random.choice(words[random.choice(some)]) + random.choice(SPACES)
        if random.random() < 0.5:
            line = line.strip()
        lines.append(line)
    return lines
