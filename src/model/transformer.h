// The Transformer of "Attention Is All You Need" (Vaswani et al., 2017): from a batch to its loss and gradients.
// Batches of a decoder-only model have no source. Those of an encoder-only model have no target; its loss is that of
// masked tokens.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/batch.h"
#include "core/device.h"
#include "core/function_ref.h"
#include "model/heads/head_transform.h"
#include "model/heads/masked_loss.h"
#include "model/heads/text_head.h"
#include "model/layers/embedding.h"
#include "model/layers/output.h"
#include "model/layers/position_tables.h"
#include "model/stack.h"
#include "qkv/config.h"
#include "qkv/text_head.h"

namespace qkv {

// The N tokens that a step of decoding reads, with their rows in a cache of keys and values.
struct DecodingStep {
  std::span<const int32_t> ids, positions, new_rows;  // [N]
  CachedKeys self, cross;
};

template <class Real>
class Transformer {
 public:
  struct Saved {
    typename Embedding<Real>::Saved source_embedding, target_embedding;
    typename Stack<Real>::Saved encoder, decoder;
    Matrix<Real> memory, h;  // [M, d], [N, d]: outputs of encoder and decoder
  };

  // Declares and allocates the parameters, all zero; those of a text head are the last, or among those of adapters if
  // it is apart. Throws Error if check(config, items) or check(head, config) does, and for a text head on a device.
  explicit Transformer(const ModelConfig& config, const ItemInputs& items = {}, const TextHeadConfig& head = {})
      : Transformer(config, items, head, nullptr) {}
  // Creates a model like this one, with parameters of its own, that shares its tables of positions.
  std::unique_ptr<Transformer> make_replica() const;
  Transformer(const Transformer&) = delete;
  Transformer& operator=(const Transformer&) = delete;

  const ModelConfig& config() const { return config_; }
  const ItemInputs& item_inputs() const { return items_; }
  ParameterList<Real>& parameters() { return parameters_; }
  const ParameterList<Real>& parameters() const { return parameters_; }
  // Returns the head of an embedder or a classifier, or null without one.
  const TextHead<Real>* text_head() const { return text_head_ ? &*text_head_ : nullptr; }
  // The parameters of the text head: the last of parameters(), or, if it is apart, the first of trained().
  struct HeadParameters {
    const ParameterList<Real>& list;
    int64_t begin, end;  // in list.all()
  };
  HeadParameters head_parameters() const;
  // Returns the number of parameters, as counted by parameters().all(), that precede those of the text head.
  int64_t trunk_parameters() const { return trunk_parameters_; }

  // Low-rank adapters (LoRA), which are trained, with a text head that is apart, while all other parameters are frozen.
  // Each changes the weights of `parameters`, which are consecutive weights of one linear layer, by scale · B A. A
  // starts random, B as zeros.
  struct Adapter {
    std::string name;                     // A is NAME.lora_A.weight, and B is NAME.lora_B.weight
    std::vector<std::string> parameters;  // "encoder.layers.0.self_attention.q.weight"
  };
  // Adds adapters of this rank. Must be called once, before allocate_gradients(). Throws Error if the model has no such
  // consecutive parameters.
  void add_adapters(const std::vector<Adapter>& adapters, int64_t rank, double scale);
  bool has_adapters() const { return !adapters_.all().empty(); }
  // Returns the parameters that are trained: those of a text head that is apart and of the adapters, or all without
  // adapters.
  ParameterList<Real>& trained() { return has_adapters() ? adapters_ : parameters_; }
  const ParameterList<Real>& trained() const { return has_adapters() ? adapters_ : parameters_; }

  // Returns the label-smoothed loss of a batch: of all target tokens, or of the masked tokens of an encoder-only
  // model, whose token_head must not be none and which has no R-Drop. Throws Error if an id, a length or a count does
  // not fit the model.
  Loss loss(const Batch& batch, double smoothing, Context& c) const;
  // Also adds the gradient of the sum of losses to the gradients of the parameters.
  Loss loss_and_gradient(const Batch& batch, Objective objective, Context& c) const;
  // The same with another loss. loss_of(h, dh) returns it for the last hidden states h: [N, d], assigns its gradient to
  // dh: [N, d], and adds the gradients of the parameters that it reads. Labels are not read.
  using LossOf = FunctionRef<Loss(Matrix<const Real> h, Matrix<Real> dh)>;
  Loss loss_and_gradient(const Batch& batch, LossOf loss_of, Context& c) const;

