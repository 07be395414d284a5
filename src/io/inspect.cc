#include "qkv/inspect.h"

#include <filesystem>

#include "io/int8_weights.h"
#include "io/run_directory.h"
#include "io/weights.h"

namespace qkv {

RunInfo inspect(const std::string& run_directory) {
  const RunDirectory run(run_directory);
  RunInfo info;
  info.model = load_config(run);
  info.has_weights = std::filesystem::exists(run.model());
  const auto model =
      info.has_weights ? load_model(run.model(), info.model) : std::make_unique<Transformer<float>>(info.model);
  for (const auto& p : model->parameters().all())
    info.parameters.push_back({p.name, p.shape, p.size(), p.int8.values.data != nullptr});
  info.parameter_count = model->parameters().size();
  info.serving_bytes = weight_bytes(model->parameters());
  const int64_t bytes = info.parameter_count * static_cast<int64_t>(sizeof(float));
  if (std::filesystem::exists(run.training()))  // + the evaluated candidate
    info.training_bytes = bytes * (load_recipe(run).training.ema_decay > 0 ? 5 : 4) + bytes;
  return info;
}

}  // namespace qkv
