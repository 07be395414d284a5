// The reports of training: to the observer, and to metrics.jsonl of the run.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "io/metrics_file.h"
#include "qkv/training.h"

namespace qkv {

class TrainingReports {
 public:
  // Opens the file. The observer must outlive it.
  TrainingReports(const TrainingObserver& observer, std::string path)
      : observer_(observer), path_(std::move(path)), metrics_(path_) {}

  // Drops what the file has about later steps. Returns the seconds of training in the last record that is kept, or 0.
  double continue_after(int64_t step);

  void message(const std::string& line) const {
    if (observer_.on_message) observer_.on_message(line);
  }
  void step(const StepReport& report);
  // `seconds` is the time of training so far.
  void evaluation(const EvaluationReport& report, double seconds);
  // Records where a run is trained from now on: the device, and its plugin.
  void device(const std::string& name, const std::string& plugin, int64_t step, double seconds);
  // Reports the scores of simpler models; `is_new` for a run that does not have them in its file.
  void baselines(const std::vector<EvaluationReport::Candidate>& baselines, bool is_new);

 private:
  const TrainingObserver& observer_;
  std::string path_;
  MetricsWriter metrics_;
};

}  // namespace qkv
