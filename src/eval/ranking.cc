#include "eval/ranking.h"

#include <algorithm>
#include <cmath>

#include "core/fail.h"
#include "core/hash.h"
#include "core/sorted_unique.h"
#include "core/system/threads.h"
#include "core/to_size.h"

namespace qkv {
namespace {

constexpr int64_t kScoreBytes = int64_t{64} << 20;
constexpr int64_t kMostRows = 128;  // users per batch of a DenseRanker
constexpr int64_t kLeastUsers = 1000;

// Returns the number of other items whose score is not below that of the target.
int64_t not_below(std::span<const float> scores, int32_t target, const RankingQuery& query) {
  const float least = scores[to_size(target)];
  const auto reaches = [&](int32_t item) { return !(scores[to_size(item)] < least); };
  if (!query.drawn.empty()) return std::ranges::count_if(query.drawn, reaches);
  int64_t count = 0;
  for (const float score : scores) count += !(score < least);
  count -= std::ranges::count_if(query.targets, reaches);
  for (const int32_t item : query.hidden) count -= reaches(item) && !std::ranges::binary_search(query.targets, item);
  return count;
}

// Returns the best items that are not hidden, best first. Ties go to the smaller id.
std::vector<ScoredToken> best_items(std::span<const float> scores, std::span<const int32_t> hidden) {
  ScoredToken kept[kListed];
  TokenHeap heap{kept, 0, kListed};
  for (size_t i = 0; i < scores.size(); i++) {
    const ScoredToken item{scores[i], static_cast<int32_t>(i)};
    if (!(item.logit > -HUGE_VALF) || (heap.size == heap.most && !(item.logit > heap.bar())) ||
        std::ranges::binary_search(hidden, item.token))
      continue;
    heap.add(item);
  }
  std::sort(kept, kept + heap.size);
  return {kept, kept + heap.size};
}

struct Question {
  int64_t user, target;  // target: the index of the first one among the user's events
};

// Leaves the users with the smallest hashes of their names, in their order.
void sample(std::vector<Question>& questions, const Interactions& data, int64_t most) {
  const auto hash = [&](const Question& question) {
    return std::pair(hash_bytes(data.users[to_size(question.user)]), question.user);
  };
  std::ranges::nth_element(questions, questions.begin() + most, {}, hash);
  questions.resize(to_size(most));
  std::ranges::sort(questions, {}, &Question::user);
}

// Returns the users to evaluate and counts the others in `counts`.
std::vector<Question> questions_of(const Interactions& data, const RankingOptions& options, RankingScore& counts) {
  std::vector<Question> questions;
  for (int64_t user = 0; user < data.user_count(); user++) {
    const std::optional<int64_t> target = options.split.target(data, user, options.part);
    if (target && *target > 0)
      questions.push_back({user, *target});
    else
      (target ? counts.no_history : counts.no_target)++;
  }
  if (questions.empty()) fail("ranking: no user has a target and an event before it");
  if (options.most_users > 0 && std::ssize(questions) > options.most_users) {
    counts.not_sampled = std::ssize(questions) - options.most_users;
    sample(questions, data, options.most_users);
  }
  return questions;
}

RankingQuery query_of(const Question& question, const Interactions& data, const RankingOptions& options) {
  const std::span<const int32_t> events = data.of(question.user);
  const auto first = to_size(question.target),
             count = to_size(std::min(options.next, options.split.held_out(data, question.user, options.part)));
  const std::span<const int32_t> targets = events.subspan(first, count);
  RankingQuery query{data.history(question.user).first(first),
                     sorted_unique(std::vector<int32_t>(targets.begin(), targets.end())),
                     {}};
  if (!options.repeats)
    query.hidden = sorted_unique(std::vector<int32_t>(events.begin(), events.begin() + question.target));
  if (options.negatives) query.drawn = options.negatives->of(question.user);
  return query;
}

// Returns the ranks of a user's targets, ascending. Those of hidden targets are kNoRank.
std::vector<int64_t> ranks_of(const RankingQuery& query, const RankingAnswer& answer) {
  std::vector<int64_t> ranks;
  for (size_t t = 0; t < query.targets.size(); t++)
    if (!std::ranges::binary_search(query.hidden, query.targets[t])) ranks.push_back(answer.not_below[t]);
  std::ranges::sort(ranks);
  for (size_t i = 0; i < ranks.size(); i++) ranks[i] += static_cast<int64_t>(i) + 1;
  ranks.resize(query.targets.size(), kNoRank);
  return ranks;
}

// The sums of all users and of each segment.
class SegmentSums {
 public:
  SegmentSums(const Interactions& data, const RankingOptions& options)
      : segments_(options.segments),
        counts_(options.counts ? *options.counts : none_),
        all_(data.item_count(), counts_) {
    if (segments_) parts_ = std::vector<MeasureSums>(segments_->names.size(), all_);
  }

