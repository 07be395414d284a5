#include "recommend/model_ranker.h"

#include <algorithm>

#include "core/sorted_unique.h"
#include "core/threads.h"
#include "core/to_size.h"
#include "ops/logits/logit_ranks.h"
#include "recommend/item_scores.h"

namespace qkv {
namespace {

constexpr int64_t kMostTargets = 4096;  // rows of the output layer gathered at once

using Added = std::vector<std::vector<ScoredToken>>;  // by query

float added_to(std::span<const ScoredToken> added, int32_t item) {
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
    for (size_t i = 0; i < items.size(); i++) scores[i] += added_to(added, items[i]);
  return scores;
}

// Returns the scores of the targets of each query.
std::vector<std::vector<float>> scores_of_targets(const Output<float>& output, Matrix<const float> h,
                                                  std::span<const RankingQuery> queries, const Added& added,
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
        if (!added[n].empty()) score += added_to(added[n], target);
        scores[n].push_back(score);
      }
  }
  return scores;
}

// Returns how many of the scores are not below `least`.
int64_t not_below(std::span<const float> scores, float least) {
  return std::ranges::count_if(scores, [&](float score) { return !(score < least); });
}

}  // namespace

Matrix<float> ModelRanker::encode(std::span<const RankingQuery> queries, Context& c) const {
  std::vector<History> histories;
  for (const RankingQuery& query : queries) histories.push_back(query.history);
  const Matrix<float> h = c.arena.matrix<float>(std::ssize(queries), model_.output().weight().shape[1]);
  encode_histories_into(model_, positions_from_end_, histories, h, c.arena);
  return h;
}

void ModelRanker::rank(std::span<const RankingQuery> queries, std::span<RankingAnswer> answers) {
  const Arena::Scope scope(arena_);
  Context c{.arena = arena_, .inference = true};
  const Matrix<float> h = encode(queries, c);
  Added added(queries.size());
  if (added_)
    for (size_t n = 0; n < queries.size(); n++) added_(queries[n].history, added[n]);
  const std::vector<std::vector<float>> targets = scores_of_targets(model_.output(), h, queries, added, c);

  size_t most = 0;
  for (const auto& scores : targets) most = std::max(most, scores.size());
  const auto N = std::ssize(queries), T = static_cast<int64_t>(most);
  const Matrix<float> thresholds = c.arena.matrix<float>(N, T);
  const Matrix<int64_t> counts = c.arena.matrix<int64_t>(N, T);
  const BestLogits best{c.arena.matrix<float>(N, kListed), c.arena.matrix<int32_t>(N, kListed)};
  std::vector<std::span<const int32_t>> hidden(queries.size());
  std::vector<std::span<const ScoredToken>> added_of(queries.size());
  for (int64_t n = 0; n < N; n++) {
    std::fill_n(thresholds.row(n), T, HUGE_VALF);
    std::ranges::copy(targets[to_size(n)], thresholds.row(n));
    hidden[to_size(n)] = queries[to_size(n)].hidden;
    added_of[to_size(n)] = added[to_size(n)];
  }
  model_.output().ranks(h, {hidden, added_ ? std::span<const std::span<const ScoredToken>>(added_of) : {}},
                        {thresholds, counts, best}, c);

  for (int64_t n = 0; n < N; n++) {
    const RankingQuery& query = queries[to_size(n)];
    RankingAnswer& answer = answers[to_size(n)];
    const std::vector<float>& scores = targets[to_size(n)];
    answer.not_below.clear();
    if (!query.drawn.empty()) {
      const Arena::Scope drawn_scope(arena_);
      const std::vector<float> drawn =
          scores_of(model_.output(), h.row_range(n, n + 1), query.drawn, added[to_size(n)], c);
      for (const float least : scores) answer.not_below.push_back(not_below(drawn, least));
    } else {
      // What was counted contains hidden items, whose score was −∞, and the targets that are not hidden.
      std::vector<float> not_candidates(query.hidden.size(), -HUGE_VALF);
      for (size_t t = 0; t < scores.size(); t++)
        if (!std::ranges::binary_search(query.hidden, query.targets[t])) not_candidates.push_back(scores[t]);
      for (int64_t t = 0; t < std::ssize(scores); t++)
        answer.not_below.push_back(counts(n, t) - not_below(not_candidates, scores[to_size(t)]));
    }
    answer.list.clear();
    for (int64_t i = 0; i < kListed && best.tokens(n, i) >= 0; i++)
      answer.list.push_back({best.logits(n, i), best.tokens(n, i)});
  }
}

}  // namespace qkv
