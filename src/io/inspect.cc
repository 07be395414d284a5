#include "qkv/inspect.h"

#include <filesystem>

#include "io/run_directory.h"
#include "io/weights.h"

namespace qkv {

RunInfo inspect(const std::string& run_directory) {
  const RunDirectory run(run_directory);
  RunInfo info;
  info.recipe = load_recipe(run);
  info.has_weights = std::filesystem::exists(run.model());
  const auto model = info.has_weights ? load_model(run.model(), info.recipe.model)
                                      : std::make_unique<Transformer<float>>(info.recipe.model);
  for (const auto& p : model->parameters().all()) info.parameters.push_back({p.name, p.shape, p.size()});
  info.parameter_count = model->parameters().size();
  const int64_t bytes = info.parameter_count * static_cast<int64_t>(sizeof(float));
  info.serving_bytes = bytes;
  info.training_bytes = bytes * (info.recipe.training.ema_decay > 0 ? 5 : 4) + bytes;  // + the evaluated candidate
  return info;
}

}  // namespace qkv
