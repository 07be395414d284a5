// Limits of this machine: the highest rate of float32 multiply-adds (twelve independent chains on each thread) and the
// highest rate of reading memory.
#include "ops/cpu/machine_limits.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/cpu/machine_limits.cc"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "core/arena.h"
#include "core/clock.h"
#include "core/system/isa.h"
#include "core/system/threads.h"
#include "core/to_size.h"
#include "ops/cpu/simd/simd-inl.h"
#include "qkv/system.h"

HWY_BEFORE_NAMESPACE();
namespace qkv::HWY_NAMESPACE {

// Runs `steps` steps and returns the number of floating-point operations. Stores the result in *sink, so that the
// compiler cannot remove the computation.
double FmaChains(int64_t steps, float* sink) {
  const Vector x = set(0.999999f), y = set(1e-6f);  // each chain stays near 1
  Vector a[12];
  HWY_UNROLL(12)
  for (int i = 0; i < 12; i++) a[i] = set(1.0f + static_cast<float>(i));
  for (int64_t n = 0; n < steps; n++) {
    HWY_UNROLL(12)
    for (int i = 0; i < 12; i++) a[i] = hn::MulAdd(a[i], x, y);
  }
  for (int i = 1; i < 12; i++) a[0] = hn::Add(a[0], a[i]);
  *sink = sum_of_lanes(a[0]);
  return 12.0 * 2.0 * static_cast<double>(lanes() * steps);
}

float SumOf(const float* x, int64_t count) {
  Vector sums[4] = {zero(), zero(), zero(), zero()};
  for (int64_t i = 0; i + 4 * lanes() <= count; i += 4 * lanes())
    for (int64_t j = 0; j < 4; j++) sums[j] = hn::Add(sums[j], hn::LoadU(Floats(), x + i + j * lanes()));
  return sum_of_lanes(hn::Add(hn::Add(sums[0], sums[1]), hn::Add(sums[2], sums[3])));
}

}  // namespace qkv::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace qkv {

HWY_EXPORT(FmaChains);
HWY_EXPORT(SumOf);

namespace {

// Returns the best of the rates that `measure` returns, called repeatedly for about `seconds`.
template <class F>
double best_rate(double seconds, F&& measure) {
  double best = 0;
  const Clock::time_point start = Clock::now();
  do best = std::max(best, measure());
  while (seconds_since(start) < seconds);
  return best;
}

}  // namespace

double measure_fma_peak(double seconds) {
  const auto kernel = QKV_DISPATCH(FmaChains);
  std::vector<float> sinks(to_size(threads()));
  std::vector<double> operations(sinks.size());
  return best_rate(seconds, [&] {
    const Clock::time_point from = Clock::now();
    parallel_for(threads(), [&](int64_t t) { operations[to_size(t)] = kernel(1'000'000, &sinks[to_size(t)]); });
    return std::accumulate(operations.begin(), operations.end(), 0.0) / seconds_since(from);
  });
}

MemoryReader::MemoryReader() : x_(memory_.matrix<float>(kFloats / kBlock, kBlock)), sums_(to_size(x_.rows)) {
  parallel_for(x_.rows, [&](int64_t r) { std::fill_n(x_.row(r), kBlock, 1.0f); });
}

double MemoryReader::bytes_per_second() {
  const auto kernel = QKV_DISPATCH(SumOf);
  const Clock::time_point from = Clock::now();
  parallel_for(x_.rows, [&](int64_t r) { sums_[to_size(r)] = kernel(x_.row(r), kBlock); });
  return 4.0 * static_cast<double>(kFloats) / seconds_since(from);
}

double measure_read_bandwidth(double seconds) {
  MemoryReader reader;
  return best_rate(seconds, [&] { return reader.bytes_per_second(); });
}

}  // namespace qkv
#endif
