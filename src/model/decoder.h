// The decoder: N layers of causal self-attention, cross-attention over the encoder's output, and feed-forward.
#pragma once

#include <deque>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "layers/attention.h"
#include "layers/feed_forward.h"
#include "layers/residual.h"

namespace qkv {

template <class Real>
class DecoderLayer {
 public:
  struct Saved {
    typename MultiHeadAttention<Real>::Saved self_attention, cross_attention;
    typename FeedForward<Real>::Saved feed_forward;
    typename Residual<Real>::Saved residual_1, residual_2, residual_3;
  };
  // What decoding keeps of a layer: keys and values side by side, [rows, H (d_k + d_v)].
  struct Cache {
    Matrix<Real> self, cross;  // of the tokens so far, of the encoder's output
  };

  DecoderLayer(ParameterList<Real>& list, const std::string& name, const ModelConfig& config, DropoutSites& sites);

  // x: [N, d], memory: [M, d], the encoder's output, -> [N, d].
  Matrix<Real> forward(Matrix<const Real> x, Matrix<const Real> memory, const Sequences& self, const Sequences& cross,
                       Context& c, Saved& s) const;
  // In place: `gradient` becomes dx; the gradient of memory is added to dmemory.
  void backward(Matrix<Real> gradient, Matrix<Real> dmemory, const Sequences& self, const Sequences& cross, Context& c,
                const Saved& s) const;

  // One token of every sequence, x: [N, d] -> [N, d]; no gradient. The keys and values of token n first go to row
  // new_rows[n] of the cache.
  Matrix<Real> step(Matrix<const Real> x, const CachedKeys& self, const CachedKeys& cross, const Cache& cache,
                    std::span<const int32_t> new_rows, Context& c) const;

  const MultiHeadAttention<Real>& self_attention() const { return self_attention_; }
  const MultiHeadAttention<Real>& cross_attention() const { return cross_attention_; }

 private:
  MultiHeadAttention<Real> self_attention_;
  Residual<Real> residual_1_;
  MultiHeadAttention<Real> cross_attention_;
  Residual<Real> residual_2_;
  FeedForward<Real> feed_forward_;
  Residual<Real> residual_3_;
};

template <class Real>
class Decoder {
 public:
  struct Saved {
    std::span<typename DecoderLayer<Real>::Saved> layers;  // in the arena; not set if recomputed
    std::span<Matrix<const Real>> inputs;                  // of the layers, [N, d]
    Matrix<const Real> memory;                             // [M, d]
    typename Norm<Real>::Saved norm;
  };

  Decoder(ParameterList<Real>& list, const std::string& name, const ModelConfig& config, DropoutSites& sites);

  Matrix<Real> forward(Matrix<Real> x, Matrix<const Real> memory, const Sequences& self, const Sequences& cross,
                       Context& c, Saved& s) const;
  void backward(Matrix<Real> gradient, Matrix<Real> dmemory, const Sequences& self, const Sequences& cross, Context& c,
                const Saved& s) const;
  Matrix<Real> step(Matrix<Real> x, const CachedKeys& self, const CachedKeys& cross,
                    const std::vector<typename DecoderLayer<Real>::Cache>& caches, std::span<const int32_t> new_rows,
                    Context& c) const;

  const std::deque<DecoderLayer<Real>>& layers() const { return layers_; }

 private:
  std::deque<DecoderLayer<Real>> layers_;
  std::optional<Norm<Real>> norm_;
};

extern template class DecoderLayer<float>;
extern template class DecoderLayer<double>;
extern template class Decoder<float>;
extern template class Decoder<double>;

}  // namespace qkv
