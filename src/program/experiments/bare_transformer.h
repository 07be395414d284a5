// A decoder-only language model of the library's layers in which residual connections and norms can be left out, which
// no model of the product can: y = [x +] f([norm] x) around each sublayer f. With both it is the library's model with
// pre-norm.
#pragma once

#include <deque>
#include <optional>
#include <string>

#include "core/batch.h"
#include "model/layers/attention.h"
#include "model/layers/context.h"
#include "model/layers/embedding.h"
#include "model/layers/feed_forward.h"
#include "model/layers/norm.h"
#include "model/layers/output.h"
#include "model/layers/parameter.h"
#include "model/layers/position_tables.h"
#include "qkv/config.h"

namespace qkv {

struct BareParts {
  bool residual = true;    // around each sublayer
  bool norm = true;        // before each sublayer
  bool final_norm = true;  // after the last layer
};

template <class Real>
class BareTransformer {
 public:
  // The config is that of small_language_model; its norm position is not read.
  BareTransformer(const ModelConfig& config, BareParts parts);
  BareTransformer(const BareTransformer&) = delete;
  BareTransformer& operator=(const BareTransformer&) = delete;

  ParameterList<Real>& parameters() { return list_; }
  const ParameterList<Real>& parameters() const { return list_; }

  // Returns the loss of a batch and adds its gradient to those of the parameters, as Transformer does.
  Loss loss_and_gradient(const Batch& batch, Objective objective, Context& c) const;

  // Returns how different the outputs of the last layer are, before the final norm: Σ |x_n − mean|² / Σ |x_n|² over
  // the tokens of the batch. 0: all tokens have the same vector.
  double variety(const Batch& batch) const;
  // Returns the root mean square of what the attention of the last layer reads.
  double input_size(const Batch& batch) const;

 private:
  struct BareLayer {
    MultiHeadAttention<Real> attention;
    std::optional<Norm<Real>> attention_norm;
    FeedForward<Real> feed_forward;
    std::optional<Norm<Real>> feed_forward_norm;
  };
  struct SavedLayer {
    typename MultiHeadAttention<Real>::Saved attention;
    typename FeedForward<Real>::Saved feed_forward;
    typename Norm<Real>::Saved attention_norm, feed_forward_norm;
  };
  struct Saved {
    typename Embedding<Real>::Saved embedding;
    std::span<SavedLayer> layers;
    typename Norm<Real>::Saved norm;
  };

  void add_layer(const std::string& name);
  // Returns the output of the last layer.
  Matrix<Real> forward(const Packed& text, Context& c, Saved& s) const;
  template <class Sublayer>
  Matrix<Real> around(const std::optional<Norm<Real>>& norm, Matrix<Real> x, Context& c,
                      typename Norm<Real>::Saved& saved, Sublayer&& f) const;
  template <class SublayerBackward>
  void around_backward(const std::optional<Norm<Real>>& norm, Matrix<Real> gradient, Context& c,
                       const typename Norm<Real>::Saved& saved, SublayerBackward&& f_backward) const;
  void backward(const Packed& text, Matrix<Real> gradient, Context& c, const Saved& s) const;

  ModelConfig config_;
  BareParts parts_;
  PositionTables<Real> positions_;
  ParameterList<Real> list_;
  DropoutSites sites_;
  const Parameter<Real>* table_;
  Embedding<Real> embedding_;
  std::deque<BareLayer> layers_;
  std::optional<Norm<Real>> norm_;
  Output<Real> output_;
};

extern template class BareTransformer<float>;
extern template class BareTransformer<double>;

}  // namespace qkv
