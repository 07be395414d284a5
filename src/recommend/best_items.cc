#include "recommend/best_items.h"

#include <algorithm>

#include "core/to_size.h"
#include "ops/top_k_logits.h"

namespace qkv {
namespace {

constexpr int64_t kTokensAtOnce = 8192;   // maximum tokens of histories per batch
constexpr int64_t kBestAtOnce = 1 << 20;  // maximum items kept per batch
constexpr int64_t kChosenAtOnce = 4096;   // rows of the output layer gathered at once

// Returns the number of histories per batch. length: maximum number of events; top: number of items kept for each.
int64_t rows_at_once(int64_t length, int64_t top) {
  return std::max<int64_t>(1, std::min(kTokensAtOnce / length, kBestAtOnce / top));
}

// The scores that the transitions of one history add, in ascending order of the items.
using Added = std::vector<Transitions::Scored>;

Added added_to(const ItemModel& model, std::span<const int32_t> history) {
  return model.transitions ? model.transitions->scores(history) : Added();
}

float score_in(const Added& added, int32_t item) {
  const auto place = std::ranges::lower_bound(added, item, {}, &Transitions::Scored::item);
  return place != added.end() && place->item == item ? place->score : 0;
}

std::vector<ScoredToken> row_of(const TopKLogits& best, int64_t n) {
  std::vector<ScoredToken> items;
  for (int64_t i = 0; i < best.tokens.cols && best.tokens(n, i) >= 0; i++)
    items.push_back({best.logits(n, i), best.tokens(n, i)});
  return items;
}

// Returns the items that are hidden or have a score in `added`.
std::vector<int32_t> hidden_or_added(std::span<const int32_t> hidden, const Added& added) {
  std::vector<int32_t> items(hidden.begin(), hidden.end());
  for (const auto& [item, score] : added) items.push_back(item);
  std::inplace_merge(items.begin(), items.begin() + std::ssize(hidden), items.end());
  items.erase(std::unique(items.begin(), items.end()), items.end());
  return items;
}

// Returns the k best of `best`, which are items that `added` lacks, and the items of `added` that are not hidden. h is
// the last hidden state, [1, d].
std::vector<ScoredToken> best_with(const ItemModel& model, Matrix<const float> h, std::vector<ScoredToken> best,
                                   const Added& added, std::span<const int32_t> hidden, int64_t k, Context& c) {
  const int64_t found = std::ssize(best);
  best.resize(to_size(k));
  TokenHeap heap{best.data(), found, k};
  std::make_heap(heap.tokens, heap.tokens + heap.size);
  std::vector<int32_t> items;
  for (size_t begin = 0; begin < added.size(); begin += kChosenAtOnce) {
    const Arena::Scope scope(c.arena);
    items.clear();
    const auto block = std::span(added).subspan(begin, std::min<size_t>(kChosenAtOnce, added.size() - begin));
    for (const auto& [item, score] : block) items.push_back(item);
    const Matrix<float> scores = c.arena.matrix<float>(1, std::ssize(items));
    model.engine.host().output().chosen(h, items, scores, c);
    for (size_t i = 0; i < block.size(); i++) {
      const ScoredToken item{scores(0, static_cast<int64_t>(i)) + block[i].score, items[i]};
      if (item.logit > -HUGE_VALF && !std::ranges::binary_search(hidden, item.token)) heap.add(item);
    }
  }
  best.resize(to_size(heap.size));
  std::sort(best.begin(), best.end());
  return best;
}

// Returns the best of the allowed items. Gathers a few thousand of their rows of the output layer at a time.
TopKLogits best_of_allowed(const ItemModel& model, Matrix<const float> h, HiddenTokens hidden,
                           std::span<const Added> added, std::span<const int32_t> allowed, int64_t k, Context& c) {
  const TopKLogits best{c.arena.matrix<float>(h.rows, k), c.arena.matrix<int32_t>(h.rows, k)};
  const std::span<TokenHeap> heaps = c.arena.objects<TokenHeap>(to_size(h.rows));
  for (TokenHeap& heap : heaps) heap = {c.arena.take<ScoredToken>(k), 0, k};
  for (size_t begin = 0; begin < allowed.size(); begin += kChosenAtOnce) {
    const Arena::Scope scope(c.arena);
    const auto items = allowed.subspan(begin, std::min<size_t>(kChosenAtOnce, allowed.size() - begin));
    const Matrix<float> scores = c.arena.matrix<float>(h.rows, std::ssize(items));
    model.engine.host().output().chosen(h, items, scores, c);
    for (int64_t n = 0; n < h.rows; n++)
      for (int64_t i = 0; i < scores.cols; i++) {
        const int32_t token = items[to_size(i)];
        ScoredToken item{scores(n, i), token};
        if (model.transitions) item.logit += score_in(added[to_size(n)], token);
        if (item.logit > -HUGE_VALF && !std::ranges::binary_search(hidden[to_size(n)], item.token))
          heaps[to_size(n)].add(item);
      }
  }
  for (int64_t n = 0; n < h.rows; n++) write_best(heaps[to_size(n)], best, n);
  return best;
}

// Returns the best items of each row of h. The items with transitions are hidden from the pass over all items and
// scored separately, so that the result is exact.
std::vector<std::vector<ScoredToken>> best_of(const ItemModel& model, Matrix<const float> h, HiddenTokens hidden,
                                              std::span<const Added> added, const std::vector<int32_t>* allowed,
                                              int64_t k, Context& c) {
  std::vector<std::vector<int32_t>> unscored;
  std::vector<std::span<const int32_t>> spans;
  if (model.transitions && !allowed) {
    for (size_t n = 0; n < added.size(); n++) unscored.push_back(hidden_or_added(hidden[n], added[n]));
    spans.assign(unscored.begin(), unscored.end());
  }
  const TopKLogits best = allowed ? best_of_allowed(model, h, hidden, added, *allowed, k, c)
                                  : model.engine.host().output().best(h, spans.empty() ? hidden : spans, k, c);
  std::vector<std::vector<ScoredToken>> found;
  for (int64_t n = 0; n < h.rows; n++) {
    found.push_back(row_of(best, n));
    if (!spans.empty())
      found.back() =
          best_with(model, h.row_range(n, n + 1), std::move(found.back()), added[to_size(n)], hidden[to_size(n)], k, c);
  }
  return found;
}

Events without_event(const History& history, size_t event) {
  const auto all_but = [&]<class T>(std::span<const T> values) {
    std::vector<T> rest(values.begin(), values.end());
    if (!rest.empty()) rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(event));
    return rest;
  };
  return {all_but(history.items), all_but(history.times)};
}

}  // namespace

