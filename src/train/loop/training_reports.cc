#include "train/loop/training_reports.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace qkv {
namespace {

nlohmann::ordered_json to_json(const StepReport& r) {
  nlohmann::ordered_json json = {{"step", r.step},
                                 {"epoch", r.epoch},
                                 {"loss", r.loss},
                                 {"nll", r.nll},
                                 {"learning_rate", r.learning_rate},
                                 {"gradient_norm", r.gradient_norm},
                                 {"target_tokens", r.target_tokens},
                                 {"tokens_per_second", r.tokens_per_second},
                                 {"seconds", r.seconds}};
  if (r.noise_scale > 0) json["noise_scale"] = r.noise_scale;
  if (r.skipped_steps > 0) json["skipped_steps"] = r.skipped_steps;
  if (r.rollbacks > 0) json["rollbacks"] = r.rollbacks;
  return json;
}

nlohmann::ordered_json to_json(const std::vector<EvaluationReport::Candidate>& candidates) {
  nlohmann::ordered_json json;
  for (const auto& c : candidates)
    for (const auto& measure : c.measures) json[c.name][measure.name] = measure.value;
  return json;
}

nlohmann::ordered_json to_json(const EvaluationReport& r, double seconds) {
  nlohmann::ordered_json json = {{"step", r.step}, {"dev", to_json(r.candidates)}};
  json["best"] = r.best;
  json["improved"] = r.improved;
  json["seconds"] = seconds;
  return json;
}

}  // namespace

double TrainingReports::continue_after(int64_t step) {
  const auto last = truncate_metrics_after(path_, step);
  metrics_ = MetricsWriter(path_);
  return last && last->contains("seconds") && (*last)["seconds"].is_number() ? (*last)["seconds"].get<double>() : 0;
}

void TrainingReports::step(const StepReport& report) {
  metrics_.append(to_json(report));
  if (observer_.on_step) observer_.on_step(report);
}

void TrainingReports::evaluation(const EvaluationReport& report, double seconds) {
  metrics_.append(to_json(report, seconds));
  if (observer_.on_evaluation) observer_.on_evaluation(report);
}

void TrainingReports::device(const std::string& name, const std::string& plugin, int64_t step, double seconds) {
  metrics_.append({{"step", step}, {"device", {{"name", name}, {"plugin", plugin}}}, {"seconds", seconds}});
}

void TrainingReports::baselines(const std::vector<EvaluationReport::Candidate>& baselines, bool is_new) {
  if (baselines.empty()) return;
  std::string line = "baselines on dev:";
  for (const auto& baseline : baselines) {
    line += "  " + baseline.name;
    for (const auto& m : baseline.measures) line += fmt::format(" {} {:.{}f}", m.name, m.value, m.digits);
  }
  message(line);
  if (is_new) metrics_.append({{"step", 0}, {"baselines", to_json(baselines)}});
}

}  // namespace qkv
