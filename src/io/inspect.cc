#include "qkv/inspect.h"

#include <filesystem>

#include "io/int8_weights.h"
#include "io/run_config.h"
#include "io/weights.h"
#include "ops/optimizer/moment_codes.h"
#include "qkv/training.h"

namespace qkv {
namespace {

// Bytes of Adam's two moments of P parameters, as OptimizerState allocates them.
int64_t moment_bytes(Moments moments, int64_t P) {
  const int64_t blocks = (P + kMomentBlock - 1) / kMomentBlock, padded = blocks * kMomentBlock;
  constexpr int64_t kFloat = sizeof(float);
  switch (moments) {
    case Moments::float32:
      return 2 * kFloat * P;
    case Moments::bfloat16:
      return 2 * 2 * padded;
    case Moments::int8:
      return 2 * (padded + kFloat * blocks);
  }
  return 0;
}

// Weights, gradients, the copy that is evaluated, and the optimizer's state.
int64_t training_bytes(const TrainingConfig& config, int64_t P) {
  const int64_t arrays = config.ema_decay > 0 ? 4 : 3;
  return arrays * P * static_cast<int64_t>(sizeof(float)) + moment_bytes(config.moments, P);
}

}  // namespace

RunInfo inspect(const std::string& run_directory) {
  const RunDirectory run(run_directory);
  const RunConfig config = read_config(run);
  RunInfo info;
  info.kind = config.kind;
  info.format = config.format;
  info.version = config.version;
  info.model = config.model;
  info.items = config.items;
  info.has_weights = std::filesystem::exists(run.model());
  const auto model = info.has_weights ? load_model(run.model(), info.model, info.items)
                                      : std::make_unique<Transformer<float>>(info.model, info.items);
  for (const auto& p : model->parameters().all())
    info.parameters.push_back({p.name, p.shape, p.size(), p.int8.values.data != nullptr});
  info.parameter_count = model->parameters().size();
  info.serving_bytes = weight_bytes(model->parameters());
  if (std::filesystem::exists(run.training()))
    info.training_bytes = training_bytes(read_fields<TrainingConfig>(run, run.training()), info.parameter_count);
  return info;
}

}  // namespace qkv
