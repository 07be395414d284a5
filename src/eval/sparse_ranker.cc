#include "eval/sparse_ranker.h"

#include <algorithm>
#include <cmath>

#include "core/sorted_unique.h"
#include "core/system/threads.h"
#include "core/to_size.h"

namespace qkv {
namespace {

const ScoredToken* find(std::span<const ScoredToken> by_item, int32_t item) {
  const auto found = std::ranges::lower_bound(by_item, item, {}, &ScoredToken::token);
  return found != by_item.end() && found->token == item ? &*found : nullptr;
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

}  // namespace qkv
