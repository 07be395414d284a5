// Linear layer (fully connected layer): Y = X Wᵀ + b, and its gradients. Products with narrow rows or few weights use
// our own kernels, all others oneDNN. The work is divided into blocks whose size does not depend on the number of
// threads, so the result does not depend on it either.
#pragma once

#include "core/arena.h"
#include "ops/epilogue.h"
#include "qkv/matrix.h"

namespace qkv {

// Y = X Wᵀ + b. X: [N, in]; W: [out, in]; b: [out] or null; Y: [N, out]. Y is assigned and must not overlap another
// matrix.
template <class Real>
void linear(Matrix<const Real> X, Matrix<const Real> W, const Real* b, Matrix<Real> Y, Arena& scratch,
            const Epilogue<Real>& epilogue = {});

// Outputs of linear_backward. dX is assigned, or added to if `accumulate` is set; dW and db are added to. Without data,
// dW is not computed.
template <class Real>
struct LinearGradients {
  Matrix<Real> dX;                // [N, in]:   dX = dY W
  Matrix<Statistic<Real>> dW;     // [out, in]: dW += dYᵀ X
  Statistic<Real>* db = nullptr;  // [out], or null: db += Σ_n dY_n
  bool accumulate = false;
  Epilogue<Real> epilogue = {};  // of dX
};

// Computes the gradients from dY: [N, out]. No gradient may overlap another matrix.
template <class Real>
void linear_backward(Matrix<const Real> X, Matrix<const Real> W, Matrix<const Real> dY,
                     const LinearGradients<Real>& gradients, Arena& scratch);

}  // namespace qkv
