#include "analysis/logit_lens.h"

#include <algorithm>
#include <cmath>

#include "core/fail.h"
#include "core/to_size.h"
#include "ops/cross_entropy.h"

namespace qkv {
namespace {

constexpr int64_t kLensRows = 256;  // tokens whose log p are held at once

// Calls row(n, log p of all tokens) for each row of hidden states, which have passed the final norm.
template <class Row>
void predict(const Transformer<float>& model, Matrix<const float> h, Context& c, const Row& row) {
  for (int64_t begin = 0; begin < h.rows; begin += kLensRows) {
    const Arena::Scope scope(c.arena);
    const Matrix<float> log_p = model.output().logits(h.row_range(begin, std::min(h.rows, begin + kLensRows)), c);
    log_softmax<float>(log_p);
    for (int64_t n = 0; n < log_p.rows; n++) {
      const std::span<const float> all(log_p.row(n), to_size(log_p.cols));
      if (std::isnan(all.front())) fail("the model's output is not finite");
      row(to_size(begin + n), all);
    }
  }
}

int32_t best_of(std::span<const float> log_p) {
  return static_cast<int32_t>(std::ranges::max_element(log_p) - log_p.begin());
}

double probability(float log_p) { return std::exp(static_cast<double>(log_p)); }

}  // namespace

LogitLens logit_lens(const Transformer<float>& model, const Packed& source, const Packed& target, Arena& arena,
                     const SpellTokens& spell) {
  const Arena::Scope scope(arena);
  Context c{.arena = arena, .recompute = true, .inference = true};
  Transformer<float>::Saved saved;
  model.forward(source, target, c, saved);

  std::vector<int32_t> answers(to_size(target.tokens()));
  std::vector<LensPrediction> last(answers.size());  // of the answers themselves
  predict(model, saved.h, c, [&](size_t n, std::span<const float> log_p) {
    answers[n] = best_of(log_p);
    last[n].answer_rank = 1;
    last[n].probability = last[n].answer_probability = probability(log_p[to_size(answers[n])]);
  });
  LogitLens lens;
  lens.read = spell(target.ids);
  lens.answers = spell(answers);
  for (size_t n = 0; n < last.size(); n++) last[n].token = lens.answers[n];
  const auto add = [&](Matrix<const float> h) {
    std::vector<int32_t> best(answers.size());
    std::vector<LensPrediction> row(answers.size());
    predict(model, h, c, [&](size_t n, std::span<const float> log_p) {
      const float answer = log_p[to_size(answers[n])];
      best[n] = best_of(log_p);
      row[n].probability = probability(log_p[to_size(best[n])]);
      row[n].answer_rank = 1 + std::ranges::count_if(log_p, [&](float other) { return other > answer; });
      row[n].answer_probability = probability(answer);
    });
    std::vector<std::string> tokens = spell(best);
    for (size_t n = 0; n < row.size(); n++) row[n].token = std::move(tokens[n]);
    lens.layers.push_back(std::move(row));
  };
  for (const Matrix<const float>& state : saved.decoder.inputs) {
    const Arena::Scope layer(arena);
    add(model.decoder().final_norm(state, c));
  }
  lens.layers.push_back(std::move(last));
  return lens;
}

}  // namespace qkv
