// The output layer: a linear map to the vocabulary with softmax and label-smoothed cross-entropy. Rows are processed in
// blocks, and in training a block's gradient follows its loss, so that the logits of all tokens never exist at once.
#pragma once

#include <cstdint>
#include <span>

#include "core/device.h"
#include "model/layers/context.h"
#include "model/layers/parameter.h"

namespace qkv {

struct TopKLogits;                                               // ops/top_k_logits.h
using HiddenTokens = std::span<const std::span<const int32_t>>;  // of each row, in increasing order; or empty
struct NextTokens;                                               // ops/next_tokens.h
struct LogitChanges;                                             // ops/logit_ranks.h
struct LogitRanks;                                               // ops/logit_ranks.h

// Sums over tokens, in nats. `loss` is label-smoothed, `nll` is not; perplexity = exp(nll / tokens).
struct Loss {
  double loss = 0, nll = 0;
  int64_t tokens = 0;
  double gradient_squares = 0;  // of shards: Σ |gradient|² / tokens (train/loop/noise_scale.h)

  Loss& operator+=(const Loss& other) {
    loss += other.loss;
    nll += other.nll;
    tokens += other.tokens;
    gradient_squares += other.gradient_squares;
    return *this;
  }
};

// The loss that training minimizes, per token.
struct Objective {
  double label_smoothing = 0;
  double r_drop = 0;  // α, weight of the divergence between two passes with different dropout masks
                      // (ops/r_drop.h); 0 means one pass
};

template <class Real>
class Output {
 public:
  // `weight`: [V, d], which may be the target embeddings; `bias`: [V] or null; `cap`: the softcap of logits, or 0.
  Output(const Parameter<Real>* weight, const Parameter<Real>* bias, Arithmetic<Real> cap = 0)
      : weight_(weight), bias_(bias), cap_(cap) {}

  const Parameter<Real>& weight() const { return *weight_; }
  const Real* bias() const { return bias_ ? bias_->value : nullptr; }
  Arithmetic<Real> cap() const { return cap_; }

  // Returns the logits cap(h Wᵀ + b); h: [N, d] -> [N, V]. For decoding.
  Matrix<Real> logits(Matrix<const Real> h, Context& c) const;
  void logits_into(Matrix<const Real> h, Matrix<Real> y, Context& c) const;  // y: [N, V], assigned
  // Returns the k largest logits of each row without the tokens in `hidden` (ascending), and the log-sum-exp of all.
  // For float.
  NextTokens next(Matrix<const Real> h, std::span<const int32_t> hidden, int64_t k, Context& c) const;

  // The next three are for recommenders, whose logits have no softcap.
  // Returns the k largest logits of each row, [N, k], without the tokens hidden in that row. For float.
  TopKLogits best(Matrix<const Real> h, HiddenTokens hidden, int64_t k, Context& c) const;
  // Ranks given logits among those of each row, and keeps the largest, as logit_ranks does. For float.
  void ranks(Matrix<const Real> h, const LogitChanges& changes, const LogitRanks& ranks, Context& c) const;
  // Assigns the logits of the given tokens, with the bits of best(), to y: [N, tokens]. For float.
  void chosen(Matrix<const Real> h, std::span<const int32_t> tokens, Matrix<Real> y, Context& c) const;

  // Returns the loss; h: [N, d], labels: [N].
  Loss loss(Matrix<const Real> h, std::span<const int32_t> labels, double smoothing, Context& c) const;
  // Also assigns the gradient of the sum to dh: [N, d] and adds it to the gradients of the parameters.
  Loss loss_and_gradient(Matrix<const Real> h, std::span<const int32_t> labels, double smoothing, Matrix<Real> dh,
                         Context& c) const;
  // The loss of R-Drop of two passes over the same tokens, with hidden states h and `other`.
  Loss r_drop_and_gradient(Matrix<const Real> h, Matrix<const Real> other, std::span<const int32_t> labels,
                           Objective objective, Matrix<Real> dh, Matrix<Real> dother, Context& c) const;

 private:
  // Returns a copy of the logits for backward, which needs them if they are capped.
  Matrix<const Real> keep_capped(Matrix<const Real> logits, Context& c) const;
  // Overwrites dlogits. The rows are those of the tokens from `first` on.
  void backward(Matrix<const Real> h, Matrix<const Real> capped, Matrix<Real> dlogits, Matrix<Real> dh, Context& c,
                int64_t first) const;

  const Parameter<Real>*weight_, *bias_;
  Arithmetic<Real> cap_;
};

template <>
NextTokens Output<float>::next(Matrix<const float> h, std::span<const int32_t> hidden, int64_t k, Context& c) const;
template <>
TopKLogits Output<float>::best(Matrix<const float> h, HiddenTokens hidden, int64_t k, Context& c) const;
template <>
void Output<float>::ranks(Matrix<const float> h, const LogitChanges& changes, const LogitRanks& ranks,
                          Context& c) const;
template <>
void Output<float>::chosen(Matrix<const float> h, std::span<const int32_t> tokens, Matrix<float> y, Context& c) const;

QKV_FOR_ELEMENTS(extern template class Output);

}  // namespace qkv
