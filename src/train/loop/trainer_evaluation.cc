// Evaluations: the candidates for the weights of the model, and the best one, which is kept.
#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/to_size.h"
#include "io/weights/weights.h"
#include "train/loop/trainer.h"

namespace qkv {
namespace {

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

// Scores the baselines on the dev data. A run has them once in its metrics, as step 0.
void Trainer::score_baselines() {
  command(Command::score_baselines);
  baselines_ = task_.baselines();
  if (baselines_.empty()) return;
  std::string line = "baselines on dev:";
  for (const auto& baseline : baselines_) {
    line += "  " + baseline.name;
    for (const auto& m : baseline.measures) line += fmt::format(" {} {:.{}f}", m.name, m.value, m.digits);
  }
  report(line);
  if (progress_.step == 0) metrics_.append({{"step", 0}, {"baselines", to_json(baselines_)}});
}

// Older versions chose the best weights by DevScore::learned. Whether one of them started the run, which keeps its
// rule.
bool Trainer::selects_learned() const {
  return progress_.best_step > 0 && !progress_.best_learned && !task_.metric().learned.empty();
}

// The score that candidates are compared by; higher is better, and one that is no number is the worst.
double Trainer::score_of(const DevScore& dev) const {
  const double metric = task_.metric().higher_is_better ? dev.metric : -dev.metric;
  const double score = config_.selection == Selection::loss ? -dev.loss : selects_learned() ? *dev.learned : metric;
  return std::isnan(score) ? -std::numeric_limits<double>::infinity() : score;
}

// The measure that selects, and its best value.
std::string Trainer::best_score() const {
  Metric metric = config_.selection == Selection::loss ? Metric{"loss", false} : task_.metric();
  if (selects_learned()) metric.name = metric.learned;
  return fmt::format("{} {:.4g}", metric.name, metric.higher_is_better ? progress_.best : -progress_.best);
}

void Trainer::evaluate() {
  EvaluationReport evaluation;
  evaluation.step = progress_.step;
  evaluation.baselines = baselines_;
  const ParameterList<float>& parameters = model_.trained();
  progress_.evaluated_steps.push_back(progress_.step);

  const bool keeps_learned = !task_.metric().learned.empty() && !selects_learned();
  double best_score = 0, learned = -std::numeric_limits<double>::infinity();
  std::function<void(const RunDirectory&)> write_more;  // of the best candidate
  const auto consider = [&](const std::string& name) {
    const DevScore dev = score_candidate();
    evaluation.candidates.push_back({name, dev.measures});
    const double score = score_of(dev);
    learned = std::max(learned, dev.learned.value_or(learned));
    if (evaluation.best.empty() || score > best_score) {
      best_score = score;
      evaluation.best = name;
      write_more = dev.write_more;
    }
  };

  const std::span<float> candidate = candidate_.trained().values();
  optimizer_.weights_into(progress_.step, candidate);
  if (config_.average > 1) save_weights(run_.weights(progress_.step), parameters, candidate);
  consider("last");
  if (config_.ema_decay > 0) {
    average_of_all(candidate);
    consider("ema");
  }
  if (average_into(candidate)) consider("average");

  evaluation.improved = progress_.best_step == 0 || best_score > progress_.best;
  if (evaluation.improved) {
    if (evaluation.best == "last") optimizer_.weights_into(progress_.step, candidate);
    if (evaluation.best == "ema") average_of_all(candidate);
    if (adapter_)
      write_adapter_weights(run_, *adapter_, parameters, candidate);  // the average was the last candidate
    else
      save_weights(run_.model(), parameters, candidate);
    if (write_more) write_more(run_);
    progress_.best = best_score;
    progress_.best_step = progress_.step;
  }
  const bool learns = keeps_learned && learned > progress_.best_learned.value_or(-1);
  if (keeps_learned) progress_.best_learned = std::max(learned, progress_.best_learned.value_or(learned));
  progress_.evaluations_since_best = evaluation.improved || learns ? 0 : progress_.evaluations_since_best + 1;
  metrics_.append(to_json(evaluation, seconds()));
  if (observer_.on_evaluation) observer_.on_evaluation(evaluation);
  if (const std::string sample = task_.sample(model_, arena_); !sample.empty()) report(sample);
}

// Averages the weights of the last evaluations. Returns false if there is only one.
bool Trainer::average_into(std::span<float> weights) {
  const std::vector<int64_t>& steps = progress_.evaluated_steps;
  const size_t k = std::min(steps.size(), to_size(config_.average));
  if (k < 2) return false;
  std::vector<std::string> paths;
  for (size_t i = steps.size() - k; i < steps.size(); i++) paths.push_back(run_.weights(steps[i]));
  average_weights(paths, model_.trained(), weights, arena_);
  return true;
}

}  // namespace qkv
