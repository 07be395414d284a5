// Models with texts for the tests of heads: random ones, and one whose heads are set by hand.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "analysis/heads/attention_pass.h"
#include "io/runs/decoding_defaults.h"
#include "tests/decode/language_models.h"
#include "tests/support/models.h"

namespace qkv::testing {

inline TextToken token(int32_t id) { return {"t" + std::to_string(id), id, id < 3, id == 3}; }

inline TextSide side_of(std::vector<int32_t> ids) {
  TextSide side;
  for (const int32_t id : ids) side.tokens.push_back(token(id));
  side.ids = std::move(ids);
  return side;
}

// Random texts of 3 to 3 + count − 1 tokens for a model with random weights. Tokens 1 and 2 stand around a text, and 3
// is punctuation.
inline HeadTexts random_head_texts(const ModelConfig& config, RunKind kind, int64_t count, uint64_t seed = 1) {
  HeadTexts texts;
  texts.kind = kind;
  texts.model = std::make_unique<Transformer<float>>(config);
  randomize(texts.model->parameters(), seed);
  Random random(seed, Stream::test);
  for (int64_t t = 0; t < count; t++) {
    HeadText text;
    text.line = t + 1;
    if (config.has_encoder()) {
      std::vector<int32_t> source = random_tokens(2 + (3 * t) % count, config.source_vocab, random);
      source.push_back(2);
      text.source = side_of(source);
    }
    if (config.has_decoder()) {
      std::vector<int32_t> target = random_tokens(2 + t, config.target_vocab, random);
      text.labels = target;
      text.labels.push_back(2);
      target.insert(target.begin(), 1);
      text.target = side_of(target);
      for (const int32_t id : text.labels) text.label_tokens.push_back(token(id));
    } else {
      text.masked_ids = text.source.ids;
      for (int32_t place = 0; std::cmp_less(place, text.source.ids.size()); place += 2) {
        text.masked.push_back(place);
        text.labels.push_back(text.source.ids[to_size(place)]);
        text.masked_ids[to_size(place)] = 0;
      }
    }
    texts.texts.push_back(std::move(text));
  }
  return texts;
}

// A translator, a language model, an encoder that predicts masked tokens, and models with the other kinds of norms and
// sublayers.
inline std::vector<std::pair<ModelConfig, RunKind>> head_cases() {
  std::vector<std::pair<ModelConfig, RunKind>> cases = {{small_config(), RunKind::translator}};
  for (const ModelConfig& config : language_configs(13, 20)) cases.emplace_back(config, RunKind::language_model);
  ModelConfig encoder = small_config();
  encoder.decoder_layers = encoder.target_vocab = 0;
  encoder.shared_embeddings = false;
  encoder.token_head = TokenHead::dense;
  cases.emplace_back(encoder, RunKind::encoder);
  ModelConfig pre = small_config();
  pre.norm.position = NormPosition::pre;
  pre.norm.final = true;
  cases.emplace_back(pre, RunKind::translator);
  return cases;
}

// Gives a run a text that is put before each source, by its decoding.json.
inline void set_source_prefix(const std::string& run, const std::string& prefix) {
  DecodingDefaults defaults;
  defaults.source_prefix = prefix;
  write_decoding_defaults(RunDirectory(run), defaults);
}

inline std::vector<std::vector<size_t>> one_batch(const HeadTexts& texts) {
  std::vector<std::vector<size_t>> batches(1);
  for (size_t t = 0; t < texts.texts.size(); t++) batches.front().push_back(t);
  return batches;
}

// A language model of V tokens in which head 1 of layer 1 attends to the previous token, and head 1 of layer 2 to the
// tokens after earlier occurrences of the current one. Both heads 2 attend to all tokens alike. A token's vector has
// three parts: its position, the token itself, and the token before it, which layer 1 writes.
inline HeadTexts induction_model(int64_t vocab, int64_t length) {
  constexpr float kSharp = 40;  // scores that decide
  ModelConfig config = small_config();
  config.encoder_layers = config.source_vocab = 0;
  config.target_vocab = vocab;
  config.shared_embeddings = config.scale_embeddings = false;
  config.tied_output = false;
  config.positions = Positions::learned;
  config.max_length = length;
  config.d_model = length + 2 * vocab;
  config.attention.key_width = std::max(length, vocab);
  config.attention.value_width = vocab;
  config.attention.scale = 1;
  HeadTexts texts;
  texts.kind = RunKind::language_model;
  texts.model = std::make_unique<Transformer<float>>(config);
  const ParameterList<float>& parameters = texts.model->parameters();
  texts.model->parameters().initialize(1);
  for (const Parameter<float>& p : parameters.all())
    if (p.name.find("norm.weight") == std::string::npos) std::fill_n(p.value, p.size(), 0.0f);
  const int64_t d = config.d_model, dv = 2 * vocab;
  const auto set = [&](const std::string& name, int64_t columns, int64_t row, int64_t column, float value) {
    values_of(parameters, name)[row * columns + column] = value;
  };
  for (int64_t p = 0; p < length; p++) set("decoder.positions.weight", d, p, p, 1);
  for (int64_t v = 0; v < vocab; v++) set("target_embedding.weight", d, v, length + v, 1);
  const std::string first = "decoder.layers.0.self_attention.", second = "decoder.layers.1.self_attention.";
  for (int64_t p = 0; p + 1 < length; p++) {
    set(first + "q.weight", d, p, p + 1, kSharp);
    set(first + "k.weight", d, p, p, 1);
  }
  for (int64_t v = 0; v < vocab; v++) {
    set(first + "v.weight", d, v, length + v, 1);
    set(first + "output.weight", dv, length + vocab + v, v, 1);
    set(second + "q.weight", d, v, length + v, kSharp);
    set(second + "k.weight", d, v, length + vocab + v, 1);
  }
  return texts;
}

}  // namespace qkv::testing
