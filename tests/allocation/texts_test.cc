// Texts that nobody wrote in good faith: the bytes that a tokenizer allocates grow as the text does.
#include <gtest/gtest.h>

#include <functional>
#include <map>

#include "tests/allocation/malloc.h"
#include "tests/support/sentences.h"
#include "tests/support/temp_dir.h"
#include "text/tokenizer.h"
#include "text/tokenizer_json/hugging_face_tokenizer.h"
#include "text/tokenizer_json/tokenizer_json.h"

namespace qkv {
namespace {

using testing::allocated_bytes_of;

std::string repeated_to(std::string_view part, size_t bytes) {
  std::string text;
  while (text.size() < bytes) text += part;
  return text;
}

std::string random_letters(size_t bytes) {
  Random random(7, Stream::test);
  std::string text;
  for (size_t i = 0; i < bytes; i++) text += static_cast<char>('a' + random.below(26));
  return text;
}

std::map<std::string, std::string> hostile_texts(size_t bytes) {
  return {{"marks", "e" + repeated_to("\u0301\u0316", bytes)},
          {"unknown characters", repeated_to("\u4E00\u4E8C", bytes)},
          {"unknown words", repeated_to("\u4E00\u4E8C ", bytes)},
          {"spaces", repeated_to(" ", bytes)},
          {"lines", repeated_to("\n \r\n", bytes)},
          {"one letter", repeated_to("a", bytes)},
          {"capitals", repeated_to("\u0130", bytes)},
          {"no spaces", random_letters(bytes)},
          {"nesting", repeated_to("([{<", bytes)},
          {"parts of added tokens", repeated_to("<|endoftext <s", bytes)},
          {"added tokens", repeated_to("<|endoftext|>  <s>", bytes)},
          {"emoji", repeated_to("\U0001F468\u200D", bytes)}};
}

// Any text may have a part that does not grow, but no more than a factor of 2 beyond it.
void expect_linear(const std::string& name, const std::function<void(const std::string&)>& encode) {
  constexpr size_t kBytes = 60'000;
  constexpr int64_t kFixed = 64 << 10;
  const auto small = hostile_texts(kBytes), large = hostile_texts(2 * kBytes);
  for (const auto& [kind, text] : small) {
    encode(text);  // what is made once
    const int64_t once = allocated_bytes_of([&, &one = text] { encode(one); });
    const int64_t twice = allocated_bytes_of([&, &two = large.at(kind)] { encode(two); });
    EXPECT_LE(twice, 5 * once / 2 + kFixed) << name << ", " << kind;
  }
}

TEST(HostileTexts, TokenizersOfTheLibraryTokenizersAreLinear) {
  for (const char* name :
       {"gpt2", "roberta", "qwen2", "llama3", "qwen3.5", "digits", "modernbert", "bert-uncased", "bert-cased"}) {
    const std::string path = std::string(QKV_GOLDEN_DIR "/tokenizers/") + name + ".json";
    const HuggingFaceTokenizer tokenizer(parse_tokenizer_json(testing::slurp(path), path), path);
    expect_linear(name, [&](const std::string& text) { tokenizer.encode(text); });
  }
}

TEST(HostileTexts, SentencePieceIsLinear) {
  for (const TokenizerKind kind : {TokenizerKind::unigram, TokenizerKind::bpe})
    for (const bool exact : {false, true}) {
      TokenizerOptions options;
      options.kind = kind;
      options.vocab_size = exact ? 400 : 120;
      options.exact = exact;
      const Tokenizer tokenizer = Tokenizer::train(testing::sentences(200, 3), options);
      expect_linear(kind == TokenizerKind::bpe ? "bpe" : "unigram",
                    [&](const std::string& text) { tokenizer.encode(text); });
    }
}

}  // namespace
}  // namespace qkv
