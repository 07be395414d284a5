#include "decode/encoder/pooling.h"

#include <algorithm>
#include <cmath>

#include "core/system/threads.h"
#include "core/to_size.h"
#include "decode/batches.h"

namespace qkv {
namespace {

// Σ_n w_n h_n / divisor with the weights w_n = 1, or w_n = n + 1 for rows counted from 0. Each column is summed in the
// order of the rows.
void weighted_sum(Matrix<const float> h, bool by_place, double divisor, std::span<float> v) {
  std::vector<double> sum(v.size());
  for (int64_t n = 0; n < h.rows; n++) {
    const double weight = by_place ? static_cast<double>(n + 1) : 1;
    for (size_t i = 0; i < sum.size(); i++) sum[i] += weight * static_cast<double>(h.row(n)[i]);
  }
  for (size_t i = 0; i < sum.size(); i++) v[i] = static_cast<float>(sum[i] / divisor);
}

void column_maximum(Matrix<const float> h, std::span<float> v) {
  std::copy_n(h.row(0), v.size(), v.begin());
  for (int64_t n = 1; n < h.rows; n++)
    for (size_t i = 0; i < v.size(); i++) v[i] = std::max(v[i], h.row(n)[i]);
}

}  // namespace

void pool(Matrix<const float> h, Pooling pooling, std::span<float> v) {
  const auto rows = static_cast<double>(h.rows);
  switch (pooling) {
    case Pooling::mean:
      return weighted_sum(h, false, rows, v);
    case Pooling::first:
      return void(std::copy_n(h.row(0), v.size(), v.begin()));
    case Pooling::last:
      return void(std::copy_n(h.row(h.rows - 1), v.size(), v.begin()));
    case Pooling::max:
      return column_maximum(h, v);
    case Pooling::mean_sqrt_len:
      return weighted_sum(h, false, std::sqrt(rows), v);
    case Pooling::weighted_mean:
      return weighted_sum(h, true, rows * (rows + 1) / 2, v);
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
    const Matrix<float> pooled = arena.matrix<float>(packed.sequences(), h.cols);
    parallel_for(packed.sequences(), [&](int64_t s) {
      pool(h.row_range(packed.offsets[to_size(s)], packed.offsets[to_size(s) + 1]), options.pooling,
           {pooled.row(s), to_size(pooled.cols)});
    });
    const Matrix<float> found = options.dense ? options.dense->forward(pooled, context) : pooled;
    for (int64_t s = 0; s < found.rows; s++) {
      const std::span<float> v(vectors.row(static_cast<int64_t>(batches[b][to_size(s)])), to_size(vectors.cols));
      std::copy_n(found.row(s), v.size(), v.begin());
      if (options.normalize) normalize(v);
    }
  }
}

}  // namespace qkv
