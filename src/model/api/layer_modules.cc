// The modules EncoderLayer and DecoderLayer.
#include "model/api/body.h"
#include "model/api/module_config.h"
#include "model/api/position_parts.h"
#include "model/stack.h"
#include "ops/rows.h"

namespace qkv::layers {
namespace {

template <class Real>
class LayerBody : public Body<Real> {
 public:
  LayerBody(const ModelConfig& config, StackKind kind)
      : config_(checked_config(config)),
        kind_(kind),
        positions_(this->parameters, config_, kind.causal != Causal::none),
        layer_(this->parameters, "", 0, config_, kind, this->sites, positions_.tables(), positions_.relative()) {}

  std::string name() const override { return kind_.cross ? "DecoderLayer" : "EncoderLayer"; }
  int64_t longest() const override { return config_.uses_rotary() ? config_.max_length : 0; }
  std::vector<InputKind> inputs() const override {
    if (kind_.cross) return {{"x", config_.d_model}, {"memory", config_.d_model, true}};
    return {{"x", config_.d_model}};
  }

  Matrix<Real> forward(const PackedCall<Real>& call, Context& c) override {
    self_ = call.keys(0, 0, call.mask);
    if (kind_.cross) cross_ = call.keys(0, 1, call.memory_mask);
    c.positions = call.layouts[0]->positions;
    return layer_.forward(call.inputs[0], memory(call), self_, cross_, c, saved_);
  }

  std::vector<Matrix<Real>> backward(const PackedCall<Real>& call, Matrix<Real> dy, Context& c) override {
    const Matrix<Real> dmemory = zeros<Real>(c.arena, memory(call).rows, memory(call).cols);
    layer_.backward(dy, dmemory, self_, cross_, c, saved_);
    if (kind_.cross) return {dy, dmemory};
    return {dy};
  }

  std::vector<std::string> attention_kinds() const override {
    if (kind_.cross) return {"self", "cross"};
    return {"self"};
  }
  int64_t attention_layers(const std::string&) const override { return 1; }
  AttentionPass<Real> attention(const PackedCall<Real>&, const std::string& kind, int64_t) const override {
    if (kind == "cross") return {&layer_.cross_attention(), &saved_.cross_attention, cross_, Causal::none};
    return {&layer_.self_attention(), &saved_.self_attention, self_, kind_.causal};
  }

 private:
  Matrix<const Real> memory(const PackedCall<Real>& call) const {
    return kind_.cross ? call.inputs[1] : Matrix<const Real>{};
  }

  ModelConfig config_;
  StackKind kind_;
  PositionParts<Real> positions_;
  Layer<Real> layer_;
  typename Layer<Real>::Saved saved_;
  VisibleKeys<Real> self_, cross_;
};

}  // namespace

template <class Real>
EncoderLayer<Real>::EncoderLayer(const ModelConfig& config, bool causal)
    : Module<Real>(
          std::make_unique<LayerBody<Real>>(config, StackKind{causal ? Causal::top_left : Causal::none, false})) {}

template <class Real>
DecoderLayer<Real>::DecoderLayer(const ModelConfig& config)
    : Module<Real>(std::make_unique<LayerBody<Real>>(config, StackKind{Causal::top_left, true})) {}

template class EncoderLayer<float>;
template class EncoderLayer<double>;
template class DecoderLayer<float>;
template class DecoderLayer<double>;

}  // namespace qkv::layers
