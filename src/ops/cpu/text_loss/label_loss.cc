#include "ops/label_loss.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/fail.h"
#include "core/system/threads.h"
#include "core/to_size.h"
#include "ops/cpu/text_loss/label_loss_rows.h"

namespace qkv {

namespace {

constexpr int64_t kParts = 64;  // of the rows or lists of a batch, each the work of one thread

// Returns Σ_i f(i) for i in [0, n) in an order that depends on n alone.
template <class F>
double sum_in_parts(int64_t n, F&& f) {
  std::array<double, kParts> sums = {};
  parallel_for(kParts, [&](int64_t part) {
    for (int64_t i = n * part / kParts; i < n * (part + 1) / kParts; i++) sums[to_size(part)] += f(i);
  });
  double sum = 0;
  for (const double of_part : sums) sum += of_part;
  return sum;
}

void check_labels(std::span<const int32_t> labels, int64_t N, int64_t K) {
  if (std::ssize(labels) != N) fail("labels: {} for {} rows (one for each is needed)", labels.size(), N);
  for (const int32_t label : labels)
    if (label < 0 || label >= K) fail("labels: {} (must be between 0 and {})", label, K - 1);
}

void check_lists(std::span<const int32_t> groups, int64_t N, int64_t K) {
  if (K != 1) fail("z: {} logits in a row (losses of lists need 1)", K);
  const bool rising = std::ranges::adjacent_find(groups, std::ranges::greater_equal()) == groups.end();
  if (groups.size() < 2 || groups.front() != 0 || groups.back() != N || !rising)
    fail("groups: offsets that increase from 0 to {} are needed", N);
}

template <class Real>
void check_targets(LabelLoss kind, const LabelTargets& targets, Matrix<const Real> z) {
  if (kind == LabelLoss::automatic) fail("kind: automatic (the caller must choose a loss)");
  if (z.rows < 1 || z.cols < 1) fail("z: {} rows of {} logits (at least 1 of 1 is needed)", z.rows, z.cols);
  if (!targets.weights.empty() && std::ssize(targets.weights) != z.cols)
    fail("weights: {} for {} labels (one for each is needed)", targets.weights.size(), z.cols);
  if (kind == LabelLoss::softmax) return check_labels(targets.labels, z.rows, z.cols);
  if (std::ssize(targets.values) != z.rows * z.cols)
    fail("values: {} for {} logits (one for each is needed)", targets.values.size(), z.rows * z.cols);
  if (kind == LabelLoss::pairwise || kind == LabelLoss::listwise) check_lists(targets.groups, z.rows, z.cols);
}

template <class Real>
double loss_of_rows(LabelLoss kind, const LabelTargets& targets, Matrix<const Real> z, Matrix<Real> dz) {
  const int64_t K = z.cols;
  return sum_in_parts(z.rows, [&](int64_t n) {
    const LogitRow<Real> row{z.row(n), dz.data ? dz.row(n) : nullptr, K};
    if (kind == LabelLoss::softmax) return softmax_row_loss(row, targets, targets.labels[to_size(n)]);
    const float* values = targets.values.data() + n * K;
    return kind == LabelLoss::sigmoid ? sigmoid_row_loss(row, values, targets.weights) : squared_row_loss(row, values);
  });
}

template <class Real>
double loss_of_lists(LabelLoss kind, const LabelTargets& targets, Matrix<const Real> z, Matrix<Real> dz) {
  const int64_t lists = std::ssize(targets.groups) - 1;
  const auto list = [&](int64_t l) {
    const int64_t begin = targets.groups[to_size(l)], end = targets.groups[to_size(l + 1)];
    return RankedList<Real>{z.row_range(begin, end), dz.data ? dz.row_range(begin, end) : dz,
                            targets.values.data() + begin};
  };
  const auto rows = static_cast<double>(z.rows);
  if (kind == LabelLoss::listwise)
    return sum_in_parts(lists, [&](int64_t l) { return listwise_loss(list(l), rows / static_cast<double>(lists)); });
  const double pairs = sum_in_parts(lists, [&](int64_t l) { return ordered_pairs(list(l)); });
  return sum_in_parts(lists, [&](int64_t l) { return pairwise_loss(list(l), rows / std::max(pairs, 1.0)); });
}

}  // namespace

template <class Real>
double label_loss(LabelLoss kind, const LabelTargets& targets, Matrix<const Real> z, Matrix<Real> dz) {
  check_targets(kind, targets, z);
  const bool lists = kind == LabelLoss::pairwise || kind == LabelLoss::listwise;
  return lists ? loss_of_lists(kind, targets, z, dz) : loss_of_rows(kind, targets, z, dz);
}

template double label_loss(LabelLoss, const LabelTargets&, Matrix<const float>, Matrix<float>);
template double label_loss(LabelLoss, const LabelTargets&, Matrix<const double>, Matrix<double>);

}  // namespace qkv
