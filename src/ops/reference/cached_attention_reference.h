// Attention with a key-value cache as plain loops: the reference for the kernel, and the float64 version.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "ops/cached_attention.h"

namespace qkv::reference {

template <class Real>
void cached_attention(const CachedAttention<Real>& in, Matrix<Real> y) {
  const CachedKeys& keys = in.keys;
  const int64_t dk = in.key_width, dv = in.value_width;
  for (int64_t n = 0; n < y.rows; n++)
    for (int64_t h = 0; h < in.heads; h++) {
      const int64_t kv = h * in.kv_heads / in.heads;
      const auto row = [&](int64_t j) { return in.cache.row(keys.rows ? keys.rows[j] : j); };
      std::vector<Real> a;
      Real most = -HUGE_VAL, sum = 0;
      for (int64_t j = keys.begin[n]; j < keys.end[n]; j++) {
        Real s = 0;
        for (int64_t c = 0; c < dk; c++) s += in.q(n, h * dk + c) * row(j)[kv * dk + c];
        s *= in.scale;
        if (in.softcap > 0) s = in.softcap * std::tanh(s / in.softcap);
        if (in.alibi) s -= in.alibi[h] * static_cast<Real>(keys.end[n] - 1 - j);
        if (const auto& bias = in.distance_bias; bias.data)
          s += bias.data[h * bias.width() + bias.reach + std::max<int64_t>(j - (keys.end[n] - 1), -bias.reach)];
        a.push_back(s);
        most = std::max(most, a.back());
      }
      for (Real& x : a) sum += x = std::exp(x - most);
      for (int64_t c = 0; c < dv; c++) {
        Real mix = 0;
        for (size_t j = 0; j < a.size(); j++)
          mix += a[j] / sum * row(keys.begin[n] + static_cast<int64_t>(j))[in.kv_heads * dk + kv * dv + c];
        y(n, h * dv + c) = mix;
      }
    }
}

}  // namespace qkv::reference
