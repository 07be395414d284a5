// The gradients of attention by simple kernels, not optimized: each number of a gradient has one warp, which sums
// in a fixed order. qkv/attention.h.
//   dM = A ∘ (dA − D),   dQ = scale · dM K,   dK = scale · dMᵀ Q,   dV = Aᵀ dO
#include "attention.h"
#include "table.h"

namespace qkv::cuda {

// The arguments of a backward pass as kernels take them.
template <class T>
struct Backward {
  AttentionInput<T> in;
  Heads<const T> out;
  Heads<const float> lse;
  Heads<const T> dout;

  __device__ reference::BackwardInput<T> view() const { return {in, out, lse, dout}; }
};

namespace kernel {

// dQ_i. A warp has a query of a head, a lane every 32nd key.
template <class T>
__global__ void query_gradients(Backward<T> all, int64_t longest, Heads<T> dq) {
  __shared__ LaneNumbers shared;
  const reference::BackwardInput<T> b = all.view();
  const auto [s, h, i] = token_of(warp_number(), b.in.heads, longest);
  if (s >= b.in.sequences.count) return;
  const Span at = span(b.in.sequences, s);
  if (i >= at.T) return;
  float(&weights)[kLanes] = shared[threadIdx.x / kLanes];
  const float D = reference::row_term(b, s, h, i);
  const TokenRange seen = visible_keys(b.in, at, i);
  for (int64_t begin = 0; begin < b.in.key_width; begin += kColumns) {
    ColumnSums columns = {};
    for (int64_t j0 = seen.begin / kLanes * kLanes; j0 < seen.end; j0 += kLanes) {
      const int64_t j = j0 + lane_number();
      share(weights, j < at.S ? reference::derivative(b, s, h, i, j, D).dproduct : 0);
      add_rows_weighted(
          weights, begin, b.in.key_width, [&](int l) { return b.in.k.at(s, at.k0 + j0 + l, kv_head(b.in, h)); },
          columns);
    }
    store_columns(columns, 1, begin, b.in.key_width, dq.at(s, at.q0 + i, h));
  }
}

// dK_j and dV_j. A warp has a key of a key/value head, a lane every 32nd query of each head that reads it.
template <class T>
__global__ void key_gradients(Backward<T> all, int64_t longest, Heads<T> dk, Heads<T> dv) {
  __shared__ LaneNumbers shared_k, shared_v;
  const reference::BackwardInput<T> b = all.view();
  const auto [s, kv, j] = token_of(warp_number(), b.in.key_value_heads(), longest);
  if (s >= b.in.sequences.count) return;
  const Span at = span(b.in.sequences, s);
  if (j >= at.S) return;
  float(&k_weights)[kLanes] = shared_k[threadIdx.x / kLanes], (&v_weights)[kLanes] = shared_v[threadIdx.x / kLanes];
  const int64_t group = b.in.heads / b.in.key_value_heads();
  for (int64_t begin = 0; begin < b.in.key_width || begin < b.in.value_width; begin += kColumns) {
    ColumnSums k_columns = {}, v_columns = {};
    for (int64_t h = kv * group; h < (kv + 1) * group; h++)
      for (int64_t i0 = 0; i0 < at.T; i0 += kLanes) {
        const int64_t i = i0 + lane_number();
        reference::Derivative<float> d;
        if (i < at.T) d = reference::derivative(b, s, h, i, j, reference::row_term(b, s, h, i));
        share(k_weights, d.dproduct);
        share(v_weights, d.weight);
        add_rows_weighted(
            k_weights, begin, b.in.key_width, [&](int l) { return b.in.q.at(s, at.q0 + i0 + l, h); }, k_columns);
        add_rows_weighted(
            v_weights, begin, b.in.value_width, [&](int l) { return b.dout.at(s, at.q0 + i0 + l, h); }, v_columns);
      }
    store_columns(k_columns, 1, begin, b.in.key_width, dk.at(s, at.k0 + j, kv));
    store_columns(v_columns, 1, begin, b.in.value_width, dv.at(s, at.k0 + j, kv));
  }
}

// The lengths of the axes of a mask, 1 where it repeats.
struct MaskAxes {
  int64_t sequences, heads, rows, keys;
};

// An entry of the gradient of the mask: the sum over all that share it. A thread has an entry.
template <class T>
__global__ void mask_gradient(Backward<T> all, MaskAxes axes, AttentionMask<float> dmask) {
  const reference::BackwardInput<T> b = all.view();
  const Place place = place_in(axes.sequences * axes.heads, axes.rows * axes.keys);
  if (!place.inside) return;
  const int64_t s0 = place.row / axes.heads, h0 = place.row % axes.heads;
  const int64_t i0 = place.col / axes.keys, j0 = place.col % axes.keys;
  bool used = false;
  float sum = 0;
  for (int64_t s = s0; s < (dmask.sequence_stride ? s0 + 1 : b.in.sequences.count); s++) {
    const Span at = span(b.in.sequences, s);
    const int64_t i_end = dmask.row_stride ? std::min(at.T, i0 + 1) : at.T;
    const int64_t j_end = dmask.key_stride ? std::min(at.S, j0 + 1) : at.S;
    for (int64_t h = h0; h < (dmask.head_stride ? h0 + 1 : b.in.heads); h++)
      for (int64_t i = i0; i < i_end; i++)
        for (int64_t j = j0; j < j_end; j++) {
          used = true;
          sum += reference::derivative(b, s, h, i, j, reference::row_term(b, s, h, i)).dmask;
        }
  }
  if (used) *qkv::entry(dmask, s0, h0, i0, j0) = sum;
}

// The gradient of the bias of a head at a distance. A warp has both, a lane every 32nd query of a sequence.
template <class T>
__global__ void distance_gradient(Backward<T> all, float* to) {
  const reference::BackwardInput<T> b = all.view();
  const int64_t width = b.in.distance_bias.width(), reach = b.in.distance_bias.reach;
  const int64_t h = warp_number() / width, place_of_bias = warp_number() % width;
  if (h >= b.in.heads) return;
  float sum = 0;
  for (int64_t s = 0; s < b.in.sequences.count; s++) {
    const Span at = span(b.in.sequences, s);
    for (int64_t i = lane_number(); i < at.T; i += kLanes) {
      const float D = reference::row_term(b, s, h, i);
      // The first and the last place also have all keys that are farther away.
      const int64_t j = place(b.in, at, i) + place_of_bias - reach;
      const int64_t j_begin = place_of_bias == 0 ? 0 : std::max<int64_t>(j, 0);
      const int64_t j_end = place_of_bias == width - 1 ? at.S : std::min(j + 1, at.S);
      for (int64_t k = j_begin; k < j_end; k++) sum += reference::derivative(b, s, h, i, k, D).dmask;
    }
  }
  sum = warp_sum(sum);
  if (lane_number() == 0) to[h * width + place_of_bias] = sum;
}

}  // namespace kernel

namespace {

void attention_backward(qkv_element e, const qkv_attention* in, qkv_heads out, qkv_heads lse, qkv_heads dout,
                        const qkv_attention_gradients* g) {
  with_type(e, [&]<class T>(T) {
    const Backward<T> all = {attention_input<T>(*in), heads<const T>(out), heads<const float>(lse),
                             heads<const T>(dout)};
    launch_warps(in->sequences * in->heads * in->longest_queries, kernel::query_gradients<T>, all, in->longest_queries,
                 heads<T>(g->dq));
    launch_warps(in->sequences * in->kv_heads * in->longest_keys, kernel::key_gradients<T>, all, in->longest_keys,
                 heads<T>(g->dk), heads<T>(g->dv));
    if (g->dmask.data) {
      const kernel::MaskAxes axes = {g->dmask.sequence_stride ? in->sequences : 1, g->dmask.head_stride ? in->heads : 1,
                                     g->dmask.row_stride ? in->longest_queries : 1,
                                     g->dmask.key_stride ? in->longest_keys : 1};
      launch_elements(axes.sequences * axes.heads, axes.rows * axes.keys, kernel::mask_gradient<T>, all, axes,
                      mask_of(g->dmask));
    }
    if (in->distance_bias && g->ddistance_bias)
      launch_warps(in->heads * (2 * in->reach + 1), kernel::distance_gradient<T>, all, g->ddistance_bias);
  });
}

}  // namespace

void add_attention_backward(qkv_device& t) { t.attention_backward = entry<attention_backward>; }

}  // namespace qkv::cuda
