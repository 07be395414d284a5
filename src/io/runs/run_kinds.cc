#include "io/runs/run_kinds.h"

#include <algorithm>
#include <filesystem>
#include <tuple>
#include <utility>

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
std::shared_ptr<const StandaloneDense> load_dense(const RunDirectory& run, const EmbeddingConfig& config,
                                                  int64_t width) {
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
  const auto dense = std::make_shared<StandaloneDense>(shapes);
  load_weights(run.dense(), dense->parameters(), dense->parameters().values());
  return dense;
}

// Each prompt has a name of its own.
void check_prompts(const EmbeddingConfig& config, const std::string& where) {
  if (config.prompt_names.size() != config.prompts.size())
    fail("{}: prompts must have a text for each of the {} prompt_names (has {})", where, config.prompt_names.size(),
         config.prompts.size());
}

std::shared_ptr<const StandaloneLabelHead> load_head(const std::string& path, const ModelConfig& model,
                                                     const ClassificationConfig& config) {
  std::error_code error;
  const uintmax_t bytes = std::filesystem::file_size(path, error);
  if (error) fail("{}: {}", path, error.message());
  const LabelHeadShape shape = label_head_shape(config);
  const int64_t parameters = count_parameters(model, shape);
  if (bytes / sizeof(float) < static_cast<uintmax_t>(parameters))
    fail("{}: has {} bytes, too few for the {} parameters of the head", path, bytes, parameters);
  const auto head = std::make_shared<StandaloneLabelHead>(model, shape);
  load_weights(path, head->parameters(), head->parameters().values());
  return head;
}

// Each label has a name of its own.
void check_labels(std::vector<std::string> labels, const std::string& where) {
  std::ranges::sort(labels);
  const auto repeated = std::ranges::adjacent_find(labels);
  if (repeated != labels.end()) fail("{}: labels must differ (has {} twice)", where, excerpt(*repeated));
}

