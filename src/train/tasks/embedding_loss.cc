#include "train/tasks/embedding_loss.h"

#include <algorithm>
#include <cmath>

#include "ops/pooling.h"
#include "ops/rows.h"

namespace qkv {
namespace {

// The least and the largest temperature that is learned.
constexpr double kLeastTemperature = 0.01, kLargestTemperature = 1;

}  // namespace

EmbeddingLoss::EmbeddingLoss(const EmbedderConfig& config, int64_t width, bool normalizes)
    : options_{config.loss, normalizes ? Similarity::cosine : config.similarity, config.symmetric, config.matryoshka},
      normalizes_(normalizes && config.loss == VectorLoss::distill),
      temperature_(config.temperature),
      score_min_(config.score_min),
      score_max_(config.score_max) {
  std::vector<int64_t>& widths = options_.widths;
  if (!widths.empty() && std::ranges::find(widths, width) == widths.end()) widths.push_back(width);
}

std::vector<float> EmbeddingLoss::scaled(std::span<const double> scores) const {
  const bool is_scaled = options_.kind == VectorLoss::cosine;
  std::vector<float> result;
  for (const double score : scores)
    result.push_back(static_cast<float>(is_scaled ? (score - score_min_) / (score_max_ - score_min_) : score));
  return result;
}

TextVectors<float> EmbeddingLoss::texts_of(Matrix<const float> v, int64_t columns, const RowTargets& targets,
                                           Arena& arena) const {
  TextVectors<float> texts;
  texts.v = v;
  if (normalizes_) {
    const Matrix<float> copy = arena.matrix<float>(v.rows, v.cols);
    copy_rows<float>(v, copy);
    normalize_rows<float>(copy);
    texts.v = copy;
  }
  texts.columns = columns;
  texts.scores = targets.scores;
  if (!targets.teacher.empty()) {
    const int64_t rows = std::ssize(targets.teacher) / v.cols;
    texts.teacher = Matrix<const float>(targets.teacher.data(), rows, v.cols);
  }
  return texts;
}

double EmbeddingLoss::log_scale(const Transformer<float>& model) const {
  const Parameter<float>* s = model.text_head()->temperature();
  if (!s) return -std::log(temperature_);
  return std::clamp(kTemperatureRate * static_cast<double>(*s->value),
                    -std::log(std::max(temperature_, kLargestTemperature)),
                    -std::log(std::min(temperature_, kLeastTemperature)));
}

double EmbeddingLoss::temperature(const Transformer<float>& model) const { return std::exp(-log_scale(model)); }

// At the ends of the range, the gradient that leaves it is left out.
void EmbeddingLoss::add_gradient(const Parameter<float>& s, double of_log_scale, double log_scale) const {
  const double outside = kTemperatureRate * static_cast<double>(*s.value) - log_scale;
  if (outside * of_log_scale >= 0) *s.gradient += static_cast<float>(of_log_scale);
}

Loss EmbeddingLoss::loss_and_gradient(const Transformer<float>& model, Matrix<const float> v, int64_t columns,
                                      const RowTargets& targets, Matrix<float> dv, Arena& arena) const {
  const Arena::Scope scope(arena);
  const Parameter<float>* s = model.text_head()->temperature();
  double dlog_scale = 0;
  const bool trains_scale = s && s->gradient;
  const double loss = vector_loss<float>(options_, texts_of(v, columns, targets, arena), log_scale(model), dv,
                                         trains_scale ? &dlog_scale : nullptr, arena);
  if (normalizes_) normalize_rows_backward<float>(v, dv, dv);
  if (trains_scale) add_gradient(*s, dlog_scale, log_scale(model));
  return {loss, loss, v.rows / columns};
}

Loss EmbeddingLoss::loss(const Transformer<float>& model, Matrix<const float> v, int64_t columns,
                         const RowTargets& targets, Arena& arena) const {
  const Arena::Scope scope(arena);
  const double loss = vector_loss<float>(options_, texts_of(v, columns, targets, arena), log_scale(model), arena);
  return {loss, loss, v.rows / columns};
}

}  // namespace qkv
