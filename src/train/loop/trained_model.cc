#include "train/loop/trained_model.h"

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "core/to_size.h"
#include "io/runs/text_head_file.h"
#include "io/weights/weights.h"
#include "train/optimizer/trained_parts.h"

namespace qkv {

TrainedModel::TrainedModel(const Recipe& recipe, const RunDirectory& run, bool has_gradients)
    : model_(recipe.model, recipe.items, recipe.head), candidate_(recipe.model, recipe.items, recipe.head) {
  const TrainingConfig& config = recipe.training;
  ParameterList<float>& parameters = model_.parameters();
  const uint64_t seed = static_cast<uint64_t>(config.seed);
  if (has_adapter(run)) {
    adapter_ = read_adapter(run);
    base_ = load_base(run, *adapter_, model_.config());
    for (Transformer<float>* model : {&model_, &candidate_}) {
      model->parameters().use(base_->parameters().values(), nullptr);
      model->add_adapters(adapter_->of_model(), adapter_->rank, adapter_->scale());
    }
    model_.trained().allocate_gradients();
    model_.trained().initialize(seed);
    if (const auto head = model_.head_parameters(); recipe.head.apart && head.begin < head.end)
      load_weights(run.start(), head.list, head.list.values(), head.begin, head.end);
  } else if (std::filesystem::exists(run.start())) {
    load_weights(run.start(), parameters, parameters.values());
  } else {
    parameters.initialize(seed, config.initial_deviation);
  }
  if (!adapter_) freeze(config, parameters);
  if (has_gradients) parameters.allocate_gradients();
}

void TrainedModel::clear_base_gradients() {
  if (adapter_) std::ranges::fill(model_.parameters().gradients(), 0.0f);
}

bool TrainedModel::average_evaluations(const RunDirectory& run, std::span<const int64_t> steps, int64_t count,
                                       Arena& arena) {
  const size_t k = std::min(steps.size(), to_size(count));
  if (k < 2) return false;
  std::vector<std::string> paths;
  for (const int64_t step : steps.last(k)) paths.push_back(run.weights(step));
  average_weights(paths, model_.trained(), candidate_values(), arena);
  return true;
}

void TrainedModel::write_candidate(const RunDirectory& run) {
  if (adapter_)
    write_adapter_weights(run, *adapter_, model_.trained(), candidate_values(), head_metadata(candidate_));
  else
    save_weights(run.model(), model_.parameters(), candidate_values(), 0, model_.trunk_parameters(),
                 head_metadata(candidate_));
}

}  // namespace qkv
