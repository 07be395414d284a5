// Token embeddings scaled by √d, with positions, time gaps, an optional norm, and dropout. "Attention Is All You Need",
// sections 3.4, 3.5 and 5.4.
#pragma once

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/to_size.h"
#include "layers/context.h"
#include "layers/norm.h"
#include "layers/parameter.h"
#include "ops/dropout.h"
#include "ops/embedding.h"
#include "qkv/config.h"

namespace qkv {

template <class Real>
class Embedding {
 public:
  struct Saved {
    typename Norm<Real>::Saved norm;
  };

  // `table`: [V, d], declared by the caller because it may be shared. `name`: "encoder" or "decoder".
  // `gap_buckets`: rows of the table of time gaps; 0 means none. With zero_start the token at position 0 has no
  // embedding.
  Embedding(ParameterList<Real>& list, const std::string& name, const Parameter<Real>* table, const ModelConfig& config,
            bool zero_start, int64_t gap_buckets, DropoutSites& sites)
      : table_(table),
        scale_(config.scale_embeddings ? static_cast<Real>(std::sqrt(static_cast<double>(config.d_model))) : Real(1)),
        zero_start_(zero_start),
        p_(config.dropout.residual),
        site_(sites.next()) {
    if (config.positions == Positions::learned) {
      learned_ = list.add(name + ".positions.weight", {config.max_length, config.d_model}, Init::gaussian(0.02));
    } else if (config.has_sinusoids()) {
      sinusoids_.resize(to_size(config.max_length * config.d_model));
      sinusoids_matrix_ = {sinusoids_.data(), config.max_length, config.d_model};
      sinusoidal_positions<Real>(config.positions, sinusoids_matrix_);
    } else {  // nothing is added: one row of zeros for all positions
      sinusoids_.resize(to_size(config.d_model));
      sinusoids_matrix_ = {sinusoids_.data(), config.max_length, config.d_model, 0};
    }
    // Starts as zeros, so that a bucket that does not occur in training adds nothing.
    if (gap_buckets > 0) gaps_ = list.add(name + ".gaps.weight", {gap_buckets, config.d_model}, Init::zeros());
    if (config.embedding_norm) norm_.emplace(list, name + ".embedding_norm", config.d_model, config);
  }
  Embedding(const Embedding&) = delete;
  Embedding& operator=(const Embedding&) = delete;

  // y = dropout(norm(√d E[id] + P[position] + G[gap])): [N, d]. ids, positions: [N]; gaps: [N], or empty without a
  // table of gaps.
  Matrix<Real> forward(std::span<const int32_t> ids, std::span<const int32_t> positions, std::span<const int32_t> gaps,
                       Context& c, Saved& s) const {
    const Matrix<Real> P = position_table();
    Matrix<Real> y = c.arena.matrix<Real>(static_cast<int64_t>(ids.size()), P.cols);
    embed(ids, P, positions, y);
    each_zero_start(positions, [&](int64_t n) { std::copy_n(P.row(0), P.cols, y.row(n)); });
    if (gaps_) add_embedding<Real>(gaps_->matrix(), gaps, y);
    if (norm_) y = norm_->forward(y, c, s.norm);
    if (!c.dropout(p_, site_).active()) return y;
    // The norm's backward needs only its input, so dropout may overwrite its result.
    dropout<Real>(y, c.dropout(p_, site_), y);
    return y;
  }

  // Overwrites `gradient`.
  void backward(Matrix<Real> gradient, std::span<const int32_t> ids, std::span<const int32_t> positions,
                std::span<const int32_t> gaps, Context& c, const Saved& s) const {
    if (c.dropout(p_, site_).active()) dropout<Real>(gradient, c.dropout(p_, site_), gradient);
    if (norm_) norm_->backward(gradient, c, s.norm);
    if (gaps_) embedding_backward<Real>(gradient, gaps, Real(1), gaps_->gradient_matrix());
    if (learned_) embedding_backward<Real>(gradient, positions, Real(1), learned_->gradient_matrix());
    each_zero_start(positions, [&](int64_t n) { std::fill_n(gradient.row(n), gradient.cols, Real(0)); });
    embedding_backward<Real>(gradient, ids, scale_, table_->gradient_matrix());
  }

 private:
  void embed(std::span<const int32_t> ids, Matrix<const Real> P, std::span<const int32_t> positions,
             Matrix<Real> y) const {
    if constexpr (std::is_same_v<Real, float>)
      if (table_->int8.values.data) return embedding(table_->int8, ids, scale_, P, positions, y);
    embedding<Real>(table_->matrix(), ids, scale_, P, positions, y);
  }
  Matrix<Real> position_table() const { return learned_ ? learned_->matrix() : sinusoids_matrix_; }  // [max_length, d]

  // Calls f(n) for each token n without an embedding.
  template <class F>
  void each_zero_start(std::span<const int32_t> positions, F&& f) const {
    if (!zero_start_) return;
    for (size_t n = 0; n < positions.size(); n++)
      if (positions[n] == 0) f(static_cast<int64_t>(n));
  }

  const Parameter<Real>* table_;
  const Parameter<Real>* learned_ = nullptr;  // [max_length, d], or null
  const Parameter<Real>* gaps_ = nullptr;     // [gap_buckets, d], or null
  std::vector<Real> sinusoids_;
  Matrix<Real> sinusoids_matrix_;  // [max_length, d]; empty if positions are learned
  std::optional<Norm<Real>> norm_;
  Real scale_;
  bool zero_start_;
  double p_;
  uint32_t site_;
};

}  // namespace qkv
