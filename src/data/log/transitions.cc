#include "data/log/transitions.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "core/system/threads.h"
#include "core/vector_bytes.h"

namespace qkv {
namespace {

constexpr int64_t kMostPairs = int64_t{1} << 26, kFewestKept = 8, kMostKept = 4096;
constexpr int64_t kParts = 64;  // into which the items are divided for counting

// The events that are counted, by item.
struct Occurrences {
  std::vector<int64_t> offsets;    // item x is event places[offsets[x]] … places[offsets[x + 1] − 1] of the log
  std::vector<int64_t> places;     // ascending for each item
  std::vector<uint8_t> followers;  // number of counted events of the same user after each event, at most the distance

  Occurrences(const Interactions& data, FunctionRef<int64_t(int64_t)> counted, int64_t distance)
      : offsets(data.items.size() + 1), followers(data.events.size()) {
    std::vector<int64_t> ends;
    for (int64_t user = 0; user < data.user_count(); user++) {
      const int64_t begin = data.offsets[to_size(user)], end = begin + counted(user);
      ends.push_back(end);
      for (int64_t i = begin; i < end; i++) {
        offsets[to_size(data.events[to_size(i)]) + 1]++;
        followers[to_size(i)] = static_cast<uint8_t>(std::min(distance, end - i - 1));
      }
    }
    std::partial_sum(offsets.begin(), offsets.end(), offsets.begin());
    places.resize(to_size(offsets.back()));
    std::vector<int64_t> next(offsets.begin(), offsets.end() - 1);
    for (int64_t user = 0; user < data.user_count(); user++)
      for (int64_t i = data.offsets[to_size(user)]; i < ends[to_size(user)]; i++)
        places[to_size(next[to_size(data.events[to_size(i)])]++)] = i;
  }
};

struct Counted {
  int32_t item;
  float count;
};

// The successors of the items of one part.
struct Part {
  std::vector<int64_t> sizes;  // of each item
  std::vector<Counted> rows;
};

Part count_part(const Interactions& data, const Occurrences& occurrences, const TransitionConfig& config,
                const std::vector<float>& weights, int64_t begin, int64_t end) {
  Part part;
  std::vector<float> sums(data.items.size());
  std::vector<Counted> row;
  for (int64_t item = begin; item < end; item++) {
    row.clear();
    for (int64_t i = occurrences.offsets[to_size(item)]; i < occurrences.offsets[to_size(item) + 1]; i++) {
      const size_t place = to_size(occurrences.places[to_size(i)]);
      for (size_t d = 1; d <= occurrences.followers[place]; d++) {
        const int32_t next = data.events[place + d];
        if (sums[to_size(next)] == 0) row.push_back({next, 0});
        sums[to_size(next)] += weights[d];
      }
    }
    for (Counted& next : row) next.count = std::exchange(sums[to_size(next.item)], 0.0f);
    if (std::ssize(row) > config.kept) {
      const auto larger = [](const Counted& a, const Counted& b) {
        return a.count != b.count ? a.count > b.count : a.item < b.item;
      };
      std::ranges::nth_element(row, row.begin() + config.kept, larger);
      row.resize(to_size(config.kept));
    }
    std::ranges::sort(row, {}, &Counted::item);
    part.rows.insert(part.rows.end(), row.begin(), row.end());
    part.sizes.push_back(std::ssize(row));
  }
  return part;
}

}  // namespace

int64_t kept_successors(int64_t items) {
  return std::clamp(kMostPairs / std::max<int64_t>(items, 1), kFewestKept, kMostKept);
}

Transitions::Transitions(const Interactions& data, FunctionRef<int64_t(int64_t user)> counted,
                         const TransitionConfig& config)
    : config_(config) {
  const Occurrences occurrences(data, counted, config.distance);
  std::vector<float> weights = {0};  // by distance; at least the smallest float, because 0 means "no pair so far"
  for (int64_t d = 1; d <= config.distance; d++)
    weights.push_back(static_cast<float>(std::pow(static_cast<double>(d), -config.power)));
  std::vector<Part> parts(to_size(kParts));
  const int64_t items = data.item_count(), each = (items + kParts - 1) / kParts;
  parallel_for(kParts, [&](int64_t p) {
    const int64_t begin = std::min(items, p * each), end = std::min(items, begin + each);
    parts[to_size(p)] = count_part(data, occurrences, config, weights, begin, end);
  });
  for (Part& part : parts) {
    for (const int64_t size : part.sizes) offsets_.push_back(offsets_.back() + size);
    for (const Counted& next : part.rows) {
      successors_.push_back(next.item);
      counts_.push_back(next.count);
    }
    part = {};
  }
  set_values();
}

void Transitions::set_shape(double decay, double scale) {
  config_.decay = decay;
  if (std::exchange(config_.scale, scale) != scale) set_values();
}

void Transitions::set_values() {
  values_.resize(counts_.size());
  for (size_t i = 0; i < counts_.size(); i++)
    values_[i] = static_cast<float>(std::log1p(config_.scale * static_cast<double>(counts_[i])));
}

size_t Transitions::bytes() const {
  return vector_bytes(offsets_) + vector_bytes(successors_) + vector_bytes(counts_) + vector_bytes(values_);
}

std::vector<float> Transitions::weights(size_t events) const {
  std::vector<double> powers;
  for (double power = 1; powers.size() < std::min(events, to_size(config_.events)); power *= config_.decay)
    powers.push_back(power);
  const double sum = std::accumulate(powers.begin(), powers.end(), 0.0);
  std::vector<float> weights;
  for (const double power : powers) weights.push_back(static_cast<float>(config_.weight * power / sum));
  return weights;
}

std::vector<Transitions::Scored> Transitions::scores(std::span<const int32_t> history) const {
  std::vector<Scored> sum, next;
  size_t event = history.size();
  for (const float weight : weights(history.size())) {
    const size_t x = to_size(history[--event]);
    next.clear();
    auto old = sum.begin();
    for (auto i = to_size(offsets_[x]); i < to_size(offsets_[x + 1]); i++) {
      while (old != sum.end() && old->item < successors_[i]) next.push_back(*old++);
      const float before = old != sum.end() && old->item == successors_[i] ? (old++)->score : 0;
      next.push_back({successors_[i], before + weight * values_[i]});
    }
    next.insert(next.end(), old, sum.end());
    sum.swap(next);
  }
  return sum;
}

void Transitions::add(std::span<const int32_t> history, std::span<float> to) const {
  for (const auto& [item, score] : scores(history)) to[to_size(item)] += score;
}

}  // namespace qkv
