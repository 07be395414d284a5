// Models of Llama's family in the Hugging Face layout: config.json, safetensors and tokenizer.model. Tensors have the
// names of transformers' LlamaForCausalLM, whose queries and keys turn in halves, as ours do.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/fail.h"
#include "core/json.h"
#include "import/imported_model.h"
#include "import/settings.h"
#include "import/shards.h"

namespace qkv {
namespace {

using nlohmann::json;

constexpr int64_t kMaxLength = 1 << 20;

void set_rotary_positions(const Settings& s, ModelConfig& m) {
  m.positions = Positions::rotary;
  const Settings none("{}", s.where());
  std::optional<Settings> own, scaling;
  if (const json* parameters = s.find("rope_parameters")) own.emplace(parameters->dump(), s.where());
  if (const json* object = s.find("rope_scaling")) scaling.emplace(object->dump(), s.where());
  m.rotary_base = (own ? *own : none).number("rope_theta", s.number("rope_theta", 10000));
  for (const Settings* from : {own ? &*own : &none, scaling ? &*scaling : &none}) {
    const std::string type = from->text("rope_type", from->text("type", "default"));
    if (type == "linear")
      m.rotary_scale = from->number("factor", 1);
    else if (type != "default")
      fail("{}: rope_type is {}, wanted default or linear", s.where(), excerpt(type));
  }
}

Activation activation_of(const Settings& s) {
  const std::string name = s.text("hidden_act", "silu");
  if (name == "silu" || name == "swish") return Activation::silu;
  if (name == "gelu") return Activation::gelu;
  if (name == "gelu_new" || name == "gelu_pytorch_tanh") return Activation::gelu_tanh;
  fail("{}: hidden_act is {}, wanted silu, gelu, gelu_new or gelu_pytorch_tanh", s.where(), excerpt(name));
}

ModelConfig config_of(const Settings& s) {
  ModelConfig m;
  m.encoder_layers = 0;
  m.shared_embeddings = m.scale_embeddings = false;
  m.target_vocab = s.integer("vocab_size");
  m.decoder_layers = s.integer("num_hidden_layers");
  m.d_model = s.integer("hidden_size");
  m.heads = s.integer("num_attention_heads");
  m.key_value_heads = s.integer("num_key_value_heads", m.heads);
  if (m.heads < 1 || m.key_value_heads < 1)
    fail("{}: {} heads and {} of keys and values, wanted at least 1", s.where(), m.heads, m.key_value_heads);
  m.key_width = m.value_width = s.integer("head_dim", m.d_model / m.heads);
  m.ffn = s.integer("intermediate_size");
  m.activation = activation_of(s);
  m.gated_ffn = true;
  m.ffn_bias = s.flag("mlp_bias", false);
  m.attention_input_bias = m.attention_output_bias = s.flag("attention_bias", false);
  m.norm = NormKind::rms;
  m.norm_position = NormPosition::pre;
  m.final_norm = true;
  m.norm_epsilon = s.number("rms_norm_eps", 1e-6);
  m.tied_output = s.flag("tie_word_embeddings", false);
  m.max_length = s.integer("max_position_embeddings");
  if (m.max_length > kMaxLength)
    fail("{}: max_position_embeddings is {}, wanted at most {}", s.where(), m.max_length, kMaxLength);
  m.window = s.integer("sliding_window", 0);
  m.dropout = 0;
  m.attention_dropout = s.number("attention_dropout", 0);
  set_rotary_positions(s, m);
  return m;
}

void use_layer(ForeignTensors& tensors, const ModelConfig& m, const std::string& ours, const std::string& theirs) {
  const auto use = [&](const std::string& our, const std::string& their, bool bias) {
    tensors.use(ours + our + ".weight", theirs + their + ".weight");
    if (bias) tensors.use(ours + our + ".bias", theirs + their + ".bias");
  };
  for (const char* part : {"q", "k", "v"})
    use(fmt::format("self_attention.{}", part), fmt::format("self_attn.{}_proj", part), m.attention_input_bias);
  use("self_attention.output", "self_attn.o_proj", m.attention_output_bias);
  use("self_attention_norm", "input_layernorm", false);
  use("feed_forward.first", "mlp.gate_proj", m.ffn_bias);  // the one that goes through the activation
  use("feed_forward.gate", "mlp.up_proj", m.ffn_bias);
  use("feed_forward.second", "mlp.down_proj", m.ffn_bias);
  use("feed_forward_norm", "post_attention_layernorm", false);
  tensors.let_go(theirs + "self_attn.rotary_emb.inv_freq");  // old files hold the rates
}

void use_all(ForeignTensors& tensors, const ModelConfig& m) {
  tensors.use("target_embedding.weight", "model.embed_tokens.weight");
  for (int64_t i = 0; i < m.decoder_layers; i++)
    use_layer(tensors, m, fmt::format("decoder.layers.{}.", i), fmt::format("model.layers.{}.", i));
  tensors.use("decoder.norm.weight", "model.norm.weight");
  if (!m.tied_output) {
    tensors.use("output.weight", "lm_head.weight");
  } else if (tensors.has("lm_head.weight")) {
    if (!tensors.same("lm_head.weight", "model.embed_tokens.weight"))
      fail("{} and \"model.embed_tokens.weight\" differ, config.json says they are one table",
           in_file(tensors.path(), "lm_head.weight"));
    tensors.let_go("lm_head.weight");
  }
  tensors.refuse_others();
}

}  // namespace

ImportedModel read_llama(const ModelFiles& files, const ImportOptions&) {
  const Settings settings(files.open_small("config.json")->text(), files.path("config.json"));
  const ModelConfig config = config_of(settings);
  LanguageText text = read_language_text(files, settings);
  const auto shards = std::make_shared<const Shards>(files);
  ForeignTensors tensors(files.path("model.safetensors"), shards->views());
  use_all(tensors, config);
  return {"Llama", tensors.path(), config, std::move(text), tensors.take(), shards};
}

}  // namespace qkv