  void add(int64_t user, const RankingQuery& query, const RankingAnswer& answer) {
    const std::vector<int64_t> ranks = ranks_of(query, answer);
    std::vector<int32_t> list;
    for (const ScoredToken& item : answer.list) list.push_back(item.token);
    all_.add(ranks, list);
    if (const int32_t segment = segments_ ? segments_->of_user[to_size(user)] : -1; segment >= 0)
      parts_[to_size(segment)].add(ranks, list);
  }

  SegmentedScore means() const {
    SegmentedScore score{all_.mean(), {}};
    for (const MeasureSums& part : parts_) score.segments.push_back(part.mean());
    return score;
  }

 private:
  const Segments* segments_;
  const ItemCounts none_;
  const ItemCounts& counts_;
  MeasureSums all_;
  std::vector<MeasureSums> parts_;
};

}  // namespace

void DenseRanker::rank(std::span<const RankingQuery> queries, std::span<RankingAnswer> answers) {
  const int64_t most = std::max<int64_t>(1, kScoreBytes / (static_cast<int64_t>(sizeof(float)) * items_));
  const auto rows = to_size(std::min({most, kMostRows, std::ssize(queries)}));
  if (scores_.size() < rows * to_size(items_)) scores_.resize(rows * to_size(items_));
  for (size_t begin = 0; begin < queries.size(); begin += rows) {
    const std::span<const RankingQuery> batch = queries.subspan(begin, std::min(rows, queries.size() - begin));
    std::vector<History> histories;
    for (const RankingQuery& query : batch) histories.push_back(query.history);
    const Matrix<float> scores(scores_.data(), std::ssize(batch), items_);
    score_(histories, scores);
    parallel_for(scores.rows, [&](int64_t row) {
      const RankingQuery& query = batch[to_size(row)];
      RankingAnswer& answer = answers[begin + to_size(row)];
      const std::span<const float> line(scores.row(row), to_size(items_));
      answer.not_below.clear();
      for (const int32_t target : query.targets) answer.not_below.push_back(not_below(line, target, query));
      answer.list = best_items(line, query.hidden);
    });
  }
}

SegmentedScore rank_segments(const Interactions& data, const RankingOptions& options, ItemRanker& ranker) {
  RankingScore counts;
  const std::vector<Question> questions = questions_of(data, options, counts);
  SegmentSums sums(data, options);
  std::vector<RankingQuery> queries;
  std::vector<RankingAnswer> answers;
  for (size_t begin = 0; begin < questions.size(); begin += queries.size()) {
    const auto batch =
        std::span(questions).subspan(begin).first(std::min(questions.size() - begin, to_size(options.users_at_once)));
    queries.clear();
    for (const Question& question : batch) queries.push_back(query_of(question, data, options));
    answers.resize(queries.size());
    ranker.rank(queries, answers);
    for (size_t i = 0; i < batch.size(); i++) {
      sums.add(batch[i].user, queries[i], answers[i]);
      if (options.on_list) options.on_list(batch[i].user, answers[i].list);
    }
  }
  SegmentedScore score = sums.means();
  score.all.no_target = counts.no_target, score.all.no_history = counts.no_history;
  score.all.not_sampled = counts.not_sampled;
  return score;
}

RankingScore rank_targets(const Interactions& data, const RankingOptions& options, ItemRanker& ranker) {
  return rank_segments(data, options, ranker).all;
}

RankingScore rank_targets(const Interactions& data, const RankingOptions& options, ScoreItems score) {
  DenseRanker ranker(data.item_count(), score);
  return rank_targets(data, options, ranker);
}

int64_t users_for(int64_t items, int64_t pairs) { return std::max(kLeastUsers, pairs / items); }

}  // namespace qkv
