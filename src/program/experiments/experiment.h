// Small experiments that show why the parts of a Transformer are there. Each runs in seconds on random data and
// computes every number that it reports. With the same seed the result has the same bytes for any number of threads.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "program/plot/series.h"

namespace qkv {

struct ExperimentOptions {
  uint64_t seed = 1;
  double effort = 1;  // multiplies the number of training steps and of sequences that are measured: above 0, at most 1
  std::string data = {};  // path of a text, for the experiments that accept one; empty: generated text
  // Called when the training begins, and whenever a model has been trained: how many are, and how many there are. By
  // one thread at a time; empty: not called.
  std::function<void(int64_t trained, int64_t all)> on_progress = {};
};

struct ExperimentRow {
  std::string name;
  std::vector<double> values;  // NaN: not measured
};

struct ExperimentTable {
  std::string id;  // unique in the result
  std::string title, row_name;
  std::vector<std::string> columns;
  std::vector<ExperimentRow> rows = {};
  std::string legend = {};  // of the names of its rows or columns; may be empty

  void add(std::string name, std::vector<double> values) { rows.push_back({std::move(name), std::move(values)}); }
  // Throws Error if there is no such row or column.
  double at(std::string_view row, std::string_view column) const;
};

struct ExperimentCurve {
  std::string name;
  std::vector<PlotPoint> points;
};

// On a logarithmic axis only positive numbers are drawn.
struct ExperimentChart {
  std::string title, axis;  // axis: name of the horizontal one
  bool log_x = false, log_y = false;
  std::vector<ExperimentCurve> curves = {};
};

// A statement, and whether the numbers of a run show it.
struct ExperimentVerdict {
  std::string claim;
  bool is_shown = false;
};

struct ExperimentResult {
  std::vector<std::string> findings;  // what the numbers say, in sentences
  std::vector<ExperimentTable> tables;
  std::vector<ExperimentChart> charts;
  ExperimentVerdict verdict = {};
  std::string task = {};  // what is computed and what is compared, in sentences

  // Throws Error if there is no such table.
  const ExperimentTable& table(std::string_view id) const;
};

struct Experiment {
  const char *name, *summary, *task;
  ExperimentResult (*run)(const ExperimentOptions& options);
  bool accepts_data = false;
};

// All experiments in the order in which docs/math.md has their subjects.
const std::vector<Experiment>& experiments();

// Throws Error for an unknown name, an effort out of range, data for an experiment that accepts none, and a file that
// cannot be read or is too short.
ExperimentResult run_experiment(std::string_view name, const ExperimentOptions& options = {});

// The result for a terminal; as JSON {"experiment", "seed", "task", "findings", "verdict", "tables", "charts"} with
// null for numbers that were not measured; and as a picture.
std::string experiment_to_text(const ExperimentResult& result);
std::string experiment_to_json(const ExperimentResult& result, std::string_view name, uint64_t seed);
std::string experiment_to_svg(const ExperimentResult& result, std::string_view title);

// Counts the models of an experiment that have been trained, and reports each.
class TrainedCount {
 public:
  TrainedCount(const ExperimentOptions& options, size_t all) : options_(options), all_(static_cast<int64_t>(all)) {
    report();
  }
  // May be called by any thread.
  void add() {
    const std::lock_guard lock(mutex_);
    trained_++;
    report();
  }

 private:
  void report() const {
    if (options_.on_progress) options_.on_progress(trained_, all_);
  }

  const ExperimentOptions& options_;
  const int64_t all_;
  std::mutex mutex_;
  int64_t trained_ = 0;
};

ExperimentResult order_experiment(const ExperimentOptions& options);
ExperimentResult softmax_experiment(const ExperimentOptions& options);
ExperimentResult heads_experiment(const ExperimentOptions& options);
ExperimentResult distance_experiment(const ExperimentOptions& options);
ExperimentResult lengths_experiment(const ExperimentOptions& options);
ExperimentResult depth_experiment(const ExperimentOptions& options);
ExperimentResult norm_experiment(const ExperimentOptions& options);
ExperimentResult gradients_experiment(const ExperimentOptions& options);
ExperimentResult baselines_experiment(const ExperimentOptions& options);

}  // namespace qkv
