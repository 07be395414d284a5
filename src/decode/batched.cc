#include "decode/batched.h"

#include <algorithm>
#include <numeric>

namespace qkv {

std::vector<std::vector<Hypothesis>> translate_ids(const Transformer<float>& model,
                                                   const std::vector<std::vector<int32_t>>& sources,
                                                   const SearchOptions& options, Arena& arena, int64_t batch_tokens,
                                                   const std::function<void(int64_t)>& done) {
  std::vector<size_t> order(sources.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return sources[a].size() > sources[b].size(); });

  std::vector<std::vector<Hypothesis>> results(sources.size());
  Packed batch;
  for (size_t begin = 0; begin < order.size();) {
    batch.clear();
    size_t end = begin;
    while (end < order.size() &&
           (end == begin ||
            (batch.tokens() + static_cast<int64_t>(sources[order[end]].size())) * options.beam <= batch_tokens))
      batch.append(sources[order[end++]]);
    std::vector<std::vector<Hypothesis>> found = beam_search(model, batch, options, arena);
    for (size_t i = begin; i < end; i++) results[order[i]] = std::move(found[i - begin]);
    if (done) done(static_cast<int64_t>(end - begin));
    begin = end;
  }
  return results;
}

}  // namespace qkv
