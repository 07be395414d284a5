// A stack of N layers. A layer has self-attention, cross-attention (if any) and a feed-forward network, each inside a
// residual connection with a norm:
//   encoder                         bidirectional self-attention, no cross-attention
//   decoder                         causal self-attention, cross-attention to the encoder's output
//   decoder of decoder-only models  causal self-attention, no cross-attention
#pragma once

#include <deque>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/device.h"
#include "model/layers/attention.h"
#include "model/layers/feed_forward.h"
#include "model/layers/position_tables.h"
#include "model/layers/residual.h"

namespace qkv {

struct StackKind {
  Causal causal;  // of self-attention
  bool cross;     // whether layers have cross-attention
};

template <class Real>
class Layer {
 public:
  struct Saved {
    typename MultiHeadAttention<Real>::Saved self_attention, cross_attention;
    typename FeedForward<Real>::Saved feed_forward;
    typename Residual<Real>::Saved self_attention_residual, cross_attention_residual, feed_forward_residual;
  };
  // The keys and values of a layer while decoding, side by side: [rows, K (d_k + d_v)].
  struct Cache {
    Matrix<Real> self, cross;  // of the target tokens so far, of the encoder's output
  };

  // `index`: the place of the layer in its stack, from which its kind of self-attention follows. `positions`
  // must outlive the layer; it may be null without rotary positions and ALiBi. `relative`: as in MultiHeadAttention.
  Layer(ParameterList<Real>& list, const std::string& name, int64_t index, const ModelConfig& config, StackKind kind,
        DropoutSites& sites, const PositionTables<Real>* positions = nullptr,
        const RelativeBias<Real>* relative = nullptr);

  // x: [N, d], memory: [M, d], the encoder's output, -> [N, d]. A layer without cross-attention ignores memory and
  // `cross`.
  Matrix<Real> forward(Matrix<const Real> x, Matrix<const Real> memory, const VisibleKeys<Real>& self,
                       const VisibleKeys<Real>& cross, Context& c, Saved& s) const;
  // In place: `gradient` becomes dx; the gradient of memory is added to dmemory.
  void backward(Matrix<Real> gradient, Matrix<Real> dmemory, const VisibleKeys<Real>& self,
                const VisibleKeys<Real>& cross, Context& c, const Saved& s) const;

  // Returns the last row of each sequence, [sequences, d], without saving anything for backward. For a causal layer
  // without cross-attention.
  Matrix<Real> last(Matrix<const Real> x, const Sequences& self, Context& c) const;

  // Decodes N tokens, x: [N, d] -> [N, d], without backward. First writes the keys and values of token n to row
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

  // y = x + dropout(attend(n)) + dropout(ffn(m)) with n = norm_1(x), and m = norm_2(x) or m = n.
  template <class Attend>
  Matrix<Real> forward_parallel(Matrix<const Real> x, Context& c, Saved& s, Attend&& attend) const;
  void backward_parallel(Matrix<Real> gradient, const VisibleKeys<Real>& self, Context& c, const Saved& s) const;
  bool is_parallel() const { return sublayers_ != Sublayers::sequential; }
  bool shares_norm() const { return sublayers_ == Sublayers::parallel_shared_norm; }

  // Returns the input of the keys and values of self-attention, given the layer's input x and the input h of queries.
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
    std::span<typename Layer<Real>::Saved> layers;  // in the arena; not set with recomputation
    std::span<Matrix<const Real>> inputs;           // of the layers, [N, d]
    Matrix<const Real> memory;                      // [M, d]
    typename Norm<Real>::Saved norm;
  };

  Stack(ParameterList<Real>& list, const std::string& name, int64_t layers, const ModelConfig& config, StackKind kind,
        DropoutSites& sites, const PositionTables<Real>* positions = nullptr);
  Stack(const Stack&) = delete;
  Stack& operator=(const Stack&) = delete;

  // Applies the layers one after the other, then the final norm (if any). Arguments are those of Layer.
  Matrix<Real> forward(Matrix<const Real> x, Matrix<const Real> memory, const VisibleKeys<Real>& self,
                       const VisibleKeys<Real>& cross, Context& c, Saved& s) const {
    return forward_from(0, x, memory, self, cross, c, s);
  }
  // The same from layer `first` on, whose input is x. A backward pass needs all layers.
  Matrix<Real> forward_from(int64_t first, Matrix<const Real> x, Matrix<const Real> memory,
                            const VisibleKeys<Real>& self, const VisibleKeys<Real>& cross, Context& c, Saved& s) const;
  void backward(Matrix<Real> gradient, Matrix<Real> dmemory, const VisibleKeys<Real>& self,
                const VisibleKeys<Real>& cross, Context& c, const Saved& s) const;
  // Returns forward's result for the last row of each sequence, [sequences, d], without saving anything for backward.
  // For a causal stack without cross-attention.
  Matrix<Real> last(Matrix<Real> x, const Sequences& self, Context& c) const;
  Matrix<Real> step(Matrix<Real> x, const CachedKeys& self, const CachedKeys& cross,
                    const std::vector<typename Layer<Real>::Cache>& caches, std::span<const int32_t> new_rows,
                    Context& c) const;

  // Applies the final norm, if any, to rows of hidden states.
  Matrix<const Real> final_norm(Matrix<const Real> x, Context& c) const;

  const std::deque<Layer<Real>>& layers() const { return layers_; }
  int64_t first_parameter() const { return first_; }  // its number in the list

 private:
  const int64_t first_;                         // parameter of the stack
  std::optional<RelativeBias<Real>> relative_;  // of self-attention in all layers
  std::deque<Layer<Real>> layers_;
  std::vector<int64_t> ends_;  // of the parameters of each layer
  std::optional<Norm<Real>> norm_;
  int64_t end_ = 0;  // of the parameters
};

QKV_FOR_ELEMENTS(extern template class Layer);
QKV_FOR_ELEMENTS(extern template class Stack);

}  // namespace qkv
