// The work on each block of the result of a matrix product, while the block is in the cache: the activation that
// follows a linear layer, the gradient of the one before it, or the softcap of logits.
#pragma once

#include "qkv/bfloat16.h"
#include "qkv/config.h"
#include "qkv/dropout.h"
#include "qkv/matrix.h"

namespace qkv {

template <class Real>
class Epilogue {
 public:
  enum class Kind { none, activation, activation_backward, softcap };

  Epilogue() = default;  // nothing

  // y = dropout(φ(result)), as ops/activation.h defines it; y may be the result.
  static Epilogue activation(Activation kind, const Dropout& drop, Matrix<Real> y) {
    Epilogue e(Kind::activation);
    e.activation_ = kind, e.drop_ = drop, e.y_ = y;
    return e;
  }
  // result = φ'(x) ∘ dropout(result). x: as in activation_backward.
  static Epilogue activation_backward(Activation kind, const Dropout& drop, Matrix<const Real> x) {
    Epilogue e(Kind::activation_backward);
    e.activation_ = kind, e.drop_ = drop, e.x_ = x;
    return e;
  }
  // result = cap tanh(result / cap)
  static Epilogue softcap(Arithmetic<Real> cap) {
    Epilogue e(Kind::softcap);
    e.cap_ = cap;
    return e;
  }

  explicit operator bool() const { return kind_ != Kind::none; }

  // Its parts, for the ops of a device.
  Kind kind() const { return kind_; }
  Activation function() const { return activation_; }
  const Dropout& drop() const { return drop_; }
  Matrix<const Real> x() const { return x_; }
  Matrix<Real> y() const { return y_; }
  Arithmetic<Real> cap() const { return cap_; }

  // Applies the epilogue to a block of the result that is complete, on the calling thread. Blocks begin at columns that
  // are multiples of 128.
  void apply(Matrix<Real> result, const Block& block) const;

 private:
  explicit Epilogue(Kind kind) : kind_(kind) {}

  Kind kind_ = Kind::none;
  Activation activation_ = {};
  Dropout drop_ = {};
  Matrix<const Real> x_;
  Matrix<Real> y_;
  Arithmetic<Real> cap_ = 0;
};

// Applies an epilogue to a whole result, on all threads.
template <class Real>
void apply(const Epilogue<Real>& epilogue, Matrix<Real> result);

}  // namespace qkv
