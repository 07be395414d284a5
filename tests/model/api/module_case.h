// A module with inputs and a call, for tests of gradients and of layouts.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/to_size.h"
#include "qkv/layers.h"
#include "tests/support/numeric.h"

namespace qkv::layers {

// Rows with random values, as an input of a module.
template <class Real>
struct InputRows {
  InputRows(int64_t n, int64_t width, uint64_t seed)
      : rows(n), d(width), values(testing::normal<Real>(n * width, seed)) {}

  Matrix<const Real> matrix() const { return {values.data(), rows, d}; }

  int64_t rows, d;
  std::vector<Real> values;
};

template <class Real>
std::vector<Real> values_of(Matrix<const Real> m) {
  std::vector<Real> values;
  for (int64_t n = 0; n < m.rows; n++) values.insert(values.end(), m.row(n), m.row(n) + m.cols);
  return values;
}

template <class Real>
std::vector<Matrix<const Real>> matrices(const std::vector<InputRows<Real>>& inputs) {
  std::vector<Matrix<const Real>> found;
  for (const auto& input : inputs) found.push_back(input.matrix());
  return found;
}

// Random values for all parameters: biases and norms would otherwise have special ones.
template <class Real>
void randomize(Module<Real>& module, uint64_t seed) {
  for (const NamedArray<Real>& p : module.parameters()) {
    int64_t size = 1;
    for (const int64_t n : p.shape) size *= n;
    const std::vector<Real> values = testing::normal<Real>(size, seed++, 0.5);
    std::copy(values.begin(), values.end(), p.data);
  }
}

// A configuration of width 8 with two heads, d_k 4, d_v 3, which no other module has.
inline ModelConfig small_layers(int64_t layers = 2) {
  ModelConfig c = sizes(8, 2, 12, layers);
  c.attention.value_width = 3;
  c.activation = Activation::gelu;
  return c;
}

}  // namespace qkv::layers
