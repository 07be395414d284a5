// The training loop: batches in, gradients, optimiser steps; evaluations, saved states and resumption.
#pragma once

#include <chrono>
#include <span>
#include <string>
#include <vector>

#include "io/metrics.h"
#include "io/run_directory.h"
#include "model/transformer.h"
#include "qkv/training.h"
#include "train/checkpoint.h"
#include "train/optimizer_state.h"
#include "train/task.h"

namespace qkv {

class Trainer {
 public:
  // Resumes from the run directory's state where there is one. All arguments outlive the trainer.
  Trainer(const Recipe& recipe, const RunDirectory& run, Task& task, const TrainingObserver& observer);

  bool run();  // false if the observer stopped it

 private:
  void resume();
  void rehearse();  // memory is known, and present, before the first step
  bool done(std::string& reason) const;
  StepReport step();
  void next_batch();
  void evaluate();
  bool average_into(std::span<float> weights);
  void save();
  double seconds() const;
  void say(const std::string& line) const {
    if (observer_.on_message) observer_.on_message(line);
  }

  const Recipe& recipe_;
  const TrainingConfig& config_;
  const RunDirectory& run_;
  Task& task_;
  const TrainingObserver& observer_;
  MetricsWriter metrics_;
  std::string data_id_;
  Transformer<float> model_, candidate_;  // the one that learns, the one that is evaluated
  OptimizerState optimizer_;
  Arena arena_;
  Progress progress_;
  double seconds_before_ = 0;
  std::chrono::steady_clock::time_point started_;
};

}  // namespace qkv
