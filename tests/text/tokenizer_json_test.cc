// tokenizer.json: the ids of Hugging Face's own library (tests/golden/tokenizers), and files that will not do.
#include "text/tokenizer_json/tokenizer_json.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tests/support/errors.h"
#include "tests/support/temp_dir.h"
#include "text/pieces/byte_pairs.h"
#include "text/unicode.h"

namespace qkv {
namespace {

using nlohmann::json;
using testing::error_of;
using Ids = std::vector<int32_t>;

const std::string kGolden = QKV_GOLDEN_DIR "/tokenizers/";

class GoldenTokenizer : public ::testing::TestWithParam<const char*> {
 protected:
  std::string file() const { return testing::slurp(kGolden + GetParam() + ".json"); }
  json cases() const { return json::parse(testing::slurp(kGolden + GetParam() + ".ids.json")); }
};

TEST_P(GoldenTokenizer, GivesTheIdsOfTheLibrary) {
  const HuggingFaceTokenizer tokenizer(parse_tokenizer_json(file(), "file"), "file");
  ASSERT_GT(cases().size(), 20u);
  for (const json& example : cases()) {
    const auto text = example[0].get<std::string>();
    Ids ids = tokenizer.encode(text);
    EXPECT_EQ(ids, example[1].get<Ids>()) << text;
    if (tokenizer.spec().before) ids.insert(ids.begin(), *tokenizer.spec().before);
    if (tokenizer.spec().after) ids.push_back(*tokenizer.spec().after);
    EXPECT_EQ(ids, example[2].get<Ids>()) << text;
  }
}

TEST_P(GoldenTokenizer, ComesBackFromItsOwnFile) {
  const TokenizerSpec spec = parse_tokenizer_json(file(), "file");
  EXPECT_EQ(parse_tokenizer_json(to_json(spec), "file"), spec);
}

// For byte pieces, except for a leading space, text inside added tokens, space that they take, and changes by the
// normalizer.
TEST_P(GoldenTokenizer, TextComesBackByteForByte) {
  const HuggingFaceTokenizer tokenizer(parse_tokenizer_json(file(), "file"), "file");
  const auto* bytes = std::get_if<BytePieces>(&tokenizer.spec().model);
  const bool strips = std::ranges::any_of(tokenizer.spec().added, &AddedToken::strips_left);
  if (!bytes || bytes->space_first || strips) GTEST_SKIP() << "not of this tokenizer";
  for (const json& example : cases()) {
    const auto text = example[0].get<std::string>();
    EXPECT_EQ(tokenizer.decode(example[1].get<Ids>(), true), bytes->compose ? compose(text) : text);
  }
}

INSTANTIATE_TEST_SUITE_P(All, GoldenTokenizer,
                         ::testing::Values("gpt2", "roberta", "qwen2", "llama3", "qwen3.5", "digits", "modernbert",
                                           "bert-uncased", "bert-cased"),
                         [](const auto& tokenizer) {
                           std::string name = tokenizer.param;
                           std::ranges::replace_if(
                               name, [](char c) { return c == '.' || c == '-'; }, '_');
                           return name;
                         });

TEST(TokenizerJson, MergesMayBePairs) {
  const TokenizerSpec spec = parse_tokenizer_json(testing::slurp(kGolden + "gpt2.json"), "file");
  json file = json::parse(testing::slurp(kGolden + "gpt2.json"));
  for (json& merge : file["model"]["merges"]) {
    if (merge.is_array()) continue;
    const auto text = merge.get<std::string>();
    merge = {text.substr(0, text.find(' ')), text.substr(text.find(' ') + 1)};
  }
  EXPECT_EQ(parse_tokenizer_json(file.dump(), "file"), spec);
  for (json& merge : file["model"]["merges"]) merge = merge[0].get<std::string>() + " " + merge[1].get<std::string>();
  file["model"]["merges"].insert(file["model"]["merges"].begin(), "#version: 0.2");
  EXPECT_EQ(parse_tokenizer_json(file.dump(), "file"), spec);
}

class RefusedTokenizer : public ::testing::Test {
 protected:
  // The error of a file with one value in another's place, or of a tokenizer made of it.
  static std::string error_with(const std::string& name, const std::string& place, const json& value) {
    json file = json::parse(testing::slurp(kGolden + name + ".json"));
    file[json::json_pointer(place)] = value;
    return error_of([&] { HuggingFaceTokenizer(parse_tokenizer_json(file.dump(), "FILE"), "FILE"); });
  }
};

TEST_F(RefusedTokenizer, WhatIsNotSupportedIsNamed) {
  EXPECT_EQ(error_with("gpt2", "/model/type", "Other"),
            "FILE: model.type is \"Other\", expected BPE, Unigram, WordPiece or WordLevel");
  EXPECT_EQ(error_with("gpt2", "/model/dropout", 0.1), "FILE: model.dropout is 0.1, expected none");
  EXPECT_EQ(error_with("gpt2", "/model/other", 1), "FILE: model.\"other\" is not supported");
  EXPECT_EQ(error_with("gpt2", "/other", 1), "FILE: \"other\" is not supported");
  EXPECT_EQ(error_with("gpt2", "/pre_tokenizer/other", 1), "FILE: pre_tokenizer.\"other\" is not supported");
  EXPECT_EQ(error_with("gpt2", "/pre_tokenizer/type", "Metaspace"),
            "FILE: pre_tokenizer.\"trim_offsets\" is not supported");
  EXPECT_EQ(
      error_with("gpt2", "/post_processor", {{"type", "Other"}}),
      "FILE: post_processor: type is \"Other\", expected TemplateProcessing, RobertaProcessing, BertProcessing or "
      "ByteLevel");
  EXPECT_EQ(error_with("llama3", "/post_processor/processors/1/single/0/SpecialToken/id", "x"),
            "FILE: post_processor.processors[1].special_tokens: \"x\" is not there");
  EXPECT_EQ(error_with("bert-cased", "/model/max_input_chars_per_word", 10001),
            "FILE: model.max_input_chars_per_word is 10001, expected at most 10000");
  EXPECT_EQ(error_with("bert-cased", "/normalizer/other", true), "FILE: normalizer.\"other\" is not supported");
}

TEST_F(RefusedTokenizer, PartsThatDoNotFitAreNamed) {
  EXPECT_EQ(error_with("gpt2", "/model/merges/1", "a"),
            "FILE: merge 2 is \"a\", expected two pieces with a space between");
  EXPECT_EQ(error_with("gpt2", "/model/merges/0", "a zz"), "FILE: merge 1: the piece \"zz\" is not in the vocabulary");
  EXPECT_EQ(error_with("gpt2", "/model/merges/0", {"a", "b", "c"}),
            "FILE: model.merges: \"c\" is not a part of a pair of pieces");
  EXPECT_EQ(error_with("gpt2", "/model/merges/0", {"a", "b c"}),
            "FILE: model.merges: \"b c\" is not a part of a pair of pieces without spaces");
  EXPECT_EQ(error_with("gpt2", "/model/merges/0", "a b\nc d"),
            "FILE: merge 1 is \"a b\\nc d\", expected two pieces with a space between");
  EXPECT_EQ(error_with("gpt2", "/model/vocab/!", 1), "FILE: model.vocab: \"!\" and \"\\\"\" have the id 1");
  EXPECT_EQ(error_with("gpt2", "/model/vocab/!", -1), "FILE: model.vocab: \"!\" has no id from 0 to 524287");
  EXPECT_EQ(error_with("gpt2", "/model/vocab/!", 1 << 20), "FILE: model.vocab: \"!\" has no id from 0 to 524287");
  EXPECT_EQ(error_with("gpt2", "/model/vocab/!", 1000), "FILE: model.vocab: no piece has id 0");
  EXPECT_EQ(error_with("gpt2", "/added_tokens/0/id", 5),
            "FILE: the added token \"<|endoftext|>\" has id 5, which is that of \"&\"");
  EXPECT_EQ(error_with("gpt2", "/added_tokens/0/id", 10000),
            "FILE: the added token \"<|endoftext|>\" has id 10000, expected at most the next one, 420");
  EXPECT_EQ(error_with("gpt2", "/added_tokens/0/content", ""),
            "FILE: the added token 420 has 0 bytes, expected 1 to 1024");
  EXPECT_EQ(error_with("bert-cased", "/model/unk_token", "<unk>"),
            "FILE: the unknown token \"<unk>\" is not in the vocabulary");
}

TEST(HuggingFaceTokenizer, AWordOfAMillionBytesIsMergedInItsTime) {
  const HuggingFaceTokenizer tokenizer(parse_tokenizer_json(testing::slurp(kGolden + "gpt2.json"), "file"), "file");
  std::string word;
  while (word.size() < 1'000'000) word += "unbelievable";
  const Ids ids = tokenizer.encode(word);
  EXPECT_LT(ids.size(), word.size());
  EXPECT_EQ(tokenizer.decode(ids, true), word);
}

TEST(HuggingFaceTokenizer, ThePairHighestInTheListIsMergedFirstFromTheLeft) {
  TokenizerSpec spec;
  for (int byte = 0; byte < 256; byte++) spec.pieces.push_back(spell_bytes(std::string(1, static_cast<char>(byte))));
  spec.pieces.insert(spec.pieces.end(), {"bc", "ab", "aa", "abc"});
  spec.model = BytePieces{.merges = "b c\na b\na a\nab c\n"};
  const HuggingFaceTokenizer tokenizer(spec, "pieces");
  EXPECT_EQ(tokenizer.encode("abc"), (Ids{'a', 256}));  // "ab c" never comes to pass
  EXPECT_EQ(tokenizer.encode("aaa"), (Ids{258, 'a'}));
  std::get<BytePieces>(spec.model).whole_words = true;
  EXPECT_EQ(HuggingFaceTokenizer(spec, "pieces").encode("abc"), (Ids{259}));
  std::get<BytePieces>(spec.model).merges += "a b\n";
  EXPECT_EQ(error_of([&] { HuggingFaceTokenizer(spec, "pieces"); }),
            "pieces: the merge of \"a\" and \"b\" stands twice");
}

// As tokenizers leaves them out: the neighbours merge.
TEST(HuggingFaceTokenizer, BytesWithoutAPieceAreLeftOut) {
  json file = json::parse(testing::slurp(kGolden + "gpt2.json"));
  json& model = file["model"];
  const int32_t q = model["vocab"]["q"];
  model["vocab"].erase("q");
  model["vocab"]["<gone>"] = q;
  const auto encode = [&](const char* text) {
    return HuggingFaceTokenizer(parse_tokenizer_json(file.dump(), "file"), "file").encode(text);
  };
  EXPECT_EQ(encode("the dog q runs"), (Ids{83, 259, 220, 275, 220, 342, 320, 82}));
  EXPECT_EQ(encode("thqe qq dqog"), (Ids{83, 259, 220, 220, 275}));
  EXPECT_EQ(encode("qq"), Ids());
  model["unk_token"] = "<gone>";
  EXPECT_EQ(encode("the dog q runs"), (Ids{83, 259, 220, 275, 220, q, 342, 320, 82}));
  EXPECT_EQ(encode("thqe qq dqog"), (Ids{341, q, 68, 220, q, q, 293, q, 78, 70}));
}

TEST(HuggingFaceTokenizer, AWordOfTooManyCharactersIsUnknown) {
  TokenizerSpec spec;
  spec.pieces = {"[UNK]", "é", "##é", "##éa", "b"};
  spec.model = WordPieceModel{.max_characters = 3, .cleaning = {.strip_accents = false}};
  const HuggingFaceTokenizer tokenizer(spec, "pieces");
  EXPECT_EQ(tokenizer.encode("é\tÉÉ ééa éééé bé bb"), (Ids{1, 1, 2, 1, 3, 0, 4, 2, 0}));
  EXPECT_EQ(tokenizer.decode(Ids{1, 2, 4, 3}, true), "éé béa");
  EXPECT_EQ(tokenizer.decode(Ids{4}, false), " b");
  EXPECT_EQ(error_of([&] { tokenizer.decode(Ids{5}, true); }), "tokenizer: token 5, expected 0 to 4");
}

}  // namespace
}  // namespace qkv
