// Sinusoidal positions, and what their dot products depend on.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/fail.h"
#include "ops/embedding.h"
#include "program/explain/recorder.h"

namespace qkv {
namespace {

constexpr int64_t kFurthest = 64;  // distance

// Dot products of the first position and the one at each of these distances. They are cos(ω t) cos(ω (t + k)) +
// sin(ω t) sin(ω (t + k)) = cos(ω k), summed over the frequencies, so the first position t does not matter.
NumberTable dot_products(const NumberTable& P, const std::vector<int64_t>& distances, int64_t first) {
  const NumberTable all = product_with_transposed(
      {1, P.columns, {P.values.begin() + first * P.columns, P.values.begin() + (first + 1) * P.columns}}, P);
  NumberTable result = zero_table(1, std::ssize(distances));
  for (int64_t i = 0; i < result.columns; i++) result.at(0, i) = all.at(0, first + distances[static_cast<size_t>(i)]);
  return result;
}

// Says how far the dot products fall with the distance before they rise again.
std::string similarity_note(const std::vector<int64_t>& distances, const NumberTable& dots, int64_t d) {
  int64_t last = 0;
  while (last + 1 < dots.rows && dots.at(last + 1, 0) < dots.at(last, 0)) last++;
  std::string text = fmt::format(
      "Each position has the length √(d/2) = √{}. Near positions are similar: the dot product "
      "falls from {:.2f} at distance 0 to {:.2f} at distance {}",
      d / 2, dots.at(0, 0), dots.at(last, 0), distances[static_cast<size_t>(last)]);
  if (last + 1 < dots.rows)
    text += fmt::format(". It rises again at distance {}; with a larger width, later and less",
                        distances[static_cast<size_t>(last + 1)]);
  return text + ".";
}

std::vector<std::string> position_labels(int64_t count, const char* name) {
  std::vector<std::string> labels;
  for (int64_t i = 0; i < count; i++) labels.push_back(fmt::format("{}{}", name, i));
  return labels;
}

std::vector<std::string> column_labels_of_width(int64_t d) {
  std::vector<std::string> labels;
  for (int64_t i = 0; i < d; i++) labels.push_back(fmt::format("{} ω{}", i % 2 ? "cos" : "sin", i / 2));
  return labels;
}

}  // namespace

ExplainedSection explain_positions(int64_t d, int64_t count) {
  if (d < 2 || d > 1024 || d % 2)
    fail("explain: the width of positions is {}, expected an even number from 2 to 1024", d);
  if (count < 1 || count > 1024) fail("explain: {} positions, expected 1 to 1024", count);
  NumberTable all = zero_table(std::max(count, 2 * kFurthest + 1), d);
  sinusoidal_positions<double>(Positions::interleaved, matrix_of(all));
  StepRecorder steps;
  steps.begin(fmt::format("Positions of width {}", d));
  NumberTable P = zero_table(count, d);
  std::copy_n(all.values.begin(), P.values.size(), P.values.begin());
  steps.add({"positions", "P", "sin(t ωᵢ) and cos(t ωᵢ), ωᵢ = 10000^(−2i / d)", position_labels(count, "t = "),
             column_labels_of_width(d), P});
  const std::vector<int64_t> distances = {0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, kFurthest};
  NumberTable dots = zero_table(std::ssize(distances), 2);
  std::vector<std::string> rows;
  for (int64_t column = 0; column < 2; column++) {
    const NumberTable found = dot_products(all, distances, column * kFurthest);
    for (int64_t i = 0; i < dots.rows; i++) dots.at(i, column) = found.at(0, i);
  }
  for (const int64_t k : distances) rows.push_back(fmt::format("distance {}", k));
  steps.add({"dot_products",
             "p · q",
             "Σᵢ cos(ωᵢ · distance), wherever the first one is",
             rows,
             {"from t = 0", fmt::format("from t = {}", kFurthest)},
             dots,
             similarity_note(distances, dots, d)});
  return std::move(steps.take().front());
}

}  // namespace qkv
