// Why scores are divided by √d_k: random queries and keys through the attention op.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/random.h"
#include "core/to_size.h"
#include "program/explain/recorder.h"
#include "qkv/attention.h"

namespace qkv {
namespace {

constexpr int64_t kQueries = 64, kKeys = 64, kValueWidth = 64;

std::vector<float> random_numbers(int64_t count, uint64_t seed, uint64_t index) {
  Random random(seed, Stream::test, index);
  std::vector<float> result(to_size(count));
  std::ranges::generate(result, [&] { return static_cast<float>(random.normal()); });
  return result;
}

// Attention of random queries, keys and values with a scale, and its gradient for a random gradient of the output.
class Trial {
 public:
  Trial(int64_t d_k, double scale, uint64_t seed)
      : q_(random_numbers(kQueries * d_k, seed, 0)),
        k_(random_numbers(kKeys * d_k, seed, 1)),
        v_(random_numbers(kKeys * kValueWidth, seed, 2)),
        dout_(random_numbers(kQueries * kValueWidth, seed, 3)) {
    in_.sequences.count = 1;
    in_.sequences.T = kQueries, in_.sequences.S = kKeys;
    in_.key_width = d_k, in_.value_width = kValueWidth;
    in_.scale = static_cast<float>(scale);
    in_.mask = {no_mask_.data(), 0, 0, kKeys, 1};
    in_.q = {q_.data(), d_k, 0}, in_.k = {k_.data(), d_k, 0}, in_.v = {v_.data(), kValueWidth, 0};
    forward();
    backward();
  }

  double variance_of_scores() const {
    const int64_t d_k = in_.key_width;
    const NumberTable Q = {kQueries, d_k, {q_.begin(), q_.end()}}, K = {kKeys, d_k, {k_.begin(), k_.end()}};
    double sum = 0, squares = 0;
    const NumberTable S = product_with_transposed(Q, K);
    for (const double s : S.values) sum += s, squares += s * s;
    const double n = static_cast<double>(S.values.size()), scale = in_.scale;
    return scale * scale * (squares / n - sum * sum / (n * n));
  }
  // Mean entropy of a row of weights, divided by log S.
  double entropy() const {
    double sum = 0;
    for (const float a : weights_) sum -= a > 0 ? a * std::log(static_cast<double>(a)) : 0;
    return sum / kQueries / std::log(static_cast<double>(kKeys));
  }
  // Mean norm of the gradient of a row of scores.
  double gradient_norm() const {
    double sum = 0;
    for (int64_t i = 0; i < kQueries; i++) {
      double squares = 0;
      for (int64_t j = 0; j < kKeys; j++) squares += std::pow(dscores_[to_size(i * kKeys + j)], 2);
      sum += std::sqrt(squares);
    }
    return sum / kQueries;
  }

 private:
  void forward() {
    std::vector<std::byte> workspace(attention_workspace(in_));
    attention<float>(in_, {out_.data(), kValueWidth, 0}, {lse_.data(), 1, 0}, workspace);
    attention_weights<float>(in_, {lse_.data(), 1, 0}, {0, 0, 0, kQueries}, weights_.data());
  }
  void backward() {
    std::vector<float> dq(q_.size()), dk(k_.size()), dv(v_.size());
    std::vector<std::byte> workspace(attention_backward_workspace(in_));
    const int64_t d_k = in_.key_width;
    attention_backward<float>(
        in_, {out_.data(), kValueWidth, 0}, {lse_.data(), 1, 0}, {dout_.data(), kValueWidth, 0},
        {{dq.data(), d_k, 0}, {dk.data(), d_k, 0}, {dv.data(), kValueWidth, 0}, {dscores_.data(), 0, 0, kKeys, 1}},
        workspace);
  }

  AttentionInput<float> in_;
  std::vector<float> q_, k_, v_, dout_, no_mask_ = std::vector<float>(kQueries * kKeys);
  std::vector<float> out_ = std::vector<float>(kQueries * kValueWidth), lse_ = std::vector<float>(kQueries);
  std::vector<float> weights_ = no_mask_, dscores_ = no_mask_;
};

}  // namespace

ExplainedSection explain_scaling(uint64_t seed) {
  std::vector<std::string> rows;
  NumberTable found = zero_table(9, 6);
  for (int64_t r = 0; r < found.rows; r++) {
    const int64_t d_k = int64_t{4} << r;
    rows.push_back(fmt::format("d_k = {}", d_k));
    for (const int64_t scaled : {0, 1}) {
      const Trial trial(d_k, scaled ? 1 / std::sqrt(static_cast<double>(d_k)) : 1, seed);
      found.at(r, scaled) = trial.variance_of_scores();
      found.at(r, 2 + scaled) = trial.entropy();
      found.at(r, 4 + scaled) = trial.gradient_norm();
    }
  }
  const auto change = [&](int64_t column) {
    return fmt::format("{:.2f} to {:.2f}", found.at(0, column), found.at(found.rows - 1, column));
  };
  StepRecorder steps;
  steps.begin("Why scores are divided by √d_k");
  steps.add(
      {"scaling",
       fmt::format("scores of {} queries and {} keys: q · k, and scaled: q · k / √d_k", kQueries, kKeys),
       "",
       rows,
       {"variance", "scaled", "H / log 64", "scaled", "|dS|", "scaled"},
       found,
       fmt::format(
           "variance: of the scores. H / log {0}: entropy H of the weights of a query as a share of log {0}; 1 if all "
           "{0} keys have the same weight, 0 if one has it all. |dS|: length of the gradient with respect to the "
           "scores of a query that the softmax reads, if the gradient of the outputs is random with variance 1. "
           "H and |dS| are means over the queries of one random draw. From d_k = 4 to 1024 the variance goes from {1}, "
           "H / log {0} from {2} and |dS| "
           "from {3}: without the factor, the weights gather on one key and the gradient vanishes. With the "
           "factor they go from {4}, {5} and {6}: they hardly depend on d_k.",
           kKeys, change(0), change(2), change(4), change(1), change(3), change(5))});
  return std::move(steps.take().front());
}

}  // namespace qkv
