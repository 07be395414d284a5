#include "program/experiments/recall.h"

#include <algorithm>

#include "core/random.h"
#include "core/to_size.h"
#include "model/heads/masked_loss.h"
#include "ops/cross_entropy.h"
#include "ops/rows.h"
#include "program/experiments/small_training.h"

namespace qkv {
namespace {

std::vector<int32_t> last_rows(const Packed& text) {
  std::vector<int32_t> rows;
  for (int64_t s = 0; s < text.sequences(); s++) rows.push_back(text.offsets[to_size(s) + 1] - 1);
  return rows;
}

// Without positions: the mask and the kinds of tokens are enough to find the first one.
ModelConfig recall_config(int64_t d_model, int64_t distance) {
  ModelConfig config = small_language_model(kRecallVocab, 1, d_model, 2, distance + 1);
  config.positions = Positions::none;
  return config;
}

double share_of_labels(Matrix<const float> logits, const std::vector<int32_t>& labels) {
  double right = 0;
  for (int64_t n = 0; n < logits.rows; n++)
    right += std::max_element(logits.row(n), logits.row(n) + logits.cols) - logits.row(n) == labels[to_size(n)] ? 1 : 0;
  return right / static_cast<double>(logits.rows);
}

}  // namespace

RecallTexts recall_texts(int64_t texts, int64_t distance, uint64_t seed, uint64_t index) {
  Random random(seed, Stream::test, index);
  RecallTexts result = {distance, {}, {}};
  for (int64_t i = 0; i < texts; i++) {
    std::vector<int32_t> ids = {static_cast<int32_t>(random.below(kRecallSymbols))};
    result.labels.push_back(ids.front());
    while (std::ssize(ids) < distance)
      ids.push_back(kRecallSymbols + static_cast<int32_t>(random.below(kRecallSymbols)));
    ids.push_back(kRecallVocab - 1);
    result.text.append(ids);
  }
  return result;
}

RecallTransformer::RecallTransformer(int64_t d_model, int64_t distance) : model_(recall_config(d_model, distance)) {}

Loss RecallTransformer::loss_and_gradient(const RecallTexts& texts, Objective, Context& c) const {
  Batch batch = {{}, texts.text, texts.labels};
  batch.masked = last_rows(texts.text);
  const auto loss_of = [&](Matrix<const float> h, Matrix<float> dh) {
    return masked_loss_and_gradient<float>({nullptr, model_.output()}, h, batch, 0, dh, c);
  };
  return model_.loss_and_gradient(batch, loss_of, c);
}

double RecallTransformer::accuracy(const RecallTexts& texts) const {
  Arena arena;
  Context c{arena};
  return share_of_labels(model_.output().logits(model_.last_hidden(texts.text, c), c), texts.labels);
}

RecallRecurrent::RecallRecurrent(int64_t d_model, int64_t width)
    : table_(list_.add("embedding.weight", {kRecallVocab, d_model}, Init::gaussian(1))),
      layer_(list_, "layer", d_model, width),
      output_(list_, {{"output", kRecallVocab}}, width, true) {
  list_.allocate();
}

Matrix<float> RecallRecurrent::forward(const RecallTexts& texts, Context& c, Saved& s) const {
  const int64_t B = texts.text.sequences(), T = texts.distance + 1;
  for (int64_t t = 0; t < T; t++)
    for (int64_t b = 0; b < B; b++) s.ids.push_back(texts.text.ids[to_size(b * T + t)]);
  const Matrix<float> x = c.arena.matrix<float>(T * B, table_->shape[1]);
  gather_rows<float>(table_->matrix(), s.ids, x);
  s.last = layer_.forward(x, B, c, s.layer).row_range((T - 1) * B, T * B);
  return output_.forward(s.last, c);
}

Loss RecallRecurrent::loss_and_gradient(const RecallTexts& texts, Objective, Context& c) const {
  const Arena::Scope scope(c.arena);
  Saved s;
  const Matrix<float> logits = forward(texts, c, s);
  const int64_t B = logits.rows, N = std::ssize(s.ids);
  float* loss = c.arena.take<float>(B);
  float* nll = c.arena.take<float>(B);
  cross_entropy_with_gradient<float>(logits, texts.labels, 0, 1, loss, nll);
  const Matrix<float> dstates = zeros<float>(c.arena, N, s.last.cols), dx = c.arena.matrix<float>(N, table_->shape[1]);
  output_.backward(s.last, logits, dstates.row_range(N - B, N), c);
  layer_.backward(dstates, dx, c, s.layer);
  scatter_add_rows<float>(dx, s.ids, table_->gradient_matrix());
  const double sum = sum_losses<float>(nll, B, B);
  return {sum, sum, B};
}

double RecallRecurrent::accuracy(const RecallTexts& texts) const {
  Arena arena;
  Context c{arena};
  Saved s;
  return share_of_labels(forward(texts, c, s), texts.labels);
}

}  // namespace qkv
