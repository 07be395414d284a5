// The search for hard negatives agrees with plain loops, and never finds a text that belongs to the anchor.
#include "train/negatives/negative_search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <span>
#include <vector>

#include "core/random.h"
#include "core/to_size.h"
#include "tests/support/kernels.h"

namespace qkv {
namespace {

// Rows of texts whose vectors are small integers: their products are exact, and many of them are equal.
struct SearchCase {
  static constexpr int64_t kTexts = 500, kCandidates = 300, kWidth = 6;
  NegativeRows rows{kCandidates};
  std::vector<float> vectors = std::vector<float>(to_size(kTexts * kWidth));

  // Anchors occur several times, and some are candidates. More rows than a block has.
  explicit SearchCase(uint64_t seed, bool with_given = true, int64_t count = 1000) {
    Random random(seed, Stream::test);
    for (float& value : vectors) value = static_cast<float>(random.below(9)) - 4;
    for (int64_t i = 0; i < count; i++) {
      rows.positives.push_back(
          static_cast<int32_t>(i < kCandidates ? i : static_cast<int64_t>(random.below(kCandidates))));
      rows.anchors.push_back(static_cast<int32_t>(200 + random.below(kTexts - 200)));
      if (with_given) rows.given.push_back({static_cast<int32_t>(random.below(kTexts + 20)), 7});
    }
  }

