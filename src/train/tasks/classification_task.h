// The task of training a classifier or a cross-encoder: batches of labelled texts, the losses of their logits, and
// scores on the rows for evaluation.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/to_size.h"
#include "qkv/classifier_training.h"
#include "train/tasks/label_evaluator.h"
#include "train/tasks/labelled_texts.h"
#include "train/tasks/task.h"

namespace qkv {

// Units of the rows of a file.
struct LabelledPart {
  const LabelledTexts* texts = nullptr;
  std::vector<int64_t> units = {};

  int64_t rows() const;
  std::string fingerprint() const;  // identifies the units
};

class ClassificationTask : public Task {
 public:
  // Returns the number of batches of the first epoch.
  static int64_t batches(const ClassifierRecipe& recipe, const LabelledPart& train);

  // All arguments must outlive the task.
  ClassificationTask(const ClassifierRecipe& recipe, const LabelledPart& train, const LabelledPart& dev,
                     const LabelObjective& objective);

  std::string fingerprint() const override { return fingerprint_; }
  void partition(const RankPartition& partition) override { partition_ = partition; }
  bool seek(const StreamPosition& position) override;
  const StreamPosition& position() const override { return position_; }
  void next() override;
  void skip() override;
  double part_of_epoch() const override { return static_cast<double>(position_.batch) / batches_per_epoch(); }
  double batches_per_epoch() const override { return static_cast<double>(epoch_.batches()); }
  std::string summary() const override;

  Loss loss_and_gradient(BatchGradients& gradients, Context& c) override;
  std::string places(const StreamPosition& position, TokenSide side, std::span<const int64_t> rows) override;
  DevScore evaluate(const Transformer<float>& model, Arena& arena) override;
  Metric metric() const override { return evaluator_.metric(); }
  void dry_run(BatchGradients& gradients, const Transformer<float>& candidate, Arena& arena) override;
  size_t data_bytes() const override;

 private:
  // The units of an epoch in their order, divided into batches.
  struct Epoch {
    int64_t number = -1;
    std::vector<int64_t> units = {};
    std::vector<int64_t> offsets = {0};  // batch b holds units offsets[b] … offsets[b + 1] − 1

    int64_t batches() const { return static_cast<int64_t>(offsets.size()) - 1; }
    std::span<const int64_t> batch(int64_t b) const {
      return std::span(units).subspan(to_size(offsets[to_size(b)]),
                                      to_size(offsets[to_size(b + 1)] - offsets[to_size(b)]));
    }
  };
  static Epoch shuffled(const ClassifierRecipe& recipe, const LabelledPart& train, int64_t epoch);

  const ClassifierRecipe& recipe_;
  const LabelledPart& train_;
  const LabelObjective& objective_;
  LabelEvaluator evaluator_;
  int64_t longest_;  // tokens of a row of both parts
  RankPartition partition_;
  std::string fingerprint_;
  StreamPosition position_;
  Epoch epoch_;  // the current one
  LabelledBatch batch_;
};

}  // namespace qkv
