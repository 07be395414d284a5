// checkpoints/state.safetensors: all that resuming needs. It is written atomically.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "data/batch_stream.h"
#include "io/runs/run_directory.h"
#include "model/layers/parameter.h"
#include "train/loop/state_exchange.h"
#include "train/optimizer/optimizer_state.h"

namespace qkv {

// The progress of training.
struct Progress {
  static constexpr int64_t kLosses = 100;  // that are remembered

  int64_t step = 0;     // completed steps
  StreamPosition data;  // the next batch
  double best = 0;      // best dev score so far, higher is better; undefined while best_step is 0
  int64_t best_step = 0;
  int64_t evaluations_since_best = 0;       // without an improvement of `best` or `best_learned`
  std::vector<int64_t> evaluated_steps;     // steps whose weights are kept for averaging, oldest first
  int64_t skipped_steps = 0;                // that were not applied, and do not count as steps
  int64_t skipped_in_row = 0;               // since the last step that was applied
  int64_t rollbacks = 0;                    // to the state that rollback_on_spike keeps
  int64_t rollbacks_in_row = 0;             // since the last such state
  std::vector<double> losses = {};          // of the last steps, for rollback_on_spike; oldest first
  std::optional<double> best_learned = {};  // best DevScore::learned, where tasks have it
  std::optional<double> best_loss = {};     // dev loss at best_step, where it breaks ties
  int64_t saved_step = -1;                  // of the last saved state, which does not contain it; −1: none
};

// Writes a state. `data` identifies the training data. With `exchange`, the optimizer has the slices of rank 0, and the
// others call StateExchange::send.
void save_state(const std::string& path, const Progress& progress, const std::string& data,
                const ParameterList<float>& parameters, const OptimizerState& optimizer,
                StateExchange* exchange = nullptr);
// Reads a state into parameters and optimizer. Throws Error, naming the file, if it is invalid or was saved with other
// training data. With `exchange`, the others call StateExchange::receive.
Progress load_state(const std::string& path, const std::string& data, ParameterList<float>& parameters,
                    OptimizerState& optimizer, StateExchange* exchange = nullptr);

// Removes all files of the folder of saved states that the progress does not need, which a killed process may have
// left. `rollback` says whether the state to roll back to is needed.
void remove_other_checkpoints(const RunDirectory& run, const Progress& progress, bool rollback);

}  // namespace qkv
