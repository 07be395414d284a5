// Tokenizers: trained, round trips, determinism, and what they refuse.
#include "text/tokenizer.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/system/threads.h"
#include "qkv/text.h"
#include "tests/support/errors.h"
#include "tests/support/sentences.h"
#include "tests/support/temp_dir.h"

namespace qkv {
namespace {

using testing::error_of;
using testing::sentences;
using testing::TempFile;

TokenizerOptions small(int64_t vocab_size = 100) { return {.vocab_size = vocab_size}; }

TEST(Tokenizer, HasUnknownStartAndEndFirst) {
  for (const TokenizerKind kind : {TokenizerKind::unigram, TokenizerKind::bpe}) {
    const Tokenizer tokenizer = Tokenizer::train(sentences(500, 1), {.kind = kind, .vocab_size = 100});
    EXPECT_EQ(tokenizer.size(), 100);
    EXPECT_EQ(tokenizer.unknown(), 0);
    EXPECT_EQ(tokenizer.start(), 1);
    EXPECT_EQ(tokenizer.end(), 2);
    EXPECT_EQ(tokenizer.piece(0), "<unk>");
    EXPECT_EQ(tokenizer.piece(1), "<s>");
    EXPECT_EQ(tokenizer.piece(2), "</s>");
  }
}

TEST(Tokenizer, HasMoreControlTokensThatTextDoesNotSpell) {
  const Tokenizer t = Tokenizer::train({"a <mask> b", "<mask>", "b a b"}, {.vocab_size = 12, .control = {"<mask>"}});
  EXPECT_EQ(t.id("<mask>"), 3);
  for (const int32_t id : t.encode_plain("a <mask> b")) EXPECT_NE(id, 3);
  const std::vector<int32_t> prompt = t.encode_prompt("a <mask> b");
  EXPECT_EQ(std::ranges::count(prompt, 3), 1);
  EXPECT_EQ(t.decode(prompt), "a b");
  EXPECT_EQ(error_of([] { Tokenizer::train({"<mask>"}, {.vocab_size = 12, .control = {"<mask>"}}); }),
            "tokenizer: 1 sentences, none of them with text to learn from");
}

TEST(Tokenizer, DecodesWhatItEncoded) {
  std::vector<std::string> lines = sentences(300, 2);
  const std::vector<std::string> special = {"Ça coûte 3,50 € à l’été.",
                                            "👩‍🚀 flies to 🌍 – 🇩🇪!",
                                            "日本語の文章。",
                                            "Größe: 5 µm², naïve",
                                            "Привет, мир!",
                                            "x\u2585y"};
  lines.insert(lines.end(), special.begin(), special.end() - 1);
  for (const TokenizerKind kind : {TokenizerKind::unigram, TokenizerKind::bpe}) {
    const TokenizerOptions options = {.kind = kind, .vocab_size = 250, .normalization = Normalization::none};
    const Tokenizer tokenizer = Tokenizer::train(lines, options);
    for (const std::string& line : lines) {
      const std::vector<int32_t> ids = tokenizer.encode(line);
      EXPECT_EQ(tokenizer.decode(ids), line);
      EXPECT_EQ(std::count(ids.begin(), ids.end(), tokenizer.unknown()), 0) << line;
    }
    EXPECT_EQ(tokenizer.decode(tokenizer.encode("  ba   ter  ")), "ba ter");
  }
}

TEST(Tokenizer, FoldsCompatibleCharactersByDefault) {
  const Tokenizer tokenizer = Tokenizer::train(sentences(300, 2), small());
  EXPECT_EQ(tokenizer.encode("ｂａ\u00A0ter"), tokenizer.encode("ba ter"));
}

TEST(Tokenizer, GivesNothingForBlankText) {
  const Tokenizer tokenizer = Tokenizer::train(sentences(300, 2), small());
  EXPECT_TRUE(tokenizer.encode("").empty());
  EXPECT_TRUE(tokenizer.encode("  \u3000 ").empty());
  EXPECT_EQ(tokenizer.decode(std::vector<int32_t>{1, 2}), "");
}

TEST(Tokenizer, TakesAnyBytes) {
  const Tokenizer tokenizer = Tokenizer::train(sentences(300, 2), small());
  for (const std::string& bytes : {std::string("\xff\xfe ba"), std::string("ba\0ter", 6), std::string("\xe2\x96"),
                                   std::string(3000, '\xf0'), std::string(100'000, 'b')})
    EXPECT_NO_THROW(tokenizer.decode(tokenizer.encode(bytes)));
}

TEST(Tokenizer, NamesItsPieces) {
  const Tokenizer tokenizer = Tokenizer::train(sentences(300, 2), small());
  std::string joined;
  for (const std::string& piece : tokenizer.pieces(tokenizer.encode("ba ter"))) joined += piece;
  EXPECT_EQ(joined, "▁ba▁ter");
}

TEST(Tokenizer, IsTheSameForAnyNumberOfThreads) {
  const int kept = threads();
  for (const TokenizerKind kind : {TokenizerKind::unigram, TokenizerKind::bpe}) {
    std::vector<std::string> bytes;
    for (const int count : {1, 4, 1}) {
      set_threads(count);
      bytes.push_back(Tokenizer::train(sentences(400, 3), {.kind = kind, .vocab_size = 90}).serialized());
    }
    EXPECT_EQ(bytes[0], bytes[1]);
    EXPECT_EQ(bytes[0], bytes[2]);
  }
  set_threads(kept);
}

TEST(Tokenizer, ComesBackFromItsFile) {
  const Tokenizer trained = Tokenizer::train(sentences(300, 4), small());
  const TempFile file("spm", trained.serialized());
  const Tokenizer loaded = Tokenizer::load(file.path());
  EXPECT_EQ(loaded.serialized(), trained.serialized());
  for (const std::string& line : sentences(50, 5)) EXPECT_EQ(loaded.encode(line), trained.encode(line));
}

TEST(Tokenizer, LearnsFewerPiecesFromLittleText) {
  for (const TokenizerKind kind : {TokenizerKind::unigram, TokenizerKind::bpe}) {
    const Tokenizer tokenizer = Tokenizer::train({"a b a b", "b a"}, {.kind = kind, .vocab_size = 8000});
    EXPECT_LT(tokenizer.size(), 20);
    EXPECT_EQ(tokenizer.decode(tokenizer.encode("a b b")), "a b b");
  }
}

TEST(Tokenizer, LearnsFromLinesOfAnyLength) {
  std::string line;
  for (int i = 0; i < 1000; i++) line += "ß" + std::string(i % 7, 'q') + " ";
  ASSERT_GT(line.size(), 4192u);
  const Tokenizer tokenizer = Tokenizer::train({line, "ab"}, small());
  const std::vector<int32_t> ids = tokenizer.encode("ß qq");
  EXPECT_EQ(std::count(ids.begin(), ids.end(), tokenizer.unknown()), 0);
}

TEST(Tokenizer, RefusesOptionsOutOfRange) {
  const auto text = sentences(50, 6);
  EXPECT_EQ(error_of([&] { Tokenizer::train(text, small(3)); }), "tokenizer: vocab_size 3, expected 4 to 500000");
  EXPECT_EQ(error_of([&] { Tokenizer::train(text, {.character_coverage = 0.5}); }),
            "tokenizer: character_coverage 0.5, expected 0.98 to 1");
  const std::string few = error_of([&] { Tokenizer::train(text, small(10)); });
  EXPECT_EQ(few.find("tokenizer: vocab_size 10: Vocabulary size is smaller than required_chars"), 0u) << few;
  EXPECT_EQ(few.find("character_coverage"), few.npos) << few;  // callers of training have no such option
  const std::string needs = "; the characters of the text and the special pieces need at least ";
  ASSERT_NE(few.find(needs), few.npos) << few;
  const int64_t least = std::stoll(few.substr(few.find(needs) + needs.size()));
  EXPECT_EQ(Tokenizer::train(text, small(least)).size(), least);
  EXPECT_NE(error_of([&] { Tokenizer::train(text, small(least - 1)); }), "");
}

TEST(Tokenizer, RefusesTextWithoutText) {
  for (const std::vector<std::string>& lines : std::vector<std::vector<std::string>>{
           {}, {""}, {"  ", "\t"}, {"\u2585"}, {"\u3000"}, {std::string(1, '\0')}, {"\u200B"}, {"<s>"}})
    EXPECT_NE(error_of([&] { Tokenizer::train(lines, small()); }), "");
}

TEST(Tokenizer, PrintsNothing) {
  ::testing::internal::CaptureStderr();
  ::testing::internal::CaptureStdout();
  const Tokenizer tokenizer = Tokenizer::train(sentences(200, 7), small());
  tokenizer.decode(tokenizer.encode("ba ter ☃"));
  error_of([&] { Tokenizer::train(sentences(50, 6), small(10)); });
  error_of([&] { Tokenizer::from_serialized("no model", "x"); });
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
  EXPECT_EQ(::testing::internal::GetCapturedStdout(), "");
}

TEST(Tokenizer, RefusesIdsOutsideItsVocabulary) {
  const Tokenizer tokenizer = Tokenizer::train(sentences(300, 2), small());
  EXPECT_EQ(error_of([&] { tokenizer.decode(std::vector<int32_t>{5, 100}); }), "tokenizer: id 100, expected 0 to 99");
  EXPECT_EQ(error_of([&] { tokenizer.piece(-1); }), "tokenizer: id -1, expected 0 to 99");
}

TEST(Tokenizer, NamesAFileThatIsNotThere) {
  EXPECT_EQ(error_of([] { Tokenizer::load("no/such.spm"); }),
            "no/such.spm: cannot be opened: No such file or directory");
}

TEST(Tokenizer, RoundTripsMulti30k) {
  std::vector<std::string> lines;
  for (const char* language : {"en", "de"}) {
    const std::string path = std::string(QKV_SHARED_DIR) + "/data/multi30k/val." + language;
    if (!std::ifstream(path)) GTEST_SKIP() << "skipped: ../shared not present";
    const auto side = read_lines(path);
    lines.insert(lines.end(), side.begin(), side.end());
  }
  const Tokenizer tokenizer = Tokenizer::train(lines, {.vocab_size = 1000, .normalization = Normalization::none});
  EXPECT_EQ(tokenizer.size(), 1000);
  for (const std::string& line : lines) {
    std::string spaced;  // single spaces, none at the ends
    for (const char c : line)
      if (c != ' ' || (!spaced.empty() && spaced.back() != ' ')) spaced += c;
    if (spaced.ends_with(' ')) spaced.pop_back();
    EXPECT_EQ(tokenizer.decode(tokenizer.encode(line)), spaced);
  }
}

}  // namespace
}  // namespace qkv