  // The text head of an encoder reads the sequences of batch.source, that of a decoder-only model those of
  // batch.target. Each has at least one token. Labels are not read.
  //
  // Returns the outputs, [sequences, text_head()->width()], from the arena, without what a backward pass needs. The
  // context says whether there is dropout. Throws Error like forward, and for a sequence without tokens.
  Matrix<Real> text_outputs(const Batch& batch, Context& c) const;
  // As loss_and_gradient(batch, loss_of, c), but loss_of gets the outputs v: [sequences, width] and assigns dv.
  Loss text_loss_and_gradient(const Batch& batch, LossOf loss_of, Context& c) const;

  // Computes the encoder's output, s.memory. Leaves what the attention weights need in `s`.
  void encode(const Packed& source, Context& c, Saved& s) const;
  // Computes the last hidden states, s.h, which are s.memory in an encoder-only model. Leaves what backward and
  // the attention weights need in `s`.
  void forward(const Packed& source, const Packed& target, Context& c, Saved& s) const;

  // Returns the last hidden state of each sequence, [sequences, d], of a decoder-only model, which is what a
  // recommender needs. Throws Error like forward, and for a sequence without tokens.
  Matrix<Real> last_hidden(const Packed& target, Context& c) const;

  // The steps of decoding, with a context for inference. encode returns the encoder's output, [M, d]. fill_cross
  // computes the keys and values of cross-attention, one cache per layer. step returns the last hidden states of N
  // tokens, [N, d] (Layer::step), from which output() predicts the next tokens. A model with time gaps cannot be
  // decoded.
  Matrix<Real> encode(const Packed& source, Context& c) const;
  void fill_cross(Matrix<const Real> memory, const std::vector<typename Layer<Real>::Cache>& caches, Context& c) const;
  Matrix<Real> step(const DecodingStep& step, const std::vector<typename Layer<Real>::Cache>& caches, Context& c) const;

  // Returns the hidden states of texts, [N, d], in inference: the encoder's output, or the last hidden states of a
  // decoder-only model. Throws Error if an id or a length does not fit the model.
  Matrix<Real> hidden(const Packed& texts, Context& c) const;
  // Returns the hidden states that enter layer number `layer`, [N, d], counted from 0; of the number of layers, what
  // hidden(texts, c) returns.
  Matrix<const Real> hidden(const Packed& texts, int64_t layer, Context& c) const;

  const Stack<Real>& encoder() const { return *encoder_; }  // requires an encoder
  const Stack<Real>& decoder() const { return *decoder_; }  // requires a decoder, as do the tables of items
  const Output<Real>& output() const { return *output_; }
  const Parameter<Real>& source_table() const { return *source_table_; }  // its embeddings, [V, d]; requires an encoder
  // The embeddings of items, [V, d], to which those of their features are added, and the embeddings of features, [F,
  // d], or null.
  const Parameter<Real>& item_table() const { return *target_table_; }
  const Parameter<Real>* feature_table() const { return features_; }

 private:
  Transformer(const ModelConfig& config, const ItemInputs& items, const TextHeadConfig& head,
              std::shared_ptr<const PositionTables<Real>> positions);
  void check_predicts(const Batch& batch) const;
  const Packed& checked_texts(const Batch& batch) const;
  MaskedOutput<Real> masked_output() const { return {head_ ? &*head_ : nullptr, *output_}; }
  void backward(const Batch& batch, Matrix<Real> dh, Context& c, Saved& s) const;

  ModelConfig config_;
  ItemInputs items_;
  std::shared_ptr<const PositionTables<Real>> positions_;
  ParameterList<Real> parameters_, adapters_;
  DropoutSites sites_;
  const Parameter<Real>*source_table_, *target_table_;  // null without that side
  std::optional<Embedding<Real>> source_embedding_, target_embedding_;
  std::optional<Stack<Real>> encoder_, decoder_;
  std::optional<HeadTransform<Real>> head_;
  std::optional<Output<Real>> output_;
  const Parameter<Real>* features_;
  int64_t trunk_parameters_, head_end_ = 0;
  std::optional<TextHead<Real>> text_head_;
};

// Returns the number of parameters of a model without allocating it.
int64_t count_parameters(const ModelConfig& config, const ItemInputs& items = {});

// Each sequence of `queries` attends to the sequence of `keys` with the same index. The result refers to both, which
// must outlive it.
Sequences sequences_of(const Packed& queries, const Packed& keys);

QKV_FOR_ELEMENTS(extern template class Transformer);

}  // namespace qkv
