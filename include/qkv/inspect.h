// Contents and memory of a run directory.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "qkv/config.h"

namespace [[gnu::visibility("default")]] qkv {

// The kind of a run, as config.json states it.
enum class RunKind { translator, language_model, recommender, encoder, classifier };
constexpr std::array<std::string_view, 5> names_of(RunKind) {
  return {"translator", "language_model", "recommender", "encoder", "classifier"};
}

struct ParameterInfo {
  std::string name;
  std::vector<int64_t> shape;
  int64_t count = 0;
  int bits = 32;  // of a number as it is stored: 32 (float32), 8 or 4 (integers with scales)
};

struct RunInfo {
  RunKind kind = RunKind::translator;
  int64_t format = 0;   // of the run directory; 0: written before config.json stated one
  std::string version;  // version of qkv that wrote the run; "" in format 0
  ModelConfig model;
  ItemInputs items;  // of a recommender
  std::vector<ParameterInfo> parameters;
  int64_t parameter_count = 0;
  bool has_weights = false;    // false until the first evaluation of a training run
  int64_t serving_bytes = 0;   // weights in memory
  int64_t training_bytes = 0;  // weights, gradients, optimizer state, moving average and the copy that is evaluated,
                               // without activations; 0 if the run cannot be trained
};

// Reads a run directory. Throws Error, naming the file, if its configuration is invalid or its weights do not match it.
RunInfo inspect(const std::string& run_directory);

}  // namespace qkv
