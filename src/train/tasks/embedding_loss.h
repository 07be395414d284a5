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

// The targets of N rows, which the loss reads next to their vectors.
struct RowTargets {
  std::vector<float> scores = {};   // [N] or empty: scaled for the loss
  std::vector<float> teacher = {};  // of distill: [columns N, d], or [N, d]
};

// A learned temperature is e^(−100 x) of its parameter x, whose gradient is that of 100 x. The size of Adam's steps
// does not depend on that of gradients, so that the learning rate of the logarithm is 100 times that of other
// parameters.
inline constexpr double kTemperatureRate = 100;

class EmbeddingLoss {
 public:
  // config: with its loss and the range of scores. width: d. normalizes: whether the run normalizes its vectors.
  EmbeddingLoss(const EmbedderConfig& config, int64_t width, bool normalizes);

  VectorLoss kind() const { return options_.kind; }
  bool needs_teacher() const { return options_.kind == VectorLoss::distill; }
  // Returns scores as the loss reads them: for cosine from 0 to 1.
  std::vector<float> scaled(std::span<const double> scores) const;

  // Returns the temperature, of the model if it learns one.
  double temperature(const Transformer<float>& model) const;

  // v: [columns N, d], as in ops/vector_loss.h. Returns the loss, of which N rows are the tokens, assigns dv, and adds
  // to the gradient of the temperature if the model has one.
  Loss loss_and_gradient(const Transformer<float>& model, Matrix<const float> v, int64_t columns,
                         const RowTargets& targets, Matrix<float> dv, Arena& arena) const;
  Loss loss(const Transformer<float>& model, Matrix<const float> v, int64_t columns, const RowTargets& targets,
            Arena& arena) const;

 private:
  TextVectors<float> texts_of(Matrix<const float> v, int64_t columns, const RowTargets& targets, Arena& arena) const;
  double log_scale(const Transformer<float>& model) const;
  void add_gradient(const Parameter<float>& s, double of_log_scale, double log_scale) const;

  VectorLossOptions options_;
  bool normalizes_;  // vectors before the loss, which cosines do by themselves
  double temperature_, score_min_, score_max_;
};

}  // namespace qkv
