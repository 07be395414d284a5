// The task of training an embedder: batches of rows of texts, their loss, and the quality of vectors of dev rows.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "io/runs/run_kinds.h"
#include "qkv/embedder_training.h"
#include "train/evaluation/embedding_scores.h"
#include "train/tasks/embedding_loss.h"
#include "train/tasks/task.h"
#include "train/tasks/teacher.h"
#include "train/tasks/text_rows.h"

namespace qkv {

// The data of a task, which must outlive it.
struct EmbeddingData {
  const EncoderRun& run;  // without weights: its tokenizer and the tokens around a text
  const TextRows &train, &dev;
  const Teacher* teacher;    // null without one
  std::string teacher_hash;  // "" without one
  int64_t width;             // d, components of a vector
  int64_t max_length;        // tokens of a text
  int64_t longest;           // tokens of the longest text of either
};

class EmbeddingTask : public Task {
 public:
  // Returns the number of batches of an epoch.
  static int64_t batches(const EmbedderRecipe& recipe, const TextRows& train);

  // recipe: resolved; must outlive the task.
  EmbeddingTask(const EmbedderRecipe& recipe, const EmbeddingData& data);

  std::string fingerprint() const override;
  void partition(const RankPartition& partition) override { partition_ = partition; }
  bool seek(const StreamPosition& position) override;
  const StreamPosition& position() const override { return position_; }
  void next() override;
  void skip() override;
  double part_of_epoch() const override { return static_cast<double>(position_.batch) / batches_per_epoch(); }
  double batches_per_epoch() const override { return static_cast<double>(batches(recipe_, data_.train)); }
  std::string summary() const override;
  std::string epoch_summary() const override;

  Loss loss_and_gradient(BatchGradients& gradients, Context& c) override;
  bool in_slices() const override { return false; }
  std::string places(const StreamPosition& position, TokenSide side, std::span<const int64_t> rows) override;
  DevScore evaluate(const Transformer<float>& model, Arena& arena) override;
  Metric metric() const override { return dev_.metric(); }
  void dry_run(BatchGradients& gradients, const Transformer<float>& candidate, Arena& arena) override;
  size_t data_bytes() const override;

 private:
  // The tokens and targets of N rows. A row of one text has it twice if the loss is info_nce.
  struct Examples {
    std::vector<std::vector<int32_t>> ids = {};  // column j of row i is ids[j N + i]
    RowTargets targets = {};
  };

  std::vector<int64_t> rows_of(std::span<const int64_t> order, int64_t batch) const;
  double share_dropped() const;
  Examples examples_of(const TextRows& of, const RowTexts& rows) const;
  std::vector<float> teacher_vectors(const RowTexts& rows) const;
  void fill_texts(const std::vector<std::vector<int32_t>>& ids, Batch& batch) const;
  bool drops_rows() const;
  int64_t columns() const { return doubles_texts_ ? 2 : data_.train.columns().texts; }
  void read_dev();
  void embed(const Transformer<float>& model, int64_t first, Arena& arena, Matrix<float> v) const;
  void dry_run_evaluation(const Transformer<float>& candidate, Arena& arena);
  std::vector<float> dev_vectors(const Transformer<float>& model, Arena& arena) const;
  Loss dev_loss(const Transformer<float>& model, Matrix<const float> vectors, Arena& arena) const;

  const EmbedderRecipe& recipe_;
  EmbeddingData data_;
  bool normalizes_;
  EmbeddingLoss loss_, dev_loss_;
  bool doubles_texts_;  // each text is computed twice, to be its own positive
  RankPartition partition_;
  DevRows dev_;
  Examples dev_examples_;
  StreamPosition position_;
  // Rows that this process has read in an epoch, and those of them that it has dropped.
  struct RowCounts {
    int64_t read = 0, dropped = 0;
  };
  RowCounts counts_, previous_;
  std::vector<int64_t> order_;  // of the rows in the current epoch
  Batch batch_;
  RowTargets targets_;  // of the current batch
};

}  // namespace qkv
