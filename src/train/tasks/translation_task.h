// The task of training a translator: batches of parallel text, and BLEU on the dev text.
#pragma once

#include <string>

#include "train/tasks/evaluator.h"
#include "train/tasks/task.h"

namespace qkv {

class TranslationTask : public Task {
 public:
  // All arguments must outlive the task.
  TranslationTask(const Recipe& recipe, BatchStream& stream, const Evaluator& evaluator)
      : config_(recipe.training), stream_(stream), evaluator_(evaluator) {}

  std::string fingerprint() const override { return stream_.fingerprint(); }
  void partition(const RankPartition& partition) override;
  bool seek(const StreamPosition& position) override { return stream_.seek(position); }
  const StreamPosition& position() const override { return stream_.position(); }
  void next() override { stream_.next(batch_); }
  void skip() override { stream_.skip(); }
  void look_ahead(int64_t batches) override { stream_.look_ahead(batches); }
  double part_of_epoch() const override { return stream_.part_of_epoch(); }
  double batches_per_epoch() const override { return stream_.batches_per_epoch(); }
  std::string summary() const override { return stream_.summary(); }
  std::string epoch_summary() const override { return stream_.windows() > 1 ? stream_.epoch_summary() : ""; }

  Loss loss_and_gradient(BatchGradients& gradients, Context& c) override;
  bool in_slices() const override { return false; }
  std::string places(const StreamPosition& position, TokenSide side, std::span<const int64_t> rows) override;
  DevScore evaluate(const Transformer<float>& model, Arena& arena) override;
  Metric metric() const override { return {"BLEU"}; }
  void dry_run(BatchGradients& gradients, const Transformer<float>& candidate, Arena& arena) override;

 private:
  const TrainingConfig& config_;
  BatchStream& stream_;
  const Evaluator& evaluator_;
  RankPartition partition_;
  Batch batch_;
};

}  // namespace qkv
