// Calls of functions of values: scores, configurations, explanations and views of attention.
#include "program/explain/explain.h"
#include "qkv/attention_map.h"
#include "qkv/config.h"
#include "qkv/evaluate.h"
#include "qkv/language.h"
#include "qkv/recommendation.h"
#include "qkv/server.h"
#include "qkv/train.h"
#include "qkv/training.h"
#include "tests/properties/random_arguments.h"

namespace qkv::testing {
namespace {

TEST(RandomCalls, OfScoresSucceedOrThrow) {
  make_calls(calls(2000), [](Arguments& a) {
    const std::vector<std::string> lines = a.texts(3), references = a.one_in(4) ? a.texts(3) : lines;
    if (a.one_in(2))
      bleu(lines, references, a.one_in(2));
    else
      chrf(lines, references, a.one_in(2));
  });
}

template <class Config>
void check_random(Arguments& a, uint64_t one_in) {
  Config config;
  visit_fields(config, RandomFields(a, {}, one_in));
  check(config);
}

TEST(RandomCalls, OfChecksSucceedOrThrow) {
  make_calls(calls(4000), [](Arguments& a) {
    switch (a.up_to(5)) {
      case 0:
        return check_random<ModelConfig>(a, 20);
      case 1:
        return check_random<TrainingConfig>(a, 20);
      case 2:
        return check_random<TextConfig>(a, 4);
      case 3:
        return check_random<LanguageConfig>(a, 4);
      case 4:
        return check_random<RecommendationConfig>(a, 8);
      default:
        return check_random<ServerOptions>(a, 20);
    }
  });
}

// Changes a number, and now and then the shape.
void disturb(Arguments& a, NumberTable& table) {
  if (a.one_in(6)) table.rows = a.size(5);
  if (a.one_in(6)) table.columns = a.size(5);
  if (a.one_in(6)) table.values.resize(to_size(a.up_to(30)), a.real());
  if (!table.values.empty()) table.values[to_size(a.up_to(std::ssize(table.values) - 1))] = a.real();
}

void disturb(Arguments& a, ExplainedAttention& attention) {
  std::vector<NumberTable*> tables = {&attention.W_O, &attention.b_O, &attention.mask};
  for (ExplainedHead& head : attention.heads)
    tables.insert(tables.end(),
                  {&head.W_Q, &head.W_K, &head.W_V, &head.b_Q, &head.b_K, &head.b_V, &head.Q, &head.K, &head.V});
  for (NumberTable* table : tables)
    if (a.one_in(12)) disturb(a, *table);
  if (a.one_in(8)) attention.heads.resize(to_size(a.up_to(3)));
  if (a.one_in(8)) attention.scale = a.real();
  if (a.one_in(4)) attention.causal = a.one_in(2);
}

void disturb(Arguments& a, ExplainedLayer& layer) {
  std::vector<NumberTable*> tables = {&layer.W_1, &layer.b_1, &layer.W_gate, &layer.b_gate, &layer.W_2, &layer.b_2};
  for (ExplainedNorm& norm : layer.norms) tables.insert(tables.end(), {&norm.gamma, &norm.beta});
  for (NumberTable* table : tables)
    if (a.one_in(12)) disturb(a, *table);
  if (a.one_in(8)) layer.norms.resize(to_size(a.up_to(4)));
  if (a.one_in(8)) layer.epsilon = a.real();
}

void disturb(Arguments& a, ExplainedOutput& output) {
  for (NumberTable* table : {&output.norm.gamma, &output.norm.beta, &output.W, &output.b})
    if (a.one_in(12)) disturb(a, *table);
  if (a.one_in(8)) output.vocabulary = a.texts(4);
  if (a.one_in(8)) output.labels = {static_cast<int32_t>(a.up_to(6)) - 2, static_cast<int32_t>(a.up_to(6)) - 2};
  if (a.one_in(8)) output.smoothing = a.real();
}

ExplainInput random_input(Arguments& a) {
  constexpr ExplainInput (*kExamples[])() = {textbook_example, layer_example, decoder_example, language_model_example,
                                             queries_example};
  ExplainInput input = kExamples[a.up_to(std::ssize(kExamples) - 1)]();
  for (NumberTable* table : {&input.X, &input.memory, &input.dO})
    if (a.one_in(8)) disturb(a, *table);
  disturb(a, input.attention);
  disturb(a, input.cross);
  disturb(a, input.layer);
  disturb(a, input.output);
  if (a.one_in(8)) input.tokens = a.texts(3);
  if (a.one_in(8)) input.memory_tokens = a.texts(3);
  input.columns = a.one_in(2);
  return input;
}

TEST(RandomCalls, OfExplanationsSucceedOrThrow) {
  make_calls(calls(2000), [](Arguments& a) {
    if (a.one_in(8)) explain_positions(a.size(40), a.size(40));
    const ExplainInput input = random_input(a);
    const std::string json = explain_input_to_json(input);
    explain_input_from_json(a.one_in(4) ? json.substr(0, to_size(a.up_to(std::ssize(json)))) : json, a.text());
    const Explanation explanation = explain_attention(input, {.backward = a.one_in(2), .arithmetic = a.one_in(2)});
    explanation_to_text(explanation);
    explanation_to_json(explanation);
    explanation_to_html(input, a.one_in(2));
  });
}

AttentionKind random_kind(Arguments& a) {
  AttentionKind kind{a.text(), a.one_in(2), a.texts(4), a.texts(4), {}};
  for (int64_t layers = a.up_to(2); layers > 0; layers--) {
    kind.layers.emplace_back(to_size(a.up_to(3)));
    for (AttentionHead& head : kind.layers.back()) {
      const size_t weights = a.one_in(8) ? to_size(a.up_to(20)) : kind.rows.size() * kind.columns.size();
      for (size_t i = 0; i < weights; i++) head.weights.push_back(static_cast<float>(a.real()));
    }
  }
  return kind;
}

TEST(RandomCalls, OfViewsOfAttentionSucceedOrThrow) {
  make_calls(calls(2000), [](Arguments& a) {
    AttentionMap map{a.text(), a.text(), {}};
    for (int64_t kinds = a.up_to(3); kinds > 0; kinds--) map.kinds.push_back(random_kind(a));
    switch (a.up_to(3)) {
      case 0:
        merge_words(map);
        break;
      case 1:
        attention_to_json(map);
        break;
      case 2:
        attention_to_html(map);
        break;
      default:
        for (const AttentionKind& kind : map.kinds)
          attention_to_text(kind, static_cast<int>(a.index(2)), static_cast<int>(a.index(3)));
    }
  });
}

}  // namespace
}  // namespace qkv::testing
