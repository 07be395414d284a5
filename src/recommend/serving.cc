#include "recommend/serving.h"

#include <algorithm>
#include <utility>

#include "core/fail.h"
#include "core/fields.h"
#include "core/sorted_unique.h"
#include "core/to_size.h"

namespace qkv {
namespace {

// Returns the items with the most events.
std::vector<Recommendation> popular_items(const Catalogue& catalogue, const std::vector<int32_t>& hidden,
                                          const std::vector<int32_t>* allowed, int64_t top) {
  std::vector<Recommendation> items;
  for (const int32_t item : catalogue.popular()) {
    if (std::ssize(items) == top) break;
    if (std::ranges::binary_search(hidden, item) || (allowed && !std::ranges::binary_search(*allowed, item))) continue;
    items.push_back({catalogue.items().names()[to_size(item)], static_cast<double>(catalogue.events(item)), {}});
  }
  return items;
}

}  // namespace

Serving::Serving(std::unique_ptr<Transformer<float>> model, bool positions_from_end, Interactions log)
    : model_(std::move(model)), items_{*model_, positions_from_end}, catalogue_(std::move(log)) {}

std::vector<Recommendations> Serving::recommend(std::span<const std::vector<std::string>> histories,
                                                std::span<const std::vector<int64_t>> times,
                                                const RecommendOptions& options) const {
  if (!times.empty() && times.size() != histories.size())
    fail("times must be given for each of {} histories (are given for {})", histories.size(), times.size());
  check_ranges(options);
  const std::vector<std::string>& names = catalogue_.items().names();
  std::vector<std::string> unknown_listed;
  std::optional<std::vector<int32_t>> allow;
  if (options.allow) allow = sorted_unique(catalogue_.ids(*options.allow, unknown_listed));
  const std::vector<int32_t>*allowed = allow ? &*allow : nullptr,
        denied = sorted_unique(catalogue_.ids(options.deny, unknown_listed));

  std::vector<Recommendations> answers;
  std::vector<Events> known;
  std::vector<ItemQuery> queries;
  for (size_t i = 0; i < histories.size(); i++) {
    Recommendations& answer = answers.emplace_back();
    answer.unknown_listed = unknown_listed;
    const auto when = times.empty() ? std::span<const int64_t>() : std::span<const int64_t>(times[i]);
    check_times(when, histories[i].size());
    const Events& events = known.emplace_back(catalogue_.events(histories[i], when, answer.unknown));
    std::vector<int32_t> hidden = denied;
    if (options.exclude_seen) hidden.insert(hidden.end(), events.items.begin(), events.items.end());
    hidden = sorted_unique(std::move(hidden));
    answer.popular = events.items.empty();
    if (answer.popular)
      answer.items = popular_items(catalogue_, hidden, allowed, options.top);
    else
      queries.push_back({events.history(), std::move(hidden)});
  }

  const ArenaPool::Lease lease(arenas_, 1);
  const auto found = best_items(items_, queries, allowed, options.top, lease.front());
  auto best = found.begin();
  for (size_t i = 0; i < answers.size(); i++) {
    if (answers[i].popular) continue;
    for (const ScoredToken& item : *best)
      answers[i].items.push_back({names[to_size(item.token)], static_cast<double>(item.logit), {}});
    const History history = known[i].history();
    for (const int32_t item : history.last(std::min(history.items.size(), to_size(max_length()))).items)
      answers[i].read.push_back(names[to_size(item)]);
    if (options.explain) {
      auto effects = effects_of_events(items_, history, *best, lease.front());
      for (size_t j = 0; j < effects.size(); j++) answers[i].items[j].effects = std::move(effects[j]);
    }
    best++;
  }
  return answers;
}

}  // namespace qkv
