// All attention weights of a model for a source and a target or, for an encoder or a language model, for a text.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "model/transformer.h"
#include "qkv/attention_map.h"

namespace qkv {

// The sequences of one attention map, in token ids.
struct AttendRequest {
  std::vector<int32_t> source_ids;   // including the end token; empty for a decoder-only model
  std::vector<int32_t> target_ids;   // without start and end tokens; the text for a decoder-only model
  std::vector<int32_t> start = {1};  // tokens that the decoder starts from; empty if the text has no start token
  int32_t end = 2;
  std::optional<int32_t> source_baseline = {}, target_baseline = {};  // of attributions (AttributedText)
};

// The sequences as a model reads them, and the token that it predicts from each token of the target.
struct AttendedTokens {
  Packed source, target;
  std::vector<int32_t> predicted;
};
AttendedTokens attended_tokens(const Transformer<float>& model, const AttendRequest& request);

// Returns the pieces of ids, which label the axes.
using PiecesOf = std::function<std::vector<std::string>(std::span<const int32_t> ids, bool of_source)>;

// Runs one forward pass and recomputes the weights from its queries, keys and log-sum-exp. They equal the weights that
// the kernel used.
AttentionMap attention_map(const Transformer<float>& model, const AttendRequest& request, Arena& arena,
                           const PiecesOf& pieces);

// Whether a method attributes predicted tokens, instead of showing what the attention of layers passes on.
bool attributes(AttentionMethod method);

// Returns what a method other than attributions shows of attention weights.
AttentionMap over_layers(AttentionMap weights, AttentionMethod method);

// Throws Error for an option out of range, and for one that the method does not use.
void check(const AttributionOptions& options);

// Returns the attention weights, or what another method shows in its place. The options have been checked.
AttentionMap map_by_method(const Transformer<float>& model, const AttendRequest& request,
                           const AttributionOptions& options, Arena& arena, const PiecesOf& pieces);

// Returns the attention weights of the encoder of a model alone: one kind, "encoder". ids: with the tokens around the
// text.
AttentionMap encoder_attention_map(const Transformer<float>& model, std::span<const int32_t> ids, Arena& arena,
                                   std::vector<std::string> pieces);

}  // namespace qkv
