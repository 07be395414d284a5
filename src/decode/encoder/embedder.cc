#include "qkv/embedder.h"

#include <algorithm>

#include "analysis/hidden_states.h"
#include "core/arena_pool.h"
#include "core/fail.h"
#include "core/fields.h"
#include "core/json.h"
#include "core/system/threads.h"
#include "core/to_size.h"
#include "decode/attend.h"
#include "decode/encoder/pooling.h"
#include "decode/encoder/text_encoder.h"
#include "decode/encoder/text_ids.h"
#include "io/weights/tensor_view.h"
#include "model/inference/placed_model.h"
#include "text/unicode.h"

namespace qkv {
namespace {

const std::string& prompt_of(const EmbeddingConfig& config, const std::string& name) {
  const auto place = std::ranges::find(config.prompt_names, name);
  if (config.prompt_names.empty()) fail("prompt_name must not be set: the run has no prompts (is {})", excerpt(name));
  if (place == config.prompt_names.end())
    fail("prompt_name must be one of {} (is {})", fmt::join(config.prompt_names, ", "), excerpt(name));
  return config.prompts[to_size(place - config.prompt_names.begin())];
}

// Returns the configuration of the run, overridden by the options.
EmbeddingConfig merged(EmbeddingConfig config, const EmbedOptions& options) {
  if (options.prefix && options.prompt_name) fail("prefix and prompt_name must not both be set");
  if (options.prompt_name) config.prefix = prompt_of(config, *options.prompt_name);
  config.pooling = options.pooling.value_or(config.pooling);
  config.normalize = options.normalize.value_or(config.normalize);
  config.prefix = options.prefix.value_or(config.prefix);
  config.max_length = options.max_length.value_or(config.max_length);
  return config;
}

}  // namespace

struct Embedder::State {
  const TextEncoder encoder;
  const std::shared_ptr<const InferenceEngine> engine;
  mutable ArenaPool arenas;

  State(const std::string& run_directory, const Placement& placement)
      : encoder(load_text_encoder(run_directory)), engine(make_inference(*encoder.model, placement, run_directory)) {}

  int64_t width() const { return encoder.dense ? encoder.dense->layers().out() : encoder.model->config().d_model; }
  int64_t layers() const {
    const ModelConfig& config = encoder.model->config();
    return config.has_encoder() ? config.encoder_layers : config.decoder_layers;
  }
  int64_t edge_tokens() const { return std::ssize(encoder.edges.before) + std::ssize(encoder.edges.after); }

  void check(const EmbeddingConfig& config, const EmbedOptions& options) const {
    check_ranges(options);
    const int64_t least = edge_tokens() + 1, most = encoder.model->config().max_length;
    if (config.max_length < least || config.max_length > most)
      fail("max_length must be between {} and {} (is {})", least, most, config.max_length);
    if (find_invalid_utf8(config.prefix) != std::string::npos) fail("prefix is not valid UTF-8");
    if (const auto layer = options.layer; layer && (*layer < -layers() - 1 || *layer > layers()))
      fail("layer must be between {} and {} (is {})", -layers() - 1, layers(), *layer);
  }

  // Returns the layer whose input is pooled; none: the last hidden states.
  std::optional<int64_t> pooled_layer(const EmbedOptions& options) const {
    const int64_t layer = options.layer.value_or(-1), from_start = layer < 0 ? layer + layers() + 1 : layer;
    return from_start == layers() ? std::nullopt : std::optional(from_start);
  }

  // Returns the tokens of a text without its edges.
  std::vector<int32_t> inner_ids(const std::string& text, int64_t number, const EmbeddingConfig& config) const {
    return qkv::inner_ids(config, encoder.ids, text, fmt::format("text {}", number));
  }

  // Returns the tokens of a text that is given as tokens, without its edges and with the prefix.
  std::vector<int32_t> inner_ids(std::vector<int32_t> ids, int64_t number, const EmbeddingConfig& config) const {
    const std::vector<int32_t>&before = encoder.edges.before, &after = encoder.edges.after;
    if (ids.size() >= before.size() && std::equal(before.begin(), before.end(), ids.begin()))
      ids.erase(ids.begin(), ids.begin() + std::ssize(before));
    if (ids.size() >= after.size() && std::equal(after.begin(), after.end(), ids.end() - std::ssize(after)))
      ids.resize(ids.size() - after.size());
    if (config.prefix.empty()) return ids;
    const std::vector<int32_t> prefix = inner_ids(std::string(), number, config);
    if (ids.size() < prefix.size() || !std::equal(prefix.begin(), prefix.end(), ids.begin()))
      ids.insert(ids.begin(), prefix.begin(), prefix.end());
    return ids;
  }

  // Returns the tokens of a text between its edges, without the last ones if there are too many.
  template <class Text>
  EmbedderTokens tokens_of(const Text& text, int64_t number, const EmbeddingConfig& config) const {
    EmbedderTokens tokens = between_edges(encoder.edges, inner_ids(text, number, config), config.max_length);
    if (tokens.ids.empty()) fail("text {}: has no tokens", number);
    return tokens;
  }

