// The steps of an encoder or decoder layer: its sublayers with their norms and residual sums.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "program/explain/attention_steps.h"
#include "program/explain/feed_forward_steps.h"
#include "program/explain/norm_steps.h"

namespace qkv {

// Records the passes of a layer: self-attention, cross-attention if there is one, and the feed-forward network.
class LayerRecording {
 public:
  // attentions: those of the layer. Their x is set here, as is z unless it is the memory.
  LayerRecording(const ExplainedLayer& layer, std::vector<PlacedAttention> attentions, StepRecorder& to)
      : layer_(layer), places_(std::move(attentions)), to_(to) {}

  // Returns the output of the layer. x: its input.
  const ExplainedStep& forward(const ExplainedStep& x);
  // output: the gradient of the output.
  void backward(const ExplainedStep& output);

 private:
  struct Sublayer {
    const ExplainedStep* x = nullptr;
    NormSteps norm = {};
    std::optional<AttentionSteps> attention = {};
    FeedForwardSteps feed_forward = {};
  };

  bool is_pre() const { return layer_.position == NormPosition::pre; }
  bool reads_memory(size_t k) const { return k < places_.size() && places_[k].z; }
  size_t count() const { return places_.size() + 1; }
  NormSteps add_norm(size_t k, const ExplainedStep& x);
  const ExplainedStep& apply(Sublayer& sublayer, size_t k, const ExplainedStep& x);
  SourceGradients apply_backward(const Sublayer& sublayer, size_t k, const ExplainedStep& d);
  const ExplainedStep& sublayer_backward(size_t k, const ExplainedStep& output);

  const ExplainedLayer& layer_;
  std::vector<PlacedAttention> places_;
  StepRecorder& to_;
  std::vector<Sublayer> sublayers_;
};

}  // namespace qkv
