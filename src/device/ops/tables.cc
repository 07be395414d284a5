// Numbers that the host computes, once, for the device.
#include <vector>

#include "core/to_size.h"
#include "device/copies.h"
#include "device/ops/command.h"
#include "ops/distance_bias.h"
#include "ops/embedding.h"
#include "ops/initial_values.h"
#include "ops/rotary.h"
#include "ops/sampled_loss.h"

namespace qkv {
namespace {

// Copies what compute(matrix of floats) assigns to a matrix without gaps.
template <class T, class F>
void from_host(Matrix<Device<T>> to, F&& compute) {
  std::vector<float> numbers(to_size(to.rows * to.cols));
  compute(Matrix<float>(numbers.data(), to.rows, to.cols));
  upload(numbers, to.data);
}

}  // namespace

#define QKV_SPECIALIZE(T)                                                                                          \
  template <>                                                                                                      \
  void sinusoidal_positions(Positions kind, Matrix<T> P) {                                                         \
    from_host(P, [&](Matrix<float> numbers) { sinusoidal_positions<float>(kind, numbers); });                      \
  }                                                                                                                \
  template <>                                                                                                      \
  void rotary_table(const RotaryConfig& rates, Matrix<T> table) {                                                  \
    from_host(table, [&](Matrix<float> numbers) { rotary_table<float>(rates, numbers); });                         \
  }                                                                                                                \
  template <>                                                                                                      \
  void initial_values(const Init& init, Random random, T* values, int64_t count) {                                 \
    const auto compute = [&](Matrix<float> numbers) { initial_values<float>(init, random, numbers.data, count); }; \
    from_host(Matrix<T>(values, 1, count), compute);                                                               \
  }                                                                                                                \
  template <>                                                                                                      \
  void shared_negatives_bias(std::span<const float> log_draws, T* bias) {                                          \
    const auto compute = [&](Matrix<float> numbers) { shared_negatives_bias<float>(log_draws, numbers.data); };    \
    from_host(Matrix<T>(bias, 1, std::ssize(log_draws)), compute);                                                 \
  }
QKV_FOR_DEVICE_ELEMENTS(QKV_SPECIALIZE)
#undef QKV_SPECIALIZE

template <>
void alibi_slopes(int64_t H, Device<float>* slopes) {
  from_host(Matrix<Device<float>>(slopes, 1, H), [&](Matrix<float> numbers) { alibi_slopes<float>(H, numbers.data); });
}

}  // namespace qkv
