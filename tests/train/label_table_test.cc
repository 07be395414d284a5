// Labels of rows: what they are follows from all of them and the loss; their order, and their weights.
#include "train/tasks/label_table.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/errors.h"

namespace qkv::testing {
namespace {

LabelCounts::Summary summary_of(const std::vector<std::string>& fields, const LabelTrainingConfig& config = {}) {
  LabelCounts counts(config);
  for (size_t i = 0; i < fields.size(); i++) counts.add(fields[i], static_cast<int64_t>(i), "row " + std::to_string(i));
  return counts.summary("file");
}

TEST(LabelCounts, FindWhatTheLabelsAre) {
  using Fields = std::vector<std::string>;
  struct Case {
    Fields fields;
    LabelTrainingConfig config;
    LabelKind kind;
    LabelLoss loss;
  };
  const LabelTrainingConfig squared{.loss = LabelLoss::squared}, sigmoid{.loss = LabelLoss::sigmoid},
      softmax{.loss = LabelLoss::softmax}, commas{.label_separator = ","};
  for (const Case& c : std::vector<Case>{{{"a", "b"}, {}, LabelKind::one, LabelLoss::softmax},
                                         {{"1", "0"}, {}, LabelKind::one, LabelLoss::softmax},
                                         {{"1", "0.5"}, {}, LabelKind::number, LabelLoss::squared},
                                         {{"1", "0.5", "x"}, {}, LabelKind::one, LabelLoss::softmax},
                                         {{"1", "0.5"}, softmax, LabelKind::one, LabelLoss::softmax},
                                         {{"1", "2"}, squared, LabelKind::number, LabelLoss::squared},
                                         {{"1", "0"}, sigmoid, LabelKind::number, LabelLoss::sigmoid},
                                         {{"1", "2"}, sigmoid, LabelKind::several, LabelLoss::sigmoid},
                                         {{"a,b", "a"}, sigmoid, LabelKind::several, LabelLoss::sigmoid},
                                         {{"a, b", ""}, commas, LabelKind::several, LabelLoss::sigmoid},
                                         {{"1", "0"}, commas, LabelKind::several, LabelLoss::sigmoid},
                                         {{R"(["a","b"])", "[]"}, {}, LabelKind::several, LabelLoss::sigmoid},
                                         {{R"(["a",["b"]])", "x"}, {}, LabelKind::one, LabelLoss::softmax}}) {
    const LabelCounts::Summary found = summary_of(c.fields, c.config);
    EXPECT_EQ(found.kind, c.kind) << c.fields.front();
    EXPECT_EQ(found.loss, c.loss) << c.fields.front();
  }
}

TEST(LabelCounts, AreOrderedByTextOrByNumber) {
  EXPECT_EQ(summary_of({"b", "10", "a"}).labels, (std::vector<std::string>{"10", "a", "b"}));
  EXPECT_EQ(summary_of({"10", "-1", "9"}).labels, (std::vector<std::string>{"-1", "9", "10"}));
  const LabelCounts::Summary found = summary_of({" x ;y", "z;;x;x", "y"}, {.label_separator = ";"});
  EXPECT_EQ(found.labels, (std::vector<std::string>{"x", "y", "z"}));
  EXPECT_EQ(found.rows, (std::vector<int64_t>{2, 2, 1}));
  EXPECT_EQ(found.first_rows, (std::vector<int64_t>{0, 0, 1}));
}

// The default is one label in a row, also with sigmoid.
TEST(LabelCounts, AreSplitAtTheGivenSeparatorAlone) {
  const LabelTrainingConfig sigmoid{.loss = LabelLoss::sigmoid};
  EXPECT_EQ(summary_of({"Paris, France", "Rome"}, sigmoid).labels, (std::vector<std::string>{"Paris, France", "Rome"}));
  EXPECT_EQ(summary_of({R"(["a","b"])", "[]"}, sigmoid).labels, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(error_of([&] { summary_of({"a", ""}, sigmoid); }), "row 1: the label is empty");
  const LabelTable table(LabelKind::several, sigmoid, {"Paris, France", "Rome"});
  EXPECT_EQ(table.indices("Paris, France", "w"), std::vector<int32_t>{0});
}

TEST(LabelCounts, NameTheFirstRowThatIsNoNumberAmongDecimals) {
  EXPECT_EQ(summary_of({"0.5", "N/A", "1", "x"}).not_number, "");
  EXPECT_EQ(summary_of({"0.5", "N/A", "1"}).not_number, "row 1: \"N/A\"");
  EXPECT_EQ(summary_of({"5", "N/A", "1"}).not_number, "");
  EXPECT_EQ(summary_of({"0.5", "N/A", "1"}, {.loss = LabelLoss::softmax}).not_number, "");
}

TEST(LabelCounts, AreAtMost65536) {
  std::vector<std::string> labels, numbers;
  for (int i = 0; i <= 65536; i++) {
    labels.push_back("l" + std::to_string(i));
    numbers.push_back(std::to_string(i) + ".5");
  }
  EXPECT_EQ(error_of([&] { summary_of(labels); }), "file: must have at most 65536 different labels (has more)");
  EXPECT_EQ(summary_of(numbers).kind, LabelKind::number);
}

TEST(LabelTable, ReturnsTheIndicesOfLabels) {
  const LabelTable one(LabelKind::one, {}, {"b", "a"});
  EXPECT_EQ(one.indices(" a", "w"), std::vector<int32_t>{1});
  EXPECT_EQ(error_of([&] { one.indices("c", "w"); }), "w: the label \"c\" is not one of the training file");
  const LabelTable several(LabelKind::several, {.label_separator = ","}, {"b", "a", "c"});
  EXPECT_EQ(several.indices("c, b,", "w"), (std::vector<int32_t>{0, 2}));
  EXPECT_EQ(several.indices(R"(["a"])", "w"), std::vector<int32_t>{1});
  EXPECT_EQ(several.indices("", "w"), std::vector<int32_t>{});
}

// As compute_class_weight("balanced") of scikit-learn; with sigmoid the ratio of the rows without and with a label.
TEST(LabelWeights, AreGivenOrBalanced) {
  const std::vector<std::string> labels = {"a", "b=c"};
  const auto weights = [&](std::vector<std::string> given, LabelLoss loss) {
    return label_weights({.class_weights = std::move(given)}, loss, labels, {1, 3}, 4);
  };
  EXPECT_EQ(weights({}, LabelLoss::softmax), std::vector<float>{});
  EXPECT_EQ(weights({"balanced"}, LabelLoss::softmax), (std::vector<float>{2, 4.0f / 6}));
  EXPECT_EQ(weights({"balanced"}, LabelLoss::sigmoid), (std::vector<float>{3, 1.0f / 3}));
  EXPECT_EQ(weights({"b=c=0.25"}, LabelLoss::softmax), (std::vector<float>{1, 0.25}));
  EXPECT_EQ(weights({"a=0"}, LabelLoss::softmax), (std::vector<float>{0, 1}));
  EXPECT_EQ(error_of([&] {
              weights({"a=0", "b=c=0"}, LabelLoss::softmax);
            }),
            "training: class_weights must be above 0 for one label at least (all are 0)");
}

}  // namespace
}  // namespace qkv::testing
