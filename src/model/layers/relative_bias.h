// A learned relative position bias: a number for each head and bucket of distances, which is added to the scores of
// self-attention. All layers of a stack share it. Raffel et al., "Exploring the Limits of Transfer Learning with a
// Unified Text-to-Text Transformer" (2020), section 2.1.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/arena.h"
#include "core/device.h"
#include "model/layers/parameter.h"
#include "qkv/attention.h"
#include "qkv/config.h"

namespace qkv {

// Returns the bucket of a key at `distance` from the query, negative before it. In an encoder half of the buckets are
// for keys after the query; in a decoder, where these are hidden, they have bucket 0. With n buckets for one side, the
// first e = ⌊n/2⌋ hold one distance each, and a distance x ≥ e has bucket e + ⌊(n − e) ln(x / e) / ln(D / e)⌋, at most
// n − 1, where D is relative_distance.
int64_t relative_bucket(int64_t distance, const AttentionConfig& config, bool causal);

template <class Real>
class RelativeBias {
 public:
  // Declares the parameter: [relative_buckets, H].
  RelativeBias(ParameterList<Real>& list, const std::string& name, const ModelConfig& config, bool causal);

  // Returns the bias of each head and distance, in the arena.
  DistanceBias<const Statistic<Real>> distances(Arena& arena) const;
  // Adds to the gradient of the parameter, given that of the distances: [H, 2R + 1].
  void backward(const Statistic<Real>* ddistances) const;

  int64_t size() const { return heads_ * static_cast<int64_t>(buckets_.size()); }  // of the distances of all heads

 private:
  const Parameter<Real>* weight_;
  int64_t heads_;
  std::vector<int32_t> buckets_;  // of distances −R … R
};

QKV_FOR_ELEMENTS(extern template class RelativeBias);

}  // namespace qkv
