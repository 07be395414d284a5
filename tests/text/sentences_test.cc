// Paragraphs split into sentences. A case is a text with " | " at each boundary; in scripts without spaces, "|".
#include "text/sentences.h"

#include <gtest/gtest.h>

#include <span>

#include "core/random.h"
#include "text/unicode.h"

namespace qkv {
namespace {

using Views = std::vector<std::string_view>;

std::string joined(const Views& sentences) {
  std::string all;
  for (const std::string_view sentence : sentences) all.append(all.empty() ? "" : "|").append(sentence);
  return all;
}

std::string replaced(std::string_view text, std::string_view from, std::string_view to) {
  std::string result;
  for (size_t at; (at = text.find(from)) != text.npos; text.remove_prefix(at + from.size()))
    result.append(text.substr(0, at)).append(to);
  return result.append(text);
}

void expect_split(std::initializer_list<std::string_view> cases, const SentenceSplitter& splitter = {}) {
  for (const std::string_view marked : cases) {
    const std::string text = replaced(replaced(marked, " | ", " "), "|", "");
    EXPECT_EQ(joined(splitter.split(text)), replaced(marked, " | ", "|"));
  }
}

TEST(Sentences, EndAtFullStopsAndQuestionMarks) {
  expect_split({"It rains. | We stay. | Why? | Because!", "One line without an end", "Really?! | Yes.",
                "Stop!!! | Now.", "It rose by 3.5. | Then it fell.", "In 1990. | 15 years later he died."});
}

TEST(Sentences, DoNotIncludeWhiteSpace) {
  const SentenceSplitter splitter;
  EXPECT_EQ(joined(splitter.split("  One.\t\n Two. \u00A0\u3000Three.  ")), "One.|Two.|Three.");
  EXPECT_TRUE(splitter.split("").empty());
  EXPECT_TRUE(splitter.split(" \t\u2003\n").empty());
}

TEST(Sentences, ContinueAfterAbbreviations) {
  expect_split({"Dr. Miller met Prof. Jones vs. Mr. Brown. | They talked.",
                "See No. 5 and vol. II, pp. 3. | No. | Never.", "Smith et al. (2010) and Lee et al. | The rest.",
                "Herr Dr. Maier kam z. B. am Montag bzw. Dienstag. | Gut.", "PROF. SMITH came. | HE LEFT.",
                "M. Petit est né en 50 av. J.-C. à Rome. | C'est sûr.", "El Sr. Gil y la Sra. Paz llegaron. | Bien.",
                "Bydlí na nám. Míru. | Např. dnes.", "Mieszka na ul. Długiej, np. tam. | Tak.",
                "Учился им. Ломоносова, т. е. в Москве. | Потом уехал.", "Ο κ. Νίκος ήρθε. | Π.χ. σήμερα."});
}

TEST(Sentences, EndAfterSomeAbbreviationsBeforeAWordThatBeginsOne) {
  expect_split({"He works at Apple Inc. | The firm grew.", "He asked Apple Inc. managers and Apple Inc. Chairman Bob.",
                "He left the U.S. | It was cold.", "The U.S. Army came at 5 p.m. | Then it left at 6 p.m. Tuesday.",
                "Er aß Brot usw. | Danach ging er.", "It took 5 min. | Nobody saw it.",
                "Родился в 1950 г. | Учился дома.", "Хлеб, соль и т. д. | Магазин закрыт.",
                "Он доволен им. | Они ушли.", "Ask the prof. | He knows.", "В 1950 г. Москва выросла."});
}

TEST(Sentences, ContinueAfterInitials) {
  expect_split({"J. R. R. Tolkien wrote. | C. S. Lewis read.", "А. С. Пушкин писал. | Мы читаем.",
                "It was plan B. | The end.", "By J. van Gogh and A. De Niro.", "It is 5 °C. | Snow falls.",
                "I like C++. | Bob does not."});
}

TEST(Sentences, ContinueAfterOrdinals) {
  expect_split({"Er kam am 3. Mai. | Sie kam im 19. Jahrhundert.", "Die 2. Mannschaft und die 3. Klasse gewannen.",
                "Er ist 45. | Sie auch.", "Narodil se 3. května 1990. | Dne 5. 10. 2000 odešel.",
                "Das war 1990. | Er ging.", "The price is 45. | Officials agreed."});
}

TEST(Sentences, IncludeQuotesAndBrackets) {
  expect_split({"He said “Go.” | She went.", "\"Why?\" he asked. | \"No!\" | He left.", "(It was late.) | She slept.",
                "She ate (fish, meat etc.) and drank. | Good.", "He (so they say. Or not.) came. | Yes.",
                "„Komm.“ | Er ging.", "Il dit : « Viens. » | Puis il part.", "«Где ты?» — спросил он. | — Дома.",
                "‘Yes.’ | ‘No.’", "It was (?) cold. | Yes.", "A fact.[1] | Another one.[2][13] | End."});
}

TEST(Sentences, IncludeEllipses) {
  expect_split({"Wait... what? | No... | Really.", "Wait … what? | Well… | Good.", "And . . . then. | End.",
                "...and so on. | End."});
}

TEST(Sentences, IncludeTheMarkersOfAList) {
  expect_split({"1. First one. | 2. Second one.", "I. Part one. | II. Part two.", "a) Foo. | b) Bar.",
                "• One. | • Two.", "Good. | § 5 applies. | · Next."});
}

TEST(Sentences, ContinueInAddressesVersionsAndFileNames) {
  expect_split({"See www.Example.com and https://x.org/a?B=c!D. | Then go.", "Mail a.B@c.org. | Open notes.Txt.",
                "Version 1.2.3 runs. | It costs $5.50. | Use .NET. | Good.", "Get it. | https://example.com has it."});
}

TEST(Sentences, MayBeginWithSmallLetters) {
  expect_split({"iPhone sales rose. | eBay grew. | al-Qaeda denied.", "are you there? | where are you. | i am here.",
                "Call me. | i am here.", "What? | nothing.", "– Vraiment ? dit-il.",
                "Het is koud. | 's Avonds regent het.", "Visit Yahoo! and AOL."});
}

TEST(Sentences, IncludeSmileys) {
  expect_split({"Thanks! :) | See you.", "So good :-) | Come again.", "Hi! 😀 | How are you? 😀👍 | Good.",
                "I love it 😍 | So nice.", ":( Hello. | How (are you?) | Good."});
}

TEST(Sentences, AreFoundInScriptsWithoutCapitals) {
  expect_split({"كيف حالك؟ | أنا بخير! | التقى د. أحمد بالوزير. | ثم غادر.", "یہ کتاب ہے۔ | وہ گھر ہے۔",
                "यह एक वाक्य है। | डॉ. शर्मा आए। | पी. वी. राव थे। | क्या?", "এটি বই। | ভালো।", "שלום. | מה שלומך? | טוב!",
                "यह अच्छा है. | वह नहीं है. | ठीक.", "네. | 저는 갑니다.", "안녕하세요. | 2020. 3. 5. | 만났다.",
                "საქართველო ლამაზია. | როგორ ხარ? | კარგად!", "Բարեւ։ | Ինչպես եք: | Լավ եմ։",
                "Τι κάνεις; | Είμαι καλά.", "வணக்கம். | மு. கருணாநிதி வந்தார்."});
}

TEST(Sentences, AreFoundInScriptsWithoutSpaces) {
  expect_split({"今天下雨。|我们不去！|为什么？|因为冷。", "他说：“你好。”|然后走了。|“你好！”他说。",
                "他說（真的。是的）。|好。", "今日は晴れ。|「はい。そうです。」と言った。|「行こう！」|走った。",
                "价格是3.5元。|很好。", "¿Qué? | ¡Hola! | Bien."});
}

TEST(Sentences, OfThaiEndAfterParticlesAndBeforeConnectives) {
  expect_split({"สวัสดีครับ | วันนี้อากาศดี", "เขาไปแล้ว | นอกจากนี้ เขายังมา", "เกิดเมื่อ พ.ศ. 2550 ดร. สมชาย"});
}

TEST(Sentences, ContinueAfterGivenAbbreviations) {
  const std::string_view text = "Das Mag. Archiv im Kgl. Hof. | Es ist alt.";
  expect_split({"Das Archiv der Abtlg. | Kunst ist alt."});
  expect_split({"Das Archiv der Abtlg. Kunst ist alt."}, SentenceSplitter({"abtlg"}));
  expect_split({text}, SentenceSplitter({"Mag", "KGL"}));
}

// Texts of pieces that the rules look for.
std::string drawn_text(Random& random) {
  static constexpr std::array<std::string_view, 52> kPieces = {
      " ",  " ",   ".",   ". ",   "?",  "! ",  "…",    "...",  "\"",  "'",  "(",  ")",  "“",
      "”",  "«",   "»",   "[1]",  "-",  "—",   ":)",   ":(",   "😀",   "1",  "12", "Dr", "J",
      "i",  "Mai", "The", "he",   "Wo", "der", "U.S.", "http", "www", "x)", "。", "？", "「",
      "」", "（",  "）",  "你好", "と", "ครับ", "ค",    "है",    "।",   ";",  "α",  "\n", "\xFF"};
  std::string text;
  for (uint64_t n = random.below(40); n > 0; n--) text += kPieces[random.below(kPieces.size())];
  return text;
}

TEST(Sentences, CoverTheTextInOrder) {
  Random random(1, Stream::test);
  const SentenceSplitter splitter;
  for (int trial = 0; trial < 3000; trial++) {
    const std::string text = drawn_text(random);
    const char* at = text.data();
    for (const std::string_view sentence : splitter.split(text)) {
      ASSERT_TRUE(split_words({at, static_cast<size_t>(sentence.data() - at)}).empty()) << text;
      ASSERT_FALSE(split_words(sentence).empty()) << text;
      at = sentence.data() + sentence.size();
    }
    ASSERT_TRUE(split_words({at, static_cast<size_t>(text.data() + text.size() - at)}).empty()) << text;
  }
}

TEST(Sentences, AreSentencesThemselves) {
  Random random(2, Stream::test);
  const SentenceSplitter splitter;
  for (int trial = 0; trial < 3000; trial++) {
    const std::string text = drawn_text(random);
    for (const std::string_view sentence : splitter.split(text))
      ASSERT_EQ(splitter.split(sentence), Views{sentence}) << text;
  }
}

// Each text takes a fraction of a second if time is linear in its length, and minutes if it is quadratic.
TEST(Sentences, TakeLinearTime) {
  const SentenceSplitter splitter;
  for (const std::string_view piece :
       {".",   ". ", "\"", ".\"", "(",   ".(",  "a (", "「", "「。", "\u0301", ".\u0301", "1. ",
        ":) ", "😀",  "[1", "' ",  ". '", "A. ", "U.",  " ",  "?",    "。",     "ค "}) {
    std::string text = "a";
    while (text.size() < 1'000'000) text += piece;
    size_t bytes = 0;
    for (const std::string_view sentence : splitter.split(text)) bytes += sentence.size();
    EXPECT_LE(bytes, text.size()) << piece;
  }
}

}  // namespace
}  // namespace qkv
