// Allocations in a training step.
#include <gtest/gtest.h>

#include <optional>

#include "qkv/train.h"
#include "tests/allocation/malloc.h"
#include "tests/support/kernels.h"
#include "tests/support/models.h"
#include "train/optimizer/optimizer_state.h"
#include "train/tasks/objective.h"

namespace qkv {
namespace {

using testing::allocations_of;

TEST(Allocations, AreCounted) {
  std::vector<int> v;
  EXPECT_EQ(allocations_of([&] { v.reserve(100); }), 1);
  EXPECT_EQ(allocations_of([&] { v.reserve(100); }), 0);
}

// The state of training, without the data.
class Training {
 public:
  explicit Training(const Recipe& recipe) : recipe_(recipe), model_(recipe.model) {
    model_.parameters().allocate_gradients();
    model_.parameters().initialize(1);
    optimizer_.emplace(recipe_.training, model_.parameters());
  }

  void step(const Batch& batch) {
    Context context{arena_, true, 1, static_cast<uint32_t>(++step_)};
    const Loss loss = model_.loss_and_gradient(batch, objective_of(recipe_.training), context);
    optimizer_->update(step_, loss.tokens);
  }
  size_t activation_bytes() const { return arena_.high_water(); }

 private:
  Recipe recipe_;
  Transformer<float> model_;
  std::optional<OptimizerState> optimizer_;
  Arena arena_;
  int64_t step_ = 0;
};

TEST(Step, OfPresetTinyAllocatesNothingAfterTheFirst) {
  TranslationRecipe recipe = translation_preset("tiny");
  recipe.model.source_vocab = recipe.model.target_vocab = recipe.text.vocab_size;
  std::vector<Batch> batches;
  for (const std::vector<int64_t>& lengths :
       {std::vector<int64_t>{40, 35, 30, 25, 20}, {40, 3, 17}, {5, 5, 5, 5, 5, 5}})
    batches.push_back(testing::random_batch(recipe.model, lengths, lengths, 1));
  for (const int threads : {1, 2}) {
    testing::with_threads(threads, [&] {
      Training training(recipe);
      training.step(batches.front());  // the largest; oneDNN creates its kernels, and threads start
      const size_t bytes = training.activation_bytes();
      for (size_t i = 0; i < batches.size(); i++)
        EXPECT_EQ(allocations_of([&] { training.step(batches[i]); }), 0) << "batch " << i << ", threads " << threads;
      EXPECT_EQ(training.activation_bytes(), bytes);
      return 0;
    });
  }
}

}  // namespace
}  // namespace qkv
