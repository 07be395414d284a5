// Adam with packed moments, element by element.
#pragma once

#include <algorithm>
#include <vector>

#include "ops/moment_codes.h"
#include "ops/reference/adam_reference.h"

namespace qkv::reference {

inline void unpack(const Bfloat16Moments& p, size_t, size_t i, float& m, float& v) { m = p.m[i], v = p.v[i]; }
inline void unpack(const Int8Moments& p, size_t block, size_t i, float& m, float& v) {
  m = decode_m(p.m[i], p.m_scale[block]);
  v = decode_v(p.v[i], p.v_scale[block]);
}

// Packs the moments of one block, whose first element is `first`.
inline void pack(const std::vector<float>& m, const std::vector<float>& v, uint32_t key, size_t, size_t first,
                 const Bfloat16Moments& p) {
  for (size_t i = 0; i < m.size(); i++) {
    const uint32_t random = rounding_bits(key, static_cast<uint32_t>(i));
    p.m[first + i] = encode_bfloat16(m[i], random & 0xFFFF);
    p.v[first + i] = encode_bfloat16(v[i], random >> 16);
  }
}
inline void pack(const std::vector<float>& m, const std::vector<float>& v, uint32_t key, size_t block, size_t first,
                 const Int8Moments& p) {
  float m_largest = 0, v_largest = 0;
  for (size_t i = 0; i < m.size(); i++) {
    m_largest = std::max(m_largest, std::abs(m[i]));
    v_largest = std::max(v_largest, v[i]);
  }
  for (size_t i = 0; i < m.size(); i++) {
    const uint32_t random = rounding_bits(key, static_cast<uint32_t>(i));
    p.m[first + i] = encode_m(m[i], m_largest, random & 0xFFFF);
    p.v[first + i] = encode_v(v[i], v_largest, random >> 16);
  }
  p.m_scale[block] = m_largest;
  p.v_scale[block] = v_largest;
}

template <class Moments>
void adam_update_packed(const AdamStep& step, std::span<float> w, std::span<float> gradient, const Moments& moments,
                        std::span<float> average = {}) {
  for (size_t first = 0, block = 0; first < w.size(); first += kMomentBlock, block++) {
    const size_t n = std::min<size_t>(kMomentBlock, w.size() - first);
    std::vector<float> m(n), v(n);
    for (size_t i = 0; i < n; i++) unpack(moments, block, first + i, m[i], v[i]);
    reference::adam_update<float>(step, w.subspan(first, n), gradient.subspan(first, n), m, v,
                                  average.empty() ? average : average.subspan(first, n));
    pack(m, v, rounding_key(step.seed, step.step, step.first_block + static_cast<int64_t>(block)), block, first,
         moments);
  }
}

}  // namespace qkv::reference
