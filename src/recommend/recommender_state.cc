#include "recommend/recommender_state.h"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <utility>

#include "analysis/hidden_states.h"
#include "core/fail.h"
#include "core/fields.h"
#include "core/json.h"
#include "core/sorted_unique.h"
#include "model/inference/placed_model.h"
#include "recommend/item_filter.h"
#include "recommend/item_scores.h"
#include "recommend/item_vectors.h"

namespace qkv {

Catalogue::Catalogue(Interactions log)
    : log_(std::move(log)), items_(std::exchange(log_.items, {})), users_(std::exchange(log_.users, {})) {
  counts_.resize(items_.names().size());
  popular_.resize(counts_.size());
  for (const int32_t item : log_.events) counts_[to_size(item)]++;
  std::iota(popular_.begin(), popular_.end(), 0);
  std::ranges::stable_sort(popular_, std::greater<>(), [&](int32_t item) { return events(item); });
}

std::vector<int32_t> Catalogue::ids(const std::vector<std::string>& names, std::vector<std::string>& unknown) const {
  std::vector<int32_t> ids;
  for (const std::string& name : names)
    if (const int32_t id = items_.find(name); id >= 0)
      ids.push_back(id);
    else
      unknown.push_back(name);
  return ids;
}

Events Catalogue::events(const std::vector<std::string>& names, std::span<const int64_t> times,
                         std::vector<std::string>& unknown) const {
  Events known{ids(names, unknown), {}};
  for (size_t i = 0; i < times.size(); i++)
    if (items_.find(names[i]) >= 0) known.times.push_back(times[i]);
  return known;
}

RecommenderState::RecommenderState(RecommenderRun run, const RecommenderTables& tables, const Placement& placement,
                                   const std::string& directory)
    : model_(std::move(run.model)),
      engine_(make_inference(*model_, placement, directory)),
      repeats_(run.recommendation.repeats),
      transitions_(transitions_of(run)),
      items_{*engine_, run.recommendation.positions_from_end, transitions_.get()},
      catalogue_(std::move(run.log.data)) {
  if (!tables.catalogue.empty()) table_ = ItemTable(tables.catalogue, tables.item_column, catalogue_.items());
}

void RecommenderState::check(const RecommendOptions& options) const {
  check_ranges(options);
  if (options.diversity > 0 && options.top > kMostDiverse)
    fail("top must be at most {} with diversity (is {})", kMostDiverse, options.top);
  parse_conditions(options.where, table_);
}

RecommenderState::Permitted RecommenderState::permitted(const RecommendOptions& options) const {
  Permitted items;
  if (options.allow) items.allowed = sorted_unique(catalogue_.ids(*options.allow, items.unknown));
  items.denied = sorted_unique(catalogue_.ids(options.deny, items.unknown));
  if (options.where.empty()) return items;
  if (!items.allowed) {
    items.allowed.emplace(to_size(items_.items()));
    std::iota(items.allowed->begin(), items.allowed->end(), 0);
  }
  for (const ItemCondition& condition : parse_conditions(options.where, table_)) condition.filter(*items.allowed);
  return items;
}

const ItemVectors& RecommenderState::vectors() const {
  std::call_once(vectors_once_, [&] { vectors_.emplace(*model_); });
  return *vectors_;
}

void RecommenderState::diversify_list(std::vector<ScoredToken>& items, const RecommendOptions& options,
                                      Arena& arena) const {
  if (options.diversity == 0) return;
  const Arena::Scope scope(arena);
  std::vector<int32_t> ids;
  for (const ScoredToken& item : items) ids.push_back(item.token);
  items = diversify(items, vectors().directions(ids, arena), options.diversity, options.top);
}

// Returns the items with the most events.
std::vector<ScoredToken> RecommenderState::popular_items(const std::vector<int32_t>& hidden,
                                                         const std::vector<int32_t>* allowed, int64_t top) const {
  std::vector<ScoredToken> items;
  for (const int32_t item : catalogue_.popular()) {
    if (std::ssize(items) == top) break;
    if (std::ranges::binary_search(hidden, item) || (allowed && !std::ranges::binary_search(*allowed, item))) continue;
    items.push_back({static_cast<float>(catalogue_.events(item)), item});
  }
  return items;
}

std::vector<Recommendations> RecommenderState::recommend(std::span<const HistoryRequest> requests) const {
  const std::vector<std::string>& names = catalogue_.items().names();
  const ArenaPool::Lease lease(arenas_, 1);
  std::list<Alike> kinds;
  std::list<Pass> passes;
  std::vector<Recommendations> answers;
  std::vector<Events> known;
  for (const HistoryRequest& request : requests) {
    const RecommendOptions& options = *request.options;
    const Alike& kind = kind_of(options, kinds);
    Recommendations& answer = answers.emplace_back();
    answer.unknown_listed = kind.permitted.unknown;
    check_times(request.times, request.history->size());
    const Events& events = known.emplace_back(catalogue_.events(*request.history, request.times, answer.unknown));
    std::vector<int32_t> hidden = kind.permitted.denied;
    if (options.exclude_seen.value_or(!repeats_)) hidden.insert(hidden.end(), events.items.begin(), events.items.end());
    hidden = sorted_unique(std::move(hidden));
    answer.popular = events.items.empty();
    if (answer.popular) {
      auto popular = popular_items(hidden, kind.permitted.allowed_items(), kind.candidates);
      diversify_list(popular, options, lease.front());
      for (const ScoredToken& item : popular)
        answer.items.push_back({names[to_size(item.token)], static_cast<double>(catalogue_.events(item.token)), {}});
    } else {
      Pass& pass = pass_of(kind, passes);
      pass.candidates = std::max(pass.candidates, kind.candidates);
      pass.queries.push_back({events.history(), std::move(hidden)});
      pass.requests.push_back(answers.size() - 1);
    }
  }
  for (const Pass& pass : passes) {
    const auto* allowed = pass.first->permitted.allowed_items();
    auto found = best_items(items_, pass.queries, allowed, pass.candidates, lease.front());
    for (size_t i = 0; i < found.size(); i++) {
      const size_t r = pass.requests[i];
      answer(*requests[r].options, pass.queries[i].history, std::move(found[i]), answers[r], lease.front());
    }
  }
  return answers;
}

// Returns the kind of these options, which is added if there is none. Throws Error for options out of range.
const RecommenderState::Alike& RecommenderState::kind_of(const RecommendOptions& options,
                                                         std::list<Alike>& kinds) const {
  for (const Alike& kind : kinds)
    if (kind.options == &options || *kind.options == options) return kind;
  check(options);
  return kinds.emplace_back(Alike{&options, permitted(options), candidates_for(options.top, options.diversity)});
}

RecommenderState::Pass& RecommenderState::pass_of(const Alike& kind, std::list<Pass>& passes) {
  for (Pass& pass : passes)
    if (pass.first == &kind || pass.first->permitted.allowed == kind.permitted.allowed) return pass;
  return passes.emplace_back(Pass{&kind});
}

// Completes the answer to a request. best: at least the candidates of its options, best first.
void RecommenderState::answer(const RecommendOptions& options, const History& history, std::vector<ScoredToken> best,
                              Recommendations& answer, Arena& arena) const {
  const std::vector<std::string>& names = catalogue_.items().names();
  best.resize(std::min(best.size(), to_size(candidates_for(options.top, options.diversity))));
  diversify_list(best, options, arena);
  for (const ScoredToken& item : best)
    answer.items.push_back({names[to_size(item.token)], static_cast<double>(item.logit), {}});
  for (const int32_t item : history.last(std::min(history.items.size(), to_size(max_length()))).items)
    answer.read.push_back(names[to_size(item)]);
  if (!options.explain) return;
  auto effects = effects_of_events(items_, history, best, arena);
  for (size_t j = 0; j < effects.size(); j++) answer.items[j].effects = std::move(effects[j]);
}

HiddenStates RecommenderState::hidden(const std::vector<std::string>& history, std::span<const int64_t> times) const {
  check_times(times, history.size());
  std::vector<std::string> unknown, names;
  const Events events = catalogue_.events(history, times, unknown);
  if (!unknown.empty()) fail("history: the item {} is not in the log", excerpt(unknown.front()));
  if (events.items.empty()) fail("history: must have an event (is empty)");
  const ArenaPool::Lease lease(arenas_, 1);
  const History known = events.history();
  const Packed packed = packed_histories(*model_, items_.positions_from_end, {&known, 1});
  for (const int32_t item : packed.ids) names.push_back(catalogue_.items().names()[to_size(item)]);
  return hidden_states(*model_, packed, lease.front(), std::move(names));
}

Recommendations RecommenderState::similar(std::string_view item, const RecommendOptions& options) const {
  check(options);
  if (options.explain) fail("explain must be false for similar items, which have no history");
  const std::vector<std::string>& names = catalogue_.items().names();
  const int32_t id = catalogue_.items().find(item);
  if (id < 0) fail("unknown item {} (the run has {} items)", excerpt(item), names.size());
  Permitted permitted = this->permitted(options);
  permitted.denied.push_back(id);
  const std::vector<int32_t> hidden = sorted_unique(std::move(permitted.denied));
  const ArenaPool::Lease lease(arenas_, 1);
  std::vector<ScoredToken> found = vectors().nearest(id, hidden, permitted.allowed_items(),
                                                     candidates_for(options.top, options.diversity), lease.front());
  diversify_list(found, options, lease.front());
  Recommendations answer;
  for (const ScoredToken& other : found)
    answer.items.push_back({names[to_size(other.token)], static_cast<double>(other.logit), {}});
  answer.read = {std::string(item)};
  answer.unknown_listed = std::move(permitted.unknown);
  return answer;
}

}  // namespace qkv
