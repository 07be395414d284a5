#include "analysis/heads/text_losses.h"

#include <algorithm>
#include <cmath>

#include "core/system/threads.h"
#include "core/to_size.h"
#include "ops/cross_entropy.h"
#include "ops/rows.h"

namespace qkv {
namespace {

constexpr int64_t kLogitsAtOnce = int64_t{1} << 23;  // numbers

// The rows of h whose labels count, with the text of each.
struct ScoredRows {
  std::vector<int32_t> rows = {}, labels = {};
  std::vector<size_t> texts = {};  // place in `chosen`
};

ScoredRows scored_rows(const HeadTexts& texts, const Batch& batch) {
  ScoredRows scored;
  for (int64_t s = 0; s < batch.target.sequences(); s++) {
    const int32_t begin = batch.target.offsets[to_size(s)], end = batch.target.offsets[to_size(s) + 1];
    for (int32_t n = texts.kind == RunKind::recommender ? end - 1 : begin; n < end; n++) {
      scored.rows.push_back(n);
      scored.labels.push_back(batch.labels[to_size(n)]);
      scored.texts.push_back(to_size(s));
    }
  }
  return scored;
}

// Returns the NDCG@10 of a label by the protocol of qkv evaluate: among all items that are not hidden. A hidden label
// is a miss, and items with the same score count before the label.
double ndcg10(std::span<const float> logits, int32_t label, std::span<const int32_t> hidden) {
  const auto is_hidden = [&](size_t item) { return std::ranges::binary_search(hidden, static_cast<int32_t>(item)); };
  if (is_hidden(to_size(label))) return 0;
  int64_t rank = 1;
  for (size_t item = 0; item < logits.size() && rank <= 10; item++)
    if (item != to_size(label) && !(logits[item] < logits[to_size(label)]) && !is_hidden(item)) rank++;
  return rank <= 10 ? 1 / std::log2(1 + static_cast<double>(rank)) : 0;
}

}  // namespace

std::vector<TextLoss> text_losses(const HeadTexts& texts, std::span<const size_t> chosen, const Batch& batch,
                                  Matrix<const float> h, Context& c) {
  const ScoredRows scored = scored_rows(texts, batch);
  const int64_t vocab = texts.config().output_vocab(), N = std::ssize(scored.rows);
  std::vector<double> ndcg(to_size(N));
  std::vector<float> loss(to_size(N)), nll(to_size(N));  // without label smoothing they are the same
  const int64_t block = std::max<int64_t>(1, kLogitsAtOnce / vocab);
  for (int64_t begin = 0; begin < N; begin += block) {
    const Arena::Scope scope(c.arena);
    const size_t first = to_size(begin), count = to_size(std::min(block, N - begin));
    const Matrix<float> rows = c.arena.matrix<float>(static_cast<int64_t>(count), h.cols);
    gather_rows<float>(h, std::span(scored.rows).subspan(first, count), rows);
    const Matrix<float> logits = texts.model->output().logits(rows, c);
    cross_entropy<float>(logits, std::span(scored.labels).subspan(first, count), 0, &loss[first], &nll[first]);
    if (texts.kind != RunKind::recommender) continue;
    parallel_for(static_cast<int64_t>(count), [&](int64_t n) {
      const size_t k = first + to_size(n);
      ndcg[k] = ndcg10({logits.row(n), to_size(vocab)}, scored.labels[k], texts.texts[chosen[scored.texts[k]]].hidden);
    });
  }
  std::vector<TextLoss> losses(chosen.size());
  for (size_t k = 0; k < scored.rows.size(); k++) {
    TextLoss& text = losses[scored.texts[k]];
    text.nll += static_cast<double>(nll[k]), text.ndcg10 += ndcg[k], text.labels++;
  }
  return losses;
}

std::vector<TextLoss> masked_text_losses(const HeadTexts& texts, std::span<const size_t> chosen, Context& c) {
  std::vector<TextLoss> losses;
  for (const size_t text : chosen) {
    const Batch batch = batch_of(texts, {&text, 1}, true);
    const Loss loss = texts.model->loss(batch, 0, c);
    losses.push_back({loss.nll, loss.tokens});
  }
  return losses;
}

}  // namespace qkv
