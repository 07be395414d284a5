// The allowed error of a float version of attention: two or three times that of the plain version.
#pragma once

#include <string>

#include "core/to_size.h"
#include "tests/ops/attention_problem.h"

namespace qkv::testing {

inline double largest(const std::vector<double>& x) {
  double most = 0;
  for (double value : x)
    if (std::isfinite(value) && value != 777) most = std::max(most, std::abs(value));
  return most;
}

// Within `times` the error of the plain float version, or within `ulps` units in the last place of the largest value or
// of the terms that cancel in it.
inline void expect_close(const std::vector<float>& fast, const std::vector<float>& plain,
                         const std::vector<double>& exact, double times, double ulps, double terms, const char* what) {
  const double floor = ulps * std::numeric_limits<float>::epsilon() * std::max(largest(exact), terms);
  EXPECT_LE(max_error(fast, exact), times * max_error(plain, exact) + floor) << what;
}

// The largest Σ_e |dO_ie O_ie|. dA and D have this magnitude even if dS = A ∘ (dA − D) is small.
inline double largest_term(const AttentionProblem<double>& p) {
  double most = 0;
  for (int64_t s = 0; s < p.input().sequences.count; s++)
    for (int64_t i = 0; i < p.shape.T[to_size(s)]; i++)
      for (int64_t h = 0; h < p.shape.heads; h++) {
        const int64_t token = span(p.input().sequences, s).q0 + i, width = p.shape.value_width;
        const double* o = p.queries(p.out.data(), width).at(s, token, h);
        const double* g = p.queries(p.dout.data(), width).at(s, token, h);
        double sum = 0;
        for (int64_t e = 0; e < width; e++) sum += std::abs(o[e] * g[e]);
        most = std::max(most, sum);
      }
  return most;
}

}  // namespace qkv::testing
