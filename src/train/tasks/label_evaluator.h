// Scores a classifier on the rows for evaluation: loss without dropout, and measures of its labels, numbers or orders.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/arena.h"
#include "model/transformer.h"
#include "ranks/rank_partition.h"
#include "train/tasks/labelled_texts.h"
#include "train/tasks/task.h"

namespace qkv {

// The targets and the loss of a classifier.
struct LabelObjective {
  LabelKind kind = LabelKind::one;
  LabelLoss loss = LabelLoss::softmax;
  std::vector<float> weights = {};  // of the labels; empty: all 1

  // Returns the loss of the rows of a batch with logits z: [rows, labels], and assigns its gradient unless dz is empty.
  Loss loss_of(const LabelledBatch& batch, double smoothing, Matrix<const float> z, Matrix<float> dz) const;
};

class LabelEvaluator {
 public:
  // units: of the texts, at least one. batch_tokens: that are computed at once, but for a longer text. The texts and
  // the objective must outlive it.
  LabelEvaluator(const LabelledTexts& texts, std::vector<int64_t> units, const LabelObjective& objective,
                 int64_t batch_tokens);

  int64_t rows() const { return rows_before_.back(); }
  Metric metric() const;

  // Each rank computes some blocks of rows; all ranks return the same score.
  DevScore evaluate(const Transformer<float>& model, double smoothing, const RankPartition& partition,
                    Arena& arena) const;

 private:
  // Returns the floats of a row, the truth and then the prediction: a label each, K values, or a number.
  int64_t record_width(int64_t labels) const { return 2 * (objective_.kind == LabelKind::several ? labels : 1); }
  Loss score_block(const Transformer<float>& model, int64_t block, double smoothing, Arena& arena,
                   std::span<float> records) const;
  std::vector<EvaluationReport::Measure> measures(std::span<const float> records, int64_t labels) const;

  const LabelledTexts& texts_;
  std::vector<int64_t> units_;
  const LabelObjective& objective_;
  int64_t batch_tokens_;
  std::vector<int64_t> blocks_;       // the first unit of each block, then the number of units
  std::vector<int64_t> rows_before_;  // of each block, then all
};

}  // namespace qkv
