// A low-rank update of a linear layer: y = x Wᵀ + b + s (x Aᵀ) Bᵀ. Only A and B are trained. Hu et al., "LoRA: Low-Rank
// Adaptation of Large Language Models" (2021).
#pragma once

#include "core/device.h"
#include "qkv/bfloat16.h"
#include "qkv/matrix.h"

namespace qkv {

struct Context;  // model/layers/context.h
template <class Real>
struct Parameter;  // model/layers/parameter.h

template <class Real>
struct LowRank {
  int64_t begin = 0, end = 0;          // the outputs of the layer that it changes
  const Parameter<Real>* A = nullptr;  // [r, in]
  const Parameter<Real>* B = nullptr;  // [end − begin, r]
  Arithmetic<Real> scale = 1;          // s

  // Adds s (x Aᵀ) B'ᵀ to y: [N, outputs], whose first column is output `first` of the layer. B' holds the rows of B for
  // the outputs of y.
  void add(Matrix<const Real> x, Matrix<Real> y, int64_t first, Context& c) const;
  // Adds to the gradients of A and B and to dx: [N, in]. dy has the columns of y.
  void backward(Matrix<const Real> x, Matrix<const Real> dy, Matrix<Real> dx, int64_t first, Context& c) const;

 private:
  struct Part;
  Part part(int64_t first, int64_t outputs) const;
  Matrix<Real> project(Matrix<const Real> x, Context& c) const;
};

QKV_FOR_ELEMENTS(extern template struct LowRank);

}  // namespace qkv
