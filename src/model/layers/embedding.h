// Token embeddings scaled by √d, with positions, time gaps or token types, an optional norm, dropout, and an optional
// projection. "Attention Is All You Need", sections 3.4, 3.5 and 5.4.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "core/device.h"
#include "model/layers/context.h"
#include "model/layers/linear.h"
#include "model/layers/norm.h"
#include "model/layers/parameter.h"
#include "model/layers/position_tables.h"
#include "qkv/config.h"

namespace qkv {

// A table of vectors that are added to the tokens: time gaps in a decoder, token types in an encoder.
struct AddedTable {
  const char* name;
  int64_t rows;  // 0 means no table
};

template <class Real>
class Embedding {
 public:
  struct Saved {
    typename Norm<Real>::Saved norm;
    Matrix<const Real> x;  // [N, e], the input of the projection
  };

  // `table`: [V, e], declared by the caller because it may be shared; e is config.input_width(). `name`: "encoder" or
  // "decoder". With zero_start the token at position 0 has no embedding. The tables must outlive the layer.
  Embedding(ParameterList<Real>& list, const std::string& name, const Parameter<Real>* table, const ModelConfig& config,
            bool zero_start, AddedTable added, DropoutSites& sites, const PositionTables<Real>& positions);
  Embedding(const Embedding&) = delete;
  Embedding& operator=(const Embedding&) = delete;

  // y = dropout(norm(√d E[id] + P[position] + G[added])): [N, d], or with a projection y Wᵀ + b. ids, positions: [N];
  // added: [N], or empty without a table G.
  Matrix<Real> forward(std::span<const int32_t> ids, std::span<const int32_t> positions, std::span<const int32_t> added,
                       Context& c, Saved& s) const;

  // Overwrites `gradient`.
  void backward(Matrix<Real> gradient, std::span<const int32_t> ids, std::span<const int32_t> positions,
                std::span<const int32_t> added, Context& c, const Saved& s) const;

 private:
  void embed(std::span<const int32_t> ids, Matrix<const Real> P, std::span<const int32_t> positions,
             Matrix<Real> y) const;
  Matrix<const Real> position_table() const { return learned_ ? learned_->matrix() : fixed_; }  // [max_length, e]

  const Parameter<Real>* table_;
  const Parameter<Real>* learned_ = nullptr;  // [max_length, e], or null
  const Parameter<Real>* added_ = nullptr;    // [rows, e], or null
  Matrix<const Real> fixed_;                  // [max_length, e], if positions are not learned
  std::optional<Norm<Real>> norm_;
  std::optional<Linear<Real>> projection_;
  Arithmetic<Real> scale_;
  bool zero_start_;
  double p_;
  uint32_t site_;
};

QKV_FOR_ELEMENTS(extern template class Embedding);

}  // namespace qkv
