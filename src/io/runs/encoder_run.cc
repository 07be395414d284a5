#include "io/runs/encoder_run.h"

#include <algorithm>

#include "core/fail.h"
#include "core/json.h"
#include "core/to_size.h"
#include "io/runs/run_config.h"
#include "io/runs/tokenizer_files.h"
#include "io/weights/safetensors.h"
#include "io/weights/weights.h"
#include "text/tokenizer_json/added_tokens.h"
#include "text/unicode.h"

namespace qkv {
namespace {

// Pieces may be a list of their own here, which a language model's never are.
TextCodec read_encoder_codec(const RunDirectory& run, const EmbeddingConfig& config) {
  if (config.unit == TextUnit::pieces)
    return TextCodec::of_pieces(with_spelled(read_tokenizers(run, config.unknown).source, config.spelled,
                                             config.strips_left, config.strips_right, run.embedding()));
  return read_codec(run, config.unit);
}

DenseActivation dense_activation(const std::string& name, const std::string& where) {
  const auto place = std::ranges::find(kEnumNames<DenseActivation>, name);
  if (place == kEnumNames<DenseActivation>.end())
    fail("{}: dense must hold {} (holds {})", where, fmt::join(kEnumNames<DenseActivation>, ", "), excerpt(name));
  return static_cast<DenseActivation>(place - kEnumNames<DenseActivation>.begin());
}

// The file states the number of outputs of each layer and whether it has a bias.
std::shared_ptr<const DenseLayers> load_dense(const RunDirectory& run, const EmbeddingConfig& config, int64_t width) {
  if (config.dense.empty()) return nullptr;
  std::vector<DenseShape> shapes;
  {
    const Safetensors file = Safetensors::open(run.dense());
    for (const std::string& name : config.dense) {
      const std::string layer = fmt::format("dense.{}", shapes.size());
      const TensorView* weight = file.find(layer + ".weight");
      if (!weight || weight->shape.size() != 2 || weight->shape[0] < 1 || weight->shape[1] != width)
        fail("{}: {}.weight must be a matrix with {} columns", run.dense(), layer, width);
      shapes.push_back(
          {dense_activation(name, run.embedding()), width, weight->shape[0], file.find(layer + ".bias") != nullptr});
      width = weight->shape[0];
    }
  }
  const auto dense = std::make_shared<DenseLayers>(shapes);
  load_weights(run.dense(), dense->parameters(), dense->parameters().values());
  return dense;
}

// Each prompt has a name of its own.
void check_prompts(const EmbeddingConfig& config, const std::string& where) {
  if (config.prompt_names.size() != config.prompts.size())
    fail("{}: prompts must have a text for each of the {} prompt_names (has {})", where, config.prompt_names.size(),
         config.prompts.size());
}

}  // namespace

TextEdges edges_of(const EmbeddingConfig& config, const TextCodec& codec, const std::string& where) {
  TextEdges edges;
  if (!config.start.empty()) edges.before.push_back(id_of(config.start, codec, where));
  if (!config.end.empty()) edges.after.push_back(id_of(config.end, codec, where));
  return edges;
}

namespace {

std::string normalized(const EmbeddingConfig& config, std::string text) {
  if (config.plain_quotes)
    for (const char* quotes : {"``", "''"})
      for (size_t at = 0; (at = text.find(quotes, at)) != std::string::npos; at++) text.replace(at, 2, "\"");
  if (config.strip_accents) text = strip_accents(text);
  if (config.lowercase) text = lowercase(text);
  return text;
}

}  // namespace

// Tokens that a text spells are not normalized.
std::string prepare_text(const EmbeddingConfig& config, const std::string& text) {
  const std::string whole = config.prefix + text;
  const bool changes = config.plain_quotes || config.strip_accents || config.lowercase;
  if (!changes || config.spelled.empty()) return normalized(config, whole);
  std::vector<AddedToken> tokens;
  for (const std::string& token : config.spelled)
    tokens.push_back({.id = static_cast<int32_t>(tokens.size()), .text = token});
  const AddedTokens table(tokens, false, [](std::string_view token) { return std::string(token); });
  std::string prepared;
  for (const auto& part : table.find(whole)) {
    const auto* id = std::get_if<int32_t>(&part);
    prepared += id ? config.spelled[to_size(*id)] : normalized(config, std::string(std::get<std::string_view>(part)));
  }
  return prepared;
}

EncoderRun EncoderRun::read(const RunDirectory& run, const ModelConfig& config) {
  if (config.has_encoder() && config.has_decoder())
    fail("{}: encoder_layers or decoder_layers must be 0 in an encoder (are {} and {})", run.config(),
         config.encoder_layers, config.decoder_layers);
  const EmbeddingConfig embedding = read_fields<EmbeddingConfig>(run, run.embedding());
  EncoderRun loaded{config, embedding, read_encoder_codec(run, embedding)};
  loaded.edges = edges_of(embedding, loaded.codec, run.embedding());
  if (const int64_t tokens = tokens_of_text(config); loaded.codec.size() > tokens)
    fail("{}: {} must be at least {}, the number of tokens of the vocabulary (is {})", run.config(),
         config.has_encoder() ? "source_vocab" : "target_vocab", loaded.codec.size(), tokens);
  check_prompts(embedding, run.embedding());
  loaded.dense = load_dense(run, embedding, config.d_model);
  return loaded;
}

void EncoderRun::write(const RunDirectory& run) const {
  write_fields(run.embedding(), embedding);
  if (dense) save_weights(run.dense(), dense->parameters(), dense->parameters().values());
  if (codec.unit() == TextUnit::pieces)
    write_tokenizers(run, {codec.tokenizer(), codec.tokenizer()});
  else
    write_codec(run, codec);
}

}  // namespace qkv
