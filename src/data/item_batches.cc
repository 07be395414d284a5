#include "data/item_batches.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <numeric>

#include "core/fail.h"
#include "core/sorted_unique.h"
#include "core/system/threads.h"
#include "core/to_size.h"

namespace qkv {
namespace {

constexpr double kHiddenShare = 0.1;  // fraction of the histories whose times are hidden

}  // namespace

ItemBatches::ItemBatches(const Interactions& log, const ItemBatchOptions& options) : log_(log), options_(options) {
  const bool by_token = options.scope == NegativeScope::token;
  counts_.resize(to_size(log.item_count()));
  for (int64_t user = 0; user < log.user_count(); user++) {
    for (const int32_t item : training_part(user)) counts_[to_size(item)]++;
    events_ += std::ssize(training_part(user));
    if (by_token && options.sampling == NegativeSampling::popularity)
      training_events_.insert(training_events_.end(), training_part(user).begin(), training_part(user).end());
    const int64_t tokens = std::ssize(sequence(user)) - 1;
    if (tokens < 1) continue;
    users_.push_back(user);
    tokens_ += tokens;
    longest_ = std::max(longest_, tokens);
  }
  if (by_token) items_.resize(to_size(log.item_count()));
  std::iota(items_.begin(), items_.end(), 0);
  if (users_.empty()) fail("batches: no user has two training items");
  if (options.batch_tokens < longest_ || options.batch_tokens > std::numeric_limits<int32_t>::max())
    fail("batches: batch_tokens must be between {}, the longest sequence, and 2^31 - 1 (is {})", longest_,
         options.batch_tokens);
}

std::span<const int32_t> ItemBatches::training_part(int64_t user) const {
  return log_.of(user).first(to_size(options_.split.known(log_, user, HeldOut::validation)));
}

std::span<const int32_t> ItemBatches::sequence(int64_t user) const {
  const std::span<const int32_t> events = training_part(user);
  return events.last(std::min(events.size(), to_size(options_.max_length) + 1));
}

BatchList ItemBatches::shuffled(int64_t epoch) const {
  BatchList list;
  list.pairs = users_;
  Random(options_.seed, Stream::shuffle, static_cast<uint64_t>(epoch)).shuffle(list.pairs);
  list.offsets = batch_offsets(std::ssize(list.pairs), options_.batch_tokens, [&](int64_t i) {
    return tokens({&list.pairs[to_size(i)], 1});
  });
  return list;
}

int64_t ItemBatches::tokens(std::span<const int64_t> users) const {
  int64_t sum = 0;
  for (const int64_t user : users) sum += std::ssize(sequence(user)) - 1;
  return sum;
}

void ItemBatches::fill(std::span<const int64_t> users, uint64_t index, Batch& batch) const {
  batch.clear();
  Random random(options_.seed, Stream::hidden_times, index);
  for (const int64_t user : users) {
    History history = log_.history(user).first(training_part(user).size() - 1);
    if (options_.gaps && random.uniform() < kHiddenShare) history.times = {};
    append_history(history, {options_.max_length, options_.positions_from_end, options_.gaps}, batch.target);
    const std::span<const int32_t> items = sequence(user);
    batch.labels.insert(batch.labels.end(), items.begin() + 1, items.end());
  }
}

void ItemBatches::draw(std::span<const int64_t> users, const Batch& batch, uint64_t index, std::vector<int32_t>& ids,
                       std::vector<float>& log_draws) const {
  const auto K = to_size(options_.negatives);
  ids.resize(batch.labels.size() * (K + 1));
  log_draws.resize(ids.size());
  const uint64_t seed = options_.seed + index * 0x9E3779B97F4A7C15;
  parallel_for_throwing(std::ssize(users), [&](int64_t s) {
    const Negatives negatives = negatives_of(users[to_size(s)]);
    Random random(seed, Stream::training_negatives, static_cast<uint64_t>(s));
    const auto begin = to_size(batch.target.offsets[to_size(s)]), end = to_size(batch.target.offsets[to_size(s) + 1]);
    for (size_t n = begin; n < end; n++) {
      const size_t first = n * (K + 1);
      const int32_t label = batch.labels[n];
      const auto weight_of = [&](int32_t item) {
        return negatives.uniform ? 1 : static_cast<double>(counts_[to_size(item)]);
      };
      // With repeats the label is rejected, if enough of the weight remains.
      const double left = negatives.weights - weight_of(label);
      const bool rejects_label = options_.repeats && left > 0.01 * negatives.weights;
      const double weights = rejects_label ? left : negatives.weights;
      ids[first] = label;
      log_draws[first] = 0;
      for (size_t k = first + 1; k <= first + K; k++) {
        do ids[k] = negatives.from[random.below(negatives.from.size())];
        while ((rejects_label && ids[k] == label) || std::ranges::binary_search(negatives.rejected, ids[k]));
        log_draws[k] = static_cast<float>(std::log(static_cast<double>(K) * weight_of(ids[k]) / weights));
      }
    }
  });
}

// Draws an event of the log until it is one of the training events.
int32_t ItemBatches::random_training_event(Random& random) const {
  for (;;) {
    const auto place = static_cast<int64_t>(random.below(log_.events.size()));
    const int64_t user = std::ranges::upper_bound(log_.offsets, place) - log_.offsets.begin() - 1;
    const std::span<const int32_t> part = training_part(user);
    if (const int64_t i = place - log_.offsets[to_size(user)]; i < std::ssize(part)) return part[to_size(i)];
  }
}

void ItemBatches::draw_shared(uint64_t index, std::vector<int32_t>& ids, std::vector<float>& log_draws) const {
  const bool uniform = options_.sampling == NegativeSampling::uniform;
  ids.resize(to_size(options_.negatives));
  log_draws.resize(ids.size());
  Random random(options_.seed, Stream::shared_negatives, index);
  for (int32_t& id : ids)
    id = uniform ? static_cast<int32_t>(random.below(counts_.size())) : random_training_event(random);
  std::ranges::sort(ids);
  const double total = uniform ? static_cast<double>(counts_.size()) : static_cast<double>(events_);
  for (size_t k = 0; k < ids.size(); k++) {
    const double weight = uniform ? 1 : static_cast<double>(counts_[to_size(ids[k])]);
    log_draws[k] = static_cast<float>(std::log(static_cast<double>(options_.negatives) * weight / total));
  }
}

// If the user has every item that could be drawn, negatives are drawn from all items.
ItemBatches::Negatives ItemBatches::negatives_of(int64_t user) const {
  if (options_.repeats) {
    if (options_.sampling == NegativeSampling::popularity)
      return {false, static_cast<double>(training_events_.size()), training_events_, {}, {}};
    return {true, static_cast<double>(items_.size()), items_, {}, {}};
  }
  const std::span<const int32_t> part = training_part(user);
  std::vector<int32_t> own = sorted_unique(std::vector<int32_t>(part.begin(), part.end()));
  if (options_.sampling == NegativeSampling::popularity) {
    auto left = static_cast<double>(training_events_.size());
    for (const int32_t item : own) left -= static_cast<double>(counts_[to_size(item)]);
    // Rejection sampling is fast if enough of the weight remains.
    if (left > 0.01 * static_cast<double>(training_events_.size()))
      return {false, left, training_events_, {}, std::move(own)};
  }
  const size_t left = items_.size() - own.size();
  if (2 * left > items_.size()) return {true, static_cast<double>(left), items_, {}, std::move(own)};
  if (left == 0) return {true, static_cast<double>(items_.size()), items_, {}, {}};
  Negatives negatives{true, static_cast<double>(left), {}, {}, {}};
  std::set_difference(items_.begin(), items_.end(), own.begin(), own.end(), std::back_inserter(negatives.kept));
  negatives.from = negatives.kept;
  return negatives;
}

}  // namespace qkv
