// Shared by the tests of kernels: every instruction set, any number of threads, matrices whose rows lie apart, and how
// far a kernel may be from the truth.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "core/system/isa.h"
#include "core/system/threads.h"
#include "core/to_size.h"
#include "qkv/matrix.h"
#include "tests/support/numeric.h"

namespace qkv::testing {

// Calls f() once for each instruction set of this machine.
template <class F>
void for_each_isa(F&& f) {
  const std::string before = active_isa();
  for (const std::string& isa : available_isas()) {
    SCOPED_TRACE(isa);
    force_isa(isa);
    f();
  }
  force_isa(before);
}

// The same with each kind of instructions for products of 8-bit integers.
template <class F>
void for_each_byte_isa(F&& f) {
  for (const auto& [vnni, amx] : {std::pair{false, false}, {true, false}, {true, true}}) {
    SCOPED_TRACE(::testing::Message() << "VNNI " << vnni << ", AMX " << amx);
    force_vnni(vnni);
    force_amx(amx);
    for_each_isa(f);
  }
}

template <class F>
auto with_threads(int count, F&& f) {
  const int before = threads();
  set_threads(count);
  auto result = f();
  set_threads(before);
  return result;
}

struct Shape {
  int64_t rows, cols;
};

// Around the widths of vectors and of the dropout's groups.
inline std::vector<Shape> odd_shapes() {
  std::vector<Shape> shapes;
  for (const int64_t rows : {0, 1, 3, 65})
    for (const int64_t cols : {0, 1, 15, 16, 17, 50, 127, 128, 129, 300}) shapes.push_back({rows, cols});
  return shapes;
}

// A matrix of normal numbers, or what `values` gives, in a buffer where rows lie `gap` elements apart and the first one
// is unaligned. The gaps hold NaN: a kernel that reads them spoils its result, one that writes them is found out.
template <class Real>
class Padded {
 public:
  Padded(Shape shape, const std::vector<Real>& values)
      : shape_(shape),
        buffer_(to_size(kLead + shape.rows * (shape.cols + kGap)), std::numeric_limits<Real>::quiet_NaN()) {
    for (int64_t i = 0; i < shape.rows * shape.cols; i++) view()(i / shape.cols, i % shape.cols) = values[to_size(i)];
  }
  Padded(Shape shape, uint64_t seed) : Padded(shape, normal<Real>(shape.rows * shape.cols, seed)) {}

  Matrix<Real> view() { return {buffer_.data() + kLead, shape_.rows, shape_.cols, shape_.cols + kGap}; }

  std::vector<Real> values() {
    std::vector<Real> result;
    for (int64_t r = 0; r < shape_.rows; r++) result.insert(result.end(), view().row(r), view().row(r) + shape_.cols);
    return result;
  }

  void expect_gaps_untouched() const {
    for (int64_t i = 0; i < std::ssize(buffer_); i++) {
      const bool inside = i >= kLead && (i - kLead) % (shape_.cols + kGap) < shape_.cols;
      EXPECT_TRUE(inside || std::isnan(buffer_[to_size(i)])) << "element " << i;
    }
  }

 private:
  static constexpr int64_t kLead = 3, kGap = 5;
  Shape shape_;
  std::vector<Real> buffer_;
};

// Σ a_i b_i: a scalar whose gradient in a is b, to take finite differences of.
inline double dot(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); i++) sum += a[i] * b[i];
  return sum;
}

// The fast float kernel's worst error against the float64 reference is within `factor` times that of the float32
// reference, plus four roundings of the largest value, or of `summed` where larger numbers were added on the way.
inline void expect_as_accurate(const std::vector<float>& fast, const std::vector<float>& plain,
                               const std::vector<double>& exact, double factor, double summed = 0) {
  double largest = summed;
  for (const double value : exact) largest = std::max(largest, std::abs(value));
  EXPECT_LE(max_error(fast, exact), factor * max_error(plain, exact) + 4 * 0x1p-24 * largest);
}

}  // namespace qkv::testing
