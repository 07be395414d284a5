// Token embeddings scaled by √d, with sinusoidal positions and dropout: sections 3.4, 3.5 and 5.4 of the paper.
#pragma once

#include <cmath>
#include <span>
#include <string>
#include <vector>

#include "layers/context.h"
#include "layers/parameter.h"
#include "ops/dropout.h"
#include "ops/embedding.h"
#include "qkv/config.h"

namespace qkv {

template <class Real>
class Embedding {
 public:
  // `table`: [V, d], declared by the caller, for it may be shared.
  Embedding(const Parameter<Real>* table, const ModelConfig& config, DropoutSites& sites)
      : table_(table),
        scale_(static_cast<Real>(std::sqrt(static_cast<double>(config.d_model)))),
        positions_(static_cast<size_t>(config.max_length * config.d_model)),
        P_(positions_.data(), config.max_length, config.d_model),
        p_(config.dropout),
        site_(sites.next()) {
    sinusoidal_positions<Real>(P_);
  }
  Embedding(const Embedding&) = delete;
  Embedding& operator=(const Embedding&) = delete;

  // ids, positions: [N] -> dropout(√d E[id] + P[position]): [N, d]
  Matrix<Real> forward(std::span<const int32_t> ids, std::span<const int32_t> positions, Context& c) const {
    const Matrix<Real> y = c.arena.matrix<Real>(static_cast<int64_t>(ids.size()), P_.cols);
    embedding<Real>(table_->matrix(), ids, scale_, P_, positions, y);
    if (c.dropout(p_, site_).active()) dropout<Real>(y, c.dropout(p_, site_), y);
    return y;
  }

  void backward(Matrix<Real> gradient, std::span<const int32_t> ids, Context& c) const {
    if (c.dropout(p_, site_).active()) dropout<Real>(gradient, c.dropout(p_, site_), gradient);
    embedding_backward<Real>(gradient, ids, scale_, table_->gradient_matrix());
  }

 private:
  const Parameter<Real>* table_;
  Real scale_;
  std::vector<Real> positions_;
  Matrix<Real> P_;  // [max_length, d]
  double p_;
  uint32_t site_;
};

}  // namespace qkv
