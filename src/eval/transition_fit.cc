#include "eval/transition_fit.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "core/fail.h"
#include "core/sorted_unique.h"
#include "core/system/threads.h"
#include "core/to_size.h"

namespace qkv {
namespace {

// The values tried for what a single count adds to the score of an item, if all events of the history have it.
constexpr std::array<double, 14> kWeights = {0, 0.25, 0.5, 0.75, 1, 1.5, 2, 3, 4, 6, 8, 12, 24, 1000};
constexpr std::array<double, 5> kDecays = {0.2, 0.4, 0.6, 0.8, 1}, kScales = {0.1, 0.3, 1, 3, 10};
constexpr int64_t kCutoff = 10;
constexpr int64_t kShapeUsers = 3000;
constexpr int64_t kMostPairs = 5'000'000'000;  // users × items that fit_weight scores
constexpr int64_t kFitBytes = int64_t{64} << 20, kMaxRows = 128;

struct FitQuestion {
  History history;
  int32_t target;

  bool repeats;

  // Whether the target is no candidate, because the history contains it.
  bool is_missed() const { return !repeats && std::ranges::find(history.items, target) != history.items.end(); }
  std::vector<int32_t> hidden() const {  // ascending
    if (repeats) return {};
    return sorted_unique(std::vector<int32_t>(history.items.begin(), history.items.end()));
  }
};

void add_rank(ScoreAt10& sum, int64_t rank) {
  if (rank > kCutoff) return;
  const auto r = static_cast<double>(rank);
  sum.ndcg += 1 / std::log2(1 + r);
  sum.hr += 1;
  sum.mrr += 1 / r;
}

std::vector<FitQuestion> fit_questions(const Interactions& data, const Split& split, bool repeats) {
  std::vector<FitQuestion> questions;
  for (int64_t user = 0; user < data.user_count(); user++)
    if (const auto target = split.target(data, user, HeldOut::validation); target.value_or(0) > 0)
      questions.push_back({data.history(user).first(to_size(*target)), data.of(user)[to_size(*target)], repeats});
  return questions;
}

// Returns the rank of the target among the items that transitions score; 0 if they do not score it, or if it is missed.
int64_t rank_alone(const FitQuestion& question, const Transitions& transitions) {
  if (question.is_missed()) return 0;
  const auto scores = transitions.scores(question.history.items);
  const auto target = std::ranges::lower_bound(scores, question.target, {}, &Transitions::Scored::item);
  if (target == scores.end() || target->item != question.target) return 0;
  const std::vector<int32_t> hidden = question.hidden();
  return std::ranges::count_if(scores, [&](const Transitions::Scored& other) {
    return other.score >= target->score && !std::ranges::binary_search(hidden, other.item);
  });
}

double weight_of(size_t i, const Transitions& transitions) {
  return kWeights[i] / std::log1p(transitions.config().scale);
}

using RanksByWeight = std::array<int64_t, kWeights.size()>;

// Returns the rank of the target for each weight, or kCutoff + 1 if it is larger or there is none. Only items that rank
// above the target without transitions, or have any, can do so with them.
RanksByWeight ranks_by_weight(const FitQuestion& question, const Transitions& transitions, std::span<float> scores) {
  RanksByWeight ranks{};
  if (question.is_missed()) {
    ranks.fill(kCutoff + 1);
    return ranks;
  }
  std::vector<float> added(scores.size());
  transitions.add(question.history.items, added);
  for (const int32_t item : question.hidden()) {
    scores[to_size(item)] = -std::numeric_limits<float>::infinity();
    added[to_size(item)] = 0;
  }
  const float score = scores[to_size(question.target)], plus = added[to_size(question.target)];
  std::vector<std::pair<float, float>> rivals;
  for (size_t item = 0; item < scores.size(); item++)
    if (!(scores[item] < score) || added[item] > 0) rivals.emplace_back(scores[item], added[item]);
  for (size_t i = 0; i < kWeights.size(); i++) {
    const auto weight = static_cast<float>(weight_of(i, transitions));
    const float least = score + weight * plus;
    for (const auto& [rival, more] : rivals)
      if (!(rival + weight * more < least) && ++ranks[i] > kCutoff) break;
  }
  return ranks;
}

// Returns the ranks of the targets of all questions, which are dealt out. `scores` has a row for each of this rank.
std::vector<RanksByWeight> ranks_of(std::span<const FitQuestion> questions, const Transitions& transitions,
                                    ScoreItems model, const RankPartition& partition, Matrix<float> scores) {
  std::vector<int64_t> own;
  std::vector<History> histories;
  partition.for_own(std::ssize(questions), [&](int64_t i) {
    own.push_back(i);
    histories.push_back(questions[to_size(i)].history);
  });
  std::vector<RanksByWeight> ranks(questions.size());
  if (!own.empty()) model(histories, scores.row_range(0, std::ssize(own)));
  parallel_for(std::ssize(own), [&](int64_t row) {
    const size_t i = to_size(own[to_size(row)]);
    ranks[i] = ranks_by_weight(questions[i], transitions, {scores.row(row), to_size(scores.cols)});
  });
  partition.all_gather(std::span(ranks));
  partition.check_received(std::ssize(questions), [&](int64_t i) {
    if (const int64_t least = *std::ranges::min_element(ranks[to_size(i)]); least < 1)
      fail("sent {} as the rank of an item; must be at least 1", least);
  });
  return ranks;
}

}  // namespace

Transitions count_transitions(const Interactions& data, const Split& split, HeldOut part,
                              const TransitionConfig& config) {
  return {data, [&](int64_t user) { return split.known(data, user, part); }, config};
}

void fit_shape(const Interactions& data, const Split& split, bool repeats, Transitions& transitions) {
  const std::vector<FitQuestion> questions = fit_questions(data, split, repeats);
  const int64_t all = std::ssize(questions), count = std::min(all, kShapeUsers);
  const TransitionConfig before = transitions.config();
  std::vector<int64_t> ranks(to_size(count));
  const auto ndcg = [&](double decay, double scale) {
    transitions.set_shape(decay, scale);
    parallel_for(count,
                 [&](int64_t i) { ranks[to_size(i)] = rank_alone(questions[to_size(i * all / count)], transitions); });
    ScoreAt10 sum;
    for (const int64_t rank : ranks)
      if (rank > 0) add_rank(sum, rank);
    return sum.ndcg;
  };
  transitions.set_weight(1);
  double decay = before.decay, scale = before.scale, best = -1;
  for (const double value : kDecays)
    if (const double found = ndcg(value, scale); found > best) best = found, decay = value;
  for (const double value : kScales)
    if (const double found = ndcg(decay, value); found > best) best = found, scale = value;
  transitions.set_shape(decay, scale);
  transitions.set_weight(before.weight);
}

TransitionFit fit_weight(const Interactions& data, const Split& split, bool repeats, const Transitions& transitions,
                         ScoreItems model, const RankPartition& partition) {
  std::vector<FitQuestion> questions = fit_questions(data, split, repeats);
  const int64_t items = data.item_count(), all = std::ssize(questions),
                users = std::min(all, users_for(items, kMostPairs));
  for (int64_t i = 0; i < users; i++) questions[to_size(i)] = questions[to_size(i * all / users)];
  const int64_t rows = std::clamp<int64_t>(kFitBytes / (static_cast<int64_t>(sizeof(float)) * items), 1, kMaxRows),
                at_once = rows * partition.ranks();
  std::vector<float> scores(to_size(rows * items));
  std::array<ScoreAt10, kWeights.size()> sums;
  for (int64_t begin = 0; begin < users; begin += at_once) {
    const auto batch = std::span(questions).subspan(to_size(begin), to_size(std::min(at_once, users - begin)));
    for (const RanksByWeight& ranks : ranks_of(batch, transitions, model, partition, {scores.data(), rows, items}))
      for (size_t i = 0; i < kWeights.size(); i++) add_rank(sums[i], ranks[i]);
  }
  for (ScoreAt10& sum : sums)
    for (double* value : {&sum.ndcg, &sum.hr, &sum.mrr}) *value /= static_cast<double>(std::max<int64_t>(users, 1));
  size_t best = 0;
  for (size_t i = 1; i < kWeights.size(); i++)
    if (sums[i].ndcg > sums[best].ndcg) best = i;
  return {weight_of(best, transitions), sums[best], sums[0]};
}

}  // namespace qkv
