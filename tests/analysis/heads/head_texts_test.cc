// The texts on which heads are analysed: what is read of files and runs, and what their options must not be.
#include "analysis/heads/head_texts.h"

#include <gtest/gtest.h>

#include "analysis/heads/word_agreement.h"
#include "qkv/evaluate.h"
#include "qkv/generator.h"
#include "qkv/heads.h"
#include "qkv/translator.h"
#include "tests/analysis/heads/head_cases.h"
#include "tests/decode/random_run.h"
#include "tests/support/errors.h"
#include "tests/support/recommenders.h"
#include "tests/support/temp_dir.h"

namespace qkv {
namespace {

using testing::error_of;

class HeadTextsOfRuns : public ::testing::Test {
 protected:
  std::string file(const std::string& name, const std::string& text) {
    testing::spill(directory_ / name, text);
    return directory_ / name;
  }
  std::string source() { return file("source", "the dog sees the cat\nthe old cat sleeps\n"); }
  std::string target() { return file("target", "the cat sees the dog\nhe reads\n"); }
  // A translator whose decoding.json has a text before sources.
  std::string with_prefix() {
    const std::string run = testing::make_random_run(directory_ / "prefix");
    testing::set_source_prefix(run, "a man reads: ");
    return run;
  }

  testing::TempDir directory_;
};

std::vector<std::string> pieces_of(const TextSide& side) {
  std::vector<std::string> pieces;
  for (const TextToken& token : side.tokens) pieces.push_back(token.piece);
  return pieces;
}

TEST_F(HeadTextsOfRuns, SourcesHaveThePrefixOfTheRun) {
  const std::string run = with_prefix();
  const HeadTexts texts = read_head_texts(run, {.data = source(), .target = target()});
  const Translator translator(run);
  const TranslateOptions defaults = default_translate_options(run);
  ASSERT_EQ(texts.texts.size(), 2u);
  const TranslationStates states = translator.hidden("the dog sees the cat", "the cat sees the dog", defaults);
  EXPECT_EQ(pieces_of(texts.texts[0].source), states.encoder.pieces);
  const size_t without = translator.hidden("the dog sees the cat", "the cat").encoder.pieces.size(),
               prefix = states.encoder.pieces.size() - without;
  EXPECT_GT(prefix, 2u);
  const std::vector<TextToken>& tokens = texts.texts[0].source.tokens;
  for (size_t t = 0; t < tokens.size(); t++)
    EXPECT_EQ(tokens[t].is_special, t < prefix || t + 1 == tokens.size()) << t << " " << tokens[t].piece;
}

// The prefix has words of the text, which are not those that an alignment means.
TEST_F(HeadTextsOfRuns, WordsOfAPrefixAreNotThoseOfTheText) {
  const std::string run = testing::make_random_run(directory_ / "prefix");
  testing::set_source_prefix(run, "the cat ");
  const HeadTexts texts =
      read_head_texts(run, {.data = file("cat", "the cat sleeps\n"), .target = file("he", "he sleeps\n")});
  const HeadText& text = texts.texts[0];
  const WordAgreements agreements(texts, {read_alignment("1-0", text.source.text, text.target.text, "f")}, {});
  size_t prefix = 0, first = 0, last = 0;  // tokens of the prefix; the first and the last one of "cat" in the text
  for (size_t t = 0, letters = 0; letters < std::string("thecatthecat").size(); t++) {
    const std::string& piece = text.source.tokens.at(t).piece;
    if (letters == std::string("thecat").size()) prefix = t;
    if (letters == std::string("thecatthe").size()) first = t;
    letters += static_cast<size_t>(std::ranges::count_if(piece, [](char c) { return 'a' <= c && c <= 'z'; }));
    last = t;
  }
  ASSERT_GT(prefix, 0u);
  ASSERT_GT(first, prefix);
  for (const bool right : {false, true}) {
    std::vector<float> weights(text.target.ids.size() * text.source.ids.size());
    const Matrix<float> A(weights.data(), std::ssize(text.target.ids), std::ssize(text.source.ids));
    // Row 0 predicts "he". The prefix has the largest weights, and then "cat".
    for (size_t t = 0; t < text.source.ids.size(); t++)
      A(0, static_cast<int64_t>(t)) = t < prefix ? 1.0f : t >= first && t <= last && right ? 0.1f : 0.0f;
    std::vector<int64_t> hits(agreements.size());
    agreements.count(AttentionPart::cross, 0, A, hits);
    const std::vector<WordAgreement> found = agreements.of_part(AttentionPart::cross, hits);
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0].share, right ? 1 : 0);
  }
}

