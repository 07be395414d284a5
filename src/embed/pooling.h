// Token ids of texts to one vector each: the model's last hidden states h of the text's tokens n = 1 … N, pooled,
//   mean   1/N Σ_n h_n
//   first  h_1
//   last   h_N
// and, normalised, v / max(‖v‖, 10⁻¹²).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/arena.h"
#include "core/matrix.h"
#include "model/transformer.h"
#include "qkv/embedder.h"

namespace qkv {

// h: [N, d], N ≥ 1 -> v: [d]
void pool(Matrix<const float> h, Pooling pooling, std::span<float> v);

// v / max(‖v‖, 10⁻¹²) in place.
void normalize(std::span<float> v);

struct PoolingOptions {
  Pooling pooling = Pooling::mean;
  bool normalize = false;
  int64_t batch_tokens = 4096;  // that the model reads at once, or one text
};

// texts: ids of at least one token each -> vectors: [texts, d], assigned. Texts of similar length are read together,
// without padding; a vector does not depend on the others, nor on batch_tokens, nor on the number of threads. Throws
// Error for ids and lengths that do not fit the model.
void embed_ids(const Transformer<float>& model, std::span<const std::vector<int32_t>> texts,
               const PoolingOptions& options, Arena& arena, Matrix<float> vectors);

}  // namespace qkv
