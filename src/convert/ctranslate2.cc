// CTranslate2 directories (model.bin, vocabularies and, from version 6 on, config.json) and Argos Translate packages.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "convert/config_fields.h"
#include "convert/formats/ctranslate2_file.h"
#include "convert/formats/foreign_tensors.h"
#include "convert/imported_model.h"
#include "convert/settings.h"
#include "convert/tensor_map.h"
#include "core/fail.h"
#include "core/json.h"
#include "io/runs/decoding_defaults.h"
#include "io/runs/translation_config.h"
#include "qkv/config.h"
#include "text/pieces/vocabulary.h"

namespace qkv {
namespace {

// The configuration of a CTranslate2 model: scalar variables of model.bin, and config.json.

// Names of the source's embeddings: with several tables, of which one is supported, and with one.
constexpr const char *kFirstSource = "encoder/embeddings_0/weight", *kOnlySource = "encoder/embeddings/weight";

constexpr int64_t kSentenceTokens = 1024;  // CTranslate2's own limit of a source, for sinusoidal positions

// Parts of variables' names that stand for features that are not supported.
constexpr std::pair<std::string_view, const char*> kUnsupported[] = {
    {"relative_position_keys", "relative positions"},
    {"relative_attention_bias", "relative positions"},
    {"relative_asymmetric_position_keys", "relative positions"},
    {"rotary_dim", "rotary positions"},
    {"linear_0_noact", "gated feed-forward layers"},
    {"num_heads_kv", "grouped heads"},
    {"head_dim", "heads of another width"},
    {"sliding_window", "a window of attention"},
    {"q_norm", "norms of queries and keys"},
    {"queries_scale", "another scale of the scores"},
    {"embeddings_1/", "factors of source tokens"},
    {"shared_layer_norm", "parallel residual connections"},
    {"input_layer_norm", "norms around sublayers"},
    {"post_feedforward_layer_norm", "norms around sublayers"},
    {"project_in", "a projection of embeddings"},
    {"scale_outputs", "scaled outputs"},
    {"final_logit_softcapping", "a softcap of logits"},
    {"weight_zero", "4-bit weights"},
};

void refuse_unsupported(const ForeignTensors& tensors) {
  for (const auto& [name, tensor] : tensors.all()) {
    for (const auto& [part, what] : kUnsupported)
      if (name.find(part) != std::string::npos) fail("{}: not supported: {}", in_file(tensors.path(), name), what);
    constexpr std::string_view kGamma = "/gamma";
    if (name.ends_with(kGamma) && !tensors.has(name.substr(0, name.size() - kGamma.size()) + "/beta"))
      fail("{}: not supported: root-mean-square norms", in_file(tensors.path(), name));
  }
}

Activation activation_of(int64_t number, const std::string& path) {
  if (number == 0) return Activation::relu;
  if (number == 2) return Activation::silu;
  if (number == 3) return Activation::gelu;
  constexpr const char* kNames[] = {"relu", "gelu by tanh", "swish", "gelu", "gelu by sigmoid", "tanh", "sigmoid"};
  fail("{}: activation must be 0 (relu), 2 (swish) or 3 (gelu) (is {}{})", path, number,
       number > 0 && number < 7 ? fmt::format(", {}", kNames[number]) : "");
}

// Embeddings are multiplied by √d if the attribute is missing or true; the attribute may also be the factor itself.
bool scales_embeddings(CTranslate2Attributes& attributes, const ForeignTensors& tensors, const std::string& side,
                       int64_t d) {
  const std::string name = side + "/scale_embeddings";
  const TensorView* tensor = tensors.find(name);
  const bool is_flag = !tensor || tensor->dtype == DType::i8;
  auto value = attributes.number(name);
  const auto old = attributes.number(side + "/embeddings/multiply_by_sqrt_depth");
  if (!value) value = old;
  if (!value) return true;
  if (is_flag || *value == 1) return is_flag && *value != 0;
  const double root = std::sqrt(static_cast<double>(d));
  if (std::abs(*value - root) > 1e-3 * root)
    fail("{}: must be 1 or {}, the square root of the width (is {})", in_file(tensors.path(), name), root, *value);
  return true;
}

std::string source_table(const ForeignTensors& tensors) {
  return tensors.has(kFirstSource) ? kFirstSource : kOnlySource;
}

// Returns the configuration that follows from variables, their shapes and config.json, and marks attributes as used.
// `settings` is the text of config.json, "" if there is none. Throws Error, naming file and variable, unless the model
// is an encoder-decoder Transformer, for features that are not supported (relative or rotary positions, gated
// feed-forward layers, root-mean-square norms, grouped heads, factors of source tokens, …), and if encoder and decoder
// differ.
ModelConfig ctranslate2_model_config(const CTranslate2File& file, ForeignTensors& tensors, std::string_view settings,
                                     const std::string& where) {
  const std::string& path = tensors.path();
  const std::string& name = file.specification;
  if (!name.empty() && name != "TransformerBase" && name != "TransformerBig" && name != "TransformerSpec")
    fail("{}: must be an encoder-decoder Transformer (the specification is {})", path, excerpt(name));
  if (file.revision < 2 || file.revision > 7) fail("{}: revision must be between 2 and 7 (is {})", path, file.revision);
  refuse_unsupported(tensors);
  CTranslate2Attributes attributes(file, tensors);
  ModelConfig c;
  const std::string table = source_table(tensors);
  c.source_vocab = tensors.shape(table, 2)[0];
  c.d_model = tensors.shape(table, 2)[1];
  c.target_vocab = tensors.shape("decoder/embeddings/weight", 2)[0];
  c.encoder_layers = tensors.count("encoder/layer_", "/ffn/linear_0/weight");
  c.decoder_layers = tensors.count("decoder/layer_", "/ffn/linear_0/weight");
  c.ffn = tensors.shape("encoder/layer_0/ffn/linear_0/weight", 2)[0];

  const int64_t heads = name == "TransformerBig" ? 16 : 8;
  c.attention.heads =
      attributes.of_both("num_heads", [&](const char* side) { return attributes.integer(side, "num_heads", heads); });
  if (c.attention.heads < 1 || c.d_model % c.attention.heads != 0)
    fail("{}: num_heads must divide the width (num_heads is {}, the width {})", path, c.attention.heads, c.d_model);
  c.attention.key_width = c.attention.value_width = c.d_model / c.attention.heads;
  c.activation = activation_of(
      attributes.of_both("activation", [&](const char* side) { return attributes.integer(side, "activation", 0); }),
      path);
  const bool pre = attributes.of_both(
      "pre_norm", [&](const char* side) { return attributes.number(side, "pre_norm").value_or(1) != 0; });
  c.norm.position = pre ? NormPosition::pre : NormPosition::post;
  const auto has_both = [&](const std::string& rest) {
    return attributes.of_both(rest.c_str(), [&](const char* side) { return tensors.has(side + ("/" + rest)); });
  };
  c.norm.final = has_both("layer_norm/gamma");
  c.embedding_norm = has_both("layernorm_embedding/gamma");
  c.scale_embeddings = attributes.of_both(
      "scale_embeddings", [&](const char* side) { return scales_embeddings(attributes, tensors, side, c.d_model); });
  c.zero_start = attributes.flag("decoder/start_from_zero_embedding", false);
  c.positions = has_both("position_encodings/encodings") ? Positions::learned : Positions::closed_halves;
  c.max_length = kSentenceTokens;
  if (c.positions == Positions::learned) {
    c.max_length = attributes.of_both("the number of positions", [&](const std::string& side) {
      return tensors.shape(side + "/position_encodings/encodings", 2)[0];
    });
  }
  for (const char* flag : {"decoder/alibi", "encoder/multi_query_attention", "decoder/multi_query_attention"})
    if (attributes.flag(flag, false)) fail("{}: must be 0", in_file(path, flag));
  for (const char* ignored :
       {"encoder/embeddings_merge", "embeddings_merge", "decoder/alignment_layer", "alignment_layer",
        "decoder/alignment_heads", "alignment_heads", "decoder/alibi_use_positive_positions", "decoder/scale_alibi"})
    attributes.number(ignored);

  c.attention.input_bias = tensors.has("encoder/layer_0/self_attention/linear_0/bias");
  c.attention.output_bias = tensors.has("encoder/layer_0/self_attention/linear_1/bias");
  c.shared_embeddings = tensors.same(table, "decoder/embeddings/weight");
  c.tied_output = tensors.same("decoder/embeddings/weight", "decoder/projection/weight");
  c.output_bias = tensors.has("decoder/projection/bias");
  c.norm.epsilon = 1e-5;
  c.dropout.residual = 0;
  if (!settings.empty()) {
    const Settings s(settings, where);
    c.norm.epsilon = s.number("layer_norm_epsilon", c.norm.epsilon);
    require_flag(s, "multi_query_attention", false);
    if (s.integer("quantization_type", 0) != 0)
      fail("{}: quantization_type must be 0 (is {})", where, s.integer("quantization_type"));
  }
  return c;
}

// Returns the special tokens: those of config.json in version 6, else those of the attributes.
TranslationConfig ctranslate2_translation(const CTranslate2File& file, ForeignTensors& tensors,
                                          std::string_view settings, const std::string& where) {
  CTranslate2Attributes attributes(file, tensors);
  TranslationConfig t;
  t.min_length = 1;
  t.unknown = attributes.text("unk_token", "<unk>");
  std::string bos = attributes.text("bos_token", "<s>");
  t.end = attributes.text("eos_token", "</s>");
  bool source_bos = attributes.flag("with_source_bos", false), source_eos = attributes.flag("with_source_eos", false);
  t.start = attributes.flag("with_target_bos", true) ? bos : t.end;
  if (attributes.flag("user_decoder_start_tokens", false)) t.start.clear();
  if (!settings.empty()) {
    const Settings s(settings, where);
    t.unknown = s.text("unk_token", t.unknown);
    bos = s.text("bos_token", bos);
    t.end = s.text("eos_token", t.end);
    source_bos = s.flag("add_source_bos", source_bos);
    source_eos = s.flag("add_source_eos", source_eos);
    // null means that the caller of each translation names its first token.
    if (file.version >= 6) t.start = s.text("decoder_start_token", "");
  }
  if (source_bos) t.source_start = bos;
  if (source_eos) t.source_end = t.end;
  return t;
}

// The variables of a specification. Linear layers and norms have other endings than elsewhere.
ModuleRule linear(const std::string& theirs, std::vector<std::string> ours, bool bias) {
  return {.theirs = theirs, .ours = std::move(ours), .bias = bias, .weight_name = "/weight", .bias_name = "/bias"};
}
ModuleRule norm(const std::string& theirs, const std::string& ours) {
  return {.theirs = theirs, .ours = {ours}, .weight_name = "/gamma", .bias_name = "/beta"};
}

void add_tables(TensorMap& map, const ModelConfig& m, const std::string& source) {
  const std::string target = "decoder/embeddings/weight", output = "decoder/projection/weight";
  TensorRule first{.theirs = source, .ours = {m.shared_embeddings ? "embedding.weight" : "source_embedding.weight"}};
  if (source != kOnlySource) first.aliases.push_back(kOnlySource);
  TensorRule second{.theirs = target, .ours = {"target_embedding.weight"}};
  std::vector<std::string>& aliases = m.shared_embeddings ? first.aliases : second.aliases;
  if (m.shared_embeddings) aliases.push_back(target);
  if (m.tied_output) aliases.push_back(output);
  map.add_tensor(std::move(first));
  if (!m.shared_embeddings) map.add_tensor(std::move(second));
  if (!m.tied_output) map.add_tensor({.theirs = output, .ours = {"output.weight"}});
  if (m.output_bias) map.add_tensor({.theirs = "decoder/projection/bias", .ours = {"output.bias"}});
}

void add_side(TensorMap& map, const ModelConfig& m, const std::string& side, int64_t layers) {
  if (m.positions == Positions::learned)
    map.add_tensor({.theirs = side + "/position_encodings/encodings", .ours = {side + ".positions.weight"}});
  if (m.embedding_norm) map.add_module(norm(side + "/layernorm_embedding", side + ".embedding_norm"));
  if (m.norm.final) map.add_module(norm(side + "/layer_norm", side + ".norm"));
  const bool in = m.attention.input_bias, out = m.attention.output_bias;
  for (int64_t i = 0; i < layers; i++) {
    const std::string ours = fmt::format("{}.layers.{}.", side, i), theirs = fmt::format("{}/layer_{}/", side, i);
    const std::string self = ours + "self_attention", cross = ours + "cross_attention", ffn = ours + "feed_forward";
    map.add_module(linear(theirs + "self_attention/linear_0", {self + ".q", self + ".k", self + ".v"}, in));
    map.add_module(linear(theirs + "self_attention/linear_1", {self + ".output"}, out));
    map.add_module(norm(theirs + "self_attention/layer_norm", self + "_norm"));
    if (side == "decoder") {
      map.add_module(linear(theirs + "attention/linear_0", {cross + ".q"}, in));
      map.add_module(linear(theirs + "attention/linear_1", {cross + ".k", cross + ".v"}, in));
      map.add_module(linear(theirs + "attention/linear_2", {cross + ".output"}, out));
      map.add_module(norm(theirs + "attention/layer_norm", cross + "_norm"));
    }
    map.add_module(linear(theirs + "ffn/linear_0", {ffn + ".first"}, true));
    map.add_module(linear(theirs + "ffn/linear_1", {ffn + ".second"}, true));
    map.add_module(norm(theirs + "ffn/layer_norm", ffn + "_norm"));
  }
}

TensorMap tensors_of(const ModelConfig& m, const ForeignTensors& tensors) {
  TensorMap map;
  add_tables(map, m, source_table(tensors));
  add_side(map, m, "encoder", m.encoder_layers);
  add_side(map, m, "decoder", m.decoder_layers);
  return map;
}

struct PieceList {
  std::string path;
  std::vector<std::string> pieces;
};

// Reads a list of tokens, and adds the unknown token if the list lacks it.
PieceList read_list(const ModelFiles& files, const std::string& name, const std::string& unknown) {
  const bool is_json = files.has(name + ".json");
  const std::string file = name + (is_json ? ".json" : ".txt");
  const auto bytes = files.open_small(file);
  PieceList list{files.path(file), is_json ? pieces_from_json(bytes->text(), files.path(file))
                                           : pieces_from_lines(bytes->text(), files.path(file))};
  if (std::ranges::find(list.pieces, unknown) == list.pieces.end()) list.pieces.push_back(unknown);
  return list;
}

// Whether the model reads whole texts, which the format does not say. BART is the only architecture with learned
// positions, norms of the embeddings and norms behind the layers; those of mBART are before them. A vocabulary of
// Pegasus has the tokens of its pre-training.
bool reads_whole_texts(const ModelConfig& c, const std::vector<std::string>& target) {
  const bool is_bart =
      c.positions == Positions::learned && c.embedding_norm && c.norm.position == NormPosition::post && !c.norm.final;
  const auto has = [&](const char* piece) { return std::ranges::find(target, piece) != target.end(); };
  return is_bart || (has("<mask_1>") && has("<unk_2>"));
}

bool has_list(const ModelFiles& files, const std::string& name) {
  return files.has(name + ".json") || files.has(name + ".txt");
}

ImportedModel read(const ModelFiles& files, const ImportOptions& options,
                   const std::optional<SentencePieceFile>& splitter) {
  const auto bytes = files.open("model.bin");
  CTranslate2File file = parse_ctranslate2(bytes->bytes(), files.path("model.bin"));
  ForeignTensors tensors(files.path("model.bin"), std::move(file.variables));
  std::string settings;
  const std::string settings_path = files.path("config.json");
  if (files.has("config.json")) settings = files.open_small("config.json")->text();
  const ModelConfig config = ctranslate2_model_config(file, tensors, settings, settings_path);
  TranslationConfig translation = ctranslate2_translation(file, tensors, settings, settings_path);
  override_tokens(translation, options);
  if (translation.start.empty())
    fail("{}: does not say which token a translation starts from; the option start must name it", files.path());
  map_tensors(tensors, tensors_of(config, tensors));

  const bool shared = has_list(files, "shared_vocabulary");
  PieceList source = read_list(files, shared ? "shared_vocabulary" : "source_vocabulary", translation.unknown);
  PieceList target = shared ? source : read_list(files, "target_vocabulary", translation.unknown);
  DecodingDefaults decoding;
  if (reads_whole_texts(config, target.pieces)) decoding.sentences = Sentences::line;
  const auto tokenizer = [&](PieceList& list, bool is_source) {
    const auto chosen = choose_splitter(is_source, options, [&] { return splitter; });
    return Tokenizer::with_pieces(chosen, std::move(list.pieces), translation.unknown, list.path);
  };
  TokenizerPair tokenizers{tokenizer(source, true), tokenizer(target, false)};
  ImportedModel model{"CTranslate2",  files.path("model.bin"),
                      config,         TranslatorText{std::move(tokenizers), std::move(translation)},
                      tensors.take(), bytes};
  model.decoding = decoding;
  return model;
}

}  // namespace

ImportedModel read_ctranslate2(const ModelFiles& files, const ImportOptions& options) {
  return read(files, options, {});
}

ImportedModel read_argos(const ModelFiles& files, const ImportOptions& options) {
  const Settings metadata(files.open_small("metadata.json")->text(), files.path("metadata.json"));
  const std::string type = metadata.text("type", "translate");
  if (type != "translate") fail("{}: type must be translate (is {})", metadata.where(), excerpt(type));
  const std::string prefix = metadata.text("target_prefix", "");
  if (!prefix.empty()) fail("{}: target_prefix must be empty (is {})", metadata.where(), excerpt(prefix));
  std::optional<SentencePieceFile> splitter;
  if (files.has("sentencepiece.model"))
    splitter = SentencePieceFile{std::string(files.open_small("sentencepiece.model")->text()),
                                 files.path("sentencepiece.model")};
  else if (!options.tokens && options.source_tokenizer.empty())
    fail("{}: sentencepiece.model is missing{}", files.path(),
         files.has("bpe.model") ? "; bpe.model needs the tokenizer of Moses, which is not supported: set the option "
                                  "tokens to pass text that is already split"
                                : "");
  ImportedModel model = read(files.inside("model"), options, splitter);
  model.kind = "Argos Translate";
  return model;
}

}  // namespace qkv
