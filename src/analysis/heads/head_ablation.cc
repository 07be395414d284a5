#include "analysis/heads/head_ablation.h"

#include <algorithm>
#include <map>

#include "core/to_size.h"

namespace qkv {
namespace {

using Saved = Transformer<float>::Saved;

// Sums the outputs that parts replace, over all tokens.
class MeanProbe : public SublayerProbe {
 public:
  struct Sum {
    std::vector<double> columns = {};
    int64_t rows = 0;
  };
  std::map<std::pair<SublayerPlace, bool>, Sum> sums = {};  // by place, and whether it is what the sublayer adds

  using Probe::output;
  void output(std::string_view op, Pass pass, Matrix<float> m, int64_t) override {
    SublayerPlace place;
    const bool is_branch = op == "branch";
    if (pass != Pass::forward || (!is_branch && op != "attention") || !find(place)) return;
    Sum& sum = sums[{place, is_branch}];
    sum.columns.resize(to_size(m.cols));
    for (int64_t n = 0; n < m.rows; n++)
      for (int64_t e = 0; e < m.cols; e++) sum.columns[to_size(e)] += static_cast<double>(m(n, e));
    sum.rows += m.rows;
  }
};

// Runs the model from the layer with the removed part on. `s` is a pass of the whole model over the batch. Returns the
// last hidden states of the decoder.
Matrix<float> run_from(const HeadTexts& texts, const Batch& batch, const SublayerPlace& place, const Saved& s,
                       Context& c) {
  const Transformer<float>& model = *texts.model;
  Matrix<const float> memory = s.memory;
  const bool encodes = place.side == TokenSide::source;
  if (encodes) {
    const Probe::Part part(c.probe, "encoder", TokenSide::source);
    c.positions = batch.source.positions;
    Stack<float>::Saved encoder;
    memory = model.encoder().forward_from(place.layer, s.encoder.inputs[to_size(place.layer)], {},
                                          sequences_of(batch.source, batch.source), {}, c, encoder);
  }
  const Probe::Part part(c.probe, "decoder", TokenSide::target);
  c.positions = batch.target.positions;
  const int64_t first = encodes ? 0 : place.layer;
  Stack<float>::Saved decoder;
  return model.decoder().forward_from(first, s.decoder.inputs[to_size(first)], memory,
                                      sequences_of(batch.target, batch.target),
                                      sequences_of(batch.target, batch.source), c, decoder);
}

void replace(Matrix<float> m, const RemovedPart& part) {
  const int64_t end = part.end > 0 ? part.end : m.cols;
  for (int64_t n = 0; n < m.rows; n++)
    for (int64_t e = part.begin; e < end; e++) m(n, e) = part.values.empty() ? 0 : part.values[to_size(e - part.begin)];
}

void store(const std::vector<TextLoss>& losses, std::span<const size_t> chosen, std::vector<TextLoss>& all) {
  for (size_t k = 0; k < chosen.size(); k++) all[chosen[k]] = losses[k];
}

}  // namespace

SublayerPlace sublayer_of(const HeadPlace& head) {
  return {head.part == AttentionPart::encoder ? TokenSide::source : TokenSide::target, head.layer,
          head.part == AttentionPart::cross ? SublayerKind::cross_attention : SublayerKind::self_attention};
}

void RemovingProbe::output(std::string_view op, Pass pass, Matrix<float> m, int64_t) {
  SublayerPlace place;
  if (pass == Pass::forward && op == (part_.is_branch ? "branch" : "attention") && find(place) && place == part_.place)
    replace(m, part_);
}

std::vector<RemovedPart> parts_of(const ModelConfig& config, Ablation ablation) {
  std::vector<RemovedPart> parts;
  const int64_t H = config.attention.heads, V = config.attention.value_width;
  const auto add_sublayer = [&](const SublayerPlace& place) {
    if (ablation == Ablation::sublayers) parts.push_back({place, true});
    if (place.kind == SublayerKind::feed_forward) return;
    if (ablation == Ablation::attention) parts.push_back({place, false, 0, H * V});
    for (int64_t h = 0; ablation == Ablation::heads && h < H; h++)
      parts.push_back({place, false, h * V, (h + 1) * V, {}, h});
  };
  const auto add_stack = [&](TokenSide side, int64_t layers, bool crosses) {
    for (int64_t layer = 0; layer < layers; layer++) {
      add_sublayer({side, layer, SublayerKind::self_attention});
      if (crosses) add_sublayer({side, layer, SublayerKind::cross_attention});
      add_sublayer({side, layer, SublayerKind::feed_forward});
    }
  };
  add_stack(TokenSide::source, config.encoder_layers, false);
  add_stack(TokenSide::target, config.decoder_layers, config.has_encoder());
  return parts;
}

void set_means(const HeadTexts& texts, std::span<const std::vector<size_t>> batches, Arena& arena,
               std::vector<RemovedPart>& parts) {
  MeanProbe probe;
  for (const std::vector<size_t>& chosen : batches) {
    const Arena::Scope scope(arena);
    Context c{.arena = arena, .recompute = true, .probe = &probe};
    const Batch batch = batch_of(texts, chosen, texts.config().is_encoder_only());
    Saved saved;
    texts.model->forward(batch.source, batch.target, c, saved);
  }
  for (RemovedPart& part : parts) {
    const MeanProbe::Sum& sum = probe.sums.at({part.place, part.is_branch});
    const auto begin = part.begin, end = part.end > 0 ? part.end : std::ssize(sum.columns);
    for (int64_t e = begin; e < end; e++)
      part.values.push_back(static_cast<float>(sum.columns[to_size(e)] / static_cast<double>(sum.rows)));
  }
}

AblationLosses ablate(const HeadTexts& texts, std::span<const std::vector<size_t>> batches, Arena& arena,
                      const std::vector<RemovedPart>& parts) {
  const size_t count = texts.texts.size();
  AblationLosses losses{std::vector<TextLoss>(count),
                        std::vector<std::vector<TextLoss>>(parts.size(), std::vector<TextLoss>(count))};
  for (const std::vector<size_t>& chosen : batches) {
    const Arena::Scope scope(arena);
    const bool is_masked = texts.config().is_encoder_only();
    const Batch batch = batch_of(texts, chosen, is_masked);
    Context c{.arena = arena, .recompute = true};
    Saved saved;
    if (is_masked) {
      store(masked_text_losses(texts, chosen, c), chosen, losses.whole);
    } else {
      texts.model->forward(batch.source, batch.target, c, saved);
      store(text_losses(texts, chosen, batch, saved.h, c), chosen, losses.whole);
    }
    for (size_t p = 0; p < parts.size(); p++) {
      const Arena::Scope scope_of_part(arena);
      RemovingProbe probe(parts[p]);
      Context without{.arena = arena, .recompute = true, .probe = &probe};
      if (is_masked) {
        store(masked_text_losses(texts, chosen, without), chosen, losses.without[p]);
        continue;
      }
      const Matrix<float> h = run_from(texts, batch, parts[p].place, saved, without);
      without.probe = nullptr;
      store(text_losses(texts, chosen, batch, h, without), chosen, losses.without[p]);
    }
  }
  return losses;
}

}  // namespace qkv
