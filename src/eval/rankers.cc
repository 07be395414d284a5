#include "eval/rankers.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "core/fail.h"
#include "core/sorted_unique.h"
#include "core/system/threads.h"
#include "core/to_size.h"

namespace qkv {
namespace {

const ScoredToken* find(std::span<const ScoredToken> by_item, int32_t item) {
  const auto found = std::ranges::lower_bound(by_item, item, {}, &ScoredToken::token);
  return found != by_item.end() && found->token == item ? &*found : nullptr;
}

// Returns the counts of the targets, then the items of the list with their scores.
std::vector<int32_t> list_of(const RankingAnswer& answer) {
  std::vector<int32_t> list;
  for (const int64_t count : answer.not_below) list.push_back(static_cast<int32_t>(count));
  for (const ScoredToken& item : answer.list) {
    list.push_back(item.token);
    list.push_back(std::bit_cast<int32_t>(item.logit));
  }
  return list;
}

// The reverse. Throws Error for a list that is not an answer to a query with this number of targets.
RankingAnswer answer_of(std::span<const int32_t> list, size_t targets, int64_t items) {
  if (list.size() < targets || (list.size() - targets) % 2 > 0)
    fail("sent {} numbers as the answer for {} targets", list.size(), targets);
  RankingAnswer answer;
  for (const int32_t count : list.first(targets)) {
    if (count < 0) fail("sent {} as a number of items; must be at least 0", count);
    answer.not_below.push_back(count);
  }
  for (size_t i = targets; i < list.size(); i += 2) {
    if (list[i] < 0 || list[i] >= items) fail("sent the item {}; must be between 0 and {}", list[i], items - 1);
    answer.list.push_back({std::bit_cast<float>(list[i + 1]), list[i]});
  }
  return answer;
}

}  // namespace

SparseRanker::SparseRanker(std::span<const float> common, ChangedScores changed)
    : common_(common.begin(), common.end()), changed_(changed) {
  for (size_t item = 0; item < common.size(); item++) order_.push_back({common[item], static_cast<int32_t>(item)});
  std::ranges::sort(order_, [](const ScoredToken& a, const ScoredToken& b) { return a < b; });
}

void SparseRanker::rank(std::span<const RankingQuery> queries, std::span<RankingAnswer> answers) {
  parallel_for(std::ssize(queries), [&](int64_t i) { rank(queries[to_size(i)], answers[to_size(i)]); });
}

void SparseRanker::rank(const RankingQuery& query, RankingAnswer& answer) const {
  std::vector<ScoredToken> changed;
  if (changed_) changed_(query.history, changed);
  std::ranges::sort(changed, {}, &ScoredToken::token);
  const auto score_of = [&](int32_t item) {
    const ScoredToken* found = find(changed, item);
    return found ? found->logit : common_[to_size(item)];
  };
  const auto is_target = [&](int32_t item) { return std::ranges::binary_search(query.targets, item); };
  const auto is_hidden = [&](int32_t item) { return std::ranges::binary_search(query.hidden, item); };

  answer.not_below.clear();
  for (const int32_t target : query.targets) {
    const float least = score_of(target);
    const auto reaches = [&](float score) { return !(score < least); };
    int64_t count = 0;
    if (!query.drawn.empty()) {
      for (const int32_t item : query.drawn) count += reaches(score_of(item));
    } else {
      count = std::ranges::partition_point(order_, reaches, &ScoredToken::logit) - order_.begin();
      for (const ScoredToken& item : changed) count += reaches(item.logit) - reaches(common_[to_size(item.token)]);
      for (const int32_t item : query.targets) count -= reaches(score_of(item));
      for (const int32_t item : query.hidden) count -= !is_target(item) && reaches(score_of(item));
    }
    answer.not_below.push_back(count);
  }

  // The best of the changed items, and of the others, which come in order.
  answer.list.clear();
  for (const ScoredToken& item : changed)
    if (item.logit > -HUGE_VALF && !is_hidden(item.token)) answer.list.push_back(item);
  const auto more = to_size(kListed) + answer.list.size();
  for (auto item = order_.begin(); item != order_.end() && answer.list.size() < more; item++)
    if (item->logit > -HUGE_VALF && !is_hidden(item->token) && !find(changed, item->token))
      answer.list.push_back(*item);
  std::ranges::sort(answer.list, [](const ScoredToken& a, const ScoredToken& b) { return a < b; });
  answer.list.resize(std::min(answer.list.size(), to_size(kListed)));
}

void PartitionedRanker::rank_own(std::span<const RankingQuery> queries, std::span<RankingAnswer> answers) {
  std::vector<RankingQuery> own;
  partition_.for_own(std::ssize(queries), [&](int64_t i) { own.push_back(queries[to_size(i)]); });
  if (own.empty()) return;
  std::vector<RankingAnswer> found(own.size());
  ranker_.rank(own, found);
  partition_.for_own(std::ssize(queries),
                     [&, next = found.begin()](int64_t i) mutable { answers[to_size(i)] = std::move(*next++); });
}

void PartitionedRanker::rank(std::span<const RankingQuery> queries, std::span<RankingAnswer> answers) {
  if (partition_.ranks() == 1) return ranker_.rank(queries, answers);
  rank_own(queries, answers);
  std::vector<std::vector<int32_t>> lists(queries.size());
  partition_.for_own(std::ssize(queries), [&](int64_t i) { lists[to_size(i)] = list_of(answers[to_size(i)]); });
  size_t most = 0;
  for (const RankingQuery& query : queries) most = std::max(most, query.targets.size());
  partition_.all_gather_lists(lists, {static_cast<int64_t>(most) + 2 * kListed});
  partition_.check_received(std::ssize(queries), [&](int64_t i) {
    answers[to_size(i)] = answer_of(lists[to_size(i)], queries[to_size(i)].targets.size(), items_);
  });
}

}  // namespace qkv
