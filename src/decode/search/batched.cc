#include "decode/search/batched.h"

#include <algorithm>
#include <numeric>

#include "core/system/threads.h"
#include "core/to_size.h"
#include "decode/search/decoding.h"

namespace qkv {
namespace {

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

std::vector<std::vector<Decoded>> decode_all(const Ensemble& models, const std::vector<SearchInput>& inputs,
                                             const SearchOptions& options, bool alternatives, Arena& arena) {
  const Arena::Scope scope(arena);
  std::vector<DecodingRequest> requests;
  CacheRows rows;
  for (const SearchInput& input : inputs) {
    requests.push_back({requests.size(), input, &options, alternatives});
    rows = rows + decoding_need(models, requests.back()).total;
  }
  SearchScheduler decoding(models, rows, {}, arena, arena);
  for (const DecodingRequest& request : requests) decoding.add(request);
  std::vector<std::vector<Decoded>> found(inputs.size());
  for (std::vector<SearchScheduler::Result> results; decoding.step(results); results.clear())
    for (SearchScheduler::Result& result : results) {
      if (result.error) std::rethrow_exception(result.error);
      found[result.key] = std::move(result.found);
    }
  return found;
}

}  // namespace

int64_t tokens_at_once(int64_t batch_tokens) {
  return batch_tokens > 0 ? batch_tokens : std::max<int64_t>(1024, 256 * threads());
}

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
  return decode_all(models, inputs, options, false, arena);
}

std::vector<std::vector<Decoded>> alternatives(const Ensemble& models, const std::vector<SearchInput>& inputs,
                                               const SearchOptions& options, Arena& arena) {
  return decode_all(models, inputs, options, true, arena);
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
