// checkpoints/state.safetensors: everything that resuming needs, written whole or not at all.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/batch_stream.h"
#include "layers/parameter.h"
#include "train/optimizer_state.h"

namespace qkv {

// Where training stands.
struct Progress {
  int64_t step = 0;     // steps done
  StreamPosition data;  // of the next batch
  double best = 0;      // the best dev score so far, higher is better; meaningless while best_step is 0
  int64_t best_step = 0;
  int64_t evaluations_since_best = 0;
  bool finished = false;                 // patience ran out
  std::vector<int64_t> evaluated_steps;  // whose weights are kept for averaging, oldest first
};

// `data` identifies the training data; a state is only taken up with the data it was made with.
void save_state(const std::string& path, const Progress& progress, const std::string& data,
                const ParameterList<float>& parameters, const OptimizerState& optimizer);
Progress load_state(const std::string& path, const std::string& data, ParameterList<float>& parameters,
                    OptimizerState& optimizer);

}  // namespace qkv