TEST_F(HeadTextsOfRuns, NothingBehindTheLinesIsRead) {
  const std::string run = testing::make_random_run(directory_ / "run"), data = file("data", "the dog\nthe cat\n\xff\n"),
                    target = file("target", "a\nb\n\xff\n"), alignment = file("alignment", "0-0\n0-0\n\xff\n"),
                    trees = file("trees",
                                 "1\tthe\t_\t_\t_\t_\t2\tdet\t_\t_\n2\tdog\t_\t_\t_\t_\t0\troot\t_\t_\n\n"
                                 "1\tthe\t_\t_\t_\t_\t2\tdet\t_\t_\n2\tcat\t_\t_\t_\t_\t0\troot\t_\t_\n\n\xff\n");
  HeadsOptions options{.data = data, .target = target, .alignment = alignment, .conllu = trees, .lines = 2};
  EXPECT_EQ(analyse_heads(run, options).texts, 2);
  options.lines = 3;
  EXPECT_EQ(error_of([&] { analyse_heads(run, options); }).find(data + ":3: byte 1 of the line is not valid UTF-8"),
            0u);
}

TEST_F(HeadTextsOfRuns, BlankLinesHaveNoTree) {
  const std::string lm = testing::make_language_run(directory_ / "lm");
  HeadsOptions options{.data = file("data", "\nthe dog\n \nthe cat\n")};
  options.conllu = file("trees",
                        "1\tthe\t_\t_\t_\t_\t2\tdet\t_\t_\n2\tdog\t_\t_\t_\t_\t0\troot\t_\t_\n\n"
                        "1\tthe\t_\t_\t_\t_\t2\tdet\t_\t_\n2\tcat\t_\t_\t_\t_\t0\troot\t_\t_\n");
  const HeadsReport report = analyse_heads(lm, options);
  EXPECT_EQ(report.texts, 4);
  ASSERT_EQ(report.heads[0].agreements.size(), 1u);  // causal attention sees the dependents of "dog" and "cat"
  EXPECT_EQ(report.heads[0].agreements[0].pairs, 2);
  options.conllu =
      file("trees",
           "1\tthe\t_\t_\t_\t_\t2\tdet\t_\t_\n2\tdog\t_\t_\t_\t_\t0\troot\t_\t_\n\n1\ta\t_\t_\t_\t_\t0\troot\t_\t_\n");
  EXPECT_EQ(error_of([&] { analyse_heads(lm, options); }),
            directory_ / "trees" + ":4: \"a\" is not the next word of line 4 of the data");
}

TEST_F(HeadTextsOfRuns, LongTextsAreCut) {
  const std::string lm = testing::make_language_run(directory_ / "lm", kMostHeadTokens + 100);
  const HeadTexts texts = read_head_texts(lm, {.data = file("data", std::string(kMostHeadTokens + 50, 'x') + "\n")});
  EXPECT_EQ(std::ssize(texts.texts[0].target.ids), kMostHeadTokens);
}

TEST_F(HeadTextsOfRuns, TokensOfALanguageModelAreThoseThatItShows) {
  const std::string lm = testing::make_language_run(directory_ / "lm");
  const HeadTexts texts = read_head_texts(lm, {.data = file("data", "a b\n\n")});
  EXPECT_EQ(pieces_of(texts.texts[0].target), Generator(lm).hidden("a b").pieces);
  EXPECT_TRUE(texts.texts[0].target.tokens[0].is_special);
  EXPECT_FALSE(texts.texts[0].target.tokens[1].is_special);
  EXPECT_FALSE(texts.texts[0].target.tokens[2].is_punctuation);  // the mark of a space
  ASSERT_EQ(texts.texts.size(), 2u);
  EXPECT_TRUE(texts.texts[1].target.tokens[0].is_special);
  EXPECT_EQ(texts.predictions(), 4 + 1);
}

// Histories are longer than the model reads: its 6 last events.
TEST_F(HeadTextsOfRuns, NdcgOfARecommenderIsThatOfItsEvaluation) {
  double sum = 0;
  for (const int64_t items : {11, 12, 13, 14, 16, 20})
    for (const bool repeats : {false, true}) {
      const std::string run = directory_ / fmt::format("films{}-{}", items, repeats);
      testing::create_recommender(run, testing::small_log(items), true, repeats);
      HeadsOptions options;
      options.ablate = Ablation::attention;
      const HeadsReport report = analyse_heads(run, options);
      const RankingScore score = evaluate_run(run, RankingProtocol::named("full")).rows.front().score;
      ASSERT_EQ(score.users, report.texts);
      EXPECT_NEAR(*report.ndcg10, score.ndcg[1], 1e-12) << items << " " << repeats;
      sum += score.ndcg[1];
    }
  EXPECT_GT(sum, 1);
}

TEST_F(HeadTextsOfRuns, OptionsMustFitTheRun) {
  const std::string lm = testing::make_language_run(directory_ / "lm"), data = source();
  const auto error = [](const std::string& run, const HeadsOptions& options) {
    return error_of([&] { analyse_heads(run, options); });
  };
  EXPECT_EQ(error(lm, {.data = data, .source_language = "en"}),
            fmt::format("source_language: {} is no translator (is en)", lm));
  EXPECT_EQ(error(lm, {.data = data, .target_language = "de"}),
            fmt::format("target_language: {} is no translator (is de)", lm));
  EXPECT_EQ(error(lm, {.data = data, .replace_by = Replacement::mean}),
            "replace_by must be zero without ablate (is mean)");
}

}  // namespace
}  // namespace qkv
