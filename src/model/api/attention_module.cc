// The module MultiHeadAttention.
#include "core/fail.h"
#include "model/api/body.h"
#include "model/api/module_config.h"
#include "model/api/position_parts.h"
#include "ops/rows.h"

namespace qkv::layers {
namespace {

template <class Real>
class AttentionBody : public Body<Real> {
 public:
  explicit AttentionBody(const ModelConfig& config)
      : config_(checked_config(config)),
        positions_(this->parameters, config_, false),
        layer_(this->parameters, "", config_, scope(), this->sites, of_first_layer(), positions_.relative()) {}

  std::string name() const override { return "MultiHeadAttention"; }
  int64_t longest() const override { return config_.uses_rotary() ? config_.max_length : 0; }
  std::vector<InputKind> inputs() const override {
    const int64_t d = config_.d_model;
    return {{"q", d}, {"k", d, true, true}, {"v", d, true, true}};
  }

  Matrix<Real> forward(const PackedCall<Real>& call, Context& c) override {
    const size_t k = call.inputs.size() > 1 ? 1 : 0, v = call.inputs.size() - 1;
    if (k > 0 && depends_on_place())
      fail("MultiHeadAttention: k must not be given with rotary positions, alibi, a window or a relative bias");
    const Matrix<const Real> x = call.inputs[0];
    const Matrix<const Real> z = v == 1 ? apart(call.inputs[1], x, c) : call.inputs[k];
    const Matrix<const Real> u = v == 2 ? apart(call.inputs[2], z, c) : z;
    keys_ = call.keys(0, k, call.mask);
    c.positions = call.layouts[k]->positions;
    return layer_.forward(x, z, u, keys_, call.causal, c, saved_);
  }

  std::vector<Matrix<Real>> backward(const PackedCall<Real>& call, Matrix<Real> dy, Context& c) override {
    std::vector<Matrix<Real>> gradients;
    for (const auto& x : call.inputs) gradients.push_back(zeros<Real>(c.arena, x.rows, x.cols));
    gradients.resize(3);
    layer_.backward(dy, gradients[0], false, gradients[1], keys_, call.causal, c, saved_, gradients[2]);
    gradients.resize(call.inputs.size());
    return gradients;
  }

  std::vector<std::string> attention_kinds() const override { return {"self"}; }
  int64_t attention_layers(const std::string&) const override { return 1; }
  AttentionPass<Real> attention(const PackedCall<Real>& call, const std::string&, int64_t) const override {
    return {&layer_, &saved_, keys_, call.causal};
  }

 private:
  LayerPositions<Real> of_first_layer() const {
    return positions_.tables() ? positions_.tables()->of_layer(config_.layer_kind(0)) : LayerPositions<Real>();
  }
  AttentionScope scope() const { return config_.layer_kind(0) == 'l' ? AttentionScope::local : AttentionScope::global; }
  bool depends_on_place() const {
    const AttentionConfig& a = config_.attention;
    return config_.uses_rotary() || config_.positions == Positions::alibi || a.window > 0 || a.relative_buckets > 0;
  }
  // Returns x, or a copy if it is at the address of y: the layer would take it for the same input, and return the sum
  // of both gradients.
  static Matrix<const Real> apart(Matrix<const Real> x, Matrix<const Real> y, Context& c) {
    if (x.data != y.data) return x;
    const Matrix<Real> copy = c.arena.template matrix<Real>(x.rows, x.cols);
    copy_rows<Real>(x, copy);
    return copy;
  }

  ModelConfig config_;
  PositionParts<Real> positions_;
  qkv::MultiHeadAttention<Real> layer_;
  typename qkv::MultiHeadAttention<Real>::Saved saved_;
  VisibleKeys<Real> keys_;
};

}  // namespace

template <class Real>
MultiHeadAttention<Real>::MultiHeadAttention(const ModelConfig& config)
    : Module<Real>(std::make_unique<AttentionBody<Real>>(config)) {}

template class MultiHeadAttention<float>;
template class MultiHeadAttention<double>;

}  // namespace qkv::layers
