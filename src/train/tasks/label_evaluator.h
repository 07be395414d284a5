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

// What a classifier is trained to predict.
struct LabelGoal {
  LabelKind kind = LabelKind::one;
  LabelLoss loss = LabelLoss::softmax;
  std::vector<float> weights = {};  // of the labels; empty: all 1

  // Returns the loss of the rows of a batch with logits z: [rows, labels], and assigns its gradient unless dz is empty.
  Loss loss_of(const LabelledBatch& batch, double smoothing, Matrix<const float> z, Matrix<float> dz) const;
};

class LabelEvaluator {
 public:
  // units: of the texts, at least one. batch_tokens: that are computed at once, but for a longer text. The texts and
  // the goal must outlive it.
  LabelEvaluator(const LabelledTexts& texts, std::vector<int64_t> units, const LabelGoal& goal, int64_t batch_tokens);

  int64_t rows() const { return rows_before_.back(); }
  Metric metric() const;

  // Blocks of rows are dealt out to ranks, which all get the score.
  DevScore evaluate(const Transformer<float>& model, double smoothing, const RankPartition& partition,
                    Arena& arena) const;

 private:
  // Of each row what is true and what is predicted, as floats: a label, K values, or a number.
  int64_t record_width(int64_t labels) const { return 2 * (goal_.kind == LabelKind::several ? labels : 1); }
  Loss score_block(const Transformer<float>& model, int64_t block, double smoothing, Arena& arena,
                   std::span<float> records) const;
  void add_measures(std::span<const float> records, int64_t labels, DevScore& score) const;

  const LabelledTexts& texts_;
  std::vector<int64_t> units_;
  const LabelGoal& goal_;
  int64_t batch_tokens_;
  std::vector<int64_t> blocks_;       // the first unit of each block, then the number of units
  std::vector<int64_t> rows_before_;  // of each block, then all
};

// Computes the outputs of the text head for all sequences of a batch, [sequences, K], at most `tokens` tokens at once
// but for a longer sequence.
void text_outputs_in_parts(const Transformer<float>& model, const Batch& batch, int64_t tokens, Arena& arena,
                           Matrix<float> outputs);

}  // namespace qkv
