#include "analysis/attribution.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numbers>
#include <optional>
#include <utility>

#include "core/fail.h"
#include "core/to_size.h"
#include "model/heads/masked_loss.h"

namespace qkv {
namespace {

// Tokens that are computed at once, with what their gradients need, unless one sequence has more.
constexpr int64_t kAttributedTokens = 1024;

// One pass over the tokens before a predicted one, at the point x̄ + α (x − x̄).
struct Point {
  size_t row;  // of the map
  double alpha;
  double weight;  // of its gradient; 0: only log p is used
};

// The rows of x − x̄ of one side are scale() row(id): those of the table less that of the baseline. With zero_start the
// token at position 0 has no embedding, and x − x̄ = 0 there.
class WordRows {
 public:
  WordRows(const Parameter<float>& table, const ModelConfig& config, bool zero_start, std::optional<int32_t> baseline)
      : table_(table.matrix()),
        scale_(config.scale_embeddings ? std::sqrt(static_cast<double>(config.d_model)) : 1),
        zero_start_(zero_start),
        baseline_(to_size(table_.cols)) {
    if (baseline) std::copy_n(table_.row(*baseline), table_.cols, baseline_.begin());
  }

  std::vector<double> row(int32_t id) const {
    std::vector<double> difference(baseline_.size());
    for (size_t e = 0; e < difference.size(); e++)
      difference[e] = static_cast<double>(table_.row(id)[e]) - static_cast<double>(baseline_[e]);
    return difference;
  }
  double scale() const { return scale_; }
  // Returns whether a token at this position has an embedding.
  bool has_word(int32_t position) const { return !zero_start_ || position > 0; }

 private:
  Matrix<const float> table_;
  double scale_;
  bool zero_start_;
  std::vector<float> baseline_;
};

// The attributions to one side, [rows, columns].
struct Attributed {
  std::optional<WordRows> words = {};
  size_t columns = 0;
  std::vector<double> values = {};
};

// Moves the embeddings of each sequence to its point, and adds what their gradients attribute.
class PointProbe final : public Probe {
 public:
  PointProbe(std::span<const Point> points, const Batch& batch, Attributed& source, Attributed& target)
      : points_(points), batch_(batch), source_(source), target_(target) {}

  void output(std::string_view op, Pass pass, Matrix<float> m, int64_t) override {
    if (op != "lookup") return;
    const bool of_source = side() == TokenSide::source;
    const Packed& packed = of_source ? batch_.source : batch_.target;
    Attributed& to = of_source ? source_ : target_;
    for (size_t p = 0; p < points_.size(); p++)
      for (int32_t n = packed.offsets[p]; n < packed.offsets[p + 1]; n++) {
        if (!to.words->has_word(packed.positions[to_size(n)])) continue;
        const std::vector<double> word = to.words->row(packed.ids[to_size(n)]);
        if (pass == Pass::forward)
          move(m.row(n), word, (1 - points_[p].alpha) * to.words->scale());
        else
          to.values[points_[p].row * to.columns + to_size(n - packed.offsets[p])] -=  // the gradient is that of −log p
              points_[p].weight * to.words->scale() * product(m.row(n), word);
      }
  }
  using Probe::output;

 private:
  static void move(float* row, std::span<const double> word, double factor) {
    for (size_t e = 0; e < word.size(); e++)
      row[e] = static_cast<float>(static_cast<double>(row[e]) - factor * word[e]);  // exact where only α x is left
  }
  static double product(const float* gradient, std::span<const double> word) {
    double sum = 0;
    for (size_t e = 0; e < word.size(); e++) sum += static_cast<double>(gradient[e]) * word[e];
    return sum;
  }

