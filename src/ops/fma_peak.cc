// The most float32 multiply-adds that this machine does: twelve independent chains of them on each thread.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/fma_peak.cc"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include <algorithm>
#include <chrono>
#include <numeric>
#include <vector>

#include "core/isa.h"
#include "core/threads.h"
#include "ops/simd-inl.h"
#include "qkv/benchmark.h"

HWY_BEFORE_NAMESPACE();
namespace qkv::HWY_NAMESPACE {

// Floating-point operations of `steps` steps; *sink receives what they compute, so that they are not left out.
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

}  // namespace qkv::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace qkv {

HWY_EXPORT(FmaChains);

double measure_fma_peak(double seconds) {
  using Clock = std::chrono::steady_clock;
  const auto kernel = QKV_DISPATCH(FmaChains);
  const auto elapsed = [](Clock::time_point from) {
    return std::chrono::duration<double>(Clock::now() - from).count();
  };
  double best = 0;
  const Clock::time_point start = Clock::now();
  do {
    std::vector<float> sinks(static_cast<size_t>(threads()));
    std::vector<double> operations(sinks.size());
    const Clock::time_point from = Clock::now();
    parallel_for(threads(), [&](int64_t t) {
      operations[static_cast<size_t>(t)] = kernel(1'000'000, &sinks[static_cast<size_t>(t)]);
    });
    best = std::max(best, std::accumulate(operations.begin(), operations.end(), 0.0) / elapsed(from));
  } while (elapsed(start) < seconds);
  return best;
}

}  // namespace qkv
#endif
