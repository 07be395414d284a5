#include "import/tensor_names.h"

#include "core/fail.h"
#include "core/json.h"

namespace qkv {
namespace {

// A product's or norm's weight and, where it has one, bias.
void add(TensorNames& names, const std::string& theirs, const std::vector<std::string>& ours, bool bias = true,
         Layout layout = Layout::rows) {
  TensorName weight{theirs + ".weight", {}, layout}, vector{theirs + ".bias", {}};
  for (const std::string& name : ours) {
    weight.ours.push_back(name + ".weight");
    vector.ours.push_back(name + ".bias");
  }
  names.tensors.push_back(std::move(weight));
  if (bias) names.tensors.push_back(std::move(vector));
}

std::vector<std::string> query_key_value(const std::string& attention) {
  return {attention + ".q", attention + ".k", attention + ".v"};
}

bool norm_has_bias(const ModelConfig& m) { return m.norm.kind == NormKind::layer; }

// The table of a decoder-only model's tokens, and that of its output.
void add_tables(TensorNames& names, const std::string& table, const ModelConfig& m) {
  TensorName tokens{table, {"target_embedding.weight"}};
  if (m.tied_output)
    tokens.copies = {"lm_head.weight"};
  else
    names.tensors.push_back({"lm_head.weight", {"output.weight"}});
  names.tensors.push_back(std::move(tokens));
}

void add_llama_layer(TensorNames& names, const std::string& ours, const std::string& theirs, const ModelConfig& m) {
  const std::string attention = ours + "self_attention";
  add(names, theirs + "input_layernorm", {attention + "_norm"}, norm_has_bias(m));
  for (const char* part : {"q", "k", "v"})
    add(names, fmt::format("{}self_attn.{}_proj", theirs, part), {fmt::format("{}.{}", attention, part)},
        m.attention.input_bias);
  add(names, theirs + "self_attn.o_proj", {attention + ".output"}, m.attention.output_bias);
  if (m.attention.query_key_norm)
    for (const char* part : {"q", "k"})
      add(names, fmt::format("{}self_attn.{}_norm", theirs, part), {fmt::format("{}.{}_norm", attention, part)},
          norm_has_bias(m));
  add(names, theirs + "post_attention_layernorm", {ours + "feed_forward_norm"}, norm_has_bias(m));
  // The first goes through the activation.
  add(names, theirs + (m.gated_ffn ? "mlp.gate_proj" : "mlp.c_fc"), {ours + "feed_forward.first"}, m.ffn_bias);
  if (m.gated_ffn) add(names, theirs + "mlp.up_proj", {ours + "feed_forward.gate"}, m.ffn_bias);
  add(names, theirs + (m.gated_ffn ? "mlp.down_proj" : "mlp.c_proj"), {ours + "feed_forward.second"}, m.ffn_bias);
  names.unused.push_back(theirs + "self_attn.rotary_emb.inv_freq");
}

void add_marian_attention(TensorNames& names, const std::string& ours, const std::string& theirs) {
  for (const char* part : {"q", "k", "v"})
    add(names, fmt::format("{}.{}_proj", theirs, part), {fmt::format("{}.{}", ours, part)});
  add(names, theirs + ".out_proj", {ours + ".output"});
  add(names, theirs + "_layer_norm", {ours + "_norm"});
}

void add_marian_side(TensorNames& names, const std::string& side, int64_t layers, const ModelConfig& m) {
  if (m.positions == Positions::learned)
    names.tensors.push_back({"model." + side + ".embed_positions.weight", {side + ".positions.weight"}});
  for (int64_t i = 0; i < layers; i++) {
    const std::string ours = fmt::format("{}.layers.{}.", side, i), theirs = "model." + ours;
    add_marian_attention(names, ours + "self_attention", theirs + "self_attn");
    if (side == "decoder") add_marian_attention(names, ours + "cross_attention", theirs + "encoder_attn");
    add(names, theirs + "fc1", {ours + "feed_forward.first"});
    add(names, theirs + "fc2", {ours + "feed_forward.second"});
    add(names, theirs + "final_layer_norm", {ours + "feed_forward_norm"});
  }
}

// The name under which the file holds a tensor; under several it must hold the same.
std::string held_name(ForeignTensors& tensors, const TensorName& name) {
  std::string held = name.theirs;
  for (const std::string& copy : name.copies) {
    if (!tensors.has(copy)) continue;
    if (!tensors.has(held)) held = copy;
    if (!tensors.same(held, copy))
      fail("{} and {} differ, config.json says they are one table", in_file(tensors.path(), held), excerpt(copy));
    tensors.let_go(copy);
  }
  return held;
}

}  // namespace

TensorNames gpt2_names(const ModelConfig& m, const std::string& prefix) {
  TensorNames names;
  add_tables(names, prefix + "wte.weight", m);
  names.tensors.push_back({prefix + "wpe.weight", {"decoder.positions.weight"}});
  for (int64_t i = 0; i < m.decoder_layers; i++) {
    const std::string ours = fmt::format("decoder.layers.{}.", i), theirs = fmt::format("{}h.{}.", prefix, i);
    add(names, theirs + "ln_1", {ours + "self_attention_norm"});
    add(names, theirs + "attn.c_attn", query_key_value(ours + "self_attention"), true, Layout::columns);
    add(names, theirs + "attn.c_proj", {ours + "self_attention.output"}, true, Layout::columns);
    add(names, theirs + "ln_2", {ours + "feed_forward_norm"});
    add(names, theirs + "mlp.c_fc", {ours + "feed_forward.first"}, true, Layout::columns);
    add(names, theirs + "mlp.c_proj", {ours + "feed_forward.second"}, true, Layout::columns);
    names.unused.push_back(theirs + "attn.bias");  // causality as a table
    names.unused.push_back(theirs + "attn.masked_bias");
  }
  add(names, prefix + "ln_f", {"decoder.norm"});
  return names;
}

TensorNames llama_names(const ModelConfig& m) {
  TensorNames names;
  add_tables(names, "model.embed_tokens.weight", m);
  for (int64_t i = 0; i < m.decoder_layers; i++)
    add_llama_layer(names, fmt::format("decoder.layers.{}.", i), fmt::format("model.layers.{}.", i), m);
  add(names, "model.norm", {"decoder.norm"}, norm_has_bias(m));
  return names;
}

TensorNames marian_names(const ModelConfig& m) {
  const std::string source = "model.encoder.embed_tokens.weight", target = "model.decoder.embed_tokens.weight",
                    output = "lm_head.weight";
  const std::vector<std::string> tied = m.tied_output ? std::vector{output} : std::vector<std::string>();
  TensorNames names;
  if (m.shared_embeddings) {
    TensorName table{"model.shared.weight", {"embedding.weight"}, Layout::rows, {source, target}};
    table.copies.insert(table.copies.end(), tied.begin(), tied.end());
    names.tensors.push_back(std::move(table));
  } else {
    names.tensors.push_back({source, {"source_embedding.weight"}});
    names.tensors.push_back({target, {"target_embedding.weight"}, Layout::rows, tied});
  }
  if (!m.tied_output) names.tensors.push_back({output, {"output.weight"}});
  names.tensors.push_back({"final_logits_bias", {"output.bias"}, Layout::line});
  add_marian_side(names, "encoder", m.encoder_layers, m);
  add_marian_side(names, "decoder", m.decoder_layers, m);
  return names;
}

void use_names(ForeignTensors& tensors, const TensorNames& names) {
  for (const TensorName& name : names.tensors) {
    const std::string held = held_name(tensors, name);
    if (name.layout == Layout::line)
      tensors.use_as(name.ours.front(), held, {tensors.shape(held, 2)[1]});
    else if (name.layout == Layout::columns)
      tensors.use_columns(name.ours, held);
    else
      tensors.use_rows(name.ours, held);
  }
  for (const std::string& name : names.unused) tensors.let_go(name);
  tensors.refuse_others();
}

}  // namespace qkv
