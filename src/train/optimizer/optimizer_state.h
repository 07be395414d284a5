// The state of the optimizer: Adam's moments and the moving average of the weights.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "core/function_ref.h"
#include "io/weights/tensor_view.h"
#include "model/layers/parameter.h"
#include "ops/adam.h"
#include "qkv/train.h"
#include "ranks/slices.h"
#include "train/optimizer/step_history.h"

namespace qkv {

// The gradients of some rows of the first parameter, which is a table, and of all other parameters.
struct RowGradients {
  std::span<const int32_t> rows;  // no row twice
  Matrix<float> table;            // [rows, d]
  std::span<float> others;
};

// Returns the buckets of the parameters that are trained; the range of a bucket is one of trained_ranges().
std::vector<Slice> buckets_of(const ParameterList<float>& parameters, int64_t ranks);
// Returns the slices of these buckets that a rank owns.
std::vector<Slice> slices_of(const ParameterList<float>& parameters, int64_t rank, int64_t ranks);

// Returns the sum of squares of which those of all blocks are given, one range after the other.
double sum_of_ranges(std::span<const double> squares, std::span<const ParameterList<float>::Range> ranges);

class OptimizerState {
 public:
  // Frozen parameters have no state and are not updated. With lazy_rows, a row of the first parameter is updated only
  // in the steps in which it has a gradient. It catches up on the steps that it missed when it is needed
  // (train/optimizer/step_history.h). Requires float32 moments, no weight decay and no frozen parameter.
  OptimizerState(const TrainingConfig& config, ParameterList<float>& parameters, bool lazy_rows = false);
  // Holds the state of these slices alone, and reads and updates no other parameters.
  OptimizerState(const TrainingConfig& config, ParameterList<float>& parameters, std::span<const Slice> slices);

  // Completes the sums of the squares of the gradients in all blocks of all ranges, of which those of the slices are
  // set.
  using Gather = FunctionRef<void(std::span<double> squares)>;
  // Performs one step of Adam and of the moving average with the gradients, which are summed over `tokens` tokens, and
  // sets the gradients to zero. Returns the norm of the mean gradient before clipping. If the norm is not finite, only
  // the gradients change. Requires `gather` unless the slices are all parameters.
  double update(int64_t step, int64_t tokens, Gather gather = {});
  // Sets the factor of the learning rate of the next steps. Lazy rows require 1.
  void scale_learning_rate(double factor) { rate_factor_ = factor; }
  // Sets the gradients to zero.
  void clear_gradients();
  // Returns the numbers of a step with gradients that are summed over `tokens` tokens. squares: Σ gradient².
  AdamStep adam_step(int64_t step, int64_t tokens, double squares) const;

  // The same with lazy rows. Before the gradients are computed, the rows must have caught up with the step before.
  double update(int64_t step, int64_t tokens, const RowGradients& gradients);
  void catch_up(int64_t step, std::span<const int32_t> rows);

  // Assigns the weights, or their average, after step `step`, which is the last one. Rows catch up in `out` only. The
  // average of parameters without a state is their value.
  void weights_into(int64_t step, std::span<float> out);
  void average_into(int64_t step, std::span<float> out);
  // Throws Error, naming the file that the state was read from, if a row was not updated between steps 0 and `step`.
  void check_rows(const std::string& path, int64_t step) const;

  enum class Unit { parameter, padded_parameter, block };  // of which each element of an array is one
  struct Array {
    std::string name;
    DType dtype;
    int64_t size;
    std::span<std::byte> bytes;
    Unit unit = Unit::parameter;
  };
  // Returns the number of elements for a slice with this number of parameters.
  static int64_t elements(Unit unit, int64_t parameters);
  // Returns all arrays, for saved states: adam.m, adam.v, with int8 moments their scales, ema if there is a moving
  // average, and with lazy rows the last step of each row.
  std::vector<Array> arrays() const;

  std::span<float> ema() const { return ema_; }  // empty without a moving average
  size_t bytes() const { return memory_.used(); }

 private:
  struct Float32Moments {
    std::span<float> m, v;
  };
  // A slice, and where its parameters and its state begin.
  struct Part {
    Slice slice;
    int64_t value = 0, gradient = 0;  // elements of the parameters
    int64_t state = 0;                // element of moments and average
    int64_t block = 0;                // block of packed moments
    int64_t squares = 0;              // element of squares_
  };

  template <class T>
  std::span<T> zeros(int64_t count);
  void add_parts(std::span<const Slice> slices);
  void allocate();
  std::span<float> gradient_of(const Part& part) const;
  std::span<double> squares_of(const Part& part);
  void update_part(AdamStep step, const Part& part);
  double sum_of_squares_of_all(Gather gather);
  void apply(AdamStep step, const RowGradients& gradients);
  void clear_other_gradients();
  int64_t width() const { return parameters_.all().front().shape[1]; }  // of the table
  AdamRow<float> table() const;
  // Calls f(row, missed, table elements of the row) for each row of the table that missed steps; copies all else from
  // `from` to `out`.
  template <class F>
  void caught_up_into(int64_t step, std::span<const float> from, std::span<float> out, F&& f);

  const TrainingConfig& config_;
  double rate_factor_ = 1;
  ParameterList<float>& parameters_;
  Arena memory_;
  std::variant<Float32Moments, Bfloat16Moments, Int8Moments> moments_;
  std::vector<ParameterList<float>::Range> ranges_;  // of the parameters that are trained
  std::vector<Part> parts_;                          // of these
  std::vector<double> squares_;                      // Σ gradient² of each block of the ranges
  std::span<float> ema_;                             // of the parts
  std::span<int32_t> last_;  // the last step of each row, 0 before the first one; empty without lazy rows
  StepHistory history_;
};

}  // namespace qkv
