// The layers of the Transformer, one by one: construct a layer from its sizes, set its parameters by name, and run it
// forward and backward on matrices. These are the layers that training uses. "Attention Is All You Need", section 3.
//
//   using namespace qkv::layers;
//   Encoder<float> encoder(sizes(64, 4, 256, 2));                               // d_model, heads, ffn, layers
//   const qkv::Matrix<const float> y = encoder.forward({x}, {.rows = Rows::packed({0, 5, 9})});
//   const qkv::Matrix<const float> dx = encoder.backward(dy)[0];                // adds to encoder.gradients()
//
// Real is float, or double for checks: it uses the plain reference loops. Invalid arguments throw qkv::Error. A module
// is used by one thread at a time, and uses all threads of the library itself.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "qkv/attention.h"
#include "qkv/config.h"
#include "qkv/matrix.h"

namespace qkv {
namespace [[gnu::visibility("default")]] layers {

// A row-major array with a name.
template <class T>
struct NamedArray {
  std::string name;
  std::vector<int64_t> shape;
  T* data = nullptr;
};

// The sequences in the rows of an input. By default all rows are one sequence.
struct Rows {
  std::vector<int32_t> offsets;  // packed: sequence s is rows offsets[s] … offsets[s + 1] − 1
  std::vector<int32_t> lengths;  // padded: sequence s is the first lengths[s] of each `width` rows
  int64_t width = 0;

  // offsets: from 0 to the number of rows, not decreasing.
  static Rows packed(std::vector<int32_t> offsets) { return {std::move(offsets), {}, 0}; }
  // lengths: from 0 to width. Rows beyond a length are not read; results and gradients are 0 there.
  static Rows padded(std::vector<int32_t> lengths, int64_t width) { return {{}, std::move(lengths), width}; }

  bool operator==(const Rows&) const = default;
};

// Masks of a call, as in qkv/attention.h. The data must stay valid until the backward pass.
template <class Real>
struct Masks {
  AttentionMask<const Real> added;       // added to the scores; null data means none
  AttentionMask<const uint8_t> allowed;  // 0 hides a key; null data means none
};

// The arguments of a forward pass besides its inputs. Modules without attention only read `rows`.
template <class Real>
struct Call {
  Rows rows = {};                // of the queries: of x, or of the target
  Rows memory_rows = {};         // of keys and values from another input: of memory, or of the source
  Causal causal = Causal::none;  // MultiHeadAttention only; the others are causal as constructed
  Masks<Real> mask = {};         // of MultiHeadAttention and of self-attention (of a Transformer: in the decoder)
  Masks<Real> memory_mask = {};  // of cross-attention
  Masks<Real> source_mask = {};  // of self-attention in the encoder of a Transformer
  std::optional<uint64_t> dropout_seed = {};  // applies dropout with the masks of this seed; none means no dropout
};

// The attention weights of one layer: [sequences, heads, queries, keys], with the largest numbers of queries and keys,
// and zeros beyond a sequence. A row sums to 1, or is 0 if the query sees no key.
template <class Real>
struct AttentionWeights {
  int64_t sequences = 0, heads = 0, queries = 0, keys = 0;
  std::vector<Real> values;
};

enum class Names { own, torch };

template <class Real>
class Body;  // a module's layers

// The members that all layers have. Initial values are random with seed 1, and gradients are zero.
template <class Real>
class Module {
 public:
  Module(Module&&) noexcept;
  Module& operator=(Module&&) noexcept;
  ~Module();

  // The values and gradients of all parameters, which may be changed: under the names that a run directory uses, such
  // as "self_attention.q.weight", or as the state_dict() of the PyTorch module of the same kind, such as
  // "self_attn.in_proj_weight", which is the weights of q, k and v below one another. They stay valid as long as the
  // module.
  std::vector<NamedArray<Real>> parameters(Names names = Names::own);
  std::vector<NamedArray<Real>> gradients(Names names = Names::own);

  // Sets all parameters, under either kind of name. Throws Error, and changes nothing, unless each parameter occurs
  // once with its shape.
  void load_state_dict(std::span<const NamedArray<const Real>> values);
  void initialize(uint64_t seed);  // sets the initial values
  void clear_gradients();

  // Returns the output for inputs of rows × width, which must stay unchanged until the backward pass. The result is
  // valid until the next forward pass.
  Matrix<const Real> forward(std::span<const Matrix<const Real>> inputs, const Call<Real>& call = {});
  Matrix<const Real> forward(std::initializer_list<Matrix<const Real>> inputs, const Call<Real>& call = {}) {
    return forward(std::span(inputs.begin(), inputs.size()), call);
  }

  // Returns the gradients of the inputs of the last forward pass, given the gradient of its output, and adds to those
  // of the parameters. They are valid until the next call.
  std::vector<Matrix<const Real>> backward(Matrix<const Real> dy);

  // The kinds of attention of this module, of "self", "cross" and "encoder": self-attention (of a Transformer: in the
  // decoder), cross-attention, and self-attention in the encoder of a Transformer.
  std::vector<std::string> attention_kinds() const;
  int64_t attention_layers(const std::string& kind) const;
  // Computes the weights of the last forward pass, without dropout. layer: from 0.
  AttentionWeights<Real> attention_weights(const std::string& kind = "self", int64_t layer = 0) const;

