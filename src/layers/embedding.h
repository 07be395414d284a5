// Token embeddings scaled by √d, with positions, time gaps, an optional norm, and dropout. "Attention Is All You Need",
// sections 3.4, 3.5 and 5.4.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "layers/context.h"
#include "layers/norm.h"
#include "layers/parameter.h"
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
            bool zero_start, int64_t gap_buckets, DropoutSites& sites);
  Embedding(const Embedding&) = delete;
  Embedding& operator=(const Embedding&) = delete;

  // y = dropout(norm(√d E[id] + P[position] + G[gap])): [N, d]. ids, positions: [N]; gaps: [N], or empty without a
  // table of gaps.
  Matrix<Real> forward(std::span<const int32_t> ids, std::span<const int32_t> positions, std::span<const int32_t> gaps,
                       Context& c, Saved& s) const;

  // Overwrites `gradient`.
  void backward(Matrix<Real> gradient, std::span<const int32_t> ids, std::span<const int32_t> positions,
                std::span<const int32_t> gaps, Context& c, const Saved& s) const;

 private:
  void embed(std::span<const int32_t> ids, Matrix<const Real> P, std::span<const int32_t> positions,
             Matrix<Real> y) const;
  Matrix<Real> position_table() const { return learned_ ? learned_->matrix() : sinusoids_matrix_; }  // [max_length, d]
  // Assigns `row` to the rows of the tokens without an embedding, or zeros if it is null.
  void assign_zero_starts(std::span<const int32_t> positions, const Real* row, Matrix<Real> y) const;

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

extern template class Embedding<float>;
extern template class Embedding<double>;

}  // namespace qkv
