// BLEU and chrF against the numbers of sacreBLEU 2.6.0, obtained for each pair of lists with
//   sacrebleu.BLEU(lowercase=L).corpus_score(hypotheses, [references])
//   sacrebleu.CHRF(lowercase=L).corpus_score(hypotheses, [references])
// and, for the golden lines, with `python tests/support/noisy_text.py tests/golden`, which makes them too.
#include <gtest/gtest.h>

#include "qkv/error.h"
#include "qkv/evaluate.h"
#include "qkv/text.h"

namespace qkv {
namespace {

using Lines = std::vector<std::string>;

// Both sides perform the same few operations in double on the same integers, so errors are far below this for a number
// up to 100.
constexpr double kTolerance = 1e-9;

void expect_bleu(const BleuScore& found, const BleuScore& expected) {
  EXPECT_NEAR(found.score, expected.score, kTolerance);
  for (size_t n = 0; n < 4; ++n)
    EXPECT_NEAR(found.precisions[n], expected.precisions[n], kTolerance) << "order " << n + 1;
  EXPECT_NEAR(found.brevity_penalty, expected.brevity_penalty, kTolerance);
  EXPECT_EQ(found.hypothesis_length, expected.hypothesis_length);
  EXPECT_EQ(found.reference_length, expected.reference_length);
}

const Lines kHypotheses = {"The ferry crossed the lake in 1,250 seconds.",
                           "Nobody expected the -5 °C frost; \"R&amp;D\" didn't either.",
                           "Der Zug fährt um 12:30 Uhr ab.", "猫は魚が好きです。", "completely different words here"};
const Lines kReferences = {"The ferry crossed the wide lake in 1,250.5 seconds.",
                           "Nobody had expected the -5 °C frost: \"R&D\" did not either.",
                           "Der Zug fährt um 12.30 Uhr vom Gleis 7 ab.", "猫は魚が大好きです。",
                           "nothing that matches"};

TEST(Score, FiveLinesAgreeWithSacrebleu) {
  const BleuScore expected{38.28940760244882,
                           {71.7948717948718, 52.94117647058823, 33.333333333333336, 23.076923076923077},
                           0.925961078642316,
                           39,
                           42};
  expect_bleu(bleu(kHypotheses, kReferences), expected);
  EXPECT_NEAR(chrf(kHypotheses, kReferences).score, 59.484050680843644, kTolerance);
}

TEST(Score, CaseIsIgnoredOnlyIfRequested) {
  const Lines upper = {"THE FERRY", "CROSSED THE ΟΔΟΣ"}, lower = {"the ferry", "crossed the οδος"};
  EXPECT_EQ(bleu(upper, lower).precisions[0], 0);
  EXPECT_EQ(bleu(upper, lower, true).precisions[0], 100);
  EXPECT_EQ(chrf(upper, lower).score, 0);
  EXPECT_NEAR(chrf(upper, lower, true).score, 100, kTolerance);
}

TEST(Score, NoisyLinesAgreeWithSacrebleu) {
  const Lines hypotheses = read_lines(QKV_GOLDEN_DIR "/score-hypotheses.txt");
  const Lines references = read_lines(QKV_GOLDEN_DIR "/score-references.txt");
  const BleuScore mixed{53.78900856998142,
                        {68.83645240032547, 56.79925994449584, 50.394114555964265, 45.936395759717314},
                        0.9806613660657986,
                        2458,
                        2506};
  const BleuScore folded{58.186639861521485,
                         {72.49484536082474, 62.18882104274307, 55.63869588455371, 50.86982603479304},
                         0.9735519185857999,
                         2425,
                         2490};
  expect_bleu(bleu(hypotheses, references), mixed);
  expect_bleu(bleu(hypotheses, references, true), folded);
  EXPECT_NEAR(chrf(hypotheses, references).score, 62.67309650669408, kTolerance);
  EXPECT_NEAR(chrf(hypotheses, references, true).score, 67.59047535844249, kTolerance);
}

TEST(Bleu, AnOrderWithoutMatchesIsSmoothed) {
  const BleuScore expected{14.058533129758727, {60, 12.5, 8.333333333333334, 6.25}, 1, 5, 5};
  expect_bleu(bleu({"one two three four five"}, {"one x two y three"}), expected);
}

TEST(Bleu, IsZeroIfAllLinesAreShorterThanFourTokens) {
  expect_bleu(bleu({"a b c"}, {"a b c"}), {0, {100, 100, 100, 0}, 1, 3, 3});
}

TEST(Score, EqualLinesScore100) {
  EXPECT_NEAR(bleu(kReferences, kReferences).score, 100, kTolerance);
  EXPECT_NEAR(chrf(kReferences, kReferences).score, 100, kTolerance);
}

TEST(Score, NothingInCommonScoresZero) {
  expect_bleu(bleu({"a b c d"}, {"e f g h"}), {0, {}, 1, 4, 4});
  expect_bleu(bleu({""}, {"e f g h"}), {0, {}, 0, 0, 4});
  expect_bleu(bleu({"a b c d"}, {""}), {0, {}, 1, 4, 0});
  expect_bleu(bleu({""}, {""}), {0, {}, 1, 0, 0});
  for (const Lines& hypothesis : {Lines{"a b c d"}, Lines{""}})
    for (const Lines& reference : {Lines{"e f g h"}, Lines{""}}) EXPECT_EQ(chrf(hypothesis, reference).score, 0);
}

TEST(Chrf, CountsAHypothesisOnlyInTheOrdersThatItsReferenceHas) {
  EXPECT_NEAR(chrf({"abcdefgh", "ab"}, {"ab", "abcdefg"}).score, 35.62917063870353, kTolerance);
}

TEST(Chrf, IgnoresWhiteSpaceOfEveryKind) {
  EXPECT_NEAR(chrf({"a b\u00a0c\td e"}, {"\u3000abc de"}).score, 100, kTolerance);
}

TEST(Score, InvalidUtf8IsHarmless) {
  const Lines broken = {"\xff\xc3 \xe2\x82", "\x80\x80. \xf0"};
  EXPECT_NEAR(chrf(broken, broken).score, 100, kTolerance);
  EXPECT_EQ(bleu(broken, broken).precisions[0], 100);
}

TEST(Score, UnequalCountsAreAnError) {
  try {
    bleu({"a", "b"}, {"a"});
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "bleu: expected one reference per hypothesis (found 2 hypotheses and 1 references)");
  }
  EXPECT_THROW(chrf({}, {"a"}), Error);
}

}  // namespace
}  // namespace qkv
