#include "decode/attend.h"

#include <utility>

#include "analysis/attention_flow.h"
#include "analysis/attribution.h"
#include "analysis/rollout.h"
#include "core/fail.h"
#include "core/fields.h"
#include "core/json.h"
#include "core/to_size.h"

namespace qkv {
namespace {

using Attention = MultiHeadAttention<float>;

// The weights of every head of one layer.
std::vector<AttentionHead> heads_of(const Attention& attention, const Attention::Saved& saved, int64_t heads,
                                    const Sequences& sequences, Causal causal) {
  std::vector<AttentionHead> result(to_size(heads));
  for (int64_t h = 0; h < heads; h++) {
    std::vector<float>& weights = result[to_size(h)].weights;
    weights.resize(to_size(saved.x.rows * saved.z.rows));
    attention.weights(sequences, causal, saved, 0, h, {weights.data(), saved.x.rows, saved.z.rows});
  }
  return result;
}

// The weights of every layer and head of the encoder.
AttentionKind encoder_kind(const Transformer<float>& model, const Transformer<float>::Saved& saved,
                           const Packed& source, std::vector<std::string> pieces) {
  AttentionKind kind{"encoder", false, pieces, pieces, {}};
  for (size_t i = 0; i < saved.encoder.layers.size(); i++)
    kind.layers.push_back(heads_of(model.encoder().layers()[i].self_attention(), saved.encoder.layers[i].self_attention,
                                   model.config().attention.heads, sequences_of(source, source), Causal::none));
  return kind;
}

}  // namespace

AttendedTokens attended_tokens(const Transformer<float>& model, const AttendRequest& request) {
  std::vector<int32_t> read = request.start;
  read.insert(read.end(), request.target_ids.begin(), request.target_ids.end());
  AttendedTokens tokens;
  tokens.predicted.assign(read.begin() + (request.start.empty() ? 0 : 1), read.end());
  tokens.predicted.push_back(request.end);
  if (model.config().has_encoder()) tokens.source.append(request.source_ids);
  tokens.target.append(read);
  return tokens;
}

AttentionMap attention_map(const Transformer<float>& model, const AttendRequest& request, Arena& arena,
                           const PiecesOf& pieces) {
  const Arena::Scope scope(arena);
  const auto [source, target, predicted] = attended_tokens(model, request);
  const std::vector<int32_t>& read = target.ids;
  Context context{arena};
  Transformer<float>::Saved saved;
  model.forward(source, target, context, saved);

  const std::vector<std::string> source_pieces = pieces(request.source_ids, true), read_pieces = pieces(read, false);
  AttentionKind decoder{"decoder", true, read_pieces, read_pieces, {}};
  AttentionKind cross{"cross", false, pieces(predicted, false), source_pieces, {}};
  const int64_t H = model.config().attention.heads;
  const bool encodes = model.config().has_encoder();
  for (size_t i = 0; i < saved.decoder.layers.size(); i++) {
    const auto& layer = model.decoder().layers()[i];
    const auto& s = saved.decoder.layers[i];
    decoder.layers.push_back(
        heads_of(layer.self_attention(), s.self_attention, H, sequences_of(target, target), Causal::top_left));
    if (encodes)
      cross.layers.push_back(
          heads_of(layer.cross_attention(), s.cross_attention, H, sequences_of(target, source), Causal::none));
  }
  if (!encodes) return {"", "", {std::move(decoder)}};
  AttentionKind encoder = encoder_kind(model, saved, source, source_pieces);
  return {"", "", {std::move(encoder), std::move(decoder), std::move(cross)}};
}

void check(const AttributionOptions& options) {
  check_ranges(options);
  const bool integrates = options.method == AttentionMethod::integrated;
  if (!integrates && options.steps != AttributionOptions().steps)
    fail("steps must not be set if method is {}; only integrated has steps (is {})", name_of(options.method),
         options.steps);
  if (!attributes(options.method) && !options.baseline.empty())
    fail("baseline must not be set if method is {}; only gradient and integrated have a baseline (is {})",
         name_of(options.method), excerpt(options.baseline));
}

AttentionMap map_by_method(const Transformer<float>& model, const AttendRequest& request,
                           const AttributionOptions& options, Arena& arena, const PiecesOf& pieces) {
  if (!attributes(options.method)) return over_layers(attention_map(model, request, arena, pieces), options.method);
  auto [source, target, predicted] = attended_tokens(model, request);
  if (!model.config().has_encoder()) predicted.pop_back();  // a text has no end
  return attribution_map(
      model,
      {std::move(source), std::move(target), std::move(predicted), request.source_baseline, request.target_baseline},
      options, arena, pieces);
}

bool attributes(AttentionMethod method) {
  return method == AttentionMethod::gradient || method == AttentionMethod::integrated;
}

AttentionMap over_layers(AttentionMap weights, AttentionMethod method) {
  if (method == AttentionMethod::rollout) return attention_rollout(weights);
  if (method == AttentionMethod::flow) return attention_flow(weights);
  return weights;
}

AttentionMap encoder_attention_map(const Transformer<float>& model, std::span<const int32_t> ids, Arena& arena,
                                   std::vector<std::string> pieces) {
  const Arena::Scope scope(arena);
  Packed source;
  source.append(ids);
  Context context{arena};
  Transformer<float>::Saved saved;
  model.encode(source, context, saved);
  return {"", "", {encoder_kind(model, saved, source, std::move(pieces))}};
}

}  // namespace qkv
