// The modules Encoder, Decoder and Transformer.
#include "core/fail.h"
#include "model/api/body.h"
#include "model/api/module_config.h"
#include "model/stack.h"
#include "ops/rows.h"

namespace qkv::layers {
namespace {

// A stack of layers with its last forward pass.
template <class Real>
class StackPass {
 public:
  StackPass(Body<Real>& body, const std::string& name, int64_t layers, const ModelConfig& config, StackKind kind,
            const PositionTables<Real>* positions)
      : kind_(kind), stack_(body.parameters, name, layers, config, kind, body.sites, positions) {}

  Matrix<Real> forward(Matrix<const Real> x, Matrix<const Real> memory, const VisibleKeys<Real>& self,
                       const VisibleKeys<Real>& cross, std::span<const int32_t> positions, Context& c) {
    self_ = self, cross_ = cross;
    positions_ = c.positions = positions;
    return stack_.forward(x, memory, self_, cross_, c, saved_);
  }

  void backward(Matrix<Real> gradient, Matrix<Real> dmemory, Context& c) const {
    c.positions = positions_;
    stack_.backward(gradient, dmemory, self_, cross_, c, saved_);
  }

  int64_t layers() const { return std::ssize(stack_.layers()); }
  AttentionPass<Real> attention(bool cross, int64_t layer) const {
    const Layer<Real>& of = stack_.layers()[to_size(layer)];
    const auto& saved = saved_.layers[to_size(layer)];
    if (cross) return {&of.cross_attention(), &saved.cross_attention, cross_, Causal::none};
    return {&of.self_attention(), &saved.self_attention, self_, kind_.causal};
  }

 private:
  StackKind kind_;
  Stack<Real> stack_;
  typename Stack<Real>::Saved saved_;
  VisibleKeys<Real> self_, cross_;
  std::span<const int32_t> positions_;
};

int64_t checked_layers(const char* module, const char* field, int64_t layers) {
  if (layers < 1) fail("{}: {} must be at least 1 (is {})", module, field, layers);
  return layers;
}

// A module that has an encoder, a decoder, or both.
template <class Real>
class StacksBody : public Body<Real> {
 public:
  StacksBody(const char* name, const ModelConfig& config, std::optional<StackKind> encoder,
             std::optional<StackKind> decoder)
      : name_(name), config_(checked_config(config)) {
    const bool both = encoder && decoder;
    if (has_layer_positions(config_)) positions_.emplace(config_);
    const PositionTables<Real>* positions = positions_ ? &*positions_ : nullptr;
    if (encoder)
      encoder_.emplace(*this, both ? "encoder" : "", checked_layers(name, "encoder_layers", config_.encoder_layers),
                       config_, *encoder, positions);
    if (decoder)
      decoder_.emplace(*this, both ? "decoder" : "", checked_layers(name, "decoder_layers", config_.decoder_layers),
                       config_, *decoder, positions);
  }

  std::string name() const override { return name_; }
  int64_t longest() const override { return config_.uses_rotary() ? config_.max_length : 0; }
  size_t output_rows() const override { return is_whole() ? 1 : 0; }
  std::vector<InputKind> inputs() const override {
    const int64_t d = config_.d_model;
    if (is_whole()) return {{"source", d, true}, {"target", d}};
    if (decoder_) return {{"x", d}, {"memory", d, true}};
    return {{"x", d}};
  }

  Matrix<Real> forward(const PackedCall<Real>& call, Context& c) override {
    if (!decoder_) return encode(call, call.mask, c);
    const size_t x = is_whole() ? 1 : 0, memory = 1 - x;
    const Matrix<const Real> g = is_whole() ? encode(call, call.source_mask, c) : call.inputs[memory];
    return decoder_->forward(call.inputs[x], g, call.keys(x, x, call.mask), call.keys(x, memory, call.memory_mask),
                             call.layouts[x]->positions, c);
  }

  std::vector<Matrix<Real>> backward(const PackedCall<Real>& call, Matrix<Real> dy, Context& c) override {
    if (!decoder_) {
      encoder_->backward(dy, {}, c);
      return {dy};
    }
    const Matrix<const Real> memory = call.inputs[is_whole() ? 0 : 1];
    const Matrix<Real> dmemory = zeros<Real>(c.arena, memory.rows, memory.cols);
    decoder_->backward(dy, dmemory, c);
    if (!is_whole()) return {dy, dmemory};
    encoder_->backward(dmemory, {}, c);
    return {dmemory, dy};
  }

  std::vector<std::string> attention_kinds() const override {
    if (!decoder_) return {"self"};
    if (!is_whole()) return {"self", "cross"};
    return {"encoder", "self", "cross"};
  }
  int64_t attention_layers(const std::string& kind) const override { return stack(kind).layers(); }
  AttentionPass<Real> attention(const PackedCall<Real>&, const std::string& kind, int64_t layer) const override {
    return stack(kind).attention(kind == "cross", layer);
  }

 private:
  bool is_whole() const { return encoder_ && decoder_; }
  const StackPass<Real>& stack(const std::string& kind) const {
    return decoder_ && kind != "encoder" ? *decoder_ : *encoder_;
  }
  Matrix<Real> encode(const PackedCall<Real>& call, const Masks<Real>& mask, Context& c) {
    return encoder_->forward(call.inputs[0], {}, call.keys(0, 0, mask), {}, call.layouts[0]->positions, c);
  }

  const char* name_;
  ModelConfig config_;
  std::optional<PositionTables<Real>> positions_;
  std::optional<StackPass<Real>> encoder_, decoder_;
};

constexpr StackKind kDecoderKind{Causal::top_left, true};

}  // namespace

template <class Real>
Encoder<Real>::Encoder(const ModelConfig& config, bool causal)
    : Module<Real>(std::make_unique<StacksBody<Real>>(
          "Encoder", config, StackKind{causal ? Causal::top_left : Causal::none, false}, std::nullopt)) {}

template <class Real>
Decoder<Real>::Decoder(const ModelConfig& config)
    : Module<Real>(std::make_unique<StacksBody<Real>>("Decoder", config, std::nullopt, kDecoderKind)) {}

template <class Real>
Transformer<Real>::Transformer(const ModelConfig& config)
    : Module<Real>(
          std::make_unique<StacksBody<Real>>("Transformer", config, StackKind{Causal::none, false}, kDecoderKind)) {}

template class Encoder<float>;
template class Encoder<double>;
template class Decoder<float>;
template class Decoder<double>;
template class Transformer<float>;
template class Transformer<double>;

}  // namespace qkv::layers
