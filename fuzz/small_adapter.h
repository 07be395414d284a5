// The adapter whose files the target `adapter` reads and the seeds are: of two modules of the small model, one of them
// with the queries, keys and values of a layer.
#pragma once

#include <string>
#include <vector>

#include "fuzz/small.h"
#include "io/runs/adapter.h"
#include "io/weights/safetensors.h"
#include "io/weights/weights.h"

namespace qkv::fuzz {

// Stands for the path of the base in base.json: the target puts its own path there.
inline constexpr const char* kBasePath = "BASE";

// Writes the weights of the base to a run directory.
inline void save_base(const RunDirectory& run) {
  Transformer<float> model(small_model());
  model.parameters().initialize(1);
  save_weights(run.model(), model.parameters(), model.parameters().values());
}

inline Adapter small_adapter(const RunDirectory& base) {
  const std::string encoder = "encoder.layers.0.self_attention.";
  return {.base = kBasePath,
          .sha256 = sha256_of_file(base.model()),
          .rank = 2,
          .alpha = 4,
          .task = "SEQ_2_SEQ_LM",
          .modules = {{"decoder.fc", {"decoder.layers.0.feed_forward.first.weight"}, 1},
                      {"encoder.qkv", {encoder + "q.weight", encoder + "k.weight", encoder + "v.weight"}, 2}}};
}

// Writes base.json, adapter_config.json and adapter_model.safetensors.
inline void save_small_adapter(const RunDirectory& run, const Adapter& adapter) {
  write_adapter(run, adapter);
  const std::vector<float> numbers(24, 0.5f);
  std::vector<NamedTensor> tensors;
  for (const AdapterModule& module : adapter.modules) {
    const int64_t outputs = 4 * std::ssize(module.parameters);
    const std::string name = "base_model.model." + module.name;
    tensors.push_back({name + ".lora_A.weight", f32_tensor({2, 4}, std::span(numbers).first(8))});
    tensors.push_back({name + ".lora_B.weight",
                       f32_tensor({outputs, 2}, std::span(numbers).first(static_cast<size_t>(2 * outputs)))});
  }
  write_safetensors(run.adapter_weights(), tensors);
}

}  // namespace qkv::fuzz
