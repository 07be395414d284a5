#include "decode/encoder/pooling.h"

#include "decode/batches.h"
#include "ops/pooling.h"
#include "ops/rows.h"

namespace qkv {
void embed_ids(const InferenceEngine& model, std::span<const std::vector<int32_t>> texts, const PoolingOptions& options,
               Arena& arena, Matrix<float> vectors) {
  std::vector<int64_t> lengths;
  for (const auto& text : texts) lengths.push_back(std::ssize(text));
  const Batches batches = cut_by_length(lengths, tokens_at_once(options.batch_tokens));
  Packed packed;
  for (size_t b = 0; b < batches.size(); b++) {
    packed.clear();
    for (const size_t i : batches[b]) packed.append(texts[i]);
    const Arena::Scope scope(arena);
    Context context{.arena = arena, .inference = true};
    const Matrix<const float> h =
        options.layer ? model.host().hidden(packed, *options.layer, context) : model.hidden(packed, context);
    const Matrix<float> pooled = arena.matrix<float>(packed.sequences(), h.cols);
    pool_rows<float>(h, packed.offsets, options.pooling, pooled);
    const Matrix<float> found = options.dense ? options.dense->forward(pooled, context) : pooled;
    if (options.normalize) normalize_rows(found);
    scatter_rows<float>(found, std::vector<int32_t>(batches[b].begin(), batches[b].end()), vectors);
  }
}

}  // namespace qkv
