#include "decode/batched.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/to_size.h"

namespace qkv {
namespace {

// β Σ_j log min(Σ_i a_ij, 1), over all target tokens i and the S source tokens j (Wu et al., 2016, section 7).
double coverage(const std::vector<float>& attention, size_t S, double beta) {
  double total = 0;
  for (size_t j = 0; j < S; j++) {
    double sum = 0;
    for (size_t i = j; i < attention.size(); i += S) sum += static_cast<double>(attention[i]);
    total += std::log(std::min(sum, 1.0));
  }
  return beta * total;
}

void add_coverage(const Ensemble& models, const std::vector<SearchInput>& inputs,
                  std::vector<std::vector<Decoded>>& found, const SearchOptions& options, Arena& arena) {
  std::vector<std::vector<int32_t>> targets;
  for (const auto& hypotheses : found)
    for (const Decoded& d : hypotheses) targets.push_back(d.with_end(options.end));
  std::vector<ForcedInput> pairs;
  for (size_t s = 0; s < found.size(); s++)
    for (size_t i = 0; i < found[s].size(); i++)
      pairs.push_back({inputs[s].source, targets[pairs.size()], inputs[s].start});
  const std::vector<Forced> forced =
      force_all(models, pairs, options.start, WithAttention::yes, options.attention, arena);
  for (size_t s = 0, p = 0; s < found.size(); s++)
    for (Decoded& d : found[s])
      d.score += coverage(forced[p++].attention, inputs[s].source.size(), options.coverage_penalty);
}

std::vector<int64_t> lengths_of(const std::vector<std::vector<int32_t>>& sources) {
  std::vector<int64_t> lengths;
  for (const auto& source : sources) lengths.push_back(std::ssize(source));
  return lengths;
}

std::vector<SearchInput> inputs_of(const std::vector<std::vector<int32_t>>& sources, std::span<const size_t> batch,
                                   std::span<const int32_t> start) {
  std::vector<SearchInput> inputs;
  for (const size_t i : batch) inputs.push_back({sources[i], {}, start});
  return inputs;
}

}  // namespace

Batches cut_by_length(const std::vector<int64_t>& lengths, int64_t batch_tokens) {
  Batches result;
  result.order.resize(lengths.size());
  std::iota(result.order.begin(), result.order.end(), size_t{0});
  std::stable_sort(result.order.begin(), result.order.end(),
                   [&](size_t a, size_t b) { return lengths[a] > lengths[b]; });
  int64_t tokens = 0;
  for (size_t i = 0; i < lengths.size(); i++) {
    const int64_t next = lengths[result.order[i]];
    if (i > result.ends.back() && tokens + next > batch_tokens) {
      result.ends.push_back(i);
      tokens = 0;
    }
    tokens += next;
  }
  if (!lengths.empty()) result.ends.push_back(lengths.size());
  return result;
}

std::vector<std::vector<Decoded>> n_best(const Ensemble& models, const std::vector<SearchInput>& inputs,
                                         const SearchOptions& options, Arena& arena) {
  std::vector<std::vector<Decoded>> found = search(models, inputs, options, arena);
  if (options.coverage_penalty > 0) add_coverage(models, inputs, found, options, arena);
  for (auto& hypotheses : found) {
    std::ranges::stable_sort(hypotheses, std::greater<>(), &Decoded::score);
    if (std::ssize(hypotheses) > options.n_best) hypotheses.resize(to_size(options.n_best));
  }
  return found;
}

// A first search that ends after one token finds the best tokens after the prefix. A second search completes them.
std::vector<std::vector<Decoded>> alternatives(const Ensemble& models, const std::vector<SearchInput>& inputs,
                                               const SearchOptions& options, Arena& arena) {
  std::vector<std::vector<Decoded>> found(inputs.size());
  std::vector<std::pair<size_t, size_t>> places;  // where in `found` the results of the second search belong
  std::vector<SearchInput> longer;
  for (size_t s = 0; s < inputs.size(); s++) {
    SearchOptions first = options;
    first.beam = options.n_best;
    first.max_length = std::ssize(inputs[s].prefix) + 1;
    first.on_token = nullptr;
    found[s] = search(models, {inputs[s]}, first, arena).front();
    for (size_t i = 0; i < found[s].size(); i++)
      if (!found[s][i].ended)
        places.emplace_back(s, i), longer.push_back({inputs[s].source, found[s][i].ids, inputs[s].start});
  }
  SearchOptions rest = options;
  rest.n_best = 1;
  std::vector<std::vector<Decoded>> ends = n_best(models, longer, rest, arena);
  for (size_t i = 0; i < places.size(); i++)
    if (!ends[i].empty()) found[places[i].first][places[i].second] = std::move(ends[i].front());
  return found;
}

std::vector<std::vector<Decoded>> translate_ids(const Ensemble& models,
                                                const std::vector<std::vector<int32_t>>& sources,
                                                const SearchOptions& options, Arena& arena, int64_t batch_tokens,
                                                const std::function<void(int64_t)>& done,
                                                std::span<const int32_t> start) {
  const Batches batches = cut_by_length(lengths_of(sources), batch_tokens / options.beam);
  std::vector<std::vector<Decoded>> results(sources.size());
  for (size_t b = 0; b < batches.size(); b++) {
    std::vector<std::vector<Decoded>> found = n_best(models, inputs_of(sources, batches[b], start), options, arena);
    for (size_t i = 0; i < found.size(); i++) results[batches[b][i]] = std::move(found[i]);
    if (done) done(std::ssize(found));
  }
  return results;
}

void rehearse_translation(const Ensemble& models, const std::vector<std::vector<int32_t>>& sources,
                          const SearchOptions& options, Arena& arena, int64_t batch_tokens,
                          std::span<const int32_t> start) {
  const Batches batches = cut_by_length(lengths_of(sources), batch_tokens / options.beam);
  for (size_t b = 0; b < batches.size(); b++)
    rehearse_search(models, inputs_of(sources, batches[b], start), options, arena);
}

std::vector<Forced> force_all(const Ensemble& models, const std::vector<ForcedInput>& inputs, int32_t start,
                              WithAttention with, const AttentionPlace& place, Arena& arena, int64_t batch_tokens) {
  std::vector<int64_t> lengths;
  for (const ForcedInput& input : inputs) lengths.push_back(std::ssize(input.source) + std::ssize(input.target));
  const Batches batches = cut_by_length(lengths, batch_tokens);
  std::vector<Forced> results(inputs.size());
  for (size_t b = 0; b < batches.size(); b++) {
    std::vector<ForcedInput> batch;
    for (const size_t i : batches[b]) batch.push_back(inputs[i]);
    std::vector<Forced> found = force(models, batch, start, with, place, arena);
    for (size_t i = 0; i < found.size(); i++) results[batches[b][i]] = std::move(found[i]);
  }
  return results;
}

}  // namespace qkv
