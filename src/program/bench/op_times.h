// Converts a profile to a list of ops.
#pragma once

#include <algorithm>
#include <vector>

#include "core/profile.h"
#include "program/bench/benchmark.h"

namespace qkv {

inline std::vector<OpTime> op_times(const Profile& profile, int64_t steps) {
  std::vector<OpTime> ops;
  for (const auto& [name, entry] : profile.entries()) {
    const double n = static_cast<double>(steps), per_second = 1e-9 / entry.seconds;
    ops.push_back({name, static_cast<double>(entry.calls) / n, 1e3 * entry.seconds / n, entry.work.flops * per_second,
                   entry.work.bytes * per_second});
  }
  std::sort(ops.begin(), ops.end(), [](const OpTime& a, const OpTime& b) { return a.ms > b.ms; });
  return ops;
}

}  // namespace qkv
