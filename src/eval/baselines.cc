// Scores are ranks, not counts: integers that a float holds exactly, equal for items that tie.
#include "eval/baselines.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "core/sorted_unique.h"
#include "core/system/threads.h"
#include "core/to_size.h"
#include "eval/rankers.h"

namespace qkv {
namespace {

// The items that came right after each item, once per occurrence.
struct Followers {
  std::vector<int64_t> offsets;  // after item i: items[offsets[i]] … items[offsets[i + 1] − 1]
  std::vector<int32_t> items;

  Followers(const Interactions& data, const Split& split, HeldOut part) : offsets(data.items.size() + 1) {
    const auto for_all = [&](auto&& f) {
      for (int64_t user = 0; user < data.user_count(); user++) {
        const std::span<const int32_t> events = data.of(user);
        const auto known = to_size(split.known(data, user, part));
        for (size_t i = 1; i < known; i++) f(to_size(events[i - 1]), events[i]);
      }
    };
    for_all([&](size_t item, int32_t) { offsets[item + 1]++; });
    std::partial_sum(offsets.begin(), offsets.end(), offsets.begin());
    items.resize(to_size(offsets.back()));
    std::vector<int64_t> next(offsets.begin(), offsets.end() - 1);
    for_all([&](size_t item, int32_t after) { items[to_size(next[item]++)] = after; });
  }
};

}  // namespace

Popularity::Popularity(const Interactions& data, const Split& split, HeldOut part) : scores_(data.items.size()) {
  std::vector<int64_t> counts(data.items.size());
  for (int64_t user = 0; user < data.user_count(); user++)
    for (const int32_t item : data.of(user).first(to_size(split.known(data, user, part)))) counts[to_size(item)]++;
  const std::vector<int64_t> distinct = sorted_unique(counts);
  for (size_t item = 0; item < counts.size(); item++)
    scores_[item] = static_cast<float>(std::ranges::lower_bound(distinct, counts[item]) - distinct.begin());
}

void Popularity::operator()(std::span<const History>, Matrix<float> scores) const {
  for (int64_t row = 0; row < scores.rows; row++) std::ranges::copy(scores_, scores.row(row));
}

Markov::Markov(const Interactions& data, const Split& split, HeldOut part) : popularity_(data, split, part) {
  Followers followers(data, split, part);
  const std::span<const float> popular = popularity_.scores();
  const float above =
      popular.empty() ? 0 : *std::ranges::max_element(popular) + 1;  // the lowest score of an item that came after
  struct Counted {
    int64_t count;
    float popularity;
    int32_t item;
  };
  std::vector<Counted> after;
  for (size_t item = 0; item < popular.size(); item++) {
    const auto begin = followers.items.begin() + followers.offsets[item],
               end = followers.items.begin() + followers.offsets[item + 1];
    std::sort(begin, end);
    after.clear();
    for (auto i = begin; i < end;) {
      const auto run_end = std::upper_bound(i, end, *i);
      after.push_back({run_end - i, popular[to_size(*i)], *i});
      i = run_end;
    }
    const auto place = [](const Counted& c) { return std::pair(c.count, c.popularity); };
    std::ranges::sort(after, {}, place);
    float score = above;
    for (size_t i = 0; i < after.size(); i++) {
      if (i > 0 && place(after[i - 1]) != place(after[i])) score++;
      next_.push_back({score, after[i].item});
    }
    offsets_.push_back(std::ssize(next_));
  }
}

void Markov::append_next(const History& history, std::vector<ScoredToken>& next) const {
  const auto last = to_size(history.items.back());
  next.insert(next.end(), next_.begin() + offsets_[last], next_.begin() + offsets_[last + 1]);
}

void Markov::operator()(std::span<const History> histories, Matrix<float> scores) const {
  popularity_(histories, scores);
  for (int64_t row = 0; row < scores.rows; row++) {
    std::vector<ScoredToken> next;
    append_next(histories[to_size(row)], next);
    for (const auto [score, item] : next) scores(row, item) = score;
  }
}

TransitionsAlone::TransitionsAlone(const Interactions& data, const Split& split, HeldOut part, TransitionConfig config)
    : transitions_(
          data, [&](int64_t user) { return split.known(data, user, part); }, config) {
  transitions_.set_weight(1);
  const Popularity popular(data, split, part);
  const float most = popular.scores().empty() ? 0 : *std::ranges::max_element(popular.scores());
  for (const float score : popular.scores()) popularity_.push_back(score - most - 1);
}

void TransitionsAlone::operator()(std::span<const History> histories, Matrix<float> scores) const {
  parallel_for(scores.rows, [&](int64_t row) {
    std::ranges::copy(popularity_, scores.row(row));
    for (const auto& [item, score] : transitions_.scores(histories[to_size(row)].items)) scores(row, item) = score;
  });
}

void TransitionsAlone::append_next(const History& history, std::vector<ScoredToken>& next) const {
  for (const auto& [item, score] : transitions_.scores(history.items)) next.push_back({score, item});
}

void rank_baselines(const Interactions& data, const Split& split, HeldOut part,
                    FunctionRef<void(const char* name, ItemRanker& ranker)> rank) {
  const Markov markov(data, split, part);
  SparseRanker by_popularity(markov.popularity().scores());
  rank("popularity", by_popularity);
  const auto next = [&](const History& history, std::vector<ScoredToken>& changed) {
    markov.append_next(history, changed);
  };
  SparseRanker by_last_item(markov.popularity().scores(), next);
  rank("markov", by_last_item);
}

}  // namespace qkv
