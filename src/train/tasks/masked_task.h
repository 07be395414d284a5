// The task of training an encoder by masked language modelling: batches of masked text, and the perplexity of the
// masked tokens of the dev text.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "data/masked_batches.h"
#include "io/runs/run_kinds.h"
#include "qkv/encoder.h"
#include "text/text_codec.h"
#include "train/tasks/task.h"

namespace qkv {

// A vocabulary and the tokens in it that masked text has.
struct MaskedVocabulary {
  const TextCodec& codec;
  const TextEdges& edges;  // around a piece of text
  int32_t mask;
};

class MaskedTask : public Task {
 public:
  // Returns the number of batches of the first epoch.
  static int64_t batches(const EncoderRecipe& recipe, const TextEdges& edges, const TokenStream& text);

  // The texts have no tokens between documents. All arguments must outlive the task.
  MaskedTask(const EncoderRecipe& recipe, const MaskedVocabulary& vocabulary, const TokenStream& text,
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
  Metric metric() const override { return {"perplexity", false}; }
  void dry_run(BatchGradients& gradients, const Transformer<float>& candidate, Arena& arena) override;

 private:
  const EncoderRecipe& recipe_;
  const TokenStream& text_;
  RankPartition partition_;
  std::string fingerprint_;
  MaskedBatches batches_, dev_batches_;
  StreamPosition position_;
  TextBatches::Epoch epoch_;  // the current one
  Batch batch_;
};

}  // namespace qkv
