// Word alignments and syntax trees: the links that are read, errors, and how often the most attended word is right.
#include "analysis/heads/word_links.h"

#include <gtest/gtest.h>

#include "analysis/heads/word_agreement.h"
#include "tests/analysis/heads/head_cases.h"
#include "tests/support/errors.h"

namespace qkv {
namespace {

using testing::error_of;

std::string row(int64_t id, const std::string& form, int64_t head, const std::string& relation) {
  return fmt::format("{}\t{}\t_\t_\t_\t_\t{}\t{}\t_\t_", id, form, head, relation);
}

const std::vector<std::string> kTree = {
    "# text = The cat sat on the mat.", row(1, "The", 2, "det"), row(2, "cat", 3, "nsubj"),
    row(3, "sat", 0, "root"),           row(4, "on", 6, "case"), row(5, "the", 6, "det"),
    row(6, "mat", 3, "obl:on"),         row(7, ".", 3, "punct"), ""};
const std::string kLine = "The cat sat on the mat.";

TEST(WordLinks, TreesGiveLinksFromDependentsToHeads) {
  const WordLinks links = parse_trees(kTree, {DataLine{kLine}}, "t").front();
  ASSERT_EQ(links.rows.size(), 7u);
  EXPECT_EQ(kLine.substr(links.rows[5].begin, links.rows[5].end - links.rows[5].begin), "mat");
  EXPECT_EQ(kLine.substr(links.rows[6].begin, links.rows[6].end - links.rows[6].begin), ".");
  ASSERT_EQ(links.links.size(), 6u);
  EXPECT_EQ(links.links[1].relation, "nsubj");
  EXPECT_EQ(links.links[1].from, 1);
  EXPECT_EQ(links.links[1].to, (std::vector<int32_t>{2}));
  EXPECT_EQ(links.links[4].relation, "obl");  // without the subtype
}

TEST(WordLinks, TokensOfSeveralWordsGiveTheirPlaceToEach) {
  std::vector<std::string> text = {
      row(1, "Er", 2, "nsubj"), row(2, "geht", 0, "root"), "3-4\tzum\t_\t_\t_\t_\t_\t_\t_\t_",
      row(3, "zu", 5, "case"),  row(4, "dem", 5, "det"),   row(5, "See", 2, "obl")};
  const WordLinks links = parse_trees(text, {DataLine{"Er geht zum See"}}, "t").front();
  ASSERT_EQ(links.rows.size(), 5u);
  EXPECT_EQ(links.rows[2].begin, 8u);
  EXPECT_EQ(links.rows[3].begin, 8u);
  EXPECT_EQ(links.rows[3].end, 11u);
}

TEST(WordLinks, ErrorsNameTheLine) {
  const auto error = [](std::vector<std::string> text, const std::string& line) {
    return error_of([&] { parse_trees(text, {DataLine{line}}, "t.conllu"); });
  };
  EXPECT_EQ(error({"1\tThe"}, "The"), "t.conllu:1: a word must have 10 fields separated by tabs (has 2)");
  EXPECT_EQ(error({row(2, "The", 0, "root")}, "The"), "t.conllu:1: ID must be 1 (is \"2\")");
  EXPECT_EQ(error({row(1, "A", 0, "root")}, "The"), "t.conllu:1: \"A\" is not the next word of line 1 of the data");
  EXPECT_EQ(error({row(1, "The", 2, "det")}, "The"), "t.conllu:1: HEAD must be at most 1, the number of words (is 2)");
  EXPECT_EQ(error({"1\tThe\t_\t_\t_\t_\t-1\tdet\t_\t_"}, "The"),
            "t.conllu:1: HEAD must be a number from 0 (is \"-1\")");
  EXPECT_EQ(error({row(1, "The", 0, "root")}, "The cat"),
            "t.conllu:1: the sentence ends before line 1 of the data does");
  EXPECT_EQ(error({}, "The"), "t.conllu: has no sentence for line 1 of the data (has 0)");
  const std::string rest = "\tzum\t_\t_\t_\t_\t_\t_\t_\t_";
  for (const char* range : {"2-3", "1-1", "2-1", "1-", "-2", "a-b"})
    EXPECT_EQ(
        error({range + rest}, "zum"),
        fmt::format("t.conllu:1: ID must be a range from 1, the next word, that overlaps no other (is \"{}\")", range));
  EXPECT_EQ(error({"1-3" + rest, row(1, "zu", 0, "case"), "2-3" + rest}, "zum zum"),
            "t.conllu:3: ID must be a range from 2, the next word, that overlaps no other (is \"2-3\")");
  EXPECT_EQ(error({"1-3" + rest, row(1, "zu", 0, "case")}, "zum"),
            "t.conllu:2: the sentence ends before word 3 of a token of several words");
}

TEST(WordLinks, WhiteSpaceIsThatOfUnicode) {
  const std::vector<std::string> text = {row(1, "a\u2009b", 2, "nummod"), row(2, "c", 0, "root")};
  for (const char* line : {"ab\u3000c", " a\u00a0b\u202f\u00a0c\u2028", "a b c"})
    EXPECT_EQ(parse_trees(text, {DataLine{line}}, "t").front().rows.size(), 2u) << line;
}

TEST(WordLinks, BlankLinesHaveNoSentence) {
  const std::vector<DataLine> lines = {{"", 1}, {kLine, 2}, {" \u3000", 3}, {kLine, 4}, {"", 5}};
  std::vector<std::string> two = kTree;
  two.insert(two.end(), kTree.begin(), kTree.end());
  const std::vector<WordLinks> links = parse_trees(two, lines, "t");
  ASSERT_EQ(links.size(), 5u);
  for (size_t i = 0; i < 5; i++) EXPECT_EQ(links[i].links.size(), i % 2 ? 6u : 0u) << i;
  EXPECT_EQ(error_of([&] { parse_trees(kTree, lines, "t"); }), "t: has no sentence for line 4 of the data (has 1)");
}

TEST(WordLinks, AlignmentsGiveTheSourceWordsOfEachTargetWord) {
  const WordLinks links = read_alignment("0-0 2-1 1-1 2-1", "a b c", "x y z", "f:1");
  ASSERT_EQ(links.links.size(), 2u);
  EXPECT_EQ(links.links[1].from, 1);
  EXPECT_EQ(links.links[1].to, (std::vector<int32_t>{2, 1}));
  for (const char* wrong : {"3-0", "0-3", "0", "a-b", "0-", "-1-0"})
    EXPECT_EQ(error_of([&] { read_alignment(wrong, "a b c", "x y z", "f:1"); }),
              fmt::format("f:1: \"{}\" must be i-j with a source word i below 3 and a target word j below 3", wrong));
}

// A text of pieces that are words or parts of words.
TextSide side(const std::string& text, const std::vector<std::string>& pieces) {
  TextSide result;
  result.text = text;
  for (const std::string& piece : pieces) {
    result.ids.push_back(static_cast<int32_t>(result.ids.size()));
    result.tokens.push_back({piece, 0, piece.starts_with('<')});
  }
  return result;
}

HeadTexts texts_of(const ModelConfig& config, HeadText text) {
  HeadTexts texts;
  texts.model = std::make_unique<Transformer<float>>(config);
  texts.texts.push_back(std::move(text));
  return texts;
}

const WordAgreement& find(const std::vector<WordAgreement>& all, const std::string& relation,
                          const std::string& direction) {
  return *std::ranges::find_if(
      all, [&](const WordAgreement& a) { return a.relation == relation && a.direction == direction; });
}

TEST(WordAgreement, SumsThePiecesOfWordsAndComparesWithTheBestOffset) {
  HeadText text;
  text.source = side(kLine, {"▁The", "▁c", "at", "▁sat", "▁on", "▁the", "▁mat", ".", "</s>"});
  const HeadTexts texts = texts_of(testing::small_config(), text);
  const WordAgreements agreements(texts, {}, parse_trees(kTree, {DataLine{kLine}}, "t"));
  std::vector<float> weights(9 * 9);
  const Matrix<float> A(weights.data(), 9, 9);
  A(0, 8) = 0.9f, A(0, 1) = 0.03f, A(0, 2) = 0.03f, A(0, 3) = 0.04f;  // "The": "cat" has two pieces
  A(5, 6) = 1;                                                        // "the" to "mat"
  A(1, 2) = 1, A(2, 3) = 0.5f, A(2, 1) = 0.5f;  // "cat": to itself, which does not count, and to "sat"
  A(3, 7) = 1;                                  // "sat" to ".", which is its dependent
  std::vector<int64_t> hits(agreements.size());
  agreements.count(AttentionPart::encoder, 0, A, hits);
  const std::vector<WordAgreement> found = agreements.of_part(AttentionPart::encoder, hits);
  EXPECT_EQ(find(found, "det", "dependent to head").pairs, 2);
  EXPECT_EQ(find(found, "det", "dependent to head").share, 1);
  EXPECT_EQ(find(found, "det", "dependent to head").offset, 1);
  EXPECT_EQ(find(found, "det", "dependent to head").baseline, 1);
  EXPECT_EQ(find(found, "nsubj", "dependent to head").share, 1);
  EXPECT_EQ(find(found, "nsubj", "head to dependent").share, 0);
  EXPECT_EQ(find(found, "punct", "head to dependent").share, 1);
  EXPECT_EQ(find(found, "punct", "head to dependent").offset, 4);
  EXPECT_TRUE(agreements.of_part(AttentionPart::cross, hits).empty());
}

TEST(WordAgreement, CausalAttentionCountsEarlierWordsOnly) {
  ModelConfig config = testing::small_config();
  config.encoder_layers = config.source_vocab = 0;
  config.shared_embeddings = false;
  HeadText text;
  text.target = side(kLine, {"<s>", "▁The", "▁cat", "▁sat", "▁on", "▁the", "▁mat", "."});
  const HeadTexts texts = texts_of(config, text);
  const WordAgreements agreements(texts, {}, parse_trees(kTree, {DataLine{kLine}}, "t"));
  const std::vector<int64_t> hits(agreements.size());
  const std::vector<WordAgreement> found = agreements.of_part(AttentionPart::decoder, hits);
  EXPECT_EQ(find(found, "nsubj", "head to dependent").pairs, 1);
  EXPECT_TRUE(std::ranges::none_of(
      found, [](const WordAgreement& a) { return a.relation == "nsubj" && a.direction == "dependent to head"; }));
}

TEST(WordAgreement, TreesOfTargetsAreForTheDecoder) {
  HeadText text;
  text.source = side("a", {"▁a", "</s>"});
  text.target = side(kLine, {"<s>", "▁The", "▁cat", "▁sat", "▁on", "▁the", "▁mat", "."});
  const HeadTexts texts = texts_of(testing::small_config(), text);
  const WordAgreements agreements(texts, {}, {}, parse_trees(kTree, {DataLine{kLine}}, "t"));
  std::vector<float> weights(8 * 8);
  const Matrix<float> A(weights.data(), 8, 8);
  A(3, 2) = 1;  // "sat" to "cat"
  std::vector<int64_t> hits(agreements.size());
  agreements.count(AttentionPart::decoder, 0, A, hits);
  const std::vector<WordAgreement> found = agreements.of_part(AttentionPart::decoder, hits);
  EXPECT_EQ(find(found, "nsubj", "head to dependent").pairs, 1);
  EXPECT_EQ(find(found, "nsubj", "head to dependent").share, 1);
  EXPECT_TRUE(agreements.of_part(AttentionPart::encoder, hits).empty());
}

TEST(WordAgreement, AlignmentReadsTheRowsThatPredictAWord) {
  HeadText text;
  text.source = side("a cat", {"▁a", "▁cat", "</s>"});
  text.target = side("eine Katze", {"<s>", "▁eine", "▁Katze"});
  const HeadTexts texts = texts_of(testing::small_config(), text);
  const WordAgreements agreements(texts, {read_alignment("0-0 1-1", "a cat", "eine Katze", "f")}, {});
  std::vector<float> weights = {1, 0, 0, 0, 1, 0, 0, 0, 1};  // row i predicts target token i + 1
  std::vector<int64_t> hits(agreements.size());
  agreements.count(AttentionPart::cross, 0, {weights.data(), 3, 3}, hits);
  const std::vector<WordAgreement> found = agreements.of_part(AttentionPart::cross, hits);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].pairs, 2);
  EXPECT_EQ(found[0].share, 1);
  EXPECT_EQ(found[0].baseline, 1);
  EXPECT_EQ(found[0].offset, 0);
}

}  // namespace
}  // namespace qkv
