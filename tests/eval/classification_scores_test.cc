// Measures of labels against figures of scikit-learn 1.9.
#include "eval/classification_scores.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/support/errors.h"

namespace qkv {
namespace {

using Labels = std::vector<int32_t>;
using Sets = std::vector<uint8_t>;

void expect_labels(const ClassificationScores& scores, const std::vector<double>& precision,
                   const std::vector<double>& recall, const std::vector<double>& f1,
                   const std::vector<int64_t>& texts) {
  ASSERT_EQ(scores.labels.size(), texts.size());
  for (size_t i = 0; i < texts.size(); i++) {
    EXPECT_DOUBLE_EQ(scores.labels[i].precision, precision[i]) << i;
    EXPECT_DOUBLE_EQ(scores.labels[i].recall, recall[i]) << i;
    EXPECT_DOUBLE_EQ(scores.labels[i].f1, f1[i]) << i;
    EXPECT_EQ(scores.labels[i].texts, texts[i]) << i;
  }
}

// Label 3 neither occurs nor is predicted, label 4 is only predicted.
TEST(ClassificationScores, OfOneLabelPerTextEqualThoseOfScikitLearn) {
  const Labels truth = {0, 0, 0, 1, 1, 2, 2, 2, 2, 0}, predicted = {0, 1, 0, 1, 2, 2, 2, 0, 2, 4};
  const ClassificationScores scores = classification_scores(truth, predicted, 5);
  EXPECT_EQ(scores.texts, 10);
  EXPECT_DOUBLE_EQ(scores.accuracy, 0.6);
  EXPECT_DOUBLE_EQ(scores.f1_micro, 0.6);
  EXPECT_DOUBLE_EQ(scores.f1_macro, 0.45535714285714285);
  expect_labels(scores, {2. / 3, 0.5, 0.75, 0, 0}, {0.5, 0.5, 0.75, 0, 0}, {4. / 7, 0.5, 0.75, 0, 0}, {4, 2, 4, 0, 0});
  EXPECT_EQ(scores.confusion,
            (std::vector<int64_t>{2, 1, 0, 0, 1, 0, 1, 1, 0, 0, 1, 0, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}));
}

TEST(ClassificationScores, OfSetsOfLabelsEqualThoseOfScikitLearn) {
  const Sets truth = {1, 0, 1, 0, 0, 1, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0};
  const Sets predicted = {1, 0, 0, 0, 0, 1, 0, 0, 1, 1, 1, 0, 0, 0, 0, 0, 0, 1, 0, 0};
  const ClassificationScores scores = label_set_scores(truth, predicted, 4);
  EXPECT_EQ(scores.texts, 5);
  EXPECT_DOUBLE_EQ(scores.accuracy, 0.4);
  EXPECT_DOUBLE_EQ(scores.f1_micro, 2. / 3);
  EXPECT_DOUBLE_EQ(scores.f1_macro, 0.4);
  expect_labels(scores, {1, 2. / 3, 0, 0}, {2. / 3, 1, 0, 0}, {0.8, 0.8, 0, 0}, {3, 2, 1, 0});
  EXPECT_TRUE(scores.confusion.empty());
}

// A matrix of all pairs of labels would take more memory than the texts.
TEST(ClassificationScores, OfManyLabelsHaveNoMatrix) {
  const ClassificationScores scores = classification_scores(Labels{0, 65535}, Labels{0, 1}, 65536);
  EXPECT_TRUE(scores.confusion.empty());
  EXPECT_DOUBLE_EQ(scores.accuracy, 0.5);
  EXPECT_EQ(classification_scores(Labels{1}, Labels{0}, kConfusionLabels).confusion.size(), 65536U);
}

TEST(ClassificationScores, AreZeroWithoutTexts) {
  for (const ClassificationScores& scores : {classification_scores({}, {}, 2), label_set_scores({}, {}, 2)}) {
    EXPECT_EQ(scores.texts, 0);
    EXPECT_EQ(scores.accuracy, 0);
    EXPECT_EQ(scores.f1_macro, 0);
    EXPECT_EQ(scores.f1_micro, 0);
  }
}

TEST(ClassificationScores, InvalidLabelsAreRejected) {
  using testing::error_of;
  EXPECT_EQ(error_of([] {
              classification_scores(Labels{0, 1}, Labels{0}, 2);
            }),
            "truth and predicted must have the same number of labels (are 2 and 1)");
  EXPECT_EQ(error_of([] {
              classification_scores(Labels{0, 2}, Labels{0, 1}, 2);
            }),
            "truth: label 2 of text 2 must be from 0 to 1");
  EXPECT_EQ(error_of([] {
              classification_scores(Labels{0, 1}, Labels{-1, 1}, 2);
            }),
            "predicted: label -1 of text 1 must be from 0 to 1");
  EXPECT_EQ(error_of([] {
              label_set_scores(Sets{0, 1, 1}, Sets{0, 1, 1}, 2);
            }),
            "truth and predicted must have 2 values for each text (have 3 and 3 values)");
  EXPECT_EQ(error_of([] {
              label_set_scores(Sets{0, 1}, Sets{0, 1, 1, 1}, 2);
            }),
            "truth and predicted must have 2 values for each text (have 2 and 4 values)");
  EXPECT_EQ(error_of([] { label_set_scores({}, {}, 0); }),
            "truth and predicted must have 0 values for each text (have 0 and 0 values)");
}

}  // namespace
}  // namespace qkv
