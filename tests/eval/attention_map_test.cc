// Attention maps as words, JSON and text.
#include "qkv/attention_map.h"

#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>
#include <sstream>

#include "eval/attention_words.h"
#include "qkv/error.h"
#include "tests/support/attention_sample.h"

namespace qkv {
namespace {

const std::vector<std::string> source = {"▁The", "▁trans", "form", "er", "▁works", ".", "</s>"};
const std::vector<std::string> target = {"<s>", "▁Der", "▁Trans", "former", "▁funktioniert", "."};

std::vector<std::string> word_texts(const std::vector<std::string>& pieces) {
  std::vector<std::string> texts;
  for (const Word& word : words_of(pieces)) texts.push_back(word.text);
  return texts;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

// Returns the terminal columns of a text of one-column characters and "你", "好" and the grinning face, which take two.
size_t columns_of(const std::string& line) {
  size_t columns = 0;
  for (const char c : line) {
    const auto byte = static_cast<unsigned char>(c);
    if ((byte & 0xC0) != 0x80) columns++;
    if (byte == 0xE4 || byte == 0xE5 || byte == 0xF0) columns++;
  }
  return columns;
}

std::string message_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing thrown";
}

TEST(AttentionWords, BeginAtTheMarkWithSpecialTokensSeparate) {
  EXPECT_EQ(word_texts(source), (std::vector<std::string>{"The", "transformer", "works.", "</s>"}));
  EXPECT_EQ(word_texts({"<s>", "no", "▁mark", "<mask>", "er"}),
            (std::vector<std::string>{"<s>", "no", "mark", "<mask>", "er"}));
  EXPECT_EQ(word_texts({"▁", "你好", "▁un", "<unk>", "t"}), (std::vector<std::string>{"你好", "un<unk>t"}));
}

TEST(AttentionWords, BytePiecesBecomeTheCharacterTheySpell) {
  EXPECT_EQ(word_texts({"▁<0xF0>", "▁", "<0xF0>", "<0x9F>", "<0x98>", "<0x80>", "!"}),
            (std::vector<std::string>{"<0xF0>", "\xF0\x9F\x98\x80!"}));
}

TEST(AttentionWords, PiecesWithoutAnyMarkAreWords) {
  EXPECT_EQ(word_texts({"the", "cat", "."}), (std::vector<std::string>{"the", "cat", "."}));
}

TEST(MergeWords, RowsAreAveragedAndColumnsSummed) {
  const AttentionMap map{"", "", {{"cross", false, {"▁a", "b"}, {"▁c", "▁d", "e"}, {{{{.5f, .25f, .25f, 0, 1, 0}}}}}}};
  const AttentionKind merged = merge_words(map).kinds[0];
  EXPECT_EQ(merged.rows, (std::vector<std::string>{"▁ab"}));
  EXPECT_EQ(merged.columns, (std::vector<std::string>{"▁c", "▁de"}));
  EXPECT_EQ(merged.layers[0][0].weights, (std::vector<float>{.25f, .75f}));
}

TEST(MergeWords, KeepsRowsSummingToOneAndTheCausalTriangle) {
  for (const AttentionKind& kind : merge_words(testing::sample_map(source, target, 2, 3)).kinds) {
    const size_t R = kind.rows.size(), C = kind.columns.size();
    EXPECT_EQ(R, 4u);
    for (const std::vector<AttentionHead>& layer : kind.layers)
      for (const AttentionHead& head : layer)
        for (size_t i = 0; i < R; i++) {
          double sum = 0;
          for (size_t j = 0; j < C; j++) {
            sum += head.weights[i * C + j];
            if (kind.causal && j > i) {
              EXPECT_EQ(head.weights[i * C + j], 0.0f);
            }
          }
          EXPECT_NEAR(sum, 1.0, 3 * 0x1p-24);  // rounded twice, each time by at most 2^-24 of the weight
        }
  }
}

TEST(MergeWords, MergingAMergedMapChangesNothing) {
  const AttentionMap once = merge_words(testing::sample_map(source, target, 1, 1)), twice = merge_words(once);
  for (size_t k = 0; k < 3; k++) {
    EXPECT_EQ(once.kinds[k].rows, twice.kinds[k].rows);
    EXPECT_EQ(once.kinds[k].layers[0][0].weights, twice.kinds[k].layers[0][0].weights);
  }
}

TEST(AttentionJson, ReadsBackAsTheSameFloats) {
  AttentionMap map = testing::sample_map(source, target, 2, 2);
  map.source = "\"quoted\" </script> \xF0\x9F\x98\x80\n";
  const std::string text = attention_to_json(map);
  const nlohmann::json json = nlohmann::json::parse(text);
  EXPECT_EQ(json.size(), 3u);
  EXPECT_EQ(json["source"], map.source);
  EXPECT_EQ(json["target"], map.target);
  ASSERT_EQ(json["attention"].size(), map.kinds.size());
  for (size_t k = 0; k < map.kinds.size(); k++) {
    const AttentionKind& kind = map.kinds[k];
    const nlohmann::json& entry = json["attention"][k];
    EXPECT_EQ(entry.size(), 4u);
    EXPECT_EQ(entry["kind"], kind.name);
    EXPECT_EQ(entry["rows"], kind.rows);
    EXPECT_EQ(entry["columns"], kind.columns);
    for (size_t l = 0; l < 2; l++)
      for (size_t h = 0; h < 2; h++) {
        std::vector<float> weights;
        for (const nlohmann::json& row : entry["layers"][l][h])
          for (const nlohmann::json& weight : row) weights.push_back(weight.get<float>());
        EXPECT_EQ(weights, kind.layers[l][h].weights);
      }
  }
  EXPECT_TRUE(text.starts_with("{\"source\":")) << "names stand in the documented order";
}

TEST(AttentionJson, WritesTheFewestDigits) {
  const AttentionMap map{"a", "b", {{"cross", false, {"▁b"}, {"▁a", "."}, {{{{0.1f, 0.9f}}}}}}};
  EXPECT_EQ(attention_to_json(map),
            "{\"source\":\"a\",\"target\":\"b\",\"attention\":[{\"kind\":\"cross\",\"rows\":[\"▁b\"],"
            "\"columns\":[\"▁a\",\".\"],\"layers\":[[[[0.1,0.9]]]]}]}");
}

TEST(AttentionJson, ReplacesBytesThatAreNotUtf8) {
  const AttentionMap map{"bad \xFF", "", {{"cross", false, {"▁\xC3"}, {"▁a"}, {{{{1}}}}}}};
  EXPECT_EQ(nlohmann::json::parse(attention_to_json(map))["source"], "bad \xEF\xBF\xBD");
}

TEST(AttentionText, ShowsAShadeForEachWeight) {
  const AttentionKind kind{
      "decoder", true, {"<s>", "▁ab", "c"}, {"<s>", "▁ab", "c"}, {{{{1, 0, 0, .25f, .75f, 0, .01f, .05f, .4f}}}}};
  EXPECT_EQ(attention_to_text(kind, 0, 0),
            "decoder attention, layer 1 of 1, head 1 of 1: rows look at columns\n"
            "\n"
            "    <\n"
            "    s a ·\n"
            "    > b c\n"
            "<s> ██\n"
            " ab ▒▒██\n"
            " ·c · ░░▓▓\n"
            "\n"
            "weight:  · less  ░ from 0.02  ▒ from 0.1  ▓ from 0.3  █ from 0.6  (blank: later tokens, hidden)\n");
}

TEST(AttentionText, ShowsNumbersAndTheMeanOfTheHeads) {
  const AttentionKind kind{"decoder", true, {"<s>", "▁ab"}, {"<s>", "▁ab"}, {{{{1, 0, .25f, .75f}}, {{1, 0, 0, 1}}}}};
  EXPECT_EQ(attention_to_text(kind, 0, 0, {.mean = true, .numbers = true}),
            "decoder attention, layer 1 of 1, mean of 2 heads: rows look at columns\n"
            "\n"
            "    <\n"
            "    s    a\n"
            "    >    b\n"
            "<s> 1.00\n"
            " ab 0.12 0.88\n"
            "\n"
            "blank: later tokens, hidden\n");
  const std::vector<std::string> tokens(30, "▁t");
  const AttentionKind cross = testing::sample_kind("cross", tokens, tokens, false, 1, 2, 4);
  const std::string text = attention_to_text(cross, 0, 1, {.numbers = true});
  EXPECT_TRUE(text.starts_with("cross attention, layer 1 of 1, head 2 of 2: rows look at columns\n"));
  EXPECT_EQ(text.find("weight:"), text.npos);
  for (const std::string& line : lines_of(text)) EXPECT_LE(columns_of(line), 100u) << line;
}

TEST(AttentionText, TheCaptionSaysWhereTheRestOfARowIs) {
  AttentionKind kind{"cross", false, {"▁a", "▁b"}, {"▁c", "."}, {{{{.5f, .25f, .4f, .1f}}}}};
  EXPECT_EQ(lines_of(attention_to_text(kind, 0, 0))[0],
            "cross attention, layer 1 of 1, head 1 of 1: rows look at columns");
  kind.method = AttentionMethod::integrated;
  EXPECT_EQ(lines_of(attention_to_text(kind, 0, 0))[0],
            "cross integrated gradients: shares of columns in log p of rows; the rest of each row is in decoder");
  kind.name = "decoder", kind.method = AttentionMethod::rollout;
  EXPECT_EQ(
      lines_of(attention_to_text(kind, 0, 0))[0],
      "decoder attention rollout, layers 1 to 1 of 1: shares of columns in rows; the rest of each row is in cross");
  kind.layers[0][0].weights = {.5f, .5f, 0, 0};  // a token without an attribution has no rest
  EXPECT_EQ(lines_of(attention_to_text(kind, 0, 0))[0],
            "decoder attention rollout, layers 1 to 1 of 1: shares of columns in rows");
}

TEST(AttentionText, StaysAlignedUnderWideAndCombiningCharacters) {
  const std::vector<std::string> pieces = {"▁你好", "▁e\xCC\x81t\xC3\xA9", "▁\xF0\x9F\x98\x80", "▁ok"};
  const AttentionKind kind = testing::sample_kind("cross", pieces, pieces, false, 1, 1, 4);
  const std::vector<std::string> lines = lines_of(attention_to_text(kind, 0, 0));
  ASSERT_EQ(lines.size(), 11u);
  EXPECT_EQ(lines[2], "       e\xCC\x81");
  EXPECT_EQ(lines[3], "     你t   o");
  EXPECT_EQ(lines[4], "     好\xC3\xA9 \xF0\x9F\x98\x80k");
  EXPECT_TRUE(lines[5].starts_with("你好 "));
  EXPECT_TRUE(lines[6].starts_with(" e\xCC\x81t\xC3\xA9 "));
  EXPECT_TRUE(lines[7].starts_with("  \xF0\x9F\x98\x80 "));
}

TEST(AttentionText, FitsOneHundredColumnsInBands) {
  std::vector<std::string> tokens;
  for (int i = 0; i < 130; i++) tokens.push_back("▁token" + std::to_string(i));
  const AttentionKind narrow = testing::sample_kind("encoder", tokens, tokens, false, 1, 1, 5);
  tokens[7] = "▁你";
  const AttentionKind wide = testing::sample_kind("encoder", tokens, tokens, false, 1, 1, 5);
  const std::vector<std::string> narrow_lines = lines_of(attention_to_text(narrow, 0, 0));
  const std::vector<std::string> wide_lines = lines_of(attention_to_text(wide, 0, 0));
  for (const std::string& line : narrow_lines) EXPECT_LE(columns_of(line), 100u) << line;
  for (const std::string& line : wide_lines) EXPECT_LE(columns_of(line), 100u) << line;
  // Only the last band has a label of 8 characters.
  EXPECT_EQ(narrow_lines.size(), 3 + (1 + 7 + 130u) + (1 + 8 + 130u));    // 91 columns, 39
  EXPECT_EQ(wide_lines.size(), 3 + 2 * (1 + 7 + 130u) + (1 + 8 + 130u));  // 45, 45, 40
}

TEST(AttentionText, CannotControlTheTerminal) {
  const AttentionKind kind{"cross",
                           false,
                           {"▁\x1B[31mred\n"},
                           {"▁\xE2\x80\xAE"
                            "back",
                            "\xFF"},
                           {{{{.5f, .5f}}}}};
  const std::string text = attention_to_text(kind, 0, 0);
  EXPECT_EQ(text.find('\x1B'), text.npos);
  EXPECT_EQ(text.find("\xE2\x80\xAE"), text.npos);
  EXPECT_EQ(text.find('\xFF'), text.npos);
  EXPECT_NE(text.find("\xEF\xBF\xBD[31mred\xEF\xBF\xBD "), text.npos);
}

TEST(AttentionMap, ErrorsStateWhatWasFoundAndExpected) {
  AttentionMap map = testing::sample_map(source, target, 2, 2);
  EXPECT_EQ(message_of([&] { attention_to_text(map.kinds[0], 2, 0); }),
            "attention \"encoder\": layer must be between 1 and 2 (is 3)");
  EXPECT_EQ(message_of([&] { attention_to_text(map.kinds[0], 1, -1); }),
            "attention \"encoder\": head must be between 1 and 2 in layer 2 (is 0)");
  map.kinds[2].layers[1][0].weights.pop_back();
  const std::string expected = "attention map \"cross\": layer 2, head 1 must have 6 x 7 weights (has 41)";
  EXPECT_EQ(message_of([&] { attention_to_json(map); }), expected);
  EXPECT_EQ(message_of([&] { attention_to_html(map); }), expected);
  EXPECT_EQ(message_of([&] { merge_words(map); }), expected);
  EXPECT_EQ(message_of([] { attention_to_html({}); }), "attention map: has no kind of attention");
}

}  // namespace
}  // namespace qkv