 protected:
  explicit Module(std::unique_ptr<Body<Real>> body);
  Matrix<const Real> forward_ids(std::span<const int32_t> ids, const Call<Real>& call);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// y = x Wᵀ + b. Input {x}: [N, in] -> [N, out]. Parameters: weight [out, in], bias [out].
template <class Real>
class Linear : public Module<Real> {
 public:
  Linear(int64_t in, int64_t out, bool bias = true);
};

// Token embeddings: y_n = scale · E[id_n] + P[position_n]. Parameters: weight [vocab, d_model], and with learned
// positions positions.weight [max_length, d_model].
struct EmbeddingOptions {
  Positions positions = Positions::none;  // none, learned or sinusoidal
  bool scale = false;                     // multiplies embeddings by √d_model
  int64_t max_length = 256;               // tokens of the longest sequence, if there are positions
};
template <class Real>
class Embedding : public Module<Real> {
 public:
  Embedding(int64_t vocab, int64_t d_model, const EmbeddingOptions& options = {});

  // ids: [N], from 0 to vocab − 1 -> [N, d_model]. backward returns no gradient.
  Matrix<const Real> forward(std::span<const int32_t> ids, const Call<Real>& call = {}) {
    return this->forward_ids(ids, call);
  }
};

// Layer normalization of each row. Input {x}: [N, d] -> [N, d]. Parameters: weight [d], bias [d].
template <class Real>
class LayerNorm : public Module<Real> {
 public:
  explicit LayerNorm(int64_t d, double epsilon = 1e-5, bool bias = true);
};

// Root mean square normalization of each row. Input {x}: [N, d] -> [N, d]. Parameters: weight [d].
template <class Real>
class RMSNorm : public Module<Real> {
 public:
  explicit RMSNorm(int64_t d, double epsilon = 1e-5);
};

// Returns a configuration for the modules below, with d_k = d_v = d_model / heads and without dropout or positions.
ModelConfig sizes(int64_t d_model, int64_t heads, int64_t ffn, int64_t layers = 1);

// The feed-forward network. Input {x}: [N, d_model] -> [N, d_model]. It reads d_model, ffn, activation, gated_ffn,
// ffn_bias and dropout.ffn of the configuration. Parameters: first.weight [ffn, d_model], second.weight [d_model, ffn],
// gate.weight as first, and biases; PyTorch's names are those of a Transformer layer, linear1 and linear2.
template <class Real>
class FeedForward : public Module<Real> {
 public:
  explicit FeedForward(const ModelConfig& config);
};

// Multi-head attention. Inputs {q}, {q, k} or {q, k, v}: [N, d_model], [M, d_model], [M, d_model] -> [N, d_model]; v
// is k by default, and both are q. backward returns a gradient for each input given. It reads d_model, attention,
// positions, rotary, norm (of queries and keys), max_length and dropout.attention. Rotary positions, ALiBi, the window
// and the relative bias apply if q is the only input. Parameters: q.weight [H d_k, d_model], k.weight [K d_k, d_model],
// v.weight [K d_v, d_model], output.weight [d_model, H d_v], and biases.
template <class Real>
class MultiHeadAttention : public Module<Real> {
 public:
  explicit MultiHeadAttention(const ModelConfig& config);
};

// A layer of an encoder: self-attention and feed-forward network with residuals and norms. Input {x}: [N, d_model] ->
// [N, d_model]. It reads all of the configuration but vocabularies, embeddings and numbers of layers. causal: whether a
// token sees only itself and those before it.
template <class Real>
class EncoderLayer : public Module<Real> {
 public:
  explicit EncoderLayer(const ModelConfig& config, bool causal = false);
};

// A layer of a decoder: causal self-attention, cross-attention and feed-forward network. Inputs {x, memory}:
// [N, d_model], [M, d_model] -> [N, d_model].
template <class Real>
class DecoderLayer : public Module<Real> {
 public:
  explicit DecoderLayer(const ModelConfig& config);
};

// encoder_layers layers, and a final norm if norm.final. Input {x}. With `causal` it is the stack of a decoder-only
// model.
template <class Real>
class Encoder : public Module<Real> {
 public:
  explicit Encoder(const ModelConfig& config, bool causal = false);
};

// decoder_layers layers, and a final norm if norm.final. Inputs {x, memory}.
template <class Real>
class Decoder : public Module<Real> {
 public:
  explicit Decoder(const ModelConfig& config);
};

// Encoder and decoder. Inputs {source, target}: [M, d_model], [N, d_model] -> [N, d_model], before the output layer.
template <class Real>
class Transformer : public Module<Real> {
 public:
  explicit Transformer(const ModelConfig& config);
};

// Fills P: [length, d] with sinusoidal positions 0, 1, … of a kind of qkv/config.h.
template <class Real>
void positional_encoding(Matrix<Real> P, Positions kind = Positions::interleaved);

// Assigns y = softmax(x), row by row; y may be x. A row of only −∞ becomes zeros.
template <class Real>
void softmax(Matrix<const Real> x, Matrix<Real> y);
// Assigns dx = y ∘ (dy − Σ_j dy_j y_j), given y of forward; dx may be dy.
template <class Real>
void softmax_backward(Matrix<const Real> y, Matrix<const Real> dy, Matrix<Real> dx);

// Mean cross-entropy over the rows whose label is not `ignored`, in nats; 0 if there is none.
struct CrossEntropy {
  double loss = 0;     // with label smoothing: −Σ_v q_v log p_v, q = (1 − ε) onehot(label) + ε / V
  double nll = 0;      // without: −log p_label
  int64_t tokens = 0;  // rows that count
};
// logits: [N, V]; labels: [N], each in [0, V) or `ignored`; label_smoothing ε from 0, below 1. dlogits: [N, V] is
// assigned the gradient of `loss`; it may be logits, and null data skips it.
template <class Real>
CrossEntropy cross_entropy(Matrix<const Real> logits, std::span<const int32_t> labels, double label_smoothing = 0,
                           Matrix<Real> dlogits = {}, int32_t ignored = -100);

}  // namespace layers
}  // namespace qkv
