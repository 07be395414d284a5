// Multi-head attention: head_h = Attention(X W_Q^h, Z W_K^h, U W_V^h), Y = [head_1; …; head_H] W_Oᵀ + b_O.
// In self-attention U = Z = X, in cross-attention U = Z is the encoder's output. "Attention Is All You Need", section
// 3.2.2.
// With K < H key/value heads, H / K query heads share each: Ainslie et al., "GQA" (2023).
#pragma once

#include <optional>
#include <span>
#include <string>

#include "core/cached_keys.h"
#include "core/device.h"
#include "model/layers/linear.h"
#include "model/layers/norm.h"
#include "model/layers/position_tables.h"
#include "model/layers/relative_bias.h"
#include "qkv/attention.h"
#include "qkv/config.h"

namespace qkv {

enum class Rotation;  // ops/rotary.h

// The keys that each query sees: those of its sequence which the masks allow.
template <class Real>
struct VisibleKeys : Sequences {
  AttentionMask<const Statistic<Real>> mask;  // added to the scores; null data means none
  AttentionMask<const uint8_t> allowed;       // 0 hides a key; null data means none

  VisibleKeys() = default;
  VisibleKeys(const Sequences& sequences) : Sequences(sequences) {}
};

// Self-attention, where each token sees the window or all tokens, and cross-attention.
enum class AttentionScope { local, global, cross };

template <class Real>
class MultiHeadAttention {
 public:
  struct Saved {
    Matrix<const Real> x, z, u;  // the inputs of queries, keys and values: [N, d], [M, d], [M, d]
    Matrix<Real> q, k, v;        // [N, H d_k], [M, K d_k], [M, K d_v]; column ranges of packed products
    std::span<typename Norm<Real>::Saved> q_norms, k_norms;  // of each head or of all, if they are normalized
    Matrix<Real> heads;                                      // [N, H d_v], the heads side by side
    Statistic<Real>* lse = nullptr;                          // [N, H]
    DistanceBias<const Statistic<Real>> distances;           // if there is a relative bias
  };

  // Positions and the window apply to self-attention only. `positions` and `relative`, the bias of distances or null,
  // must outlive the layer.
  MultiHeadAttention(ParameterList<Real>& list, const std::string& name, const ModelConfig& config,
                     AttentionScope scope, DropoutSites& sites, const LayerPositions<Real>& positions = {},
                     const RelativeBias<Real>* relative = nullptr);

  // x: [N, d], z: [M, d] -> [N, d]. With rotary positions, c.positions are those of z. They are those of x too if
  // N = M; otherwise x holds the last token of each sequence.
  Matrix<Real> forward(Matrix<const Real> x, Matrix<const Real> z, const VisibleKeys<Real>& keys, Causal causal,
                       Context& c, Saved& s) const {
    return forward(x, z, z, keys, causal, c, s);
  }
  // The values come from another input, u: [M, d].
  Matrix<Real> forward(Matrix<const Real> x, Matrix<const Real> z, Matrix<const Real> u, const VisibleKeys<Real>& keys,
                       Causal causal, Context& c, Saved& s) const;

  // Assigns dx, which may be dy, or adds to it if `accumulate`. If all inputs are x, dx is the sum of three paths;
  // otherwise the gradients of keys and values are added to dz and, unless u is z, to du: [M, d].
  void backward(Matrix<const Real> dy, Matrix<Real> dx, bool accumulate, Matrix<Real> dz, const VisibleKeys<Real>& keys,
                Causal causal, Context& c, const Saved& s, Matrix<Real> du = {}) const;

  // In a cache, keys and values are side by side, [M, K (d_k + d_v)]. keys_values computes those of z; attend
  // computes attention of the queries of x: [N, d] over rows of them.
  void keys_values(Matrix<const Real> z, Matrix<Real> kv, Context& c) const;
  Matrix<Real> attend(Matrix<const Real> x, Matrix<const Real> kv, const CachedKeys& keys, Context& c) const;
  // Decodes N tokens: writes the keys and values of z: [N, d] to the rows new_rows of kv, then computes attention of
  // x: [N, d].
  Matrix<Real> step(Matrix<const Real> x, Matrix<const Real> z, Matrix<Real> kv, std::span<const int32_t> new_rows,
                    const CachedKeys& keys, Context& c) const;
  int64_t heads() const { return heads_; }
  int64_t keys_values_width() const { return kv_heads_ * (key_width_ + value_width_); }

  // Computes the weights of one sequence and head of a forward pass without dropout: A: [T, S].
  void weights(const VisibleKeys<Real>& keys, Causal causal, const Saved& s, int64_t sequence, int64_t head,
               Matrix<Statistic<Real>> A) const;

 private:
  // Computes Q, K and V from the inputs.
  void project(Context& c, Saved& s) const;
  // Normalizes and rotates Q and K.
  void normalize_and_rotate(const Sequences& sequences, Context& c, Saved& s) const;
  AttentionInput<Real> input(const Saved& s, const VisibleKeys<Real>& keys, Causal causal, const Context* c) const;
  int64_t q_columns() const { return heads_ * key_width_; }
  int64_t k_columns() const { return kv_heads_ * key_width_; }
  // Normalizes each head of m, or all of them as one row; in place in inference, otherwise into a new matrix.
  Matrix<Real> normalize(const Norm<Real>& norm, Matrix<Real> m, Context& c,
                         std::span<typename Norm<Real>::Saved>& saved) const;
  void normalize_backward(const Norm<Real>& norm, Matrix<Real> gradient, Context& c,
                          std::span<const typename Norm<Real>::Saved> saved) const;
  // Normalizes and rotates heads of queries or keys in place, in inference.
  void normalize_and_rotate(Matrix<Real> m, const std::optional<Norm<Real>>& norm, Context& c) const;
  Matrix<Real> attend_from(Matrix<const Real> q, Matrix<const Real> kv, const CachedKeys& keys, Context& c) const;
  void rotate(Matrix<Real> m, std::span<const int32_t> positions, Rotation turn) const;  // if positions are rotary

  int64_t heads_, kv_heads_, key_width_, value_width_;
  int64_t window_;  // 0 means all keys
  Arithmetic<Real> scale_, softcap_;
  bool norm_over_heads_;  // of queries and keys
  LayerPositions<Real> positions_;
  const RelativeBias<Real>* relative_;
  Linear<Real> qkv_, output_;
  std::optional<Norm<Real>> q_norm_, k_norm_;
  double p_;
  uint32_t site_;
};

QKV_FOR_ELEMENTS(extern template class MultiHeadAttention);

}  // namespace qkv
