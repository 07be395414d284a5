// The state of the optimizer: Adam's moments and the moving average of the weights.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "io/tensor_view.h"
#include "layers/parameter.h"
#include "ops/optimizer/adam.h"
#include "qkv/train.h"
#include "train/missed_steps.h"

namespace qkv {

// The gradients of some rows of the first parameter, which is a table, and of all other parameters.
struct RowGradients {
  std::span<const int32_t> rows;  // no row twice
  Matrix<float> table;            // [rows, d]
  std::span<float> others;
};

class OptimizerState {
 public:
  // Frozen parameters have no state and are not updated. With lazy_rows, a row of the first parameter is updated only
  // in the steps in which it has a gradient. It catches up on the steps that it missed when it is needed
  // (train/missed_steps.h). Requires float32 moments, no weight decay and no frozen parameter.
  OptimizerState(const TrainingConfig& config, ParameterList<float>& parameters, bool lazy_rows = false);

  // Performs one step of Adam and of the moving average with the gradients, which are summed over `tokens` tokens, and
  // sets the gradients to zero. Returns the norm of the mean gradient before clipping.
  double update(int64_t step, int64_t tokens);

  // The same with lazy rows. Before the gradients are computed, the rows must have caught up with the step before.
  double update(int64_t step, int64_t tokens, const RowGradients& gradients);
  void catch_up(int64_t step, std::span<const int32_t> rows);

  // Assigns the weights, or their average, after step `step`, which is the last one. Rows catch up in `out` only.
  void weights_into(int64_t step, std::span<float> out);
  void average_into(int64_t step, std::span<float> out);
  // Throws Error, naming the file that the state was read from, if a row was not updated between steps 0 and `step`.
  void check_rows(const std::string& path, int64_t step) const;

  // All arrays, for saved states: adam.m, adam.v, with int8 moments their scales, ema if there is a moving average, and
  // with lazy rows the last step of each row.
  struct Array {
    std::string name;
    DType dtype;
    int64_t size;
    std::span<std::byte> bytes;
  };
  std::vector<Array> arrays() const;

  std::span<float> ema() const { return ema_; }  // empty without a moving average
  size_t bytes() const { return memory_.used(); }

 private:
  struct Float32Moments {
    std::span<float> m, v;
  };

  template <class T>
  std::span<T> zeros(int64_t count);
  double update_range(const AdamStep& step, const ParameterList<float>::Range& range, int64_t first, int64_t block);
  void clear_other_gradients();
  AdamStep adam_step(int64_t step, double mean, double squares) const;
  int64_t width() const { return parameters_.all().front().shape[1]; }  // of the table
  AdamRow<float> table() const;
  // Calls f(row, missed, table elements of the row) for each row of the table that missed steps; copies all else from
  // `from` to `out`.
  template <class F>
  void caught_up_into(int64_t step, std::span<const float> from, std::span<float> out, F&& f);

  const TrainingConfig& config_;
  ParameterList<float>& parameters_;
  Arena memory_;
  std::variant<Float32Moments, Bfloat16Moments, Int8Moments> moments_;
  std::vector<ParameterList<float>::Range> ranges_;  // of the parameters that are trained
  std::span<float> ema_;                             // of these
  std::span<int32_t> last_;  // the last step of each row, 0 before the first one; empty without lazy rows
  StepHistory history_;
};

}  // namespace qkv
