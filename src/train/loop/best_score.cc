#include "train/loop/best_score.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace qkv {

namespace {

// Whether a score is higher, or equal with a lower loss. Losses that do not count are not set.
bool is_better(double score, std::optional<double> loss, double than, std::optional<double> than_loss) {
  if (score != than) return score > than;
  return loss && than_loss && *loss < *than_loss;
}

}  // namespace

void BestScore::begin() {
  best_ = 0;
  best_loss_.reset();
  learned_.reset();
  write_more_ = {};
}

void BestScore::add(const std::string& name, const DevScore& dev, EvaluationReport& report) {
  report.candidates.push_back({name, dev.measures});
  const double score = score_of(dev);
  learned_ = std::max(learned_, dev.learned);
  const std::optional<double> loss = dev.breaks_ties ? std::optional(dev.loss) : std::nullopt;
  if (!report.best.empty() && !is_better(score, loss, best_, best_loss_)) return;
  best_ = score;
  best_loss_ = loss;
  report.best = name;
  write_more_ = dev.write_more;
}

bool BestScore::is_improved() const {
  return progress_.best_step == 0 || is_better(best_, best_loss_, progress_.best, progress_.best_loss);
}

void BestScore::write_more(const RunDirectory& run) const {
  if (write_more_) write_more_(run);
}

void BestScore::end() {
  const bool improved = is_improved();
  if (improved) {
    progress_.best = best_;
    progress_.best_loss = best_loss_;
    progress_.best_step = progress_.step;
  }
  const bool learns = learned_ > progress_.best_learned;
  progress_.best_learned = std::max(learned_, progress_.best_learned);
  progress_.evaluations_since_best = improved || learns ? 0 : progress_.evaluations_since_best + 1;
}

std::string BestScore::text() const {
  const Metric metric = config_.selection == Selection::loss ? Metric{"loss", false} : task_.metric();
  return fmt::format("{} {:.4g}", metric.name, metric.higher_is_better ? progress_.best : -progress_.best);
}

std::string BestScore::verdict() const {
  if (config_.selection == Selection::loss || progress_.best_step == 0) return "";
  return task_.verdict(task_.metric().higher_is_better ? progress_.best : -progress_.best);
}

// The score that candidates are compared by; higher is better, and one that is no number is the worst.
double BestScore::score_of(const DevScore& dev) const {
  const double metric = task_.metric().higher_is_better ? dev.metric : -dev.metric;
  const double score = config_.selection == Selection::loss ? -dev.loss : metric;
  return std::isnan(score) ? -std::numeric_limits<double>::infinity() : score;
}

}  // namespace qkv
