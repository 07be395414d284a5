#include "eval/number_scores.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "core/fail.h"

namespace qkv {
namespace {

void check_lengths(std::span<const double> a, std::span<const double> b) {
  if (a.size() != b.size()) fail("a and b must have the same number of values (are {} and {})", a.size(), b.size());
}

double mean_of(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

bool is_constant(std::span<const double> values) {
  return std::ranges::all_of(values, [&](double value) { return value == values[0]; });
}

// Returns the rank of each value from 1; that of equal values is the mean of their ranks.
std::vector<double> mean_ranks(std::span<const double> values) {
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::sort(order, {}, [&](size_t i) { return values[i]; });
  std::vector<double> ranks(values.size());
  for (size_t begin = 0, end; begin < order.size(); begin = end) {
    for (end = begin + 1; end < order.size() && values[order[end]] == values[order[begin]]; end++) {
    }
    const double rank = static_cast<double>(begin + end + 1) / 2;  // the mean of begin + 1 … end
    for (size_t i = begin; i < end; i++) ranks[order[i]] = rank;
  }
  return ranks;
}

}  // namespace

double pearson(std::span<const double> a, std::span<const double> b) {
  check_lengths(a, b);
  if (a.size() < 2 || is_constant(a) || is_constant(b)) return 0;
  const double mean_a = mean_of(a), mean_b = mean_of(b);
  double products = 0, squares_a = 0, squares_b = 0;
  for (size_t i = 0; i < a.size(); i++) {
    const double x = a[i] - mean_a, y = b[i] - mean_b;
    products += x * y;
    squares_a += x * x;
    squares_b += y * y;
  }
  return std::clamp(products / std::sqrt(squares_a) / std::sqrt(squares_b), -1.0, 1.0);  // NaN stays
}

double spearman(std::span<const double> a, std::span<const double> b) {
  check_lengths(a, b);
  const auto is_nan = [](double value) { return std::isnan(value); };
  if (std::ranges::any_of(a, is_nan) || std::ranges::any_of(b, is_nan)) return std::numeric_limits<double>::quiet_NaN();
  return pearson(mean_ranks(a), mean_ranks(b));
}

double mean_squared_error(std::span<const double> a, std::span<const double> b) {
  check_lengths(a, b);
  double sum = 0;
  for (size_t i = 0; i < a.size(); i++) sum += (a[i] - b[i]) * (a[i] - b[i]);
  return a.empty() ? 0 : sum / static_cast<double>(a.size());
}

}  // namespace qkv
