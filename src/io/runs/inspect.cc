#include <algorithm>
#include <filesystem>

#include "core/tree_sum.h"
#include "io/consistent_read.h"
#include "io/runs/adapter.h"
#include "io/runs/run_config.h"
#include "io/weights/quantized_weights.h"
#include "io/weights/weights.h"
#include "model/layers/name_pattern.h"
#include "ops/moment_codes.h"
#include "qkv/runs.h"
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

// Weights and the copy that is evaluated, and the gradients, their sums over shards and the optimizer's state of the
// parameters that are trained.
int64_t training_bytes(const RunDirectory& run, const TrainingConfig& config, const ParameterList<float>& all) {
  constexpr int64_t kFloat = sizeof(float);
  const int64_t gradients = 1 + kept_sums(config.shards) + (config.ema_decay > 0 ? 1 : 0);  // and the moving average
  if (has_adapter(run)) {
    int64_t T = 0;
    for (const AdapterModule& module : read_adapter(run).modules) {
      for (const std::string& name : module.parameters)
        if (const auto p = std::ranges::find(all.all(), name, &Parameter<float>::name); p != all.all().end())
          T += config.lora_rank * (p->shape[0] + (name == module.parameters.front() ? p->shape[1] : 0));
    }
    return (all.size() + (2 + gradients) * T) * kFloat + moment_bytes(config.moments, T);
  }
  int64_t T = all.size();
  for (const auto& p : all.all())
    if (std::ranges::any_of(config.freeze, [&](const std::string& f) { return matches_name(f, p.name); }))
      T -= p.size();
  return (2 * all.size() + gradients * T) * kFloat + moment_bytes(config.moments, T);
}

RunInfo inspect_once(const RunDirectory& run) {
  const RunConfig config = read_config(run);
  RunInfo info;
  info.kind = config.kind;
  info.format = config.format;
  info.version = config.version;
  info.model = config.model;
  info.items = config.items;
  info.has_weights = has_weights(run);
  const auto model = info.has_weights ? load_run_model(run, info.model, info.items)
                                      : std::make_unique<Transformer<float>>(info.model, info.items);
  for (const auto& p : model->parameters().all())
    info.parameters.push_back({p.name, p.shape, p.size(), p.int4.blocks ? 4 : p.int8.values.data ? 8 : 32});
  info.parameter_count = model->parameters().size();
  info.serving_bytes = weight_bytes(model->parameters());
  if (std::filesystem::exists(run.training()))
    info.training_bytes = training_bytes(run, read_fields<TrainingConfig>(run, run.training()), model->parameters());
  return info;
}

}  // namespace

RunInfo inspect(const std::string& run_directory) {
  return read_consistently(run_directory, [&] { return inspect_once(RunDirectory(run_directory)); });
}

}  // namespace qkv
