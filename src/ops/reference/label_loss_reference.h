// Losses of the logits of labels as plain loops: ops/label_loss.h.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "core/to_size.h"
#include "ops/label_loss.h"

namespace qkv::reference {

// p = softmax(x)
template <class Real>
std::vector<Real> plain_softmax(const std::vector<Real>& x) {
  const Real top = *std::max_element(x.begin(), x.end());
  Real sum = 0;
  std::vector<Real> p;
  for (const Real value : x) sum += std::exp(value - top);
  for (const Real value : x) p.push_back(std::exp(value - top) / sum);
  return p;
}

template <class Real>
struct PlainLabelLoss {
  const LabelTargets& targets;
  Matrix<const Real> z;
  Matrix<Real> dz;
  Real loss = 0;

  Real weight(int64_t k) const { return targets.weights.empty() ? 1 : static_cast<Real>(targets.weights[to_size(k)]); }
  Real value(int64_t n, int64_t k) const { return static_cast<Real>(targets.values[to_size(n * z.cols + k)]); }

  void softmax() {
    const Real smoothing = static_cast<Real>(targets.smoothing), K = static_cast<Real>(z.cols);
    for (int64_t n = 0; n < z.rows; n++) {
      const std::vector<Real> p = plain_softmax(std::vector<Real>(z.row(n), z.row(n) + z.cols));
      const int64_t label = targets.labels[to_size(n)];
      for (int64_t k = 0; k < z.cols; k++) {
        const Real q = (k == label ? 1 - smoothing : 0) + smoothing / K;
        if (q > 0) loss -= weight(label) * q * std::log(p[to_size(k)]);
        dz(n, k) = weight(label) * (p[to_size(k)] - q);
      }
    }
  }

  void sigmoid() {
    const Real K = static_cast<Real>(z.cols);
    for (int64_t n = 0; n < z.rows; n++)
      for (int64_t k = 0; k < z.cols; k++) {
        const Real p = 1 / (1 + std::exp(-z(n, k))), y = value(n, k);
        loss -= (weight(k) * y * std::log(p) + (1 - y) * std::log(1 / (1 + std::exp(z(n, k))))) / K;
        dz(n, k) = ((1 - y) * p - weight(k) * y * (1 - p)) / K;
      }
  }

  void squared() {
    const Real K = static_cast<Real>(z.cols);
    for (int64_t n = 0; n < z.rows; n++)
      for (int64_t k = 0; k < z.cols; k++) {
        loss += (z(n, k) - value(n, k)) * (z(n, k) - value(n, k)) / K;
        dz(n, k) = 2 * (z(n, k) - value(n, k)) / K;
      }
  }

  // f(i, j) for the pairs of rows of one list with y_i > y_j
  template <class F>
  void for_ordered_rows(F&& f) const {
    for (size_t l = 0; l + 1 < targets.groups.size(); l++)
      for (int64_t i = targets.groups[l]; i < targets.groups[l + 1]; i++)
        for (int64_t j = targets.groups[l]; j < targets.groups[l + 1]; j++)
          if (value(i, 0) > value(j, 0)) f(i, j);
  }

  void pairwise() {
    Real pairs = 0;
    for_ordered_rows([&](int64_t, int64_t) { pairs++; });
    for (int64_t n = 0; n < z.rows; n++) dz(n, 0) = 0;
    const Real share = static_cast<Real>(z.rows) / (pairs * std::log(Real(2)));
    for_ordered_rows([&](int64_t i, int64_t j) {
      const Real p = 1 / (1 + std::exp(z(j, 0) - z(i, 0)));
      loss -= share * std::log(p);
      dz(i, 0) -= share * (1 - p);
      dz(j, 0) += share * (1 - p);
    });
  }

  void listwise() {
    const auto lists = std::ssize(targets.groups) - 1;
    const Real share = static_cast<Real>(z.rows) / static_cast<Real>(lists);
    for (size_t l = 0; l < to_size(lists); l++) {
      std::vector<Real> scores, relevances;
      for (int64_t n = targets.groups[l]; n < targets.groups[l + 1]; n++) {
        scores.push_back(z(n, 0));
        relevances.push_back(value(n, 0));
      }
      const std::vector<Real> p = plain_softmax(scores), q = plain_softmax(relevances);
      for (size_t i = 0; i < p.size(); i++) {
        loss -= share * q[i] * std::log(p[i]);
        dz(targets.groups[l] + static_cast<int64_t>(i), 0) = share * (p[i] - q[i]);
      }
    }
  }
};

// Returns the loss and assigns dz.
template <class Real>
Real label_loss(LabelLoss kind, const LabelTargets& targets, Matrix<const Real> z, Matrix<Real> dz) {
  PlainLabelLoss<Real> part{targets, z, dz};
  if (kind == LabelLoss::softmax) part.softmax();
  if (kind == LabelLoss::sigmoid) part.sigmoid();
  if (kind == LabelLoss::squared) part.squared();
  if (kind == LabelLoss::pairwise) part.pairwise();
  if (kind == LabelLoss::listwise) part.listwise();
  return part.loss;
}

}  // namespace qkv::reference
