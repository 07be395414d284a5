// NomicBERT: Nussbaum et al., "Nomic Embed: Training a Reproducible Long Context Text Embedder" (2024). config.json has
// the fields of transformers, or those of the original code, which begin with n_embd.
#include "convert/architecture.h"
#include "convert/families/decoder_parts.h"
#include "convert/families/rotary_bert.h"
#include "convert/text/encoder_text.h"
#include "core/fail.h"
#include "core/json.h"

namespace qkv {
namespace {

constexpr RotaryBertNames kNomicNames = {.prefix = "nomic_bert.",
                                         .embedding_norm = "emb_ln",
                                         .layer = "encoder.layers.",
                                         .qkv = "attn.Wqkv",
                                         .output = "attn.out_proj",
                                         .attention_norm = "norm1",
                                         .second = "mlp.fc2",
                                         .norm = "norm2"};

bool is_original(const Settings& config) { return config.find("n_embd") != nullptr; }

// The original code changes the rates of rotary positions beyond the length that it was trained with.
void original_fields(ConfigFields& fields, ModelConfig& m) {
  fields.layers("n_layer", m.encoder_layers);
  fields("n_embd", m.d_model);
  fields("n_head", m.attention.heads);
  fields("n_inner", m.ffn);
  fields("layer_norm_epsilon", m.norm.epsilon, 1e-5);
  fields.positions("n_positions", m.max_length);
  fields("rotary_emb_base", m.rotary.base, 10000.0);
  int64_t trained = 0;
  fields("max_trained_positions", trained, int64_t{2048});
  if (trained > 0) m.max_length = std::min(m.max_length, trained);
  m.activation = Activation::silu;
}

void nomic_fields(ConfigFields& fields, ModelConfig& m) {
  fields("vocab_size", m.source_vocab);
  if (fields.from() && is_original(*fields.from())) {
    original_fields(fields, m);
    m.attention.key_width = m.d_model / std::max(m.attention.heads, int64_t{1});
    return;
  }
  rotary_bert_fields(fields, m, {.activation = "silu", .dropout = 0, .rotary_base = 1000});
}

void finish_nomic(const Settings& config, ModelConfig& m) {
  finish_rotary_bert(config, m);
  if (!is_original(config)) return;
  for (const char* flag : {"prenorm", "use_rms_norm", "qkv_proj_bias", "mlp_fc1_bias", "mlp_fc2_bias",
                           "rotary_emb_interleaved", "parallel_block"})
    require_flag(config, flag, false);
  if (const std::string found = config.text("activation_function", "swiglu"); found != "swiglu")
    fail("{}: activation_function must be swiglu (is {})", config.where(), excerpt(found));
  if (config.number("rotary_emb_fraction", 1) != 1)
    fail("{}: rotary_emb_fraction must be 1 (is {})", config.where(), config.number("rotary_emb_fraction"));
  for (const char* name : {"num_experts", "moe_every_n_layers"})
    if (config.integer(name, 0) > 0) fail("{}: {} must be 0 (is {})", config.where(), name, config.integer(name));
}

TensorMap nomic_tensors(const ModelConfig& m, const Settings& config) {
  TensorMap map = rotary_bert_tensors(m, kNomicNames, config.integer("type_vocab_size", 2) > 0);
  for (int64_t i = 0; i < m.encoder_layers; i++) {
    const std::string ours = fmt::format("encoder.layers.{}.feed_forward.", i),
                      theirs = fmt::format("{}{}{}.mlp.", kNomicNames.prefix, kNomicNames.layer, i);
    map.add_module({.theirs = theirs + "fc12", .ours = {ours + "first"}, .bias = false});
    map.add_module({.theirs = theirs + "fc11", .ours = {ours + "gate"}, .bias = false});
  }
  return map;
}

}  // namespace

namespace architectures {

const Architecture& nomic_bert() {
  static const Architecture architecture = {
      .model_types = {"nomic_bert"},
      .name = "NomicBERT",
      .model_class = "NomicBertModel",
      .base =
          [] {
            ModelConfig m = rotary_bert_base();
            m.attention.input_bias = m.attention.output_bias = m.ffn_bias = false;
            return m;
          }(),
      .fields = nomic_fields,
      .finish = finish_nomic,
      .tensors = nomic_tensors,
      .text = read_bert_text,
      .widen =
          [](ModelConfig& m) {
            move_scale_into_table(m);
            if (m.norm.kind == NormKind::layer_no_bias) m.norm.kind = NormKind::layer;
          },
  };
  return architecture;
}

}  // namespace architectures
}  // namespace qkv
