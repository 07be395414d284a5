#include "convert/token_head.h"

#include <algorithm>

#include "core/fail.h"
#include "model/heads/head_transform.h"

namespace qkv {
namespace {

constexpr const char* kOtherHead =
    "classifier.weight";  // of heads for labels, some of which have the same first layers

}  // namespace

void see_token_head(const TokenHeadRule& rule, const SeenTensors& seen, const Settings& config, ModelConfig& m) {
  if (!seen.has(rule.dense + ".weight") || seen.has(kOtherHead)) return;
  if (rule.activation != m.activation || (rule.dense_bias && !m.ffn_bias)) return;
  const bool has_output = seen.has(rule.output), is_tied = !has_output || (config.flag("tie_word_embeddings", true) &&
                                                                           seen.same(rule.output, rule.embeddings));
  if (!is_tied && m.embedding_width > 0) return;
  m.token_head = TokenHead::dense;
  m.tied_output = is_tied;
  m.output_bias = seen.has(rule.bias) || (!rule.other_bias.empty() && seen.has(rule.other_bias));
}

void add_token_head(TensorMap& map, const TokenHeadRule& rule, const ModelConfig& m) {
  if (m.token_head != TokenHead::dense) return;
  map.add_module({.theirs = rule.dense, .ours = {"head.dense"}, .bias = rule.dense_bias});
  if (m.ffn_bias && !rule.dense_bias) map.zeros.emplace_back("head.dense.bias", width_of_head(m));
  map.add_module({.theirs = rule.norm,
                  .ours = {"head.norm"},
                  .bias = norm_has_bias(m),
                  .old_weight_name = ".gamma",
                  .old_bias_name = ".beta"});
  if (m.output_bias) {
    TensorRule bias{.theirs = rule.bias, .ours = {"output.bias"}};
    if (!rule.other_bias.empty()) bias.aliases.push_back(rule.other_bias);
    map.add_tensor(std::move(bias));
  }
  if (!m.tied_output) return map.add_tensor({.theirs = rule.output, .ours = {"output.weight"}});
  for (TensorRule& known : map.rules)
    if (known.ours.front() == "source_embedding.weight") known.aliases.push_back(rule.output);
}

}  // namespace qkv
