// An attention map as a trained model might give it: diagonals that sharpen with the layers, noise, softmax.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "core/random.h"
#include "qkv/attention_map.h"

namespace qkv::testing {

// Head h of layer l leans towards the tokens `h mod 4 − 1` to the left of the diagonal.
inline AttentionHead sample_head(size_t R, size_t C, size_t layer, size_t head, bool causal, Random& random) {
  AttentionHead result;
  for (size_t i = 0; i < R; i++) {
    const size_t visible = causal ? i + 1 : C;
    const double shift = static_cast<double>(head % 4) - 1;
    const double centre = std::clamp(static_cast<double>(i) * static_cast<double>(C) / static_cast<double>(R) - shift,
                                     0.0, static_cast<double>(visible - 1));
    std::vector<double> weights(C, 0.0);
    double sum = 0;
    for (size_t j = 0; j < visible; j++) {
      const double sharpness = 0.15 + 0.25 * static_cast<double>(layer);
      weights[j] = std::exp(0.9 * random.normal() - sharpness * std::abs(static_cast<double>(j) - centre));
      sum += weights[j];
    }
    for (const double w : weights) result.weights.push_back(static_cast<float>(w / sum));
  }
  return result;
}

inline AttentionKind sample_kind(const std::string& name, const std::vector<std::string>& rows,
                                 const std::vector<std::string>& columns, bool causal, size_t layers, size_t heads,
                                 uint64_t seed) {
  Random random(seed, Stream::test);
  AttentionKind kind{name, causal, rows, columns, {}};
  for (size_t l = 0; l < layers; l++) {
    std::vector<AttentionHead>& layer = kind.layers.emplace_back();
    for (size_t h = 0; h < heads; h++) layer.push_back(sample_head(rows.size(), columns.size(), l, h, causal, random));
  }
  return kind;
}

// The three kinds of an encoder–decoder over the given pieces.
inline AttentionMap sample_map(const std::vector<std::string>& source, const std::vector<std::string>& target,
                               size_t layers, size_t heads) {
  AttentionMap map;
  for (const std::string& piece : source) map.source += piece;
  for (const std::string& piece : target) map.target += piece;
  map.kinds = {sample_kind("encoder", source, source, false, layers, heads, 1),
               sample_kind("decoder", target, target, true, layers, heads, 2),
               sample_kind("cross", target, source, false, layers, heads, 3)};
  return map;
}

}  // namespace qkv::testing
