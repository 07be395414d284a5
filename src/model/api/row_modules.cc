// Modules that map each row by itself: Linear, Embedding, LayerNorm, RMSNorm, FeedForward.
#include <cmath>

#include "core/fail.h"
#include "core/fields.h"
#include "model/api/body.h"
#include "model/api/module_config.h"
#include "model/layers/embedding.h"
#include "model/layers/feed_forward.h"
#include "model/layers/linear.h"
#include "model/layers/norm.h"

namespace qkv::layers {
namespace {

template <class Real>
class LinearBody : public Body<Real> {
 public:
  LinearBody(int64_t in, int64_t out, bool bias)
      : in_(checked_size("Linear", "in", in)),
        linear_(this->parameters, {{"", checked_size("Linear", "out", out)}}, in, bias) {}

  std::string name() const override { return "Linear"; }
  std::vector<InputKind> inputs() const override { return {{"x", in_}}; }

  Matrix<Real> forward(const PackedCall<Real>& call, Context& c) override { return linear_.forward(call.inputs[0], c); }
  std::vector<Matrix<Real>> backward(const PackedCall<Real>& call, Matrix<Real> dy, Context& c) override {
    const Matrix<Real> dx = c.arena.template matrix<Real>(dy.rows, in_);
    linear_.backward(call.inputs[0], dy, dx, c);
    return {dx};
  }

 private:
  int64_t in_;
  qkv::Linear<Real> linear_;
};

template <class Real>
class NormBody : public Body<Real> {
 public:
  NormBody(const char* name, int64_t d, const NormConfig& norm)
      : name_(name), d_(checked_size(name, "d", d)), norm_(this->parameters, "", d, with_norm(norm)) {
    if (!(norm.epsilon > 0 && norm.epsilon < 1))
      fail("{}: epsilon must be above 0 and below 1 (is {})", name, norm.epsilon);
  }

  std::string name() const override { return name_; }
  std::vector<InputKind> inputs() const override { return {{"x", d_}}; }

  Matrix<Real> forward(const PackedCall<Real>& call, Context& c) override {
    return norm_.forward(call.inputs[0], c, saved_);
  }
  std::vector<Matrix<Real>> backward(const PackedCall<Real>&, Matrix<Real> dy, Context& c) override {
    norm_.backward(dy, c, saved_);
    return {dy};
  }

 private:
  static ModelConfig with_norm(const NormConfig& norm) {
    ModelConfig config;
    config.norm = norm;
    return config;
  }

  const char* name_;
  int64_t d_;
  qkv::Norm<Real> norm_;
  typename qkv::Norm<Real>::Saved saved_;
};

template <class Real>
class FeedForwardBody : public Body<Real> {
 public:
  explicit FeedForwardBody(const ModelConfig& config)
      : d_(checked_config(config).d_model), layer_(this->parameters, "", config, this->sites) {}

  std::string name() const override { return "FeedForward"; }
  std::vector<InputKind> inputs() const override { return {{"x", d_}}; }

  Matrix<Real> forward(const PackedCall<Real>& call, Context& c) override {
    return layer_.forward(call.inputs[0], c, saved_);
  }
  std::vector<Matrix<Real>> backward(const PackedCall<Real>&, Matrix<Real> dy, Context& c) override {
    layer_.backward(dy, dy, false, c, saved_);
    return {dy};
  }

 private:
  int64_t d_;
  qkv::FeedForward<Real> layer_;
  typename qkv::FeedForward<Real>::Saved saved_;
};

ModelConfig embedding_config(int64_t vocab, int64_t d_model, const EmbeddingOptions& options) {
  ModelConfig c = sizes(checked_size("Embedding", "d_model", d_model), 1, 1);
  checked_size("Embedding", "vocab", vocab);
  c.positions = options.positions;
  c.scale_embeddings = options.scale;
  c.max_length = options.max_length;
  if (c.positions != Positions::none && !c.adds_positions())
    fail("Embedding: positions must be none, learned or sinusoidal (is {})", name_of(c.positions));
  return checked_config(c);
}

template <class Real>
class EmbeddingBody : public Body<Real> {
 public:
  EmbeddingBody(int64_t vocab, int64_t d_model, const EmbeddingOptions& options)
      : config_(embedding_config(vocab, d_model, options)),
        vocab_(vocab),
        table_(this->parameters.add("weight", {vocab, d_model}, Init::gaussian(1 / std::sqrt(double(d_model))), true)),
        positions_(config_),
        layer_(this->parameters, "", table_, config_, false, AddedTable{"", 0}, this->sites, positions_) {}

  std::string name() const override { return "Embedding"; }
  std::vector<InputKind> inputs() const override { return {}; }
  int64_t vocabulary() const override { return vocab_; }
  int64_t longest() const override { return config_.adds_positions() ? config_.max_length : 0; }

  Matrix<Real> forward(const PackedCall<Real>& call, Context& c) override {
    return layer_.forward(call.ids, positions(call), {}, c, saved_);
  }
  std::vector<Matrix<Real>> backward(const PackedCall<Real>& call, Matrix<Real> dy, Context& c) override {
    layer_.backward(dy, call.ids, positions(call), {}, c, saved_);
    return {};
  }

 private:
  static std::span<const int32_t> positions(const PackedCall<Real>& call) { return call.layouts[0]->positions; }

  ModelConfig config_;
  int64_t vocab_;
  const Parameter<Real>* table_;
  PositionTables<Real> positions_;
  qkv::Embedding<Real> layer_;
  typename qkv::Embedding<Real>::Saved saved_;
};

}  // namespace

template <class Real>
Linear<Real>::Linear(int64_t in, int64_t out, bool bias)
    : Module<Real>(std::make_unique<LinearBody<Real>>(in, out, bias)) {}

template <class Real>
Embedding<Real>::Embedding(int64_t vocab, int64_t d_model, const EmbeddingOptions& options)
    : Module<Real>(std::make_unique<EmbeddingBody<Real>>(vocab, d_model, options)) {}

template <class Real>
LayerNorm<Real>::LayerNorm(int64_t d, double epsilon, bool bias)
    : Module<Real>(std::make_unique<NormBody<Real>>(
          "LayerNorm", d, NormConfig{.kind = bias ? NormKind::layer : NormKind::layer_no_bias, .epsilon = epsilon})) {}

template <class Real>
RMSNorm<Real>::RMSNorm(int64_t d, double epsilon)
    : Module<Real>(
          std::make_unique<NormBody<Real>>("RMSNorm", d, NormConfig{.kind = NormKind::rms, .epsilon = epsilon})) {}

template <class Real>
FeedForward<Real>::FeedForward(const ModelConfig& config)
    : Module<Real>(std::make_unique<FeedForwardBody<Real>>(config)) {}

template class Linear<float>;
template class Linear<double>;
template class Embedding<float>;
template class Embedding<double>;
template class LayerNorm<float>;
template class LayerNorm<double>;
template class RMSNorm<float>;
template class RMSNorm<double>;
template class FeedForward<float>;
template class FeedForward<double>;

}  // namespace qkv::layers
