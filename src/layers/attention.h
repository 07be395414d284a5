// Multi-head attention: head_h = Attention(X W_Q^h, Z W_K^h, Z W_V^h), Y = [head_1; …; head_H] W_Oᵀ + b_O.
// Self-attention where Z = X, cross-attention where Z is the encoder's output. Section 3.2.2 of the paper. With K < H
// heads of keys and values, H/K queries share each: Ainslie et al., "GQA" (2023).
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "layers/linear.h"
#include "layers/norm.h"
#include "ops/attention/cached_attention.h"
#include "ops/attention/rotary.h"
#include "qkv/attention.h"
#include "qkv/config.h"

namespace qkv {

template <class Real>
class MultiHeadAttention {
 public:
  struct Saved {
    Matrix<const Real> x, z;  // [N, d], [M, d]; z is x in self-attention
    Matrix<Real> q, k, v;     // [N, H d_k], [M, K d_k], [M, K d_v]; column ranges of packed products
    std::span<typename Norm<Real>::Saved> q_norms, k_norms;  // of each head, where queries and keys are normalised
    Matrix<Real> heads;                                      // [N, H d_v], the heads side by side
    Real* lse = nullptr;                                     // [N, H]
  };

  // Rotary positions, ALiBi and the window are those of self-attention.
  enum class Kind { self, cross };
  MultiHeadAttention(ParameterList<Real>& list, const std::string& name, const ModelConfig& config, Kind kind,
                     DropoutSites& sites);

  // x: [N, d], z: [M, d] -> [N, d]. With rotary positions c.positions are z's, and also x's where N = M; else every x
  // is the last one of its sequence.
  Matrix<Real> forward(Matrix<const Real> x, Matrix<const Real> z, const Sequences& sequences, Causal causal,
                       Context& c, Saved& s) const;

  // dx is assigned, and may be dy, or added to when `accumulate`. In self-attention it is the sum of three paths;
  // cross-attention adds to dz: [M, d].
  void backward(Matrix<const Real> dy, Matrix<Real> dx, bool accumulate, Matrix<Real> dz, const Sequences& sequences,
                Causal causal, Context& c, const Saved& s) const;

  // Decoding keeps keys and values side by side, [M, K (d_k + d_v)]: makes those of z; attention of the queries of
  // x: [N, d] over rows of them.
  void keys_values(Matrix<const Real> z, Matrix<Real> kv, Context& c) const;
  Matrix<Real> attend(Matrix<const Real> x, Matrix<const Real> kv, const CachedKeys& keys, Context& c) const;
  // The next tokens: keys and values of z: [N, d] become the new rows of kv, over which x: [N, d] attends.
  Matrix<Real> step(Matrix<const Real> x, Matrix<const Real> z, Matrix<Real> kv, std::span<const int32_t> new_rows,
                    const CachedKeys& keys, Context& c) const;
  int64_t keys_values_width() const { return kv_heads_ * (key_width_ + value_width_); }

  // The weights of one sequence and head of a forward pass without dropout: [T, S].
  void weights(const Sequences& sequences, Causal causal, const Saved& s, int64_t sequence, int64_t head,
               Matrix<Real> A) const;

 private:
  AttentionInput<Real> input(Matrix<const Real> q, Matrix<const Real> k, Matrix<const Real> v,
                             const Sequences& sequences, Causal causal, const Context* c) const;
  int64_t q_columns() const { return heads_ * key_width_; }
  int64_t k_columns() const { return kv_heads_ * key_width_; }
  // Each head of m by itself; a new matrix, or in place in inference.
  Matrix<Real> normalise(const Norm<Real>& norm, Matrix<Real> m, Context& c,
                         std::span<typename Norm<Real>::Saved>& saved) const;
  void normalise_backward(const Norm<Real>& norm, Matrix<Real> gradient, Context& c,
                          std::span<const typename Norm<Real>::Saved> saved) const;
  // Heads of queries or keys, as attention takes them: in place, in inference.
  void prepare(Matrix<Real> m, const std::optional<Norm<Real>>& norm, Context& c) const;
  Matrix<Real> attend_from(Matrix<const Real> q, Matrix<const Real> kv, const CachedKeys& keys, Context& c) const;
  void turn(Matrix<Real> m, std::span<const int32_t> positions, Turn turn) const;  // where positions are rotary

  int64_t heads_, kv_heads_, key_width_, value_width_;
  int64_t window_;  // 0: none
  Real softcap_;
  std::vector<Real> slopes_;  // of ALiBi, or empty
  Linear<Real> qkv_, output_;
  std::optional<Norm<Real>> q_norm_, k_norm_;
  double p_;
  uint32_t site_;
  std::shared_ptr<const std::vector<Real>> angles_;  // [max_length, rotated width], or null
  Matrix<const Real> angles_matrix_;
};

extern template class MultiHeadAttention<float>;
extern template class MultiHeadAttention<double>;

}  // namespace qkv
