#include "train/warm_start.h"

#include <algorithm>
#include <unordered_map>

#include "core/fail.h"
#include "core/fields.h"
#include "io/saved_interactions.h"
#include "io/weights.h"
#include "model/transformer.h"

namespace qkv {
namespace {

// Names and values of a configuration, but for what may differ.
struct Values {
  std::vector<std::pair<std::string_view, std::string>> list;

  template <class Value>
  void operator()(std::string_view name, const Value& value, std::string_view) {
    if (name == "target_vocab" || name.ends_with("dropout")) return;
    if constexpr (std::is_enum_v<Value>)
      list.emplace_back(name, name_of(value));
    else
      list.emplace_back(name, fmt::format("{}", value));
  }
};

Values values_of(ModelConfig config) {
  Values values;
  visit_fields(config, values);
  return values;
}

}  // namespace

Interactions with_first_items(Interactions log, const std::vector<std::string>& first) {
  std::unordered_map<std::string, int32_t> ids;
  for (const std::string& item : first) ids.emplace(item, static_cast<int32_t>(ids.size()));
  std::vector<std::string> items = first;
  std::vector<int32_t> new_ids;
  for (std::string& item : log.items) {
    const auto [place, is_new] = ids.emplace(item, static_cast<int32_t>(items.size()));
    if (is_new) items.push_back(std::move(item));
    new_ids.push_back(place->second);
  }
  log.items = std::move(items);
  for (int32_t& event : log.events) event = new_ids[static_cast<size_t>(event)];
  return log;
}

void start_from(const RunDirectory& run, const ModelConfig& config, ParameterList<float>& parameters) {
  const ModelConfig old = load_config(run);
  const Values before = values_of(old), now = values_of(config);
  for (size_t i = 0; i < now.list.size(); i++)
    if (before.list[i] != now.list[i])
      fail("{}: its model has {} {}, this one {}; give the same, or no warm start", run.root(), now.list[i].first,
           before.list[i].second, now.list[i].second);
  if (const auto items = std::ssize(load_interactions(run).data.items); items != old.target_vocab)
    fail("{}: holds {} items, config.json says {}", run.items(), items, old.target_vocab);
  const std::unique_ptr<Transformer<float>> model = load_model(run.model(), old);
  for (size_t i = 0; i < parameters.all().size(); i++) {
    const Parameter<float>&from = model->parameters().all()[i], &to = parameters.all()[i];
    if (from.int8.values.data) fail("{}: weights are in 8 bits, wanted float32", run.model());
    std::copy_n(from.value, std::min(from.size(), to.size()), to.value);
  }
}

}  // namespace qkv
