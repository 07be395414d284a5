// Adam and AdamW over one flat run of parameters. Kingma, Ba (2015); Loshchilov, Hutter (2019).
#pragma once

#include <cstdint>
#include <span>

#include "qkv/bfloat16.h"

namespace qkv {

// m ← β1 m + (1 − β1) g,  v ← β2 v + (1 − β2) g²,  g = gradient_scale · gradient  [+ weight_decay · w if not decoupled]
// w ← w − learning_rate · ( m / (1 − β1^step) / (√(v / (1 − β2^step)) + ε)  [+ weight_decay · w if decoupled] )
// average ← average_decay · average + (1 − average_decay) · w
struct AdamStep {
  double learning_rate = 1e-3;
  double beta1 = 0.9, beta2 = 0.98, epsilon = 1e-9;
  double weight_decay = 0;
  bool decoupled = false;     // AdamW
  double gradient_scale = 1;  // clipping and the division by the number of tokens
  int64_t step = 1;           // counted from 1
  double average_decay = 0;
  uint64_t seed = 0;  // of the rounding of packed moments
};

// One pass: updates w, m, v and the average, and sets the gradient to zero. All of one length, but that the average may
// be empty. Returns Σ gradient² as sum_of_squares does, at no cost in memory traffic.
template <class Real>
double adam_update(const AdamStep& step, std::span<Real> w, std::span<Real> gradient, std::span<Real> m,
                   std::span<Real> v, std::span<Real> average = {});

// The same with moments that are stored in 16 or 8 bits (moment_codes.h), and rounded by chance: a function of
// step.seed, step.step and the place, not of the number of threads. Arrays of moments are as long as w, rounded up to
// whole blocks of 256; scales have one number a block, the largest of it. Σ gradient² is summed by those blocks.
struct Bfloat16Moments {
  std::span<bfloat16> m, v;
};
struct Int8Moments {
  std::span<uint8_t> m, v;
  std::span<float> m_scale, v_scale;
};
double adam_update(const AdamStep& step, std::span<float> w, std::span<float> gradient, const Bfloat16Moments& moments,
                   std::span<float> average = {});
double adam_update(const AdamStep& step, std::span<float> w, std::span<float> gradient, const Int8Moments& moments,
                   std::span<float> average = {});

// Σ x², summed in double over fixed blocks in a fixed order.
template <class Real>
double sum_of_squares(std::span<const Real> x);

}  // namespace qkv
