// Attention with a key-value cache: ops/cached_attention.h. A warp has a query of a head, a lane every 32nd key,
// counted from the first key of the query.
//   y_n = Σ_j a_nj v_j,   a_n = softmax_j(scale · q_n · k_j)
#include <algorithm>
#include <cmath>
#include <limits>

#include "attention.h"
#include "table.h"

namespace qkv::cuda {

// The arguments as a kernel takes them.
template <class T>
struct Cached {
  Matrix<const T> q, cache;
  const int32_t *rows, *begin, *end;
  int64_t heads, kv_heads, key_width, value_width;
  float scale, softcap;
  const float* alibi;
  DistanceBias<const float> distance_bias;

  // Returns the cached keys and values at place j.
  __device__ const T* row(int64_t j) const { return cache.row(rows ? rows[j] : j); }

  // Returns the score of the key at place j.
  __device__ float score(int64_t n, int64_t h, int64_t j) const {
    const T *query = q.row(n) + h * key_width, *key = row(j) + h * kv_heads / heads * key_width;
    const int64_t back = end[n] - 1 - j;  // positions before the query
    float s = 0;
    for (int64_t c = 0; c < key_width; c++) s += float(query[c]) * float(key[c]);
    s *= scale;
    if (softcap > 0) s = softcap * std::tanh(s / softcap);
    if (alibi) s -= alibi[h] * float(back);
    if (distance_bias.data)
      s += distance_bias.data[h * distance_bias.width() + distance_bias.reach - std::min(back, distance_bias.reach)];
    return s;
  }
};

namespace kernel {

template <class T>
__global__ void cached_attention(Cached<T> in, Matrix<T> y) {
  __shared__ LaneNumbers shared;
  const int64_t n = warp_number() / in.heads, h = warp_number() % in.heads;
  if (n >= y.rows) return;
  float(&weights)[kLanes] = shared[threadIdx.x / kLanes];
  const int64_t first = in.begin[n], last = in.end[n];
  const int64_t values = in.kv_heads * in.key_width + h * in.kv_heads / in.heads * in.value_width;
  float largest = -std::numeric_limits<float>::infinity();
  for (int64_t j = first + lane_number(); j < last; j += kLanes) largest = larger(largest, in.score(n, h, j));
  largest = warp_max(largest);
  for (int64_t begin = 0; begin < in.value_width; begin += kColumns) {
    float sum = 0;
    ColumnSums columns = {};
    for (int64_t j0 = first; j0 < last; j0 += kLanes) {
      const int64_t j = j0 + lane_number();
      const float a = j < last ? std::exp(in.score(n, h, j) - largest) : 0;
      sum += a;
      share(weights, a);
      add_rows_weighted(
          weights, begin, in.value_width, [&](int l) { return in.row(j0 + l) + values; }, columns);
    }
    sum = warp_sum(sum);
    store_columns(columns, first < last ? 1 / sum : 0, begin, in.value_width, y.row(n) + h * in.value_width);
  }
}

}  // namespace kernel

namespace {

void cached_attention(qkv_element e, const qkv_cached_attention* a, qkv_matrix y) {
  with_type(e, [&]<class T>(T) {
    const Cached<T> in = {matrix<const T>(a->q),
                          matrix<const T>(a->cache),
                          a->rows,
                          a->begin,
                          a->end,
                          a->heads,
                          a->kv_heads,
                          a->key_width,
                          a->value_width,
                          a->scale,
                          a->softcap,
                          a->alibi,
                          {a->distance_bias, a->reach}};
    launch_warps(y.rows * a->heads, kernel::cached_attention<T>, in, matrix<T>(y));
  });
}

}  // namespace

void add_cached_attention(qkv_device& t) { t.cached_attention = entry<cached_attention>; }

}  // namespace qkv::cuda