std::vector<std::vector<ScoredToken>> best_items(const ItemModel& model, std::span<const ItemQuery> queries,
                                                 const std::vector<int32_t>* allowed, int64_t top, Arena& arena) {
  std::vector<std::vector<ScoredToken>> found;
  const int64_t k = std::min(top, allowed ? std::ssize(*allowed) : model.items());
  if (k == 0) return std::vector<std::vector<ScoredToken>>(queries.size());
  const auto rows = to_size(rows_at_once(model.max_length(), k));
  while (found.size() < queries.size()) {
    const Arena::Scope scope(arena);
    std::vector<History> histories;
    std::vector<std::span<const int32_t>> hidden;
    std::vector<Added> added;
    const auto batch = queries.subspan(found.size(), std::min(rows, queries.size() - found.size()));
    for (const ItemQuery& query : batch) {
      histories.push_back(query.history);
      hidden.emplace_back(query.hidden);
      added.push_back(added_to(model, query.history.items));
    }
    Context context{.arena = arena, .inference = true};
    const Matrix<float> h = encode_histories(model.engine, model.positions_from_end, histories, arena);
    for (auto& items : best_of(model, h, hidden, added, allowed, k, context)) found.push_back(std::move(items));
  }
  return found;
}

std::vector<std::vector<double>> effects_of_events(const ItemModel& model, const History& history,
                                                   std::span<const ScoredToken> items, Arena& arena) {
  std::vector<std::vector<double>> effects(items.size());
  if (items.empty() || history.items.size() < 2) return effects;
  std::vector<int32_t> ids;
  for (const ScoredToken& item : items) ids.push_back(item.token);
  const auto most = to_size(model.max_length());
  const size_t read = std::min(history.items.size(), most);
  // Without one event, an older event is read in addition. The event before that one is needed for its time gap.
  const History recent = history.last(std::min(history.items.size(), most + 2));
  const auto rows = to_size(rows_at_once(model.max_length(), 1));
  for (size_t begin = 0; begin < read; begin += rows) {
    const Arena::Scope scope(arena);
    std::vector<Events> shorter;
    for (size_t event = begin; event < std::min(read, begin + rows); event++)
      shorter.push_back(without_event(recent, recent.items.size() - read + event));
    std::vector<History> histories;
    for (const Events& rest : shorter) histories.push_back(rest.history());
    Context context{.arena = arena, .inference = true};
    const Matrix<float> h = encode_histories(model.engine, model.positions_from_end, histories, arena);
    const Matrix<float> without = arena.matrix<float>(h.rows, std::ssize(ids));
    model.engine.host().output().chosen(h, ids, without, context);
    for (int64_t n = 0; n < h.rows; n++) {
      const Added added = added_to(model, histories[to_size(n)].items);
      for (size_t i = 0; i < items.size(); i++) {
        float& score = without(n, static_cast<int64_t>(i));
        if (model.transitions) score += score_in(added, ids[i]);
        effects[i].push_back(static_cast<double>(items[i].logit) - static_cast<double>(score));
      }
    }
  }
  return effects;
}

}  // namespace qkv
