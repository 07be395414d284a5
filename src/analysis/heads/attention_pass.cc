#include "analysis/heads/attention_pass.h"

#include <array>

#include "core/system/threads.h"
#include "core/to_size.h"

namespace qkv {

std::string_view name_of(AttentionPart part) {
  return std::array<std::string_view, 3>{"encoder", "decoder", "cross"}[to_size(part)];
}

std::vector<HeadPlace> all_heads(const ModelConfig& config) {
  std::vector<HeadPlace> places;
  const auto add = [&](AttentionPart part, int64_t layers) {
    for (int64_t layer = 0; layer < layers; layer++)
      for (int64_t head = 0; head < config.attention.heads; head++) places.push_back({part, layer, head});
  };
  add(AttentionPart::encoder, config.encoder_layers);
  add(AttentionPart::decoder, config.decoder_layers);
  if (config.has_encoder()) add(AttentionPart::cross, config.decoder_layers);
  return places;
}

void visit_weights(const HeadTexts& texts, std::span<const size_t> chosen, Arena& arena, VisitWeights visit) {
  const Transformer<float>& model = *texts.model;
  const Batch batch = batch_of(texts, chosen);
  const Arena::Scope scope(arena);
  Context context{arena};
  Transformer<float>::Saved saved;
  model.forward(batch.source, batch.target, context, saved);
  const std::vector<HeadPlace> places = all_heads(model.config());
  parallel_for(std::ssize(places), [&](int64_t p) {
    const auto [part, layer, head] = places[to_size(p)];
    const bool encodes = part == AttentionPart::encoder, crosses = part == AttentionPart::cross;
    const auto& s = (encodes ? saved.encoder : saved.decoder).layers[to_size(layer)];
    const auto& l = (encodes ? model.encoder() : model.decoder()).layers()[to_size(layer)];
    const Packed &rows = encodes ? batch.source : batch.target, &columns = crosses ? batch.source : rows;
    const Sequences sequences = sequences_of(rows, columns);
    const Causal causal = part == AttentionPart::decoder ? Causal::top_left : Causal::none;
    std::vector<float> weights;
    for (size_t t = 0; t < chosen.size(); t++) {
      const auto n = static_cast<int64_t>(t);
      const int64_t T = std::ssize(rows.sequence(n)), S = std::ssize(columns.sequence(n));
      weights.resize(to_size(T) * to_size(S));
      const Matrix<float> A(weights.data(), T, S);
      (crosses ? l.cross_attention() : l.self_attention())
          .weights(sequences, causal, crosses ? s.cross_attention : s.self_attention, n, head, A);
      visit(to_size(p), chosen[t], A);
    }
  });
}

}  // namespace qkv
