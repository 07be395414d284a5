#include "decode/search/batched.h"

#include <utility>

#include "decode/batches.h"
#include "decode/search/search.h"

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

}  // namespace

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

}  // namespace qkv
