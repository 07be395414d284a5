#include "model/layers/attention.h"

#include <algorithm>

#include "core/profile.h"
#include "core/to_size.h"
#include "ops/cached_attention.h"
#include "ops/rotary.h"
#include "ops/rows.h"

namespace qkv {
namespace {

// Returns the columns of m as heads of `width`.
template <class Real>
Heads<Real> as_heads(Matrix<Real> m, int64_t width) {
  return {m.data, m.stride, width};
}

// Returns the position of the last token of each sequence.
std::span<const int32_t> last_positions(const Sequences& sequences, Context& c) {
  const std::span<int32_t> positions(c.arena.take<int32_t>(sequences.count), to_size(sequences.count));
  for (int64_t s = 0; s < sequences.count; s++) positions[to_size(s)] = c.positions[to_size(sequences.k_end[s]) - 1];
  return positions;
}

// Whether each of M rows is a key of some sequence. Key ranges do not overlap.
bool all_are_keys(const Sequences& sequences, int64_t M) {
  for (int64_t s = 0; s < sequences.count; s++) M -= sequences.k_end[s] - sequences.k_begin[s];
  return M == 0;
}

// Returns the last `window` keys of each query.
CachedKeys last_keys(const CachedKeys& keys, int64_t window, int64_t N, Arena& arena) {
  int32_t* begin = arena.take<int32_t>(N);
  for (int64_t n = 0; n < N; n++)
    begin[n] = static_cast<int32_t>(std::max<int64_t>(keys.begin[n], keys.end[n] - window));
  return {keys.rows, begin, keys.end};
}

// Returns the cost of the products of attention: 2 T S (d_k + d_v) per head, half of it if causal. Counted only while
// profiling.
template <class Real>
Work attention_work(const AttentionInput<Real>& in) {
  if (!Profile::current()) return {};
  double pairs = 0;
  for (int64_t s = 0; s < in.sequences.count; s++)
    pairs += static_cast<double>(in.sequences.q_end[s] - in.sequences.q_begin[s]) *
             static_cast<double>(in.sequences.k_end[s] - in.sequences.k_begin[s]);
  if (in.causal != Causal::none) pairs /= 2;
  return {2 * pairs * static_cast<double>(in.heads * (in.key_width + in.value_width)), 0};
}

// Runs the op with a workspace from the arena.
template <class Real>
void run_attention(const AttentionInput<Real>& in, Heads<Real> out, Heads<Statistic<Real>> lse, Arena& arena) {
  const ProfiledOp profiled("attention", {in.sequences.count, in.heads, in.key_width}, attention_work(in));
  const Arena::Scope scope(arena);
  attention<Real>(in, out, lse, arena.bytes(attention_workspace(in)));
}

template <class Real>
void run_attention_backward(const AttentionInput<Real>& in, Heads<const Real> out, Heads<const Statistic<Real>> lse,
                            Heads<const Real> dout, const AttentionGradients<Real>& gradients, Arena& arena) {
  const Work forward = attention_work(in);  // five products instead of two
  const ProfiledOp profiled("attention, backward", {in.sequences.count, in.heads, in.key_width},
                            {2.5 * forward.flops, 0});
  const Arena::Scope scope(arena);
  attention_backward<Real>(in, out, lse, dout, gradients, arena.bytes(attention_backward_workspace(in)));
}

}  // namespace

template <class Real>
MultiHeadAttention<Real>::MultiHeadAttention(ParameterList<Real>& list, const std::string& name,
                                             const ModelConfig& config, AttentionScope scope, DropoutSites& sites,
                                             const LayerPositions<Real>& positions, const RelativeBias<Real>* relative)
    : heads_(config.attention.heads),
      kv_heads_(config.key_value_heads()),
      key_width_(config.attention.key_width),
      value_width_(config.attention.value_width),
      window_(scope == AttentionScope::local ? config.attention.window : 0),
      scale_(static_cast<Arithmetic<Real>>(config.attention_scale())),
      softcap_(static_cast<Arithmetic<Real>>(config.attention.softcap)),
      norm_over_heads_(config.attention.query_key_norm_over_heads),
      positions_(positions),
      relative_(relative),
      qkv_(list,
           {{name + ".q", heads_ * key_width_},
            {name + ".k", kv_heads_ * key_width_},
            {name + ".v", kv_heads_ * value_width_}},
           config.d_model, config.attention.input_bias),
      output_(list, {{name + ".output", config.d_model}}, heads_ * value_width_, config.attention.output_bias),
      p_(config.dropout.attention),
      site_(sites.next()) {
  if (config.attention.query_key_norm) {
    q_norm_.emplace(list, name + ".q_norm", norm_over_heads_ ? q_columns() : key_width_, config);
    k_norm_.emplace(list, name + ".k_norm", norm_over_heads_ ? k_columns() : key_width_, config);
  }
}

template <class Real>
Matrix<Real> MultiHeadAttention<Real>::normalize(const Norm<Real>& norm, Matrix<Real> m, Context& c,
                                                 std::span<typename Norm<Real>::Saved>& saved) const {
  const int64_t width = norm_over_heads_ ? m.cols : key_width_, rows = m.cols / width;
  saved = c.arena.objects<typename Norm<Real>::Saved>(to_size(rows));
  const Matrix<Real> y = c.inference ? m : c.arena.matrix<Real>(m.rows, m.cols);
  for (int64_t h = 0; h < rows; h++)
    norm.forward_into(m.col_range(h * width, (h + 1) * width), y.col_range(h * width, (h + 1) * width), c,
                      saved[to_size(h)]);
  return y;
}

template <class Real>
void MultiHeadAttention<Real>::normalize_backward(const Norm<Real>& norm, Matrix<Real> gradient, Context& c,
                                                  std::span<const typename Norm<Real>::Saved> saved) const {
  const int64_t width = norm_over_heads_ ? gradient.cols : key_width_;
  for (size_t h = 0; h < saved.size(); h++) {
    const int64_t begin = static_cast<int64_t>(h) * width;
    norm.backward(gradient.col_range(begin, begin + width), c, saved[h]);
  }
}

template <class Real>
void MultiHeadAttention<Real>::rotate(Matrix<Real> m, std::span<const int32_t> positions, Rotation turn) const {
  if (positions_.angles.data) rotary<Real>(m, key_width_, positions, positions_.angles, turn);
}

template <class Real>
AttentionInput<Real> MultiHeadAttention<Real>::input(const Saved& s, const VisibleKeys<Real>& keys, Causal causal,
                                                     const Context* c) const {
  AttentionInput<Real> in;
  in.q = as_heads<const Real>(s.q, key_width_);
  in.k = as_heads<const Real>(s.k, key_width_);
  in.v = as_heads<const Real>(s.v, value_width_);
  in.sequences = keys;
  in.mask = keys.mask;
  in.allowed = keys.allowed;
  in.heads = heads_;
  in.kv_heads = kv_heads_;
  in.key_width = key_width_;
  in.value_width = value_width_;
  in.scale = scale_;
  in.softcap = softcap_;
  in.causal = causal;
  if (window_ > 0) in.window = {window_ - 1, window_ - 1};  // if causal it ends at the query
  in.alibi = positions_.slopes;
  in.distance_bias = s.distances;
  if (c) in.dropout = c->dropout(p_, site_);
  return in;
}

template <class Real>
void MultiHeadAttention<Real>::project(Context& c, Saved& s) const {
  const int64_t Q = q_columns(), K = k_columns(), all = qkv_.out();
  if (s.u.data != s.z.data) {
    s.q = qkv_.forward(s.x, c, 0, Q);        // Q = X W_Qᵀ + b_Q
    s.k = qkv_.forward(s.z, c, Q, Q + K);    // K = Z W_Kᵀ + b_K
    s.v = qkv_.forward(s.u, c, Q + K, all);  // V = U W_Vᵀ + b_V
  } else if (s.z.data != s.x.data) {
    s.q = qkv_.forward(s.x, c, 0, Q);
    const Probe::Part part(c.probe, "keys and values", TokenSide::none);
    const Matrix<Real> kv = qkv_.forward(s.z, c, Q, all);  // K and V in one product
    s.k = kv.col_range(0, K);
    s.v = kv.col_range(K, kv.cols);
  } else {
    const Matrix<Real> qkv = qkv_.forward(s.x, c);  // all in one product
    s.q = qkv.col_range(0, Q);
    s.k = qkv.col_range(Q, Q + K);
    s.v = qkv.col_range(Q + K, all);
  }
}

template <class Real>
void MultiHeadAttention<Real>::normalize_and_rotate(const Sequences& sequences, Context& c, Saved& s) const {
  if (q_norm_) {
    s.q = normalize(*q_norm_, s.q, c, s.q_norms);
    s.k = normalize(*k_norm_, s.k, c, s.k_norms);
  }
  if (!positions_.angles.data) return;
  rotate(s.k, c.positions, Rotation::forward);
  rotate(s.q, s.x.rows == s.z.rows ? c.positions : last_positions(sequences, c), Rotation::forward);
  c.probed("rotary", s.k);
  c.probed("rotary", s.q);
}

template <class Real>
Matrix<Real> MultiHeadAttention<Real>::forward(Matrix<const Real> x, Matrix<const Real> z, Matrix<const Real> u,
                                               const VisibleKeys<Real>& keys, Causal causal, Context& c,
                                               Saved& s) const {
  s.x = x;
  s.z = z;
  s.u = u;
  project(c, s);
  normalize_and_rotate(keys, c, s);
  if (relative_) s.distances = relative_->distances(c.arena);
  s.heads = c.arena.matrix<Real>(x.rows, heads_ * value_width_);
  s.lse = c.arena.take<Statistic<Real>>(x.rows * heads_);
  // head_h = softmax(Q_h K_hᵀ / √d_k + M) V_h
  run_attention(input(s, keys, causal, &c), as_heads(s.heads, value_width_), Heads<Statistic<Real>>{s.lse, heads_, 1},
                c.arena);
  c.probed("attention", s.heads);
  return output_.forward(s.heads, c);  // Y = [head_1; …; head_H] W_Oᵀ + b_O
}

template <class Real>
void MultiHeadAttention<Real>::backward(Matrix<const Real> dy, Matrix<Real> dx, bool accumulate, Matrix<Real> dz,
                                        const VisibleKeys<Real>& keys, Causal causal, Context& c, const Saved& s,
                                        Matrix<Real> du) const {
  const Arena::Scope scope(c.arena);
  const int64_t Q = q_columns(), K = k_columns(), KV = keys_values_width(), all = Q + KV;
  const bool same_values = s.u.data == s.z.data, same_keys = same_values && s.z.data == s.x.data;
  // Gradients that one product passes on are column ranges of one matrix: [N, Q + KV], or [N, Q] and [M, KV].
  const Matrix<Real> dqkv = c.arena.matrix<Real>(s.x.rows, same_keys ? all : Q);
  const Matrix<Real> dkv = same_keys     ? dqkv.col_range(Q, all)
                           : same_values ? c.arena.matrix<Real>(s.z.rows, KV)
                                         : c.arena.matrix<Real>(s.z.rows, K);
  const Matrix<Real> dq = dqkv.col_range(0, Q), dk = dkv.col_range(0, K);
  const Matrix<Real> dv = same_values ? dkv.col_range(K, KV) : c.arena.matrix<Real>(s.u.rows, KV - K);

  if (!all_are_keys(keys, dkv.rows))  // attention_backward does not assign the others
    for (const Matrix<Real>& m : {dk, dv}) fill<Real>(m, 0);

  const Matrix<Real> dheads = c.arena.matrix<Real>(s.heads.rows, s.heads.cols);
  output_.backward(s.heads, dy, dheads, c);
  c.probed("heads", dheads, Pass::backward);
  const AttentionInput<Real> in = input(s, keys, causal, &c);
  Statistic<Real>* ddistances = relative_ ? c.arena.take<Statistic<Real>>(relative_->size()) : nullptr;
  const AttentionGradients<Real> gradients{
      as_heads(dq, key_width_), as_heads(dk, key_width_), as_heads(dv, value_width_), {}, ddistances};
  run_attention_backward<Real>(in, as_heads<const Real>(s.heads, value_width_), {s.lse, heads_, 1},
                               as_heads<const Real>(dheads, value_width_), gradients, c.arena);
  c.probed("attention", dq, Pass::backward);
  if (relative_) relative_->backward(ddistances);
  rotate(dk, c.positions, Rotation::back);
  rotate(dq, c.positions, Rotation::back);
  if (q_norm_) {
    normalize_backward(*q_norm_, dq, c, s.q_norms);
    normalize_backward(*k_norm_, dk, c, s.k_norms);
  }
  qkv_.backward(s.x, dqkv, dx, c, accumulate, 0, dqkv.cols);
  const Probe::Part part(c.probe, "keys and values", TokenSide::none);
  c.probed("attention", dk, Pass::backward);
  c.probed("attention", dv, Pass::backward);
  if (!same_keys) qkv_.backward(s.z, dkv, dz, c, true, Q, Q + dkv.cols);
  if (!same_values) qkv_.backward(s.u, dv, du, c, true, Q + K, all);
}

template <class Real>
void MultiHeadAttention<Real>::normalize_and_rotate(Matrix<Real> m, const std::optional<Norm<Real>>& norm,
                                                    Context& c) const {
  std::span<typename Norm<Real>::Saved> saved;
  if (norm) normalize(*norm, m, c, saved);
  rotate(m, c.positions, Rotation::forward);
}

template <class Real>
void MultiHeadAttention<Real>::keys_values(Matrix<const Real> z, Matrix<Real> kv, Context& c) const {
  qkv_.forward_into(z, kv, c, q_columns(), qkv_.out());
  normalize_and_rotate(kv.col_range(0, k_columns()), k_norm_, c);
}

template <class Real>
Matrix<Real> MultiHeadAttention<Real>::attend(Matrix<const Real> x, Matrix<const Real> kv, const CachedKeys& keys,
                                              Context& c) const {
  const Matrix<Real> q = qkv_.forward(x, c, 0, q_columns());
  normalize_and_rotate(q, q_norm_, c);
  return attend_from(q, kv, keys, c);
}

template <class Real>
Matrix<Real> MultiHeadAttention<Real>::step(Matrix<const Real> x, Matrix<const Real> z, Matrix<Real> kv,
                                            std::span<const int32_t> new_rows, const CachedKeys& keys,
                                            Context& c) const {
  const int64_t Q = q_columns(), all = qkv_.out();
  const Matrix<Real> qkv = c.arena.matrix<Real>(x.rows, all), q = qkv.col_range(0, Q), new_kv = qkv.col_range(Q, all);
  if (x.data == z.data) {
    qkv_.forward_into(x, qkv, c, 0, all);
  } else {
    qkv_.forward_into(x, q, c, 0, Q);
    qkv_.forward_into(z, new_kv, c, Q, all);
  }
  normalize_and_rotate(q, q_norm_, c);
  normalize_and_rotate(new_kv.col_range(0, k_columns()), k_norm_, c);
  scatter_rows<Real>(new_kv, new_rows, kv);
  return attend_from(q, kv, keys, c);
}

template <class Real>
Matrix<Real> MultiHeadAttention<Real>::attend_from(Matrix<const Real> q, Matrix<const Real> kv, const CachedKeys& keys,
                                                   Context& c) const {
  const Matrix<Real> heads = c.arena.matrix<Real>(q.rows, heads_ * value_width_);
  const CachedKeys seen = window_ > 0 ? last_keys(keys, window_, q.rows, c.arena) : keys;
  cached_attention<Real>({q, kv, seen, heads_, kv_heads_, key_width_, value_width_, scale_, softcap_, positions_.slopes,
                          relative_ ? relative_->distances(c.arena) : DistanceBias<const Statistic<Real>>()},
                         heads, c.arena);
  return output_.forward(heads, c);
}

template <class Real>
void MultiHeadAttention<Real>::weights(const VisibleKeys<Real>& keys, Causal causal, const Saved& s, int64_t sequence,
                                       int64_t head, Matrix<Statistic<Real>> A) const {
  attention_weights<Real>(input(s, keys, causal, nullptr), {s.lse, heads_, 1}, {sequence, head, 0, A.rows}, A.data,
                          A.stride);
}

QKV_FOR_ELEMENTS(template class MultiHeadAttention);

}  // namespace qkv
