// A stack of N layers, each of self-attention, cross-attention where it has one, and feed-forward, all inside residual
// connections with norms:
//   the encoder             attends everywhere, without cross-attention
//   the decoder             attends to itself causally, and to the encoder's output
//   a decoder-only model's  attends to itself causally
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

struct StackKind {
  Causal causal;  // of self-attention
  bool cross;     // whether there is cross-attention
};

template <class Real>
class Layer {
 public:
  struct Saved {
    typename MultiHeadAttention<Real>::Saved self_attention, cross_attention;
    typename FeedForward<Real>::Saved feed_forward;
    typename Residual<Real>::Saved self_attention_residual, cross_attention_residual, feed_forward_residual;
  };
  // What decoding keeps of a layer: keys and values side by side, [rows, H (d_k + d_v)].
  struct Cache {
    Matrix<Real> self, cross;  // of the tokens so far, of the encoder's output
  };

  Layer(ParameterList<Real>& list, const std::string& name, const ModelConfig& config, StackKind kind,
        DropoutSites& sites);

  // x: [N, d], memory: [M, d], the encoder's output, -> [N, d]. Without cross-attention memory and `cross` are not
  // read.
  Matrix<Real> forward(Matrix<const Real> x, Matrix<const Real> memory, const Sequences& self, const Sequences& cross,
                       Context& c, Saved& s) const;
  // In place: `gradient` becomes dx; the gradient of memory is added to dmemory.
  void backward(Matrix<Real> gradient, Matrix<Real> dmemory, const Sequences& self, const Sequences& cross, Context& c,
                const Saved& s) const;

  // The last row of every sequence alone, [sequences, d], without a gradient. For a causal layer without
  // cross-attention.
  Matrix<Real> last(Matrix<const Real> x, const Sequences& self, Context& c) const;

  // One token of every sequence, x: [N, d] -> [N, d]; no gradient. The keys and values of token n first go to row
  // new_rows[n] of the cache.
  Matrix<Real> step(Matrix<const Real> x, const CachedKeys& self, const CachedKeys& cross, const Cache& cache,
                    std::span<const int32_t> new_rows, Context& c) const;

  const MultiHeadAttention<Real>& self_attention() const { return self_attention_; }
  const MultiHeadAttention<Real>& cross_attention() const { return cross_->attention; }

 private:
  struct Cross {
    MultiHeadAttention<Real> attention;
    Residual<Real> residual;
  };

  // y = x + dropout(attend(n)) + dropout(feed(m)) with n = norm_1(x) and m = norm_2(x), or m = n with one norm for
  // both.
  template <class Attend>
  Matrix<Real> forward_parallel(Matrix<const Real> x, Context& c, Saved& s, Attend&& attend) const;
  void backward_parallel(Matrix<Real> gradient, const Sequences& self, Context& c, const Saved& s) const;

  // What the keys and values of self-attention are made of, x being the layer's input and h that of its queries.
  Matrix<const Real> keys_input(Matrix<const Real> x, Matrix<const Real> h) const { return keys_of_x_ ? x : h; }

  Causal causal_;
  bool keys_of_x_;
  Sublayers sublayers_;
  MultiHeadAttention<Real> self_attention_;
  Residual<Real> self_attention_residual_;
  std::optional<Cross> cross_;
  FeedForward<Real> feed_forward_;
  Residual<Real> feed_forward_residual_;
};

template <class Real>
class Stack {
 public:
  struct Saved {
    std::span<typename Layer<Real>::Saved> layers;  // in the arena; not set if recomputed
    std::span<Matrix<const Real>> inputs;           // of the layers, [N, d]
    Matrix<const Real> memory;                      // [M, d]
    typename Norm<Real>::Saved norm;
  };

  Stack(ParameterList<Real>& list, const std::string& name, int64_t layers, const ModelConfig& config, StackKind kind,
        DropoutSites& sites);

  // As the layers', one after the other, and the final norm where there is one.
  Matrix<Real> forward(Matrix<Real> x, Matrix<const Real> memory, const Sequences& self, const Sequences& cross,
                       Context& c, Saved& s) const;
  void backward(Matrix<Real> gradient, Matrix<Real> dmemory, const Sequences& self, const Sequences& cross, Context& c,
                const Saved& s) const;
  // What forward gives for the last row of every sequence, [sequences, d], without a gradient. For a causal stack
  // without cross-attention.
  Matrix<Real> last(Matrix<Real> x, const Sequences& self, Context& c) const;
  Matrix<Real> step(Matrix<Real> x, const CachedKeys& self, const CachedKeys& cross,
                    const std::vector<typename Layer<Real>::Cache>& caches, std::span<const int32_t> new_rows,
                    Context& c) const;

  const std::deque<Layer<Real>>& layers() const { return layers_; }

 private:
  std::deque<Layer<Real>> layers_;
  std::optional<Norm<Real>> norm_;
};

extern template class Layer<float>;
extern template class Layer<double>;
extern template class Stack<float>;
extern template class Stack<double>;

}  // namespace qkv
