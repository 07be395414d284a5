// The curves of one run, read from its metrics.jsonl (docs/run-directory.md).
#pragma once

#include <cstdint>
#include <string>

#include "program/plot/plot.h"
#include "program/plot/series.h"

namespace qkv {

struct RunCurves {
  std::string name;             // the run directory, as given
  Series loss, dev_loss;        // dev_loss: empty if the dev data has no loss
  Series dev_score;             // of the best candidate of each evaluation
  std::string score_name;       // of the measure: "bleu", "bits/byte", "NDCG@10"; "" without an evaluation
  Series learning_rate, speed;  // speed: target tokens per second
  int64_t steps = 0;            // the last one
  double seconds = 0;           // of training, at the last line
  double last_loss = 0;
  int64_t best_step = 0;  // the last evaluation that improved; 0: none
  double best_score = 0;
};

// Reads the file line by line. Lines that are neither a step nor an evaluation are skipped, and so is a last line that
// a crash truncated. Throws Error, naming file and line.
RunCurves read_run_curves(const std::string& run, PlotAxis axis);

// The same from the file at `path`.
RunCurves read_metrics(const std::string& path, const std::string& name, PlotAxis axis);

}  // namespace qkv
