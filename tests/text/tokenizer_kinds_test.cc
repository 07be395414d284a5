// Every kind of tokenizer.json on 500 lines of text in many scripts: the ids and texts of Hugging Face's own library
// (tests/golden/tokenizers/kinds.py).
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/fail.h"
#include "tests/support/errors.h"
#include "tests/support/temp_dir.h"
#include "text/tokenizer_json/tokenizer_json.h"
#include "text/unicode.h"

namespace qkv {
namespace {

using nlohmann::json;
using testing::error_of;
using Ids = std::vector<int32_t>;

const std::string kKinds = QKV_GOLDEN_DIR "/tokenizers/kinds/";

// The lower half of the FNV-1a hash of some bytes, in four digits.
std::string hash_of(std::string_view bytes) {
  uint32_t hash = 0x811C9DC5;
  for (const char byte : bytes) hash = (hash ^ static_cast<unsigned char>(byte)) * 0x01000193;
  return fmt::format("{:04x}", hash & 0xFFFF);
}

std::string bytes_of(const Ids& ids) {
  std::string bytes;
  for (const int32_t id : ids)
    for (int shift = 0; shift < 32; shift += 8) bytes += static_cast<char>(id >> shift);
  return bytes;
}

std::vector<std::string> kinds() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(kKinds))
    if (const std::string name = entry.path().stem(); !name.ends_with(".ids") && name != "texts") names.push_back(name);
  std::ranges::sort(names);
  return names;
}

class TokenizerKinds : public ::testing::TestWithParam<std::string> {
 protected:
  TokenizerSpec spec() const { return parse_tokenizer_json(testing::slurp(kKinds + GetParam() + ".json"), "file"); }
};

TEST_P(TokenizerKinds, HaveTheIdsAndTextsOfTheLibrary) {
  const HuggingFaceTokenizer tokenizer(spec(), "file");
  const json lines = json::parse(testing::slurp(kKinds + "texts.json"));
  const json expected = json::parse(testing::slurp(kKinds + GetParam() + ".ids.json"));
  const auto ids_hashes = expected[0].get<std::string>(), text_hashes = expected[1].get<std::string>();
  ASSERT_EQ(lines.size(), 500u);
  ASSERT_EQ(ids_hashes.size(), 4 * lines.size());
  for (size_t i = 0; i < lines.size(); i++) {
    const auto line = lines[i].get<std::string>();
    const std::string hash = ids_hashes.substr(4 * i, 4), text_hash = text_hashes.substr(4 * i, 4);
    if (hash == "----") {
      EXPECT_THROW(tokenizer.encode(line), Error) << line;
      continue;
    }
    const Ids ids = tokenizer.encode(line);
    EXPECT_EQ(hash_of(bytes_of(ids)), hash) << lines[i] << " " << json(ids);
    const std::string text = tokenizer.decode(ids, true);
    if (text_hash == "----" || find_invalid_utf8(text) != std::string::npos) continue;  // a part of a character
    EXPECT_EQ(hash_of(text), text_hash) << lines[i] << " " << text;
  }
}

TEST_P(TokenizerKinds, TextsOfPartsAreTheTextOfAll) {
  const HuggingFaceTokenizer tokenizer(spec(), "file");
  const std::vector<int32_t> special = tokenizer.special_ids();
  for (const json& line : json::parse(testing::slurp(kKinds + "texts.json"))) {
    Ids ids;
    try {
      ids = tokenizer.encode(line.get<std::string>());
    } catch (const Error&) {
      continue;  // a character without a piece
    }
    std::string text;
    bool first = true;
    for (const int32_t id : ids) {
      text += tokenizer.decode({&id, 1}, first);
      first &= std::ranges::find(special, id) != special.end();
    }
    EXPECT_EQ(text, tokenizer.decode(ids, true)) << line;
  }
}

TEST_P(TokenizerKinds, ComeBackFromTheirOwnFiles) { EXPECT_EQ(parse_tokenizer_json(to_json(spec()), "file"), spec()); }

INSTANTIATE_TEST_SUITE_P(All, TokenizerKinds, ::testing::ValuesIn(kinds()),
                         [](const auto& kind) { return kind.param; });

class RefusedPipeline : public ::testing::Test {
 protected:
  // The error of a file with one value in another's place.
  static std::string error_with(const std::string& name, const std::string& place, const json& value) {
    json file = json::parse(testing::slurp(kKinds + name + ".json"));
    file[json::json_pointer(place)] = value;
    return error_of([&] { HuggingFaceTokenizer(parse_tokenizer_json(file.dump(), "FILE"), "FILE"); });
  }
};

