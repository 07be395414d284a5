#include "eval/ranking.h"

#include <algorithm>
#include <cmath>

#include "core/fail.h"
#include "core/sorted_unique.h"
#include "core/threads.h"
#include "core/to_size.h"
#include "ops/logits/best_tokens.h"

namespace qkv {
namespace {

constexpr int64_t kScoreBytes = int64_t{64} << 20;
constexpr int64_t kMaxRows = 128;  // users per batch
constexpr size_t kListed = 10;     // recommendations per user that coverage counts

// The target of one user and the events before it.
struct Question {
  int64_t user;
  History history;
  int32_t target;
};

// Returns 1 + the number of other items whose score is not below that of the target, excluding `seen`, which is sorted.
int64_t rank_in_all(std::span<const float> scores, int32_t target, std::span<const int32_t> seen) {
  const float least = scores[to_size(target)];
  int64_t rank = 0;  // counts the target itself, also if its score is NaN
  for (const float score : scores) rank += !(score < least);
  for (const int32_t item : seen) rank -= item != target && !(scores[to_size(item)] < least);
  return rank;
}

// The same among drawn items. An item that is drawn twice counts twice; the target itself, if drawn, counts as a tie.
int64_t rank_in(std::span<const float> scores, int32_t target, std::span<const int32_t> drawn) {
  const float least = scores[to_size(target)];
  int64_t rank = 1;
  for (const int32_t item : drawn) rank += !(scores[to_size(item)] < least);
  return rank;
}

// Returns the kListed best items that are not in `seen`, in no particular order. Ties go to the smaller id; NaN is
// never included.
std::vector<int32_t> best_items(std::span<const float> scores, std::span<const int32_t> seen) {
  ScoredToken kept[kListed];
  TokenHeap heap{kept, 0, std::ssize(kept)};
  for (size_t i = 0; i < scores.size(); i++) {
    const ScoredToken item{scores[i], static_cast<int32_t>(i)};
    if (std::isnan(item.logit) || (heap.size == heap.most && !(item.logit > heap.bar())) ||
        std::ranges::binary_search(seen, item.token))
      continue;
    heap.add(item);
  }
  std::vector<int32_t> items;
  for (const ScoredToken& item : std::span(kept).first(to_size(heap.size))) items.push_back(item.token);
  return items;
}

void add_rank(RankingScore& sum, int64_t rank) {
  const auto r = static_cast<double>(rank);
  for (size_t i = 0; i < kCutoffs.size(); i++) {
    if (rank > kCutoffs[i]) continue;
    sum.hr[i] += 1;
    sum.ndcg[i] += 1 / std::log2(1 + r);
    sum.mrr[i] += 1 / r;
  }
}

// Returns the users' targets; counts users without one in `score`.
std::vector<Question> questions_of(const Interactions& data, const Split& split, HeldOut part, RankingScore& score) {
  std::vector<Question> questions;
  for (int64_t user = 0; user < data.user_count(); user++) {
    const std::optional<int64_t> target = split.target(data, user, part);
    if (!target || *target == 0) {
      (target ? score.no_history : score.no_target)++;
      continue;
    }
    const auto place = to_size(*target);
    questions.push_back({user, data.history(user).first(place), data.of(user)[place]});
  }
  score.users = std::ssize(questions);
  return questions;
}

}  // namespace

RankingScore rank_targets(const Interactions& data, const RankingOptions& options, ScoreItems score) {
  RankingScore result;
  const std::vector<Question> questions = questions_of(data, options.split, options.part, result);
  if (questions.empty()) fail("ranking: no user has a target and an event before it");

  const int64_t items = data.item_count();
  const int64_t max_rows = std::min(kMaxRows, kScoreBytes / (static_cast<int64_t>(sizeof(float)) * items));
  const int64_t rows = std::clamp<int64_t>(max_rows, 1, result.users);
  std::vector<float> scores(to_size(rows * items));
  std::vector<int64_t> ranks(to_size(rows));
  std::vector<std::vector<int32_t>> best(to_size(rows));
  std::vector<bool> covered(to_size(items));
  for (int64_t begin = 0; begin < result.users; begin += rows) {
    const int64_t count = std::min(rows, result.users - begin);
    const auto batch = std::span(questions).subspan(to_size(begin), to_size(count));
    std::vector<History> histories;
    for (const Question& question : batch) histories.push_back(question.history);
    const Matrix<float> matrix(scores.data(), count, items);
    score(histories, matrix);
    parallel_for(count, [&](int64_t row) {
      const auto r = to_size(row);
      const auto& [user, history, target] = batch[r];
      const std::span<const float> line(matrix.row(row), to_size(items));
      std::vector<int32_t> seen;
      if (!options.repeats) seen = sorted_unique(std::vector<int32_t>(history.items.begin(), history.items.end()));
      ranks[r] =
          options.negatives ? rank_in(line, target, options.negatives->of(user)) : rank_in_all(line, target, seen);
      best[r] = best_items(line, seen);
    });
    for (size_t r = 0; r < batch.size(); r++) {
      add_rank(result, ranks[r]);
      for (const int32_t item : best[r]) covered[to_size(item)] = true;
    }
  }
  for (auto* metric : {&result.hr, &result.ndcg, &result.mrr})
    for (double& value : *metric) value /= static_cast<double>(result.users);
  result.coverage = static_cast<double>(std::ranges::count(covered, true)) / static_cast<double>(items);
  return result;
}

}  // namespace qkv
