// The table of a step: its ids, and a loss and gradients that equal those of the whole model.
#include "train/optimizer/step_table.h"

#include <gtest/gtest.h>

#include "model/layers/sampled_loss.h"
#include "tests/support/recommenders.h"

namespace qkv {
namespace {

constexpr int64_t kTableRows = 50;

TEST(StepTable, NumbersItemsInTheOrderOfTheirFirstOccurrence) {
  StepTable table(testing::item_config(kTableRows), {}, 10);
  for (int repeat = 0; repeat < 2; repeat++) {
    std::vector<int32_t> first = {7, 7, 3}, second = {9, 3, 49};
    table.clear();
    table.replace(first), table.replace(second);
    EXPECT_EQ(first, (std::vector<int32_t>{0, 0, 1}));
    EXPECT_EQ(second, (std::vector<int32_t>{2, 1, 3}));
    EXPECT_EQ(std::vector(table.items().begin(), table.items().end()), (std::vector<int32_t>{7, 3, 9, 49}));
  }
}

TEST(StepTable, GivesTheLossAndTheGradientsOfTheModel) {
  Transformer<float> model(testing::item_config(kTableRows));
  model.parameters().allocate_gradients();
  testing::randomize(model.parameters(), 1);
  std::vector<int32_t> negatives = {0, 3, 3, 17, 40};
  const std::vector<float> log_draws(negatives.size(), 0.5f);
  Batch batch;
  batch.target.append(std::vector<int32_t>{9, 3, 12});
  batch.target.append(std::vector<int32_t>{40, 9});
  batch.labels = {3, 12, 17, 9, 49};

  Arena arena;
  const auto loss_and_gradient = [&](const Transformer<float>& m) {
    Context c{arena, true, 1};
    const auto loss_of = [&](Matrix<const float> h, Matrix<float> dh) {
      return shared_loss_and_gradient<float>(m.output().weight(), h, batch.labels, {negatives, log_draws},
                                             {ItemLoss::sampled_softmax}, dh, c);
    };
    return m.loss_and_gradient(batch, loss_of, c).loss;
  };
  const double loss = loss_and_gradient(model);
  const Matrix<float> dE = model.item_table().gradient_matrix();

  StepTable table(model.config(), {}, 30);
  for (int step = 0; step < 2; step++) {  // gradients start at zero each time
    const std::vector<int32_t> ids = negatives;
    const Batch whole = batch;
    table.clear();
    for (std::vector<int32_t>* part : {&negatives, &batch.target.ids, &batch.labels}) table.replace(*part);
    EXPECT_EQ(loss_and_gradient(table.gather(model)), loss);
    negatives = ids;
    batch = whole;
  }
  const RowGradients found = table.gradients();
  ASSERT_EQ(found.rows.size(), 7u);
  double all = 0, kept = 0;
  for (int64_t v = 0; v < kTableRows; v++)
    for (int64_t j = 0; j < dE.cols; j++) all += std::abs(dE(v, j));
  for (int64_t i = 0; i < std::ssize(found.rows); i++)
    for (int64_t j = 0; j < dE.cols; j++) {
      EXPECT_EQ(found.table(i, j), dE(found.rows[to_size(i)], j)) << "row " << i;
      kept += std::abs(found.table(i, j));
    }
  EXPECT_DOUBLE_EQ(kept, all);  // no other row has a gradient
  const std::span<float> others = model.parameters().gradients().subspan(to_size(model.item_table().size()));
  EXPECT_TRUE(std::ranges::equal(found.others, others));
}

}  // namespace
}  // namespace qkv
