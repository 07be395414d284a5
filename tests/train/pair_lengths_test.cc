// A translator keeps how long the pairs of its training text are.
#include "train/pair_lengths.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "io/runs/run.h"
#include "qkv/system.h"
#include "qkv/train.h"
#include "tests/support/errors.h"
#include "tests/support/temp_dir.h"

namespace qkv::testing {
namespace {

// A text of S words.
std::string words(int64_t count) {
  std::string text;
  for (int64_t i = 0; i < count; i++) text += text.empty() ? "a" : " a";
  return text;
}

// The same pair several times; a text of fewer than 1,000 pairs has no lengths.
std::string pair(int64_t source, int64_t target, int times = 1) {
  std::string lines;
  for (int i = 0; i < times; i++) lines += words(source) + "\t" + words(target) + "\n";
  return lines;
}

std::optional<SentenceLengths> measure(const std::string& text, int64_t max_length = 100) {
  const TempFile file("tsv", text);
  const Tokenizer list = Tokenizer::with_pieces({}, {"<s>", "</s>", "<unk>", "a"}, "<unk>", "list");
  return measure_lengths(ParallelCorpus({file.path()}), {list, list}, max_length);
}

TEST(PairLengths, AreThoseOfTheText) {
  const SentenceLengths found = measure(pair(4, 6, 400) + pair(9, 12, 400) + pair(12, 20, 400)).value();
  EXPECT_EQ(found.longest, 12);
  EXPECT_DOUBLE_EQ(found.ratio, 38.0 / 25);
  EXPECT_DOUBLE_EQ(found.least_deviation, (12 - 9 * 38.0 / 25) / 3);
  EXPECT_FALSE(found.is_too_short(9, 12));
  EXPECT_TRUE(found.is_too_short(9, 11));
  EXPECT_FALSE(found.is_too_short(0, 0));
}

TEST(PairLengths, OfOnePairInTenThousandIsNotTheLongest) {
  const std::string text = pair(10, 10, 9'999);
  EXPECT_EQ(measure(text).value().longest, 10);
  EXPECT_EQ(measure(text + pair(90, 90)).value().longest, 10);
  EXPECT_EQ(measure(text + pair(90, 90) + pair(80, 80)).value().longest, 80);
}

TEST(PairLengths, OfOnePairInTenThousandDoNotDeviate) {
  const std::string text = pair(10, 10, 9'999);
  EXPECT_NEAR(measure(text + pair(80, 10)).value().least_deviation, 0, 0.1);
  EXPECT_LT(measure(text + pair(80, 10, 2)).value().least_deviation, -7);
}

TEST(PairLengths, OfPairsThatAreNotTrainedOnDoNotCount) {
  const std::string text = pair(5, 5, 1000);
  EXPECT_EQ(measure(text + pair(101, 5, 9) + pair(6, 101, 9) + "a\t\n").value(), measure(text).value());
  EXPECT_FALSE(measure(pair(5, 5, 999) + pair(101, 5, 9) + "a\t\n"));
}

TEST(PairLengths, DoNotDependOnTheNumberOfThreads) {
  std::string text;
  for (int i = 0; i < 3000; i++) text += pair(1 + i % 37, 1 + i * i % 41);
  const int before = threads();
  set_threads(1);
  const SentenceLengths one = measure(text).value();
  set_threads(3);
  EXPECT_EQ(measure(text).value(), one);
  set_threads(before);
}

TEST(PairLengths, OfAnEarlierTextCount) {
  const SentenceLengths now{20, 1.5, -2}, before{30, 1, -1}, shorter{10, 1, -1};
  EXPECT_EQ(with_earlier(now, before, 100).value(), (SentenceLengths{30, 1.5, -2}));
  EXPECT_EQ(with_earlier(now, shorter, 100).value(), now);
  EXPECT_EQ(with_earlier(now, std::nullopt, 100).value(), (SentenceLengths{100, 1.5, -2}));
  EXPECT_EQ(with_earlier(std::nullopt, before, 100), before);
}

}  // namespace
}  // namespace qkv::testing
