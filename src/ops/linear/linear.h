// Linear layer: Y = X Wᵀ + b. Products of narrow rows or few weights are ours, others oneDNN's; all are cut into blocks
// whose size does not depend on the number of threads, so that neither does the result.
#pragma once

#include "core/arena.h"
#include "core/function_ref.h"
#include "core/matrix.h"

namespace qkv {

// Called for every block of a result as soon as it is there, on the thread that made it. Blocks begin at columns that
// are multiples of 128.
using AfterBlock = FunctionRef<void(const Block&)>;

// X: [N, in], W: [out, in], b: [out] or null, Y: [N, out]; Y is assigned and overlaps none of the others.
template <class Real>
void linear(Matrix<const Real> X, Matrix<const Real> W, const Real* b, Matrix<Real> Y, Arena& scratch,
            AfterBlock after = {});

// Where the gradients go: dX is assigned, or added to when `accumulate`; the others are added to.
template <class Real>
struct LinearGradients {
  Matrix<Real> dX;     // [N, in]:   dX = dY W
  Matrix<Real> dW;     // [out, in]: dW += dYᵀ X
  Real* db = nullptr;  // [out], or null: db += Σ_n dY_n
  bool accumulate = false;
  AfterBlock after_dX = {};
};

// dY: [N, out]. No gradient overlaps another matrix.
template <class Real>
void linear_backward(Matrix<const Real> X, Matrix<const Real> W, Matrix<const Real> dY,
                     const LinearGradients<Real>& gradients, Arena& scratch);

}  // namespace qkv