  Matrix<const float> view() const { return {vectors.data(), kTexts, kWidth}; }
  float product(int32_t a, int32_t b) const {
    float sum = 0;
    for (int64_t i = 0; i < kWidth; i++) sum += view()(a, i) * view()(b, i);
    return sum;
  }
  // The texts that some row pairs with the anchor of this one, the anchor itself, and the negatives of the row.
  std::set<int32_t> excluded(size_t row) const {
    std::set<int32_t> texts = {rows.anchors[row]};
    for (size_t i = 0; i < rows.anchors.size(); i++) {
      if (rows.anchors[i] == rows.anchors[row]) texts.insert(rows.positives[i]);
      if (rows.positives[i] == rows.anchors[row]) texts.insert(rows.anchors[i]);
    }
    if (!rows.given.empty()) texts.insert(rows.given[row].begin(), rows.given[row].end());
    return texts;
  }
  float limit(size_t row, double margin) const {
    const double positive = product(rows.anchors[row], rows.positives[row]);
    return static_cast<float>(positive - margin * std::abs(positive));
  }
  // All negatives that the margin allows, most similar first.
  std::vector<int32_t> allowed(size_t row, double margin) const {
    const std::set<int32_t> without = excluded(row);
    std::vector<int32_t> texts;
    for (int32_t text = 0; text < kCandidates; text++)
      if (!without.contains(text) && product(rows.anchors[row], text) <= limit(row, margin)) texts.push_back(text);
    std::ranges::stable_sort(texts, std::greater(), [&](int32_t text) { return product(rows.anchors[row], text); });
    return texts;
  }
  FoundNegatives find(const HardNegativeOptions& options) const {
    int64_t searched = 0;
    FoundNegatives found = find_negatives(rows, view(), options, [&](int64_t more) { searched += more; });
    EXPECT_EQ(searched, rows.size());
    return found;
  }
};

std::vector<int32_t> negatives_of(const FoundNegatives& found, size_t row, int64_t n) {
  const auto first = found.texts.begin() + static_cast<std::ptrdiff_t>(row) * n;
  return {first, first + n};
}

TEST(NegativeSearch, FindsTheMostSimilarTextsWithinTheMargin) {
  int64_t empty = 0;
  for (const HardNegativeOptions& options : {HardNegativeOptions(),
                                             {.negatives_per_row = 1, .relative_margin = 0},
                                             {.negatives_per_row = 5, .relative_margin = 0.5, .skip_nearest = 4},
                                             {.negatives_per_row = 40, .relative_margin = -10},
                                             {.negatives_per_row = 3, .relative_margin = 1, .skip_nearest = 1000}}) {
    const SearchCase problem(1);
    const FoundNegatives found = problem.find(options);
    const int64_t n = options.negatives_per_row;
    for (size_t row = 0; row < problem.rows.anchors.size(); row++) {
      std::vector<int32_t> wanted = problem.allowed(row, options.relative_margin);
      wanted.erase(wanted.begin(), wanted.begin() + std::min(std::ssize(wanted), options.skip_nearest));
      wanted.resize(std::ssize(wanted) < n ? 0 : to_size(n));
      wanted.resize(to_size(n), -1);
      empty += wanted.front() < 0;
      ASSERT_EQ(negatives_of(found, row, n), wanted) << "row " << row;
      const int32_t anchor = problem.rows.anchors[row];
      EXPECT_EQ(found.positives[row], problem.product(anchor, problem.rows.positives[row]));
      for (size_t i = 0; i < to_size(n) && wanted.front() >= 0; i++)
        EXPECT_EQ(found.similarities[row * to_size(n) + i], problem.product(anchor, wanted[i]));
    }
  }
  EXPECT_GT(empty, 1000);  // all rows of the last options, and some others
}

TEST(NegativeSearch, DrawsFromTheMostSimilarTexts) {
  const SearchCase problem(2, false);
  const HardNegativeOptions options{.negatives_per_row = 4, .skip_nearest = 2, .sample_from = 10, .seed = 3};
  const FoundNegatives found = problem.find(options);
  std::set<std::ptrdiff_t> places;
  for (size_t row = 0; row < problem.rows.anchors.size(); row++) {
    const std::vector<int32_t> allowed = problem.allowed(row, options.relative_margin);
    const std::vector<int32_t> negatives = negatives_of(found, row, 4);
    std::ptrdiff_t before = -1;
    for (size_t i = 0; i < 4 && negatives.front() >= 0; i++) {
      const auto place = std::ranges::find(allowed, negatives[i]) - allowed.begin();
      EXPECT_GT(place, before);  // most similar first, none twice
      EXPECT_TRUE(place >= 2 && place < 12) << place;
      places.insert(before = place);
    }
    EXPECT_EQ(negatives.front() < 0, allowed.size() < 6);
  }
  EXPECT_EQ(places.size(), 10U);
  EXPECT_EQ(problem.find(options).texts, found.texts);
  HardNegativeOptions other = options;
  other.seed = 4;
  EXPECT_NE(problem.find(other).texts, found.texts);
}

TEST(NegativeSearch, TheNumberOfThreadsChangesNothing) {
  const SearchCase problem(3);
  const HardNegativeOptions options{.sample_from = 9};
  const FoundNegatives one = testing::with_threads(1, [&] { return problem.find(options); });
  const FoundNegatives three = testing::with_threads(3, [&] { return problem.find(options); });
  EXPECT_EQ(one.texts, three.texts);
  EXPECT_EQ(one.similarities, three.similarities);
  EXPECT_EQ(one.positives, three.positives);
}

TEST(NegativeSearch, FewCandidatesLeaveRowsWithoutNegatives) {
  NegativeRows rows{2, {2, 3}, {0, 1}};
  const std::vector<float> vectors = {1, 0, 0.5F, 0, 1, 0, 1, 1};
  const FoundNegatives found =
      find_negatives(rows, Matrix<const float>(vectors.data(), 4, 2), {.negatives_per_row = 1}, [](int64_t) {});
  EXPECT_EQ(found.texts, (std::vector<int32_t>{1, -1}));  // of the second row, the other text is more similar
  EXPECT_EQ(
      find_negatives(rows, Matrix<const float>(vectors.data(), 4, 2), {.negatives_per_row = 2}, [](int64_t) {}).texts,
      (std::vector<int32_t>{-1, -1, -1, -1}));
}

}  // namespace
}  // namespace qkv
