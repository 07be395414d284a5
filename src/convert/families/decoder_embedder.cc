#include "convert/families/decoder_embedder.h"

#include <nlohmann/json.hpp>

#include "convert/text/vocabulary_files.h"
#include "core/fail.h"
#include "core/json.h"

namespace qkv {
namespace {

using nlohmann::json;

constexpr const char *kCausal = "is_causal", *kBidirectional = "use_bidirectional_attention";

// Whether a tokenizer puts a token before a text, and one after it.
struct TextEdgeFlags {
  bool before = true, after = false;  // the defaults of classes with a SentencePiece model
};

// Reads the template of a post-processor of tokenizer.json, which may be one of a sequence.
void read_template(const json& processor, TextEdgeFlags& edges) {
  if (!processor.is_object()) return;
  if (const auto list = processor.find("processors"); list != processor.end() && list->is_array())
    for (const json& inner : *list) read_template(inner, edges);
  const auto single = processor.find("single");
  if (single == processor.end() || !single->is_array() || single->empty()) return;
  const auto is_token = [](const json& part) { return part.is_object() && part.contains("SpecialToken"); };
  edges = {is_token(single->front()), is_token(single->back())};
}

// Next to a tokenizer.model: what tokenizer_config.json says, or else tokenizer.json.
TextEdgeFlags edges_beside_pieces(const ModelFiles& files, const Settings& settings) {
  TextEdgeFlags edges;
  if (files.has("tokenizer.json")) {
    const Settings tokenizer(files.open("tokenizer.json")->text(), files.path("tokenizer.json"));
    if (const json* processor = tokenizer.find("post_processor")) read_template(*processor, edges);
  }
  edges.before = settings.flag("add_bos_token", edges.before);
  edges.after = settings.flag("add_eos_token", edges.after);
  return edges;
}

void rename(std::string& name, const std::string& from, const std::string& to) {
  if (name.starts_with(from)) name.replace(0, from.size(), to);
}

}  // namespace

bool sees_both_sides(const Settings& config) {
  return !config.flag(kCausal, true) || config.flag(kBidirectional, false);
}

EncoderText embedder_text(const ModelFiles& files, LanguageText text) {
  const TextCodec& codec = text.codec;
  EmbeddingConfig config;
  config.unit = codec.unit();
  if (has_tokenizer_json(codec.unit())) {
    if (codec.before()) config.start = codec.piece(*codec.before());
    if (codec.after()) config.end = codec.piece(*codec.after());
  } else {
    const Settings settings = read_tokenizer_config(files);
    const auto token = [&](const char* name, int32_t otherwise) {
      return settings.find(name) ? token_of(settings, name) : codec.piece(otherwise);
    };
    const TextEdgeFlags edges = edges_beside_pieces(files, settings);
    if (edges.before) config.start = token("bos_token", codec.tokenizer().start());
    if (edges.after) config.end = token("eos_token", codec.tokenizer().end());
  }
  return {std::move(config), std::move(text.codec)};
}

void leave_out_output(ModelConfig& model, TensorMap& map) {
  std::vector<TensorRule> kept;
  for (TensorRule& rule : map.rules)
    if (rule.ours.front().starts_with("output."))
      map.heads.push_back(rule.theirs.substr(0, rule.theirs.find('.')));
    else
      kept.push_back(std::move(rule));
  map.rules = std::move(kept);
  model.tied_output = true;  // declares no output layer
  model.output_bias = false;
}

void make_encoder(const Settings& config, ModelConfig& model, TensorMap& map) {
  if (model.attention.relative_buckets > 0 || model.positions == Positions::none)
    fail("{}: {} must be true in this class (is false)", config.where(), kCausal);
  // Here the last token of a window is included, on both sides.
  if (!config.flag(kCausal, true) && model.attention.window > 0) model.attention.window++;
  model.encoder_layers = std::exchange(model.decoder_layers, 0);
  model.source_vocab = std::exchange(model.target_vocab, 0);
  model.tied_output = false;
  model.output_softcap = 0;
  for (TensorRule& rule : map.rules)
    for (std::string& name : rule.ours) {
      rename(name, "decoder.", "encoder.");
      rename(name, "target_embedding.", "source_embedding.");
    }
}

}  // namespace qkv
