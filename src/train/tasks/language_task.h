// The task of training a language model: batches of text, and bits per byte on the dev text.
#pragma once

#include <string>

#include "data/text_batches.h"
#include "io/runs/run_kinds.h"
#include "qkv/language.h"
#include "text/text_codec.h"
#include "train/tasks/task.h"

namespace qkv {

class LanguageTask : public Task {
 public:
  // Returns the number of batches of the first epoch.
  static int64_t batches(const LanguageRecipe& recipe, const TokenStream& text);

  // All arguments must outlive the task.
  LanguageTask(const LanguageRecipe& recipe, const TextCodec& codec, const TextEnds& ends, const TokenStream& text,
               const TokenStream& dev);

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
  Metric metric() const override { return {"bits/byte", false}; }
  std::string sample(const Transformer<float>& model, Arena& arena) override;
  void dry_run(BatchGradients& gradients, const Transformer<float>& candidate, Arena& arena) override;

 private:
  // Returns the file and the line of each token of the text; `tokens` increase.
  std::vector<TextPlace> places_of(std::span<const int64_t> tokens) const;

  const LanguageRecipe& recipe_;
  const TextCodec& codec_;
  const TextEnds& ends_;
  const TokenStream &text_, &dev_;
  RankPartition partition_;
  std::string fingerprint_;
  TextBatches batches_, dev_batches_;
  StreamPosition position_;
  TextBatches::Epoch epoch_;  // the current one
  Batch batch_;
};

}  // namespace qkv
