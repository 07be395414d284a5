// The linear layer to the vocabulary with softmax and label-smoothed cross-entropy. The logits of all tokens never
// exist at once: rows go through in blocks, and in training the gradient of a block is formed at once.
#pragma once

#include <cstdint>
#include <span>

#include "layers/context.h"
#include "layers/parameter.h"
#include "ops/logits/best_logits.h"
#include "ops/logits/next_tokens.h"

namespace qkv {

// Sums over tokens, natural logarithm. loss is label-smoothed, nll is not; perplexity = exp(nll / tokens).
struct Loss {
  double loss = 0, nll = 0;
  int64_t tokens = 0;

  Loss& operator+=(const Loss& other) {
    loss += other.loss;
    nll += other.nll;
    tokens += other.tokens;
    return *this;
  }
};

// What training minimises, for each token.
struct Objective {
  double label_smoothing = 0;
  double r_drop = 0;  // α: two passes with dropout of their own are to agree (ops/logits/r_drop.h); 0: one pass
};

template <class Real>
class Output {
 public:
  // `weight`: [V, d], the target embeddings where tied; `bias`: [V] or null.
  Output(const Parameter<Real>* weight, const Parameter<Real>* bias) : weight_(weight), bias_(bias) {}

  const Parameter<Real>& weight() const { return *weight_; }

  // logits = h Wᵀ + b; h: [N, d] -> [N, V]. For decoding.
  Matrix<Real> logits(Matrix<const Real> h, Context& c) const;
  void logits_into(Matrix<const Real> h, Matrix<Real> y, Context& c) const;  // y: [N, V], assigned
  // The k largest of them in every row, with none of the tokens in `hidden` (rising), and their log-sum-exp. For float.
  NextTokens next(Matrix<const Real> h, std::span<const int32_t> hidden, int64_t k, Context& c) const;

  // The k largest in every row, [N, k], but for the tokens that it hides. For float.
  BestLogits best(Matrix<const Real> h, HiddenTokens hidden, int64_t k, Context& c) const;
  // Those of the chosen tokens alone, each as best() gives it, y: [N, tokens], assigned. For float.
  void chosen(Matrix<const Real> h, std::span<const int32_t> tokens, Matrix<Real> y, Context& c) const;

  // h: [N, d]; labels: [N].
  Loss loss(Matrix<const Real> h, std::span<const int32_t> labels, double smoothing, Context& c) const;
  // The same; the gradient of the sum goes to dh: [N, d] (assigned) and to the parameters (added).
  Loss loss_and_gradient(Matrix<const Real> h, std::span<const int32_t> labels, double smoothing, Matrix<Real> dh,
                         Context& c) const;
  // Of two passes over the same tokens, with h, dh and another, dother, of each.
  Loss r_drop_and_gradient(Matrix<const Real> h, Matrix<const Real> other, std::span<const int32_t> labels,
                           Objective objective, Matrix<Real> dh, Matrix<Real> dother, Context& c) const;

 private:
  void backward(Matrix<const Real> h, Matrix<const Real> dlogits, Matrix<Real> dh, Context& c) const;

  const Parameter<Real>*weight_, *bias_;
};

template <>
NextTokens Output<float>::next(Matrix<const float> h, std::span<const int32_t> hidden, int64_t k, Context& c) const;
template <>
BestLogits Output<float>::best(Matrix<const float> h, HiddenTokens hidden, int64_t k, Context& c) const;
template <>
void Output<float>::chosen(Matrix<const float> h, std::span<const int32_t> tokens, Matrix<float> y, Context& c) const;

extern template class Output<float>;
extern template class Output<double>;

}  // namespace qkv