  std::span<const Point> points_;
  const Batch& batch_;
  Attributed &source_, &target_;
};

// A model with the weights of another and gradients of its own.
std::unique_ptr<Transformer<float>> with_gradients(const Transformer<float>& model) {
  for (const Parameter<float>& parameter : model.parameters().all())
    if (parameter.is_quantized()) fail("attribution: the run has weights of 8 or 4 bits, which have no gradients");
  std::unique_ptr<Transformer<float>> copy = model.make_replica();
  copy->parameters().use(model.parameters().values(), nullptr);
  copy->parameters().freeze([](const Parameter<float>&) { return true; });
  copy->parameters().allocate_gradients();
  return copy;
}

class Attributor {
 public:
  Attributor(const Transformer<float>& model, const AttributedText& text, Arena& arena)
      : model_(with_gradients(model)),
        text_(text),
        arena_(arena),
        predicted_(text.predicted),
        log_p_(text.target.ids.size()),
        baseline_(log_p_.size()) {
    const auto set = [&](Attributed& side, const Packed& packed, const Parameter<float>& table, bool zero_start,
                         std::optional<int32_t> baseline) {
      side.words.emplace(table, model.config(), zero_start, baseline);
      side.columns = packed.ids.size();
      side.values.resize(rows() * side.columns);
    };
    if (model.config().has_encoder()) set(source_, text.source, model.source_table(), false, text.source_baseline);
    set(target_, text.target, model.item_table(), model.config().zero_start, text.target_baseline);
    if (predicted_.size() < rows()) predicted_.push_back(best_next());
  }

  // Computes the points in batches. Either all have a weight, or none has one.
  void run(std::span<const Point> points) {
    while (!points.empty()) {
      int64_t tokens = 0;
      size_t count = 0;
      while (count < points.size() && (count == 0 || tokens + tokens_of(points[count]) <= kAttributedTokens))
        tokens += tokens_of(points[count++]);
      run_batch(points.first(count));
      points = points.subspan(count);
    }
  }

  const std::vector<int32_t>& predicted() const { return predicted_; }
  size_t rows() const { return log_p_.size(); }
  const Attributed& source() const { return source_; }
  const Attributed& target() const { return target_; }
  // log p of the token of a row at α = 1 and α = 0.
  double log_p(size_t row) const { return log_p_[row]; }
  double baseline(size_t row) const { return baseline_[row]; }

 private:
  int64_t tokens_of(const Point& point) const { return text_.source.tokens() + static_cast<int64_t>(point.row) + 1; }

  int32_t best_next() const {
    const Arena::Scope scope(arena_);
    Context c{arena_};
    Transformer<float>::Saved saved;
    model_->forward(text_.source, text_.target, c, saved);
    const Matrix<float> logits = model_->output().logits(saved.h.row_range(saved.h.rows - 1, saved.h.rows), c);
    return static_cast<int32_t>(std::max_element(logits.row(0), logits.row(0) + logits.cols) - logits.row(0));
  }

  void run_batch(std::span<const Point> points) {
    Batch batch;
    for (const Point& point : points) {
      if (source_.words) batch.source.append(text_.source.ids);
      batch.target.append(std::span(text_.target.ids).first(point.row + 1));
    }
    PointProbe probe(points, batch, source_, target_);
    Context c{arena_};
    c.probe = &probe;
    if (points.front().weight == 0) {
      const Arena::Scope scope(arena_);
      Transformer<float>::Saved saved;
      model_->forward(batch.source, batch.target, c, saved);
      keep_log_p(points, batch.target, saved.h);
      return;
    }
    const auto loss_of = [&](Matrix<const float> h, Matrix<float> dh) { return loss(points, batch.target, h, dh); };
    model_->loss_and_gradient(batch, loss_of, c);
  }

  // Stores log p of the points at α = 0 and α = 1.
  void keep_log_p(std::span<const Point> points, const Packed& target, Matrix<const float> h) {
    Context c{arena_};
    for (size_t p = 0; p < points.size(); p++) {
      const auto& [row, alpha, weight] = points[p];
      if (alpha != 0 && alpha != 1) continue;
      const int64_t last = target.offsets[p + 1] - 1;
      const double nll = model_->output().loss(h.row_range(last, last + 1), {&predicted_[row], 1}, 0, c).nll;
      if (!std::isfinite(nll)) fail("the model's output is not finite");
      (alpha == 1 ? log_p_ : baseline_)[row] = -nll;
    }
  }

  // Returns the sum of −log p of the token after the last one of each sequence, and assigns its gradient.
  Loss loss(std::span<const Point> points, const Packed& target, Matrix<const float> h, Matrix<float> dh) {
    Batch last;
    for (size_t p = 0; p < points.size(); p++) {
      last.masked.push_back(target.offsets[p + 1] - 1);
      last.labels.push_back(predicted_[points[p].row]);
    }
    Context c{arena_};
    const Loss sum = masked_loss_and_gradient<float>({nullptr, model_->output()}, h, last, 0, dh, c);
    if (!std::isfinite(sum.nll)) fail("the model's output is not finite");
    keep_log_p(points, target, h);
    return sum;
  }

