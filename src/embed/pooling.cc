#include "embed/pooling.h"

#include <algorithm>
#include <cmath>

#include "core/threads.h"
#include "core/to_size.h"
#include "decode/batched.h"

namespace qkv {
namespace {

// 1/N Σ_n h_n. Each column is summed in the order of the rows.
void mean(Matrix<const float> h, std::span<float> v) {
  std::vector<double> sum(v.size());
  for (int64_t n = 0; n < h.rows; n++)
    for (size_t i = 0; i < sum.size(); i++) sum[i] += static_cast<double>(h.row(n)[i]);
  for (size_t i = 0; i < sum.size(); i++) v[i] = static_cast<float>(sum[i] / static_cast<double>(h.rows));
}

}  // namespace

void pool(Matrix<const float> h, Pooling pooling, std::span<float> v) {
  switch (pooling) {
    case Pooling::mean:
      return mean(h, v);
    case Pooling::first:
      return void(std::copy_n(h.row(0), v.size(), v.begin()));
    case Pooling::last:
      return void(std::copy_n(h.row(h.rows - 1), v.size(), v.begin()));
  }
}

void normalize(std::span<float> v) {
  double squares = 0;
  for (const float x : v) squares += static_cast<double>(x) * static_cast<double>(x);
  const double norm = std::max(std::sqrt(squares), 1e-12);
  for (float& x : v) x = static_cast<float>(static_cast<double>(x) / norm);
}

void embed_ids(const Transformer<float>& model, std::span<const std::vector<int32_t>> texts,
               const PoolingOptions& options, Arena& arena, Matrix<float> vectors) {
  std::vector<int64_t> lengths;
  for (const auto& text : texts) lengths.push_back(std::ssize(text));
  const Batches batches = cut_by_length(lengths, tokens_at_once(options.batch_tokens));
  Packed packed;
  for (size_t b = 0; b < batches.size(); b++) {
    packed.clear();
    for (const size_t i : batches[b]) packed.append(texts[i]);
    const Arena::Scope scope(arena);
    Context context{.arena = arena, .inference = true};
    const Matrix<float> h = model.hidden(packed, context);
    parallel_for(packed.sequences(), [&](int64_t s) {
      const std::span<float> v(vectors.row(static_cast<int64_t>(batches[b][to_size(s)])), to_size(vectors.cols));
      pool(h.row_range(packed.offsets[to_size(s)], packed.offsets[to_size(s) + 1]), options.pooling, v);
      if (options.normalize) normalize(v);
    });
  }
}

}  // namespace qkv
