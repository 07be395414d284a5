// Functions of plain values: recipes, explanations, scores, attention maps, quantities.
#include "qkv/explain.h"
#include "qkv/language.h"
#include "qkv/quantities.h"
#include "qkv/recommendation.h"
#include "qkv/score.h"
#include "qkv/train.h"
#include "qkv/translator.h"
#include "tests/properties/random_arguments.h"

namespace qkv::testing {
namespace {

// A table whose numbers of rows and columns are usually those of its values.
NumberTable random_table(Arguments& a, int64_t rows, int64_t columns) {
  NumberTable table{a.one_in(30) ? a.size(5) : rows, a.one_in(30) ? a.size(5) : columns, {}};
  table.values.resize(to_size(a.one_in(30) ? a.up_to(20) : rows * columns));
  for (double& x : table.values) x = a.one_in(60) ? a.real() : a.random().normal();
  return table;
}

ExplainInput random_input(Arguments& a) {
  const int64_t T = 1 + a.up_to(3), S = 1 + a.up_to(3), d = 1 + a.up_to(3), k = 1 + a.up_to(2), F = 1 + a.up_to(3);
  ExplainInput in;
  in.X = random_table(a, T, d);
  const bool has_memory = a.one_in(3);
  if (has_memory) in.memory = random_table(a, S, d);
  in.heads.resize(to_size(a.up_to(2)));
  for (ExplainedHead& head : in.heads) head = {random_table(a, d, k), random_table(a, d, k), random_table(a, d, k)};
  const int64_t heads = std::ssize(in.heads);
  if (a.one_in(2)) in.W_O = random_table(a, heads * k, d);
  in.causal = a.one_in(3);
  if (a.one_in(3)) in.mask = random_table(a, T, has_memory ? S : T);
  if (a.one_in(3)) in.scale = a.real();
  if (a.one_in(2)) in.dO = random_table(a, T, in.W_O.empty() ? heads * k : d);
  if (a.one_in(3)) {
    ExplainedLayer& l = in.layer;
    l.gamma_1 = random_table(a, 1, d), l.beta_1 = random_table(a, 1, d), l.gamma_2 = random_table(a, 1, d);
    l.beta_2 = random_table(a, 1, d), l.W_1 = random_table(a, d, F), l.b_1 = random_table(a, 1, F);
    l.W_2 = random_table(a, F, d), l.b_2 = random_table(a, 1, d), l.epsilon = a.one_in(3) ? a.real() : 1e-5;
    l.activation = static_cast<Activation>(a.up_to(2));
  }
  if (a.one_in(3)) in.tokens = a.texts(4);
  if (a.one_in(5)) in.memory_tokens = a.texts(4);
  return in;
}

TEST(RandomCalls, OfExplanationsSucceedOrThrow) {
  make_calls(calls(1000), [](Arguments& a) {
    const ExplainInput in = random_input(a);
    const Explanation explanation = explain_attention(in);
    explanation_to_text(explanation);
    explanation_to_json(explanation);
    if (a.one_in(10)) explanation_to_html(in);
    explain_input_from_json(a.one_in(3) ? a.text() : explain_input_to_json(in), "input");
    explain_positions(a.size(20), a.size(20));
  });
}

template <class R>
void change(R recipe, Arguments& a) {
  const std::vector<RecipeOption> options = recipe_options(recipe);
  for (int64_t i = 1 + a.up_to(3); i > 0; i--) {
    const std::string name = a.one_in(20) ? a.text() : a.one_of(options).name;
    const std::string value = a.one_in(3)   ? std::to_string(a.size(100))
                              : a.one_in(2) ? std::to_string(a.real())
                                            : a.one_of(options).value;
    if (a.one_in(4)) {
      std::string json = "{\"";
      merge_recipe_json(recipe, json.append(name).append("\": ").append(value).append("}"), "json");
    } else {
      set_recipe_option(recipe, name, value);
    }
  }
  check(recipe.training);
  ModelConfig model = recipe.model;
  check(model, {a.size(3), a.size(3)});
  update_from_json(model, to_json(model), "json");
}

TEST(RandomCalls, OfRecipesSucceedOrThrow) {
  make_calls(calls(1000), [](Arguments& a) {
    switch (a.up_to(2)) {
      case 0:
        return change(translation_preset("tiny"), a);
      case 1:
        return change(language_preset("lm-small"), a);
      default:
        change(recommendation_preset("films"), a);
    }
  });
}

TEST(RandomCalls, OfScoresMapsAndQuantitiesSucceedOrThrow) {
  make_calls(calls(1000), [](Arguments& a) {
    const std::vector<std::string> hypotheses = a.texts(3), references = a.texts(3);
    bleu(hypotheses, references, a.one_in(2));
    chrf(hypotheses, references, a.one_in(2));
    AttentionMap map{a.text(), a.text(), {}};
    for (int64_t k = a.up_to(2); k > 0; k--) {
      AttentionKind kind{
          a.one_of<std::string>({"encoder", "decoder", "cross"}), a.one_in(2), a.texts(4), a.texts(4), {}};
      const size_t size = kind.rows.size() * kind.columns.size();
      kind.layers.assign(to_size(a.up_to(2)), {AttentionHead{std::vector<float>(a.one_in(10) ? 3 : size, 0.5f)}});
      map.kinds.push_back(kind);
    }
    merge_words(map);
    attention_to_json(map);
    attention_to_html(map);
    for (const AttentionKind& kind : map.kinds)
      attention_to_text(kind, static_cast<int>(a.up_to(3)) - 1, static_cast<int>(a.up_to(3)) - 1);
    const std::string quantity = std::to_string(a.one_in(2) ? a.real() : static_cast<double>(a.size(99))) +
                                 a.one_of<std::string>({"", "k", "M", "G", "s", "ms", "h", "x"});
    bytes_text(a.size(1 << 20));
    duration_text(a.real());
    if (a.one_in(2)) parse_bytes(quantity);
    if (a.one_in(2)) parse_duration(quantity);
  });
}

}  // namespace
}  // namespace qkv::testing