TEST_F(RefusedPipeline, PartsThatAreNotSupportedAreNamed) {
  EXPECT_EQ(error_with("xlmr_v5", "/normalizer", {{"type", "X"}}),
            "FILE: normalizer: type is \"X\", expected NFC, NFD, NFKC, NFKD, Nmt, Lowercase, StripAccents, "
            "BertNormalizer, Precompiled, Replace, Prepend, Strip, ByteLevel or Sequence");
  EXPECT_EQ(error_with("xlmr_v5", "/normalizer/precompiled_charsmap", "AAAA"),
            "FILE: normalizer.precompiled_charsmap: normalizer's table: 3 bytes, expected a size");
  EXPECT_EQ(error_with("xlmr_v5", "/normalizer/precompiled_charsmap", "A?"),
            "FILE: normalizer.precompiled_charsmap: not base 64");
  EXPECT_EQ(
      error_with("xlmr_v5", "/pre_tokenizer/pretokenizers/1/type", "UnicodeScripts"),
      "FILE: pre_tokenizer.pretokenizers[1]: type is \"UnicodeScripts\", expected Metaspace, ByteLevel, "
      "Whitespace, WhitespaceSplit, BertPreTokenizer, Punctuation, Digits, Split, CharDelimiterSplit, FixedLength "
      "or Sequence");
  EXPECT_EQ(error_with("xlmr_v5", "/pre_tokenizer/pretokenizers/1/prepend_scheme", "last"),
            "FILE: pre_tokenizer.pretokenizers[1].prepend_scheme is \"last\", expected \"always\", \"first\" or "
            "\"never\"");
  EXPECT_EQ(error_with("xlmr_v5", "/pre_tokenizer/pretokenizers/1/other", 1),
            "FILE: pre_tokenizer.pretokenizers[1].\"other\" is not supported");
  EXPECT_EQ(error_with("cut_split_removed", "/pre_tokenizer/behavior", "Other"),
            "FILE: pre_tokenizer.behavior is \"Other\", expected \"Removed\", \"Isolated\", \"MergedWithPrevious\", "
            "\"MergedWithNext\" or \"Contiguous\"");
  EXPECT_EQ(error_with("xlmr_v5", "/decoder/type", "CTC"),
            "FILE: decoder: type is \"CTC\", expected Metaspace, ByteLevel, WordPiece, Replace, Strip, ByteFallback, "
            "Fuse or Sequence");
  EXPECT_EQ(error_with("llama", "/decoder/decoders/3/stop", 1), "FILE: decoder.decoders[3].stop is 1, expected 0");
  EXPECT_EQ(error_with("xlmr_v5", "/model/unk_id", 100000),
            "FILE: unk_id must be below 260, the number of pieces (is 100000)");
  EXPECT_EQ(error_with("xlmr_v5", "/model/vocab/5", {"a", "b"}),
            "FILE: model.vocab: entry 5 must be a piece and its score");
}

TEST_F(RefusedPipeline, RegularExpressionsThatCannotBeRunAreNamed) {
  const auto error = [](const std::string& regex) {
    return error_with("cut_split_removed", "/pre_tokenizer/pattern/Regex", regex);
  };
  const std::string begin = "FILE: pre_tokenizer.pattern.Regex: the regular expression ";
  EXPECT_EQ(error("a(b"), begin + "\"a(b\" is not supported: a ( without ), at byte 4");
  EXPECT_EQ(error("a++"), begin + "\"a++\" is not supported: a possessive repetition, at byte 3");
  EXPECT_EQ(error("(a)\\1"), begin + "\"(a)\\\\1\" is not supported: \\1, at byte 6");
  EXPECT_EQ(error("\\p{Klingon}"),
            begin + "\"\\\\p{Klingon}\" is not supported: a property that is not known, at byte 12");
  EXPECT_EQ(error("(?=ab)"), begin + "\"(?=ab)\" is not supported: a look around at more than a character, at byte 7");
  EXPECT_EQ(error("((a{999}){999}){999}"),
            begin + "\"((a{999}){999}){999}\" is not supported: it is too large, at byte 15");
}

// Backtracking would take 2^n steps.
TEST_F(RefusedPipeline, AnExpressionWithManyWaysIsRunInLinearTime) {
  json file = json::parse(testing::slurp(kKinds + "cut_split_removed.json"));
  file["pre_tokenizer"]["pattern"]["Regex"] = "(?:(?:a|a)*|(?:aa)*)*b";
  const HuggingFaceTokenizer tokenizer(parse_tokenizer_json(file.dump(), "FILE"), "FILE");
  EXPECT_EQ(tokenizer.encode(std::string(20'000, 'a')).empty(), false);
}

}  // namespace
}  // namespace qkv
