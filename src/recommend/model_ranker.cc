#include "recommend/model_ranker.h"

#include <algorithm>

#include "core/sorted_unique.h"
#include "core/system/threads.h"
#include "core/to_size.h"
#include "ops/logit_ranks.h"
#include "recommend/item_scores.h"

namespace qkv {
namespace {

constexpr int64_t kMostTargets = 4096;  // rows of the output layer gathered at once

using AddedByQuery = std::vector<std::vector<ScoredToken>>;  // by query

float score_added_to(std::span<const ScoredToken> added, int32_t item) {
  const auto found = std::ranges::lower_bound(added, item, {}, &ScoredToken::token);
  return found != added.end() && found->token == item ? found->logit : 0;
}

// Returns the scores of some items after the history of one query, with the bits that they have among all items.
std::vector<float> scores_of(const Output<float>& output, Matrix<const float> h, std::span<const int32_t> items,
                             std::span<const ScoredToken> added, Context& c) {
  const FlushDenormals flush;  // as in the loop over all items
  std::vector<float> scores(items.size());
  output.chosen(h, items, {scores.data(), 1, std::ssize(items)}, c);
  if (!added.empty())
    for (size_t i = 0; i < items.size(); i++) scores[i] += score_added_to(added, items[i]);
  return scores;
}

// Returns the scores of the targets of each query.
std::vector<std::vector<float>> scores_of_targets(const Output<float>& output, Matrix<const float> h,
                                                  std::span<const RankingQuery> queries, const AddedByQuery& added,
                                                  Context& c) {
  std::vector<std::vector<float>> scores(queries.size());
  for (size_t begin = 0, end = 0; begin < queries.size(); begin = end) {
    std::vector<int32_t> items;
    do {
      items.insert(items.end(), queries[end].targets.begin(), queries[end].targets.end());
      end++;
    } while (end < queries.size() && std::ssize(items) + std::ssize(queries[end].targets) <= kMostTargets);
    items = sorted_unique(std::move(items));
    const Arena::Scope scope(c.arena);
    const FlushDenormals flush;  // as in the loop over all items
    const Matrix<float> all = c.arena.matrix<float>(static_cast<int64_t>(end - begin), std::ssize(items));
    output.chosen(h.row_range(static_cast<int64_t>(begin), static_cast<int64_t>(end)), items, all, c);
    for (size_t n = begin; n < end; n++)
      for (const int32_t target : queries[n].targets) {
        const auto place = std::ranges::lower_bound(items, target) - items.begin();
        float score = all(static_cast<int64_t>(n - begin), place);
        if (!added[n].empty()) score += score_added_to(added[n], target);
        scores[n].push_back(score);
      }
  }
  return scores;
}

// Returns how many of the scores are not below `least`.
int64_t not_below(std::span<const float> scores, float least) {
  return std::ranges::count_if(scores, [&](float score) { return !(score < least); });
}

// Returns how many candidates are not below each target. counts: how many of all items are not. Those include the
// hidden items, whose score was −∞, and the targets that are not hidden.
std::vector<int64_t> in_catalogue(const RankingQuery& query, std::span<const float> targets,
                                  std::span<const int64_t> counts) {
  std::vector<float> no_candidates(query.hidden.size(), -HUGE_VALF);
  for (size_t t = 0; t < targets.size(); t++)
    if (!std::ranges::binary_search(query.hidden, query.targets[t])) no_candidates.push_back(targets[t]);
  std::vector<int64_t> others;
  for (size_t t = 0; t < targets.size(); t++) others.push_back(counts[t] - not_below(no_candidates, targets[t]));
  return others;
}

std::vector<ScoredToken> list_of(const TopKLogits& best, int64_t n) {
  std::vector<ScoredToken> items;
  for (int64_t i = 0; i < best.tokens.cols && best.tokens(n, i) >= 0; i++)
    items.push_back({best.logits(n, i), best.tokens(n, i)});
  return items;
}

}  // namespace

Matrix<float> ModelRanker::encode(std::span<const RankingQuery> queries, Context& c) const {
  std::vector<History> histories;
  for (const RankingQuery& query : queries) histories.push_back(query.history);
  const Matrix<float> h = c.arena.matrix<float>(std::ssize(queries), model_.host().output().weight().shape[1]);
  encode_histories_into(model_, positions_from_end_, histories, h, c.arena);
  return h;
}

void ModelRanker::rank(std::span<const RankingQuery> queries, std::span<RankingAnswer> answers) {
  const Arena::Scope scope(arena_);
  Context c{.arena = arena_, .inference = true};
  const Matrix<float> h = encode(queries, c);
  AddedByQuery added(queries.size());
  if (added_)
    for (size_t n = 0; n < queries.size(); n++) added_(queries[n].history, added[n]);
  const std::vector<std::vector<float>> targets = scores_of_targets(model_.host().output(), h, queries, added, c);

  size_t most = 0;
  for (const auto& scores : targets) most = std::max(most, scores.size());
  const auto N = std::ssize(queries), T = static_cast<int64_t>(most);
  const Matrix<float> thresholds = c.arena.matrix<float>(N, T);
  const Matrix<int64_t> counts = c.arena.matrix<int64_t>(N, T);
  const TopKLogits best{c.arena.matrix<float>(N, kListed), c.arena.matrix<int32_t>(N, kListed)};
  std::vector<std::span<const int32_t>> hidden(queries.size());
  std::vector<std::span<const ScoredToken>> added_of(added.begin(), added.end());
  for (size_t n = 0; n < queries.size(); n++) {
    float* row = thresholds.row(static_cast<int64_t>(n));
    std::fill_n(row, T, HUGE_VALF);
    std::ranges::copy(targets[n], row);
    hidden[n] = queries[n].hidden;
  }
  model_.host().output().ranks(h, {hidden, added_of}, {thresholds, counts, best}, c);

  for (size_t n = 0; n < queries.size(); n++) {
    const auto row = static_cast<int64_t>(n);
    answers[n].list = list_of(best, row);
    if (queries[n].drawn.empty()) {
      answers[n].not_below = in_catalogue(queries[n], targets[n], {counts.row(row), targets[n].size()});
    } else {
      const Arena::Scope scope_of_drawn(arena_);
      const Matrix<const float> state = h.row_range(row, row + 1);
      const std::vector<float> drawn = scores_of(model_.host().output(), state, queries[n].drawn, added[n], c);
      answers[n].not_below.clear();
      for (const float least : targets[n]) answers[n].not_below.push_back(not_below(drawn, least));
    }
  }
}

}  // namespace qkv
