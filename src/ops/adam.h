// Adam and AdamW over one flat array of parameters. Kingma, Ba, "Adam" (2015); Loshchilov, Hutter, "Decoupled Weight
// Decay Regularization" (2019).
#pragma once

#include <cstdint>
#include <span>

#include "core/device.h"
#include "qkv/bfloat16.h"

namespace qkv {

// One Adam step:
//   g = gradient_scale · gradient  [+ weight_decay · w if not decoupled]
//   m ← β1 m + (1 − β1) g,   v ← β2 v + (1 − β2) g²
//   w ← w − learning_rate · ( m / (1 − β1^step) / (√(v / (1 − β2^step)) + ε)  [+ weight_decay · w if decoupled] )
//   average ← average_decay · average + (1 − average_decay) · w
struct AdamStep {
  double learning_rate = 1e-3;
  double beta1 = 0.9, beta2 = 0.98, epsilon = 1e-9;
  double weight_decay = 0;
  bool decoupled = false;     // true for AdamW
  double gradient_scale = 1;  // gradient clipping and division by the number of tokens
  int64_t step = 1;           // counted from 1
  double average_decay = 0;
  uint64_t seed = 0;        // seed of the stochastic rounding of packed moments
  int64_t first_block = 0;  // number of the first block of packed moments, if w is a part of a larger array
};

// Parameters are updated, and squares are summed, in blocks of this size.
constexpr int64_t kAdamBlock = int64_t{1} << 14;

// Updates w, m, v and the average in one pass and sets the gradient to zero. All arrays have the same length; the
// average may be empty.
template <class Real>
void adam_update(const AdamStep& step, std::span<Real> w, std::span<Real> gradient, std::span<Real> m,
                 std::span<Real> v, std::span<Real> average = {});

// The same with moments stored in 16 or 8 bits (moment_codes.h). Rounding is stochastic; it depends on step.seed,
// step.step, step.first_block and the index, not on the number of threads. Arrays of moments are as long as w, rounded
// up to whole blocks of 256. Scales have one entry per block, its largest magnitude.
struct Bfloat16Moments {
  std::span<bfloat16> m, v;
};
struct Int8Moments {
  std::span<uint8_t> m, v;
  std::span<float> m_scale, v_scale;
};
void adam_update(const AdamStep& step, std::span<float> w, std::span<float> gradient, const Bfloat16Moments& moments,
                 std::span<float> average = {});
void adam_update(const AdamStep& step, std::span<float> w, std::span<float> gradient, const Int8Moments& moments,
                 std::span<float> average = {});

// The same in the memory of a device. `stored` are the weights as elements of the model, which are assigned, rounded,
// unless they are w.
struct DeviceMoments {
  std::span<Device<float>> m, v;
};
template <class T>
void adam_update(const AdamStep& step, std::span<Device<float>> w, std::span<Device<float>> gradient,
                 const DeviceMoments& moments, std::span<Device<float>> average, std::span<Device<T>> stored);

// Returns Σ x², summed in double over fixed blocks in a fixed order. Assigns the sum of each block to `squares` unless
// it is empty.
template <class Real>
double sum_of_squares(std::span<const Real> x, std::span<double> squares = {});

// Returns the sum of an array of which the sums of all blocks are given, with the bits of sum_of_squares over the whole
// array.
double sum_of_blocks(std::span<const double> squares);

}  // namespace qkv
