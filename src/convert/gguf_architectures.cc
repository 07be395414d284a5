#include "convert/gguf_architectures.h"

#include <nlohmann/json.hpp>
#include <string_view>

namespace qkv {
namespace {

using nlohmann::json;

std::vector<GgufField> with_shape(std::vector<GgufField> more) {
  std::vector<GgufField> fields = {{"max_position_embeddings", "context_length"},
                                   {"hidden_size", "embedding_length"},
                                   {"num_hidden_layers", "block_count"},
                                   {"intermediate_size", "feed_forward_length"},
                                   {"num_attention_heads", "attention.head_count"}};
  fields.insert(fields.end(), more.begin(), more.end());
  return fields;
}

// Llama's blocks.
std::vector<GgufField> rms_fields() {
  return with_shape({{"num_key_value_heads", "attention.head_count_kv", false},
                     {"head_dim", "attention.key_length", false},
                     {"rms_norm_eps", "attention.layer_norm_rms_epsilon"},
                     {"rope_theta", "rope.freq_base", false}});
}

std::vector<GgufModule> llama_modules() {
  return {{"model.embed_tokens", "token_embd"},
          {"lm_head", "output"},
          {"model.norm", "output_norm"},
          {"model.layers.#.input_layernorm", "blk.#.attn_norm"},
          {"model.layers.#.self_attn.q_proj", "blk.#.attn_q"},
          {"model.layers.#.self_attn.k_proj", "blk.#.attn_k"},
          {"model.layers.#.self_attn.v_proj", "blk.#.attn_v"},
          {"model.layers.#.self_attn.o_proj", "blk.#.attn_output"},
          {"model.layers.#.self_attn.q_norm", "blk.#.attn_q_norm"},
          {"model.layers.#.self_attn.k_norm", "blk.#.attn_k_norm"},
          {"model.layers.#.post_attention_layernorm", "blk.#.ffn_norm"},
          {"model.layers.#.mlp.gate_proj", "blk.#.ffn_gate"},
          {"model.layers.#.mlp.up_proj", "blk.#.ffn_up"},
          {"model.layers.#.mlp.down_proj", "blk.#.ffn_down"},
          {"model.layers.#.mlp.c_fc", "blk.#.ffn_up"},
          {"model.layers.#.mlp.c_proj", "blk.#.ffn_down"}};
}

// Llama's modules, of blocks with norms on the results of sublayers.
std::vector<GgufModule> branch_norm_modules() {
  std::vector<GgufModule> modules = llama_modules();
  std::erase_if(modules, [](const GgufModule& module) {
    return std::string_view(module.theirs).ends_with("post_attention_layernorm");
  });
  modules.insert(modules.end(), {{"model.layers.#.post_attention_layernorm", "blk.#.post_attention_norm"},
                                 {"model.layers.#.pre_feedforward_layernorm", "blk.#.ffn_norm"},
                                 {"model.layers.#.post_feedforward_layernorm", "blk.#.post_ffw_norm"}});
  return modules;
}

GgufArchitecture llama() {
  std::vector<GgufField> fields = rms_fields();
  fields.push_back({"sliding_window", "attention.sliding_window", false});
  return {.name = "llama",
          .model_type = "llama",
          .fields = fields,
          .modules = llama_modules(),
          .interleaved = true,
          .finish = [](json& config, const GgufMetadata&, const ForeignTensors& tensors) {
            if (config.contains("sliding_window")) config["model_type"] = "mistral";
            config["attention_bias"] = tensors.has("blk.0.attn_q.bias");
            config["mlp_bias"] = tensors.has("blk.0.ffn_up.bias");
          }};
}

GgufArchitecture qwen2() {
  return {.name = "qwen2", .model_type = "qwen2", .fields = rms_fields(), .modules = llama_modules()};
}

GgufArchitecture qwen3() {
  return {.name = "qwen3",
          .model_type = "qwen3",
          .fields = rms_fields(),
          .modules = llama_modules(),
          .finish = [](json& config, const GgufMetadata&, const ForeignTensors& tensors) {
            config["attention_bias"] = tensors.has("blk.0.attn_q.bias");
          }};
}

GgufArchitecture olmo2() {
  return {.name = "olmo2",
          .model_type = "olmo2",
          .fields = rms_fields(),
          .modules = branch_norm_modules(),
          .finish = [](json& config, const GgufMetadata&, const ForeignTensors& tensors) {
            config["attention_bias"] = tensors.has("blk.0.attn_q.bias");
          }};
}

// Every fourth layer has no rotary positions, as in transformers.
GgufArchitecture smollm3() {
  return {.name = "smollm3",
          .model_type = "smollm3",
          .fields = rms_fields(),
          .modules = llama_modules(),
          .interleaved = true,
          .finish = [](json& config, const GgufMetadata&, const ForeignTensors& tensors) {
            config["attention_bias"] = tensors.has("blk.0.attn_q.bias");
            config["mlp_bias"] = tensors.has("blk.0.ffn_up.bias");
          }};
}

// The files do not say by what scores are divided: by the root of the width of a head, but in the largest model of a
// series, which only its number of layers shows, by that of the width of the model over the number of heads.
void set_score_scale(json& config, int64_t largest) {
  const auto number = [&](const char* name) {
    const json& value = config.at(name);
    return value.is_number_integer() ? value.get<int64_t>() : 0;
  };
  const bool is_largest = config["num_hidden_layers"] == largest && number("num_attention_heads") > 0;
  config["query_pre_attn_scalar"] =
      is_largest ? number("hidden_size") / number("num_attention_heads") : number("head_dim");
}

GgufArchitecture gemma(const char* name, const char* model_type, std::vector<GgufField> more) {
  std::vector<GgufField> fields = rms_fields();
  fields.push_back({"sliding_window", "attention.sliding_window"});
  fields.insert(fields.end(), more.begin(), more.end());
  return {
      .name = name, .model_type = model_type, .fields = fields, .modules = branch_norm_modules(), .whole_norms = true};
}

GgufArchitecture gemma2() {
  GgufArchitecture all = gemma(
      "gemma2", "gemma2",
      {{"attn_logit_softcapping", "attn_logit_softcapping"}, {"final_logit_softcapping", "final_logit_softcapping"}});
  all.finish = [](json& config, const GgufMetadata&, const ForeignTensors&) { set_score_scale(config, 46); };
  return all;
}

GgufArchitecture gemma3() {
  GgufArchitecture all = gemma("gemma3", "gemma3_text",
                               {{"sliding_window_pattern", "attention.sliding_window_pattern", false},
                                {"rope_local_base_freq", "rope.freq_base_swa", false},
                                {"final_logit_softcapping", "final_logit_softcapping", false}});
  all.finish = [](json& config, const GgufMetadata&, const ForeignTensors&) { set_score_scale(config, 62); };
  return all;
}

GgufArchitecture phi3() {
  std::vector<GgufModule> modules = llama_modules();
  modules.push_back({"model.layers.#.self_attn.qkv_proj", "blk.#.attn_qkv"});
  modules.push_back({"model.layers.#.mlp.gate_up_proj", "blk.#.ffn_up"});
  return {.name = "phi3",
          .model_type = "phi3",
          .fields = with_shape({{"num_key_value_heads", "attention.head_count_kv", false},
                                {"rms_norm_eps", "attention.layer_norm_rms_epsilon"},
                                {"rope_theta", "rope.freq_base", false},
                                {"sliding_window", "attention.sliding_window", false}}),
          .modules = modules,
          .rotary_share = "partial_rotary_factor"};
}

GgufArchitecture starcoder2() {
  return {.name = "starcoder2",
          .model_type = "starcoder2",
          .fields = with_shape({{"num_key_value_heads", "attention.head_count_kv"},
                                {"norm_epsilon", "attention.layer_norm_epsilon"},
                                {"rope_theta", "rope.freq_base", false},
                                {"sliding_window", "attention.sliding_window", false}}),
          .modules = llama_modules(),
          .finish = [](json& config, const GgufMetadata&, const ForeignTensors& tensors) {
            config["use_bias"] = tensors.has("blk.0.attn_q.bias");
          }};
}

GgufArchitecture gpt2() {
  return {.name = "gpt2",
          .model_type = "gpt2",
          .fields = {{"n_positions", "context_length"},
                     {"n_embd", "embedding_length"},
                     {"n_layer", "block_count"},
                     {"n_inner", "feed_forward_length"},
                     {"n_head", "attention.head_count"},
                     {"layer_norm_epsilon", "attention.layer_norm_epsilon"}},
          .modules = {{"transformer.wte", "token_embd"},
                      {"transformer.wpe", "position_embd"},
                      {"lm_head", "output"},
                      {"transformer.ln_f", "output_norm"},
                      {"transformer.h.#.ln_1", "blk.#.attn_norm"},
                      {"transformer.h.#.attn.c_attn", "blk.#.attn_qkv"},
                      {"transformer.h.#.attn.c_proj", "blk.#.attn_output"},
                      {"transformer.h.#.ln_2", "blk.#.ffn_norm"},
                      {"transformer.h.#.mlp.c_fc", "blk.#.ffn_up"},
                      {"transformer.h.#.mlp.c_proj", "blk.#.ffn_down"}}};
}

GgufArchitecture gpt_neox() {
  return {.name = "gptneox",
          .model_type = "gpt_neox",
          .fields = with_shape({{"layer_norm_eps", "attention.layer_norm_epsilon"},
                                {"use_parallel_residual", "use_parallel_residual"},
                                {"rotary_emb_base", "rope.freq_base", false}}),
          .modules = {{"gpt_neox.embed_in", "token_embd"},
                      {"embed_out", "output"},
                      {"gpt_neox.final_layer_norm", "output_norm"},
                      {"gpt_neox.layers.#.input_layernorm", "blk.#.attn_norm"},
                      {"gpt_neox.layers.#.attention.query_key_value", "blk.#.attn_qkv"},
                      {"gpt_neox.layers.#.attention.dense", "blk.#.attn_output"},
                      {"gpt_neox.layers.#.post_attention_layernorm", "blk.#.ffn_norm"},
                      {"gpt_neox.layers.#.mlp.dense_h_to_4h", "blk.#.ffn_up"},
                      {"gpt_neox.layers.#.mlp.dense_4h_to_h", "blk.#.ffn_down"}},
          .rotary_share = "rotary_pct",
          .finish = [](json& config, const GgufMetadata&, const ForeignTensors& tensors) {
            config["attention_bias"] = tensors.has("blk.0.attn_qkv.bias");
          }};
}

GgufArchitecture phi2() {
  return {.name = "phi2",
          .model_type = "phi",
          .fields = with_shape({{"num_key_value_heads", "attention.head_count_kv", false},
                                {"layer_norm_eps", "attention.layer_norm_epsilon"},
                                {"rope_theta", "rope.freq_base", false}}),
          .modules = {{"model.embed_tokens", "token_embd"},
                      {"lm_head", "output"},
                      {"model.final_layernorm", "output_norm"},
                      {"model.layers.#.input_layernorm", "blk.#.attn_norm"},
                      {"model.layers.#.self_attn.q_proj", "blk.#.attn_q"},
                      {"model.layers.#.self_attn.k_proj", "blk.#.attn_k"},
                      {"model.layers.#.self_attn.v_proj", "blk.#.attn_v"},
                      {"model.layers.#.self_attn.dense", "blk.#.attn_output"},
                      {"model.layers.#.mlp.fc1", "blk.#.ffn_up"},
                      {"model.layers.#.mlp.fc2", "blk.#.ffn_down"}},
          .rotary_share = "partial_rotary_factor"};
}

}  // namespace

std::span<const GgufArchitecture> gguf_architectures() {
  static const GgufArchitecture all[] = {gemma2(), gemma3(), gpt2(),  gpt_neox(), llama(),   olmo2(),
                                         phi2(),   phi3(),   qwen2(), qwen3(),    smollm3(), starcoder2()};
  return all;
}

}  // namespace qkv
