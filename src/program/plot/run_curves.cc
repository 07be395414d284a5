#include "program/plot/run_curves.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string_view>

#include "core/fail.h"
#include "core/json.h"
#include "io/runs/run_directory.h"
#include "qkv/jobs.h"

namespace qkv {
namespace {

using Record = nlohmann::json;

// By kind of run.
constexpr std::array<std::string_view, 6> kScores = {"bleu",     "bits/byte", "NDCG@10",
                                                     "accuracy", "f1_micro",  "spearman"};

// Returns a member that is a number; NaN if there is none.
double number(const Record& object, std::string_view name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_number() ? found->get<double>() : std::nan("");
}

// Returns the measures of the best candidate of an evaluation; null if there are none.
Record best_measures(const Record& record) {
  const auto best = record.find("best");
  const Record& dev = record["dev"];
  if (best == record.end() || !best->is_string() || !dev.is_object()) return {};
  const auto found = dev.find(best->get_ref<const std::string&>());
  return found != dev.end() && found->is_object() ? *found : Record();
}

// Returns the measure that the plot shows: that of the kind of run, else the first one.
std::string score_of(const Record& measures) {
  for (const std::string_view name : kScores)
    if (measures.contains(name)) return std::string(name);
  return measures.empty() ? "" : measures.begin().key();
}

class Reader {
 public:
  Reader(RunCurves& curves, PlotAxis axis) : curves_(curves), axis_(axis) {}

  void take(const Record& record) {
    if (!record.is_object()) fail("must be a JSON object");
    const double step = number(record, "step"), seconds = number(record, "seconds");
    if (!(step >= 0 && step <= 1e18)) fail("must have a \"step\" that is at least 0");
    if (seconds >= 0) curves_.seconds = seconds;
    const double x = axis_ == PlotAxis::steps ? step : curves_.seconds / 60;
    if (record.contains("dev"))
      take_evaluation(record, static_cast<int64_t>(step), x);
    else if (record.contains("loss"))
      take_step(record, static_cast<int64_t>(step), x);
  }

 private:
  void take_step(const Record& record, int64_t step, double x) {
    curves_.steps = step;
    curves_.last_loss = number(record, "loss");
    curves_.loss.add(x, curves_.last_loss);
    curves_.learning_rate.add(x, number(record, "learning_rate"));
    curves_.speed.add(x, number(record, "tokens_per_second"));
  }

  void take_evaluation(const Record& record, int64_t step, double x) {
    const Record measures = best_measures(record);
    if (measures.is_null()) return;
    if (curves_.score_name.empty()) curves_.score_name = score_of(measures);
    const double score = number(measures, curves_.score_name);
    curves_.dev_score.add(x, score);
    curves_.dev_loss.add(x, number(measures, "loss"));
    if (record.value("improved", Record()) == true) curves_.best_step = step, curves_.best_score = score;
  }

  RunCurves& curves_;
  const PlotAxis axis_;
};

}  // namespace

RunCurves read_metrics(const std::string& path, const std::string& name, PlotAxis axis) {
  RunCurves curves;
  curves.name = name;
  Reader reader(curves, axis);
  LineReader lines(path);
  std::string error;  // of the line before
  for (std::string line; lines.next(line, true) == Next::line;) {
    if (!error.empty()) throw Error(error);
    const std::string where = fmt::format("{}:{}", path, lines.lines());
    try {
      reader.take(parse_json(line, where));
    } catch (const Error& e) {
      error = std::string(e.what()).starts_with(where) ? e.what() : fmt::format("{}: {}", where, e.what());
    }
  }
  if (curves.loss.empty() && curves.dev_score.empty()) fail("{}: has no training step to plot", path);
  return curves;
}

RunCurves read_run_curves(const std::string& run, PlotAxis axis) {
  const RunDirectory directory(run);
  if (!std::filesystem::is_directory(directory.root())) fail("{}: is not a run directory", run);
  if (!std::filesystem::exists(directory.metrics()))
    fail("{}: has no metrics.jsonl; only runs that qkv train wrote have one", run);
  return read_metrics(directory.metrics(), directory.root(), axis);
}

}  // namespace qkv
