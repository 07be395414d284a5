// The encoder–decoder of "Attention Is All You Need" (Vaswani et al., 2017): from a batch to its loss and gradients.
// Without encoder layers it is a decoder-only model, whose batches have no source; without decoder layers an encoder
// that gives hidden states and no more.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/function_ref.h"
#include "data/batch.h"
#include "layers/embedding.h"
#include "layers/output.h"
#include "model/stack.h"
#include "qkv/config.h"

namespace qkv {

template <class Real>
class Transformer {
 public:
  struct Saved {
    typename Embedding<Real>::Saved source_embedding, target_embedding;
    typename Stack<Real>::Saved encoder, decoder;
    Matrix<Real> memory, h;  // [M, d], [N, d]: outputs of encoder and decoder
  };

  // Declares and allocates the parameters (zero). Throws Error if `config` is not sound.
  explicit Transformer(const ModelConfig& config);
  Transformer(const Transformer&) = delete;
  Transformer& operator=(const Transformer&) = delete;

  const ModelConfig& config() const { return config_; }
  ParameterList<Real>& parameters() { return parameters_; }
  const ParameterList<Real>& parameters() const { return parameters_; }

  // The label-smoothed loss of a batch. Throws Error if an id, a length or a count does not fit the model.
  Loss loss(const Batch& batch, double smoothing, Context& c) const;
  // The same in training: the gradient of the sum of losses is added to the parameters' gradients.
  Loss loss_and_gradient(const Batch& batch, Objective objective, Context& c) const;
  // The same with another loss: loss_of(h, dh) gives it for the last hidden states h: [N, d], assigns its gradient to
  // dh: [N, d] and adds the gradients of the parameters that it reads. Labels are not read.
  using LossOf = FunctionRef<Loss(Matrix<const Real> h, Matrix<Real> dh)>;
  Loss loss_and_gradient(const Batch& batch, LossOf loss_of, Context& c) const;

  // Forward up to the last hidden state; what backward and the attention weights need is left in `s`.
  void forward(const Packed& source, const Packed& target, Context& c, Saved& s) const;

  // The last hidden state of every sequence, [sequences, d], of a decoder-only model; what a recommender needs. Throws
  // Error as forward does, and for a sequence without tokens.
  Matrix<Real> last_hidden(const Packed& target, Context& c) const;

  // Parts of decoding, with a context for inference: the encoder's output, [M, d]; the keys and values of
  // cross-attention, one cache a layer; the last hidden state of N sequences after one more token each, [N, d]
  // (Layer::step); and from it the next token, by output(). A model with gaps in time is not decoded.
  Matrix<Real> encode(const Packed& source, Context& c) const;
  void fill_cross(Matrix<const Real> memory, const std::vector<typename Layer<Real>::Cache>& caches, Context& c) const;
  struct Step {
    std::span<const int32_t> ids, positions, new_rows;  // [N]
    CachedKeys self, cross;
  };
  Matrix<Real> step(const Step& step, const std::vector<typename Layer<Real>::Cache>& caches, Context& c) const;

  // What the model makes of texts, [N, d], in inference: the encoder's output, or the last hidden states of a decoder
  // alone. Throws Error if an id or a length does not fit the model.
  Matrix<Real> hidden(const Packed& texts, Context& c) const;

  const Output<Real>& output() const { return *output_; }  // where there is a decoder, as the next
  // The table of items, [V, d], which holds the sums with their features, and that of the features, [F, d], or null.
  const Parameter<Real>& items() const { return *target_table_; }
  const Parameter<Real>* item_features() const { return features_; }
  const Stack<Real>& encoder() const { return *encoder_; }  // where there is one
  const Stack<Real>& decoder() const { return *decoder_; }

 private:
  void backward(const Batch& batch, Matrix<Real> dh, Context& c, Saved& s) const;

  ModelConfig config_;
  ParameterList<Real> parameters_;
  DropoutSites sites_;
  const Parameter<Real>*source_table_, *target_table_;  // null without that side
  std::optional<Embedding<Real>> source_embedding_, target_embedding_;
  std::optional<Stack<Real>> encoder_, decoder_;
  std::optional<Output<Real>> output_;
  const Parameter<Real>* features_;
};

// Parameters of a model of this configuration, without making it.
int64_t count_parameters(const ModelConfig& config);

// Each sequence of `queries` looks at the sequence of the same number of `keys`. Views of both, which must outlive it.
Sequences sequences_of(const Packed& queries, const Packed& keys);

extern template class Transformer<float>;
extern template class Transformer<double>;

}  // namespace qkv
