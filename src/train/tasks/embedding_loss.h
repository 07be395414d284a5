// The loss of an embedder, as its configuration states it, for the vectors of some rows.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/arena.h"
#include "model/layers/output.h"
#include "model/transformer.h"
#include "ops/vector_loss.h"
#include "qkv/embedder_training.h"

namespace qkv {

// What the loss reads of N rows, next to their vectors.
struct RowTargets {
  std::vector<float> scores = {};   // [N] or empty: scaled for the loss
  std::vector<float> teacher = {};  // of distill: [columns N, d], or [N, d]
};

class EmbeddingLoss {
 public:
  // config: with its loss and the range of scores. width: d. normalizes: whether the run normalizes its vectors.
  EmbeddingLoss(const EmbedderConfig& config, int64_t width, bool normalizes);

  VectorLoss kind() const { return options_.kind; }
  bool needs_teacher() const { return options_.kind == VectorLoss::distill; }
  // Returns scores as the loss reads them: for cosine from 0 to 1.
  std::vector<float> scaled(std::span<const double> scores) const;

  // v: [columns N, d], as in ops/vector_loss.h. Returns the loss, of which N rows are the tokens, assigns dv, and adds
  // to the gradient of the temperature if the model has one.
  Loss loss_and_gradient(const Transformer<float>& model, Matrix<const float> v, int64_t columns,
                         const RowTargets& targets, Matrix<float> dv, Arena& arena) const;
  Loss loss(const Transformer<float>& model, Matrix<const float> v, int64_t columns, const RowTargets& targets,
            Arena& arena) const;

 private:
  TextVectors<float> texts_of(Matrix<const float> v, int64_t columns, const RowTargets& targets, Arena& arena) const;
  double log_scale(const Transformer<float>& model) const;

  VectorLossOptions options_;
  bool normalizes_;  // vectors before the loss, which cosines do by themselves
  double temperature_, score_min_, score_max_;
};

}  // namespace qkv
