#include "decode/batched.h"

#include <algorithm>
#include <numeric>

namespace qkv {
namespace {

struct Batches {
  std::vector<size_t> order;       // of the sources, longest first
  std::vector<size_t> ends = {0};  // batch b is order[ends[b]] … order[ends[b + 1] − 1]
};

Batches cut(const std::vector<std::vector<int32_t>>& sources, int64_t beam, int64_t batch_tokens) {
  Batches result;
  result.order.resize(sources.size());
  std::iota(result.order.begin(), result.order.end(), size_t{0});
  std::stable_sort(result.order.begin(), result.order.end(),
                   [&](size_t a, size_t b) { return sources[a].size() > sources[b].size(); });
  int64_t tokens = 0;
  for (size_t i = 0; i < sources.size(); i++) {
    const int64_t next = static_cast<int64_t>(sources[result.order[i]].size());
    if (i > result.ends.back() && (tokens + next) * beam > batch_tokens) {
      result.ends.push_back(i);
      tokens = 0;
    }
    tokens += next;
  }
  if (!sources.empty()) result.ends.push_back(sources.size());
  return result;
}

void fill(const std::vector<std::vector<int32_t>>& sources, const Batches& batches, size_t b, Packed& batch) {
  batch.clear();
  for (size_t i = batches.ends[b]; i < batches.ends[b + 1]; i++) batch.append(sources[batches.order[i]]);
}

}  // namespace

std::vector<std::vector<Hypothesis>> translate_ids(const Transformer<float>& model,
                                                   const std::vector<std::vector<int32_t>>& sources,
                                                   const SearchOptions& options, Arena& arena, int64_t batch_tokens,
                                                   const std::function<void(int64_t)>& done) {
  const Batches batches = cut(sources, options.beam, batch_tokens);
  std::vector<std::vector<Hypothesis>> results(sources.size());
  Packed batch;
  for (size_t b = 0; b + 1 < batches.ends.size(); b++) {
    fill(sources, batches, b, batch);
    std::vector<std::vector<Hypothesis>> found = beam_search(model, batch, options, arena);
    for (size_t i = 0; i < found.size(); i++) results[batches.order[batches.ends[b] + i]] = std::move(found[i]);
    if (done) done(batch.sequences());
  }
  return results;
}

void rehearse_translation(const Transformer<float>& model, const std::vector<std::vector<int32_t>>& sources,
                          const SearchOptions& options, Arena& arena, int64_t batch_tokens) {
  const Batches batches = cut(sources, options.beam, batch_tokens);
  Packed batch;
  for (size_t b = 0; b + 1 < batches.ends.size(); b++) {
    fill(sources, batches, b, batch);
    rehearse_search(model, batch, options, arena);
  }
}

}  // namespace qkv