  // Text: a string, or its tokens.
  template <class Text>
  std::vector<EmbedderTokens> encode(const std::vector<Text>& texts, int64_t first_number,
                                     const EmbeddingConfig& config) const {
    std::vector<EmbedderTokens> tokens(texts.size());
    parallel_for_throwing(std::ssize(texts), [&](int64_t t) {
      tokens[to_size(t)] = tokens_of(texts[to_size(t)], first_number + t, config);
    });
    return tokens;
  }

  [[noreturn]] static void refuse_kind(const char* where) {
    fail("{}: the run is a translator or a language model, expected an encoder", where);
  }

  // Returns the tokens of a text that is not truncated, for the function `where`.
  std::vector<int32_t> whole_text(const char* where, const std::string& text, const EmbedOptions& options) const {
    if (!encoder.pieces) refuse_kind(where);
    EmbeddingConfig config = merged(encoder.config, options);
    check(config, options);
    const int64_t longest = config.max_length = encoder.model->config().max_length;
    auto [ids, all] = tokens_of(text, 1, config);
    if (all > longest) fail("text must have at most {} tokens (has {})", longest, all);
    return std::move(ids);
  }

  template <class Text>
  Embeddings embed(const std::vector<Text>& texts, const EmbedOptions& options) const {
    const EmbeddingConfig config = merged(encoder.config, options);
    check(config, options);
    Embeddings result;
    std::vector<std::vector<int32_t>> ids;
    for (EmbedderTokens& tokens : encode(texts, options.first_number, config)) {
      result.cut += tokens.all > std::ssize(tokens.ids);
      ids.push_back(std::move(tokens.ids));
    }
    result.width = width();
    result.values.resize(texts.size() * to_size(result.width));
    const Matrix<float> vectors(result.values.data(), std::ssize(texts), result.width);
    const ArenaPool::Lease lease(arenas, 1);
    embed_ids(*engine, ids,
              {config.pooling, encoder.dense.get(), config.normalize, options.batch_tokens, pooled_layer(options)},
              lease.front(), vectors);
    for (int64_t t = 0; t < vectors.rows; t++)
      if (!all_finite({vectors.row(t), to_size(vectors.cols)}))
        fail("text {}: the vector is not finite", options.first_number + t);
    return result;
  }
};

Embedder::Embedder(const std::string& run_directory, const Placement& placement)
    : state_(new State(run_directory, placement)) {}
Embedder::~Embedder() = default;
Embedder::Embedder(Embedder&&) noexcept = default;
Embedder& Embedder::operator=(Embedder&&) noexcept = default;

int64_t Embedder::width() const { return state_->width(); }
int64_t Embedder::max_length() const { return state_->encoder.config.max_length; }

std::vector<std::pair<std::string, std::string>> Embedder::prompts() const {
  const EmbeddingConfig& config = state_->encoder.config;
  std::vector<std::pair<std::string, std::string>> prompts;
  for (size_t i = 0; i < config.prompts.size(); i++) prompts.emplace_back(config.prompt_names[i], config.prompts[i]);
  return prompts;
}

std::vector<EmbedderTokens> Embedder::tokens(const std::vector<std::string>& texts, const EmbedOptions& options) const {
  const EmbeddingConfig config = merged(state_->encoder.config, options);
  state_->check(config, options);
  return state_->encode(texts, options.first_number, config);
}

Embeddings Embedder::embed(const std::vector<std::string>& texts, const EmbedOptions& options) const {
  return state_->embed(texts, options);
}

Embeddings Embedder::embed_tokens(const std::vector<std::vector<int32_t>>& texts, const EmbedOptions& options) const {
  return state_->embed(texts, options);
}

AttentionMap Embedder::attend(const std::string& text, const EmbedOptions& options,
                              const AttributionOptions& attribution) const {
  const TextEncoder& encoder = state_->encoder;
  qkv::check(attribution);
  if (attributes(attribution.method))
    fail("method must be weights, rollout or flow for an encoder (is {})", name_of(attribution.method));
  if (!encoder.pieces) state_->refuse_kind("attend");
  if (!encoder.model->config().has_encoder())
    fail("attend: the run is an embedder with a decoder, expected one with an encoder");
  const std::vector<int32_t> ids = state_->whole_text("attend", text, options);
  const ArenaPool::Lease lease(state_->arenas, 1);
  AttentionMap map = encoder_attention_map(*encoder.model, ids, lease.front(), encoder.pieces(ids));
  map.source = text;
  return over_layers(std::move(map), attribution.method);
}

HiddenStates Embedder::hidden(const std::string& text, const EmbedOptions& options) const {
  const TextEncoder& encoder = state_->encoder;
  const std::vector<int32_t> ids = state_->whole_text("hidden", text, options);
  const ArenaPool::Lease lease(state_->arenas, 1);
  Packed packed;
  packed.append(ids);
  return hidden_states(*encoder.model, packed, lease.front(), encoder.pieces(ids));
}

}  // namespace qkv
