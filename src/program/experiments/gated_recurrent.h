// A gated recurrent network (GRU) with its gradient by backpropagation through time, for comparisons. Cho et al.,
// "Learning Phrase Representations using RNN Encoder–Decoder for Statistical Machine Translation" (2014), with the
// reset gate after the product, as in PyTorch:
//   r = σ(W_r x + U_r h), z = σ(W_z x + U_z h), n = tanh(W_n x + r ∘ (U_n h)), h' = (1 − z) ∘ n + z ∘ h
// with a bias in each product.
#pragma once

#include <string>

#include "model/layers/context.h"
#include "model/layers/linear.h"
#include "model/layers/parameter.h"

namespace qkv {

template <class Real>
class GatedRecurrent {
 public:
  // Rows are ordered by time, then by sequence: row t B + b.
  struct Saved {
    Matrix<const Real> x;   // [T B, in]
    Matrix<Real> of_x;      // [T B, 3h]: products with x for r, z and n
    Matrix<Real> of_h;      // [T B, 3h]: products with the state before
    Matrix<Real> gates;     // [T B, 3h]: r, z and n
    Matrix<Real> states;    // [(T + 1) B, h]; the first is zero
    int64_t sequences = 0;  // B
  };

  GatedRecurrent(ParameterList<Real>& list, const std::string& name, int64_t in, int64_t width);

  // Returns the states, [T B, h], after each token.
  Matrix<Real> forward(Matrix<const Real> x, int64_t sequences, Context& c, Saved& s) const;
  // Assigns dx: [T B, in], given the gradient of the states: [T B, h]. Adds to the gradients of the parameters.
  void backward(Matrix<const Real> dstates, Matrix<Real> dx, Context& c, const Saved& s) const;

 private:
  int64_t width_;
  Linear<Real> input_, recurrent_;
};

extern template class GatedRecurrent<float>;
extern template class GatedRecurrent<double>;

}  // namespace qkv
