#include "train/warm_start.h"

#include <algorithm>

#include "core/fail.h"
#include "core/fields.h"
#include "core/to_size.h"
#include "data/name_table.h"
#include "model/transformer.h"

namespace qkv {
namespace {

// The names and values of a configuration that can be set.
struct Values {
  std::vector<std::pair<std::string_view, std::string>> list;

  template <class Value>
  void operator()(std::string_view name, const Value& value, const Field& field) {
    if (field.visibility == Visibility::internal) return;
    if constexpr (std::is_enum_v<Value>)
      list.emplace_back(name, name_of(value));
    else
      list.emplace_back(name, fmt::format("{}", value));
  }
};

// Returns those that must not differ: all but dropout.
Values values_of(ModelConfig config) {
  Values values;
  config.dropout = {};
  visit_fields(config, values);
  return values;
}

}  // namespace

Interactions with_first_items(Interactions log, const std::vector<std::string>& first) {
  NameTable items(first);
  std::vector<int32_t> new_ids;
  for (const std::string& item : log.items) new_ids.push_back(items.id(item));
  log.items = items.take();
  for (int32_t& event : log.events) event = new_ids[to_size(event)];
  return log;
}

void start_from(const std::string& directory, const RecommenderRun& run, const RecommendationRecipe& recipe,
                ParameterList<float>& parameters) {
  if (run.recommendation.positions_from_end != recipe.recommendation.positions_from_end)
    fail("{}: positions_from_end is {}, here {}; a warm start requires the same value", directory,
         run.recommendation.positions_from_end, recipe.recommendation.positions_from_end);
  if (run.recommendation.time_gaps != recipe.recommendation.time_gaps)
    fail("{}: time_gaps is {}, here {}; a warm start requires the same value", directory, run.recommendation.time_gaps,
         recipe.recommendation.time_gaps);
  const Values before = values_of(run.model->config()), now = values_of(recipe.model);
  for (size_t i = 0; i < now.list.size(); i++)
    if (before.list[i] != now.list[i])
      fail("{}: {} is {}, here {}; a warm start requires the same value", directory, now.list[i].first,
           before.list[i].second, now.list[i].second);
  const size_t common = std::min(parameters.all().size(), run.model->parameters().all().size());  // features are last
  for (size_t i = 0; i < common; i++) {
    const Parameter<float>&from = run.model->parameters().all()[i], &to = parameters.all()[i];
    if (from.int8.values.data)
      fail("{}: has 8-bit weights; a warm start requires float32", RunDirectory(directory).model());
    std::copy_n(from.value, std::min(from.size(), to.size()), to.value);
  }
}

}  // namespace qkv
