// What a run directory holds.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "qkv/config.h"

namespace qkv {

struct ParameterInfo {
  std::string name;
  std::vector<int64_t> shape;
  int64_t count = 0;
  bool int8 = false;  // in 8 bits, with a scale a row; else float32
};

struct RunInfo {
  ModelConfig model;
  std::vector<ParameterInfo> parameters;
  int64_t parameter_count = 0;
  bool has_weights = false;    // false until the first evaluation of a training run
  int64_t serving_bytes = 0;   // weights in memory
  int64_t training_bytes = 0;  // weights, gradients, optimiser and moving average, without activations; 0 where the run
                               // was not trained here
};

// Throws Error, naming the file, if the directory's configuration cannot be read or its weights do not fit it.
RunInfo inspect(const std::string& run_directory);

}  // namespace qkv
