// The parameters of a model, each declared once with name, shape and initial values. The list drives allocation,
// gradients, the optimizer, checkpoints and `qkv inspect`.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/arena.h"
#include "core/device.h"
#include "core/quantized_matrix.h"
#include "model/layers/low_rank.h"
#include "ops/initial_values.h"
#include "qkv/bfloat16.h"

namespace qkv {

template <class Real>
struct Parameter {
  std::string name;  // such as decoder.layers.3.cross_attention.q.weight
  std::vector<int64_t> shape;
  Init init;
  int least_bits = 32;  // of a weight in inference: 4 in linear layers, 8 in tables of embeddings
  bool joined = false;  // belongs to the same linear layer as the parameter before it
  bool frozen = false;  // keeps its values in training
  Real* value = nullptr;
  Statistic<Real>* gradient = nullptr;      // null until allocate_gradients(), and of a frozen matrix
  Int8Matrix int8 = {};                     // replaces `value` if it has data
  Int4Matrix int4 = {};                     // the same
  std::vector<LowRank<Real>> updates = {};  // of the linear layer whose first weight this is

  int64_t size() const;
  bool is_quantized() const { return int8.values.data || int4.blocks; }
  Matrix<Real> matrix() const { return {value, shape.at(0), shape.at(1)}; }
  Matrix<Statistic<Real>> gradient_matrix() const { return {gradient, shape.at(0), shape.at(1)}; }
};

// The parameters of a model in the order of declaration, contiguous in memory, so that neighbours can be used as one
// matrix and the optimizer sees one array.
template <class Real>
class ParameterList {
 public:
  // Declares a parameter. Must be called before allocate(). The pointer stays valid for the lifetime of the list.
  const Parameter<Real>* add(std::string name, std::vector<int64_t> shape, Init init, int least_bits = 32,
                             bool joined = false);
  // While true, add() returns the parameter of this name that is already declared, which must have the same shape.
  void tie_next(bool shared) { shares_ = shared; }

  void allocate();  // values, all zero
  // Gradients, all zero. Frozen matrices have none, unless another matrix of their linear layer is trained. Frozen
  // vectors have gradients, which the optimizer ignores.
  void allocate_gradients();

  // Freezes the parameters for which is_frozen(parameter) returns true. Must be called before allocate_gradients().
  void freeze(const std::function<bool(const Parameter<Real>&)>& is_frozen);
  // Elements of parameters that are trained, contiguous among the values and among the gradients.
  struct Range {
    int64_t value = 0, gradient = 0, size = 0;
  };
  // Returns the fewest ranges that cover all parameters that are trained: one if none is frozen.
  std::vector<Range> trained_ranges() const;
  int64_t trained_size() const;

  // Attaches a low-rank update to the linear layer of a parameter. Its outputs count from that parameter; those of the
  // layer before it are added.
  void add_update(size_t parameter, LowRank<Real> update);

  // Uses read-only weights in memory that `owner` keeps alive. use() replaces the values of all parameters, in the
  // order of declaration; use_int8() and use_int4() replace those of one matrix, for inference.
  void use(std::span<const Real> values, std::shared_ptr<const void> owner);
  void use_int8(size_t parameter, const Int8Matrix& weights, std::shared_ptr<const void> owner);
  void use_int4(size_t parameter, const Int4Matrix& weights, std::shared_ptr<const void> owner);
  // Removes quantized parameters from the array of values. Must be called before values are set.
  void close_gaps();
  // Sets the initial values. With a deviation above 0, parameters with noise start with normal noise of that deviation.
  void initialize(uint64_t seed, double deviation = 0);

  const std::deque<Parameter<Real>>& all() const { return parameters_; }
  int64_t size() const;  // number of elements of all parameters
  std::span<Real> values() const { return values_; }
  std::span<Statistic<Real>> gradients() const { return gradients_; }

 private:
  void place(std::span<Real> values);
  bool has_gradient(size_t parameter) const;

  std::deque<Parameter<Real>> parameters_;
  bool shares_ = false;
  Arena value_memory_, gradient_memory_;
  std::span<Real> values_;
  std::span<Statistic<Real>> gradients_;
  std::vector<std::shared_ptr<const void>> owners_;  // of the memory in use
};

QKV_FOR_ELEMENTS(extern template struct Parameter);
QKV_FOR_ELEMENTS(extern template class ParameterList);

}  // namespace qkv