  std::unique_ptr<Transformer<float>> model_;
  const AttributedText& text_;
  Arena& arena_;
  std::vector<int32_t> predicted_;
  Attributed source_, target_;
  std::vector<double> log_p_, baseline_;
};

// The points with a gradient, and those without.
struct PointsOfRows {
  std::vector<Point> weighted = {}, unweighted = {};
};
PointsOfRows points_of(size_t rows, const AttributionOptions& options) {
  PointsOfRows points;
  const bool integrated = options.method == AttentionMethod::integrated;
  const Quadrature quadrature = integrated ? gauss_legendre(options.steps) : Quadrature{{1}, {1}};
  for (size_t row = 0; row < rows; row++) {
    points.unweighted.push_back({row, 0, 0});
    if (integrated) points.unweighted.push_back({row, 1, 0});
    for (size_t i = 0; i < quadrature.nodes.size(); i++)
      points.weighted.push_back({row, quadrature.nodes[i], quadrature.weights[i]});
  }
  return points;
}

// Returns the head of a kind: values with their signs, and their shares of the sums of absolute values of the rows.
AttentionHead head_of(const Attributed& side, const std::vector<double>& sums) {
  AttentionHead head;
  head.values.assign(side.values.begin(), side.values.end());
  for (size_t i = 0; i < side.values.size(); i++) {
    const double sum = sums[i / side.columns];
    head.weights.push_back(static_cast<float>(sum > 0 ? std::abs(side.values[i]) / sum : 0));
  }
  return head;
}

}  // namespace

// Newton's method from Chebyshev's approximation of the roots of P_n; then nodes and weights move from [−1, 1] to [0,
// 1].
Quadrature gauss_legendre(int64_t points) {
  Quadrature q;
  const auto n = static_cast<double>(points);
  for (int64_t i = 0; i < points; i++) {
    double x = std::cos(std::numbers::pi * (static_cast<double>(i) + 0.75) / (n + 0.5)), slope = 1;
    for (int step = 0; step < 100; step++) {
      double before = 1, value = x;  // P_0 and P_1
      for (int64_t k = 2; k <= points; k++) {
        const auto degree = static_cast<double>(k);
        before = std::exchange(value, ((2 * degree - 1) * x * value - (degree - 1) * before) / degree);
      }
      slope = n * (x * value - before) / (x * x - 1);
      const double change = value / slope;
      x -= change;
      if (std::abs(change) < 1e-15) break;
    }
    q.nodes.push_back((1 + x) / 2);
    q.weights.push_back(1 / ((1 - x * x) * slope * slope));
  }
  return q;
}

AttentionMap attribution_map(const Transformer<float>& model, const AttributedText& text,
                             const AttributionOptions& options, Arena& arena, const SpellSide& spell) {
  const Arena::Scope scope(arena);
  Attributor found(model, text, arena);
  const PointsOfRows points = points_of(found.rows(), options);
  found.run(points.unweighted);
  found.run(points.weighted);

  const size_t rows = found.rows();
  std::vector<double> sums(rows);
  const std::vector<std::string> predicted = spell(found.predicted(), false);
  AttentionMap map;
  for (size_t r = 0; r < rows; r++) {
    double sum = 0;
    for (const Attributed* side : {&found.source(), &found.target()})
      for (size_t j = 0; j < side->columns; j++) {
        sum += side->values[r * side->columns + j];
        sums[r] += std::abs(side->values[r * side->columns + j]);
      }
    map.tokens.push_back({predicted[r], found.log_p(r), found.baseline(r), sum});
  }
  map.kinds.push_back(
      {"decoder", true, predicted, spell(text.target.ids, false), {{head_of(found.target(), sums)}}, options.method});
  if (found.source().words)
    map.kinds.push_back(
        {"cross", false, predicted, spell(text.source.ids, true), {{head_of(found.source(), sums)}}, options.method});
  return map;
}

}  // namespace qkv
