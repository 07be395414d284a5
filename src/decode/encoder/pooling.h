// Pooling: one vector per text from the model's last hidden states h_1 … h_N of its tokens (qkv::Pooling), perhaps with
// linear layers after it, optionally normalized: v / max(‖v‖, 10⁻¹²).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/arena.h"
#include "model/heads/dense_layers.h"
#include "model/inference/inference_engine.h"
#include "qkv/embedder.h"
#include "qkv/matrix.h"

namespace qkv {

struct PoolingOptions {
  Pooling pooling = Pooling::mean;
  const StandaloneDense* dense = nullptr;  // applied to the pooled vectors; may be null
  bool normalize = false;
  int64_t batch_tokens = 0;  // per batch, or 0 (tokens_at_once); a longer text is a batch of its own
  // Layer (from 0) whose input is pooled, computed on the host; none means the last hidden states.
  std::optional<int64_t> layer = {};
};

// texts: ids, at least one per text -> vectors: [texts, d], or as wide as the outputs of `dense`, assigned. Texts of
// similar length form batches without padding. A vector depends neither on the other texts, nor on batch_tokens, nor on
// the number of threads. Throws Error for ids and lengths outside the model's range.
void embed_ids(const InferenceEngine& model, std::span<const std::vector<int32_t>> texts, const PoolingOptions& options,
               Arena& arena, Matrix<float> vectors);

}  // namespace qkv
