// A small model with random weights, its search results, and its probabilities from one pass over a whole sequence.
#pragma once

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/to_size.h"
#include "decode/engine/engine.h"
#include "decode/search/forced.h"
#include "decode/search/search.h"
#include "decode/search/sentence_search.h"
#include "tests/support/models.h"
#include "tests/support/spoiled_arena.h"

namespace qkv::testing {

using Ids = std::vector<int32_t>;

constexpr int32_t kEnd = 2;

// A model of two encoder and two decoder layers, with widths that do not divide evenly.
inline ModelConfig config_of(int64_t vocab, int64_t max_length, bool pre = false) {
  ModelConfig c = small_config();
  c.source_vocab = c.target_vocab = vocab;
  c.d_model = 24;
  c.attention.key_width = 10;
  c.attention.value_width = 7;
  c.max_length = max_length;
  c.output_bias = true;
  if (pre) {
    c.norm.position = NormPosition::pre;
    c.norm.final = true;
    c.activation = Activation::gelu;
  }
  return c;
}

// Returns all finished hypotheses of each sentence, as SentenceSearch::take_found does.
inline std::vector<std::vector<Decoded>> search_all(const Ensemble& models, const std::vector<SearchInput>& inputs,
                                                    const SearchOptions& options, Arena& arena) {
  const Arena::Scope scope(arena);
  CacheRows rows;
  for (const SearchInput& input : inputs) {
    check(models, input, options);
    rows = rows + rows_needed(models, input, options);
  }
  KeyValueCache cache(models, rows, arena);
  Engine engine(cache, {}, arena);
  for (size_t i = 0; i < inputs.size(); i++)
    engine.add(std::make_unique<SentenceSearch>(models, i, inputs[i], options));
  std::vector<std::vector<Decoded>> found(inputs.size());
  for (Engine::Done done; engine.step(done); done.clear())
    for (const auto& search : done) found[search->key()] = static_cast<SentenceSearch&>(*search).take_found();
  return found;
}

class Searcher {
 public:
  explicit Searcher(const ModelConfig& config, uint64_t seed = 1) : model(config) {
    randomize(model.parameters(), seed, 0.2);
  }

  std::vector<std::vector<Decoded>> search(const std::vector<Ids>& sources, const SearchOptions& options,
                                           const std::vector<Ids>& prefixes = {}) {
    std::vector<SearchInput> inputs;
    for (size_t i = 0; i < sources.size(); i++)
      inputs.push_back({sources[i], prefixes.empty() ? std::span<const int32_t>() : prefixes[i]});
    return search_all(model, inputs, options, arena);
  }
  // Returns all hypotheses of a beam search.
  std::vector<std::vector<Decoded>> search(const std::vector<Ids>& sources, int64_t beam, double alpha = 1) {
    SearchOptions options;
    options.beam = options.n_best = beam;
    options.length_penalty = alpha;
    return search(sources, options);
  }
  // Returns log p of all tokens, computed by one pass over the whole sequence.
  std::vector<float> forced(const Ids& source, const Ids& target) {
    return force(model, {{source, target}}, 1, ForcedValues::scores, {}, arena).front().log_probabilities;
  }
  double forced_sum(const Ids& source, const Ids& target) {
    double sum = 0;
    for (const float log_p : forced(source, target)) sum += static_cast<double>(log_p);
    return sum;
  }
  // Returns log p of every token after a prefix, [V]. Results are cached: the weights must not change after the first
  // call.
  const std::vector<double>& next(const Ids& source, const Ids& prefix) {
    auto [known, is_new] = next_.try_emplace({source, prefix});
    if (!is_new) return known->second;
    std::vector<Ids> targets(to_size(model.config().target_vocab), prefix);
    std::vector<ForcedInput> inputs;
    for (size_t v = 0; v < targets.size(); v++) {
      targets[v].push_back(static_cast<int32_t>(v));
      inputs.push_back({source, targets[v]});
    }
    for (const Forced& forced : force(model, inputs, 1, ForcedValues::scores, {}, arena))
      known->second.push_back(static_cast<double>(forced.log_probabilities.back()));
    return known->second;
  }
  float* parameter(const std::string& name) { return values_of(model.parameters(), name); }
  void never_ends() { parameter("output.bias")[kEnd] = -1e4f; }

  Transformer<float> model;
  SpoiledArena arena;

 private:
  std::map<std::pair<Ids, Ids>, std::vector<double>> next_;
};

}  // namespace qkv::testing
