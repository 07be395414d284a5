#include "eval/partitioned_ranker.h"

#include <algorithm>
#include <bit>
#include <utility>
#include <vector>

#include "core/fail.h"
#include "core/to_size.h"

namespace qkv {
namespace {

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
