// The losses of one row of logits, and of one list of rows with a logit each. Sums are in double precision.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>

#include "core/to_size.h"
#include "ops/label_loss.h"

namespace qkv {

// K logits z and their gradient, or null. Each loss below is returned, and its gradient assigned.
template <class Real>
struct LogitRow {
  const Real* z;
  Real* dz;
  int64_t K;
};

// log Σ_k exp(z_k) for K ≥ 1 numbers, z(k) returns one.
template <class F>
double log_sum_of_exponentials(int64_t K, F&& z) {
  double top = z(0), sum = 0;
  for (int64_t k = 1; k < K; k++) top = std::max(top, z(k));
  for (int64_t k = 0; k < K; k++) sum += std::exp(z(k) - top);
  return top + std::log(sum);
}

// −log σ(x) = log(1 + e^−x), without overflow.
inline double negative_log_sigmoid(double x) { return std::max(-x, 0.0) + std::log1p(std::exp(-std::abs(x))); }
inline double logistic(double x) { return 1 / (1 + std::exp(-x)); }

template <class Real>
double softmax_row_loss(const LogitRow<Real>& row, const LabelTargets& targets, int32_t label) {
  const auto z = [&](int64_t k) { return static_cast<double>(row.z[k]); };
  const double log_sum = log_sum_of_exponentials(row.K, z), smoothing = targets.smoothing;
  const double share = smoothing / static_cast<double>(row.K);
  const double weight = targets.weights.empty() ? 1 : static_cast<double>(targets.weights[to_size(label)]);
  double loss = (1 - smoothing) * (log_sum - z(label));
  for (int64_t k = 0; share > 0 && k < row.K; k++) loss += share * (log_sum - z(k));  // without: 0 · ∞ if z is −∞
  for (int64_t k = 0; row.dz && k < row.K; k++) {
    const double target = share + (k == label ? 1 - smoothing : 0);
    row.dz[k] = static_cast<Real>(weight * (std::exp(z(k) - log_sum) - target));
  }
  return weight * loss;
}

template <class Real>
double sigmoid_row_loss(const LogitRow<Real>& row, const float* values, std::span<const float> weights) {
  const double share = 1 / static_cast<double>(row.K);
  double loss = 0;
  for (int64_t k = 0; k < row.K; k++) {
    const double z = static_cast<double>(row.z[k]), no = 1 - static_cast<double>(values[k]);
    const double weight = weights.empty() ? 1 : static_cast<double>(weights[to_size(k)]);
    const double yes = weight * static_cast<double>(values[k]);
    if (yes != 0) loss += share * yes * negative_log_sigmoid(z);  // otherwise 0 · ∞ if z is infinite
    if (no != 0) loss += share * no * negative_log_sigmoid(-z);
    if (row.dz) row.dz[k] = static_cast<Real>(share * (no * logistic(z) - yes * logistic(-z)));
  }
  return loss;
}

template <class Real>
double squared_row_loss(const LogitRow<Real>& row, const float* values) {
  const double share = 1 / static_cast<double>(row.K);
  double loss = 0;
  for (int64_t k = 0; k < row.K; k++) {
    const double error = static_cast<double>(row.z[k]) - static_cast<double>(values[k]);
    loss += share * error * error;
    if (row.dz) row.dz[k] = static_cast<Real>(2 * share * error);
  }
  return loss;
}

// The rows of a list. The losses below are multiplied by `share`.
template <class Real>
struct RankedList {
  Matrix<const Real> z;  // [rows, 1]
  Matrix<Real> dz;       // [rows, 1], or without data
  const float* values;   // [rows]: relevances
};

// Returns the number of pairs with y_i > y_j.
template <class Real>
double ordered_pairs(const RankedList<Real>& list) {
  int64_t pairs = 0;
  for (int64_t i = 0; i < list.z.rows; i++)
    for (int64_t j = 0; j < list.z.rows; j++) pairs += list.values[i] > list.values[j] ? 1 : 0;
  return static_cast<double>(pairs);
}

// Returns the sum of −log₂ σ(z_i − z_j) over the pairs with y_i > y_j.
template <class Real>
double pairwise_loss(const RankedList<Real>& list, double share) {
  const double factor = share / std::log(2.0);
  double loss = 0;
  for (int64_t i = 0; i < list.z.rows; i++) {
    double gradient = 0;
    for (int64_t j = 0; j < list.z.rows; j++) {
      const double sign = list.values[i] > list.values[j] ? 1 : list.values[i] < list.values[j] ? -1 : 0;
      if (sign == 0) continue;
      const double margin = sign * (static_cast<double>(list.z(i, 0)) - static_cast<double>(list.z(j, 0)));
      if (sign > 0) loss += factor * negative_log_sigmoid(margin);
      gradient -= sign * factor * logistic(-margin);
    }
    if (list.dz.data) list.dz(i, 0) = static_cast<Real>(gradient);
  }
  return loss;
}

// Returns −Σ_i q_i log p_i.
template <class Real>
double listwise_loss(const RankedList<Real>& list, double share) {
  const auto z = [&](int64_t i) { return static_cast<double>(list.z(i, 0)); };
  const auto y = [&](int64_t i) { return static_cast<double>(list.values[i]); };
  const double log_sum_z = log_sum_of_exponentials(list.z.rows, z);
  const double log_sum_y = log_sum_of_exponentials(list.z.rows, y);
  double loss = 0;
  for (int64_t i = 0; i < list.z.rows; i++) {
    const double q = std::exp(y(i) - log_sum_y);
    if (q > 0) loss += share * q * (log_sum_z - z(i));
    if (list.dz.data) list.dz(i, 0) = static_cast<Real>(share * (std::exp(z(i) - log_sum_z) - q));
  }
  return loss;
}

}  // namespace qkv
