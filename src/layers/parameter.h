// Parameters are declared once: name, shape, initial values. This list drives allocation, gradients, the optimiser,
// checkpoints and `qkv inspect`.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/arena.h"
#include "core/matrix.h"
#include "ops/linear/row_linear.h"

namespace qkv {

// How a parameter starts: every element `mean`, plus uniform noise in ±uniform, plus normal noise of deviation
// `normal`.
struct Init {
  double mean = 0, uniform = 0, normal = 0;

  // Glorot, Bengio (2010): the variance of activations and of gradients is kept.
  static Init xavier(int64_t in, int64_t out);
  static Init zeros() { return {}; }
  static Init ones() { return {1, 0, 0}; }
  static Init gaussian(double deviation) { return {0, 0, deviation}; }
};

template <class Real>
struct Parameter {
  std::string name;  // the field's standard names: decoder.layers.3.cross_attention.q.weight
  std::vector<int64_t> shape;
  Init init;
  bool quantizable = false;  // a matrix of a product or of embeddings, which may be in 8 bits for inference
  Real* value = nullptr;
  Real* gradient = nullptr;  // null until allocate_gradients()
  Int8Matrix int8 = {};      // what stands for `value` in 8 bits, or empty

  int64_t size() const;
  Matrix<Real> matrix() const { return {value, shape.at(0), shape.at(1)}; }
  Matrix<Real> gradient_matrix() const { return {gradient, shape.at(0), shape.at(1)}; }
};

// The parameters of a model in the order of their declaration, one after the other in one run of memory with no gap, so
// that neighbours can be used as one matrix and the optimiser sees one array.
template <class Real>
class ParameterList {
 public:
  // The pointer stays valid for the life of the list. All parameters are declared before allocate().
  const Parameter<Real>* add(std::string name, std::vector<int64_t> shape, Init init, bool quantizable = false);

  void allocate();            // values, zero
  void allocate_gradients();  // zero

  // For inference, weights that lie elsewhere and are only read; `owner` keeps them there. use(values) replaces all
  // values of parameters, in the order of their declaration; use_int8 what stands for one quantizable parameter.
  void use(std::span<const Real> values, std::shared_ptr<const void> owner);
  void use_int8(size_t parameter, const Int8Matrix& weights, std::shared_ptr<const void> owner);
  // Before values are set: parameters in 8 bits keep no place among them, and the rest takes memory for no more than it
  // holds.
  void close_gaps();
  // With a deviation above 0 all that start with noise start with normal noise of that one.
  void initialise(uint64_t seed, double deviation = 0);

  const std::deque<Parameter<Real>>& all() const { return parameters_; }
  int64_t size() const;  // elements of all parameters together
  std::span<Real> values() const { return values_; }
  std::span<Real> gradients() const { return gradients_; }

 private:
  void place(std::span<Real> values);

  std::deque<Parameter<Real>> parameters_;
  Arena value_memory_, gradient_memory_;
  std::span<Real> values_, gradients_;
  std::vector<std::shared_ptr<const void>> owners_;  // of memory that is used here
};

extern template struct Parameter<float>;
extern template struct Parameter<double>;
extern template class ParameterList<float>;
extern template class ParameterList<double>;

}  // namespace qkv