std::optional<TransitionConfig> read_transitions(const RunDirectory& run, int64_t max_length) {
  if (!std::filesystem::exists(run.transitions())) return {};
  const auto transitions = read_fields<TransitionConfig>(run, run.transitions());
  check_ranges(transitions, run.transitions() + ": ");
  if (transitions.events > max_length)
    fail("{}: events must be at most {}, max_length in {} (is {})", run.transitions(), max_length, run.config(),
         transitions.events);
  return transitions;
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
  const auto has = [&](const std::string& token) { return whole.find(token) != std::string::npos; };
  if (!changes || std::ranges::none_of(config.spelled, has)) return normalized(config, whole);
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

ClassifierRun ClassifierRun::read(const RunDirectory& run, const ModelConfig& config) {
  ClassifierRun loaded{EncoderRun::read(run, config), read_fields<ClassificationConfig>(run, run.classification())};
  if (loaded.dense) fail("{}: dense must be empty in a classifier", run.embedding());
  visit_fields(loaded.classification, RangeChecker(run.classification() + ": "));
  if (loaded.classification.labels.empty()) fail("{}: labels must not be empty", run.classification());
  check_labels(loaded.classification.labels, run.classification());
  loaded.head = load_head(run.classifier(), config, loaded.classification);
  return loaded;
}

void ClassifierRun::write(const RunDirectory& run) const {
  EncoderRun::write(run);
  write_fields(run.classification(), classification);
  if (head) save_weights(run.classifier(), head->parameters(), head->parameters().values());
}

std::vector<int32_t> TextEnds::beginning(std::span<const int32_t> prompt, bool is_complete) const {
  std::vector<int32_t> text;
  text.reserve(prompt.size() + 1);
  if (prompt.empty() || (starts_prompts && !is_complete)) text.push_back(start);
  text.insert(text.end(), prompt.begin(), prompt.end());
  return text;
}

TextEnds ends_of(const LanguageConfig& config, const TextCodec& codec, const std::string& where) {
  TextEnds result{config.start.empty() ? codec.end() : id_of(config.start, codec, where), {}};
  for (const std::string& piece : config.ends) result.ends.push_back(id_of(piece, codec, where));
  if (result.ends.empty()) result.ends.push_back(codec.end());
  if (std::ranges::min(result.ends) < 0 || result.start < 0)
    fail("{}: {} must not be empty, because the vocabulary has no end token", where,
         std::ranges::min(result.ends) < 0 ? "ends" : "start");
  if (has_tokenizer_json(codec.unit())) result.starts_prompts = codec.before().has_value();
  return result;
}

LanguageRun LanguageRun::read(const RunDirectory& run, const ModelConfig& config) {
  if (config.has_encoder())
    fail("{}: encoder_layers must be 0 in a language model (is {})", run.config(), config.encoder_layers);
  const LanguageConfig language = read_fields<LanguageConfig>(run, run.language());
  LanguageRun loaded{config, language, read_codec(run, language.unit), read_chat_files(run)};
  if (has_tokenizer_json(language.unit)) loaded.codec.pad(config.target_vocab, run.config());
  if (const int64_t more = config.target_vocab - loaded.codec.size();
      language.unit == TextUnit::pieces && more > 0 && more <= kMaxPadding)
    loaded.codec.pad(config.target_vocab, run.config());
  loaded.ends = ends_of(language, loaded.codec, run.language());
  if (language.unit == TextUnit::pieces) loaded.ends.starts_prompts = loaded.chat.tokens.starts_prompts;
  if (config.target_vocab != loaded.codec.size())
    fail("{}: target_vocab must be {}, the number of tokens of the vocabulary (is {})", run.config(),
         loaded.codec.size(), config.target_vocab);
  return loaded;
}

void LanguageRun::write(const RunDirectory& run) const {
  write_fields(run.language(), language);
  write_codec(run, codec);
  write_chat_files(run, chat);
}

RecommendationConfig read_recommendation(const RunDirectory& run) {
  const auto recommendation = read_fields<RecommendationConfig>(run, run.recommendation());
  try {
    check(recommendation);
  } catch (const Error& error) {
    fail("{}: {}", run.recommendation(), error.what());
  }
  return recommendation;
}

RecommenderRun RecommenderRun::read(const RunDirectory& run, const ModelConfig& config, const ItemInputs& items) {
  if (config.has_encoder())
    fail("{}: encoder_layers must be 0 in a recommender (is {})", run.config(), config.encoder_layers);
  if (config.output_softcap != 0)
    fail("{}: output_softcap must be 0 in a recommender (is {})", run.config(), config.output_softcap);
  RecommenderRun loaded{config, items, read_recommendation(run), read_log(run)};
  if (loaded.log.data.item_count() != config.target_vocab)
    fail("{}: target_vocab must be {}, the number of items in {} (is {})", run.config(), loaded.log.data.item_count(),
         run.items(), config.target_vocab);
  const int64_t gap_buckets = loaded.recommendation.time_gaps ? kGapBuckets : 0;
  if (items.gap_buckets != gap_buckets)
    fail("{}: gap_buckets must be {}, because {} has time_gaps {} (is {})", run.config(), gap_buckets,
         run.recommendation(), loaded.recommendation.time_gaps, items.gap_buckets);
  loaded.transitions = read_transitions(run, config.max_length);
  return loaded;
}

void RecommenderRun::write(const RunDirectory& run) const {
  write_fields(run.recommendation(), recommendation);
  write_log(run, log);
  if (transitions) write_fields(run.transitions(), *transitions);
}

Split split_of(const RecommendationConfig& config, const Interactions& log) {
  Split split = Split::of(log, config.split, config.test_share);
  split.holdout = config.holdout;
  return split;
}

std::unique_ptr<Transitions> transitions_of(const RecommenderRun& run) {
  if (!run.transitions || run.transitions->weight == 0) return nullptr;
  const Interactions& log = run.log.data;
  return std::make_unique<Transitions>(
      log, [&](int64_t user) { return std::ssize(log.of(user)); }, *run.transitions);
}

TranslatorRun TranslatorRun::read(const RunDirectory& run, const ModelConfig& config) {
  if (!config.has_encoder() || !config.has_decoder())
    fail("{}: {} must be at least 1 in a translator (is 0)", run.config(),
         config.has_encoder() ? "decoder_layers" : "encoder_layers");
  const TranslationConfig translation = read_fields<TranslationConfig>(run, run.translation());
  TranslatorRun loaded{config, read_tokenizers(run, translation.unknown), translation};
  for (const auto& [side, tokenizer, vocab] : {std::tuple{"source", &loaded.tokenizers.source, config.source_vocab},
                                               {"target", &loaded.tokenizers.target, config.target_vocab}}) {
    if (vocab < tokenizer->size() || vocab > tokenizer->size() + kMaxPadding)
      fail("{}: {}_vocab must be {}, the number of pieces of the {} tokenizer, or at most {} more (is {})",
           run.config(), side, tokenizer->size(), side, kMaxPadding, vocab);
    *tokenizer = with_spelled(tokenizer->fitted(vocab, run.config()), translation.spelled, translation.strips_left,
                              translation.strips_right, run.translation());
  }
  loaded.tokens = tokens_of(translation, loaded.tokenizers, run.translation());
  Tokenizer& target = loaded.tokenizers.target;
  if (std::vector<int32_t> ids = ids_without_text(translation, target); !ids.empty())
    target = target.without_text(std::move(ids));
  loaded.abbreviations = read_abbreviations(run);
  loaded.lengths = read_sentence_lengths(run);
  return loaded;
}

void TranslatorRun::write(const RunDirectory& run) const {
  write_fields(run.translation(), translation);
  write_tokenizers(run, tokenizers);
  write_abbreviations(run, abbreviations);
  write_sentence_lengths(run, lengths);
}

}  // namespace qkv
