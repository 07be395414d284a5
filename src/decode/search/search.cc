#include "decode/search/search.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "core/fail.h"
#include "core/fields.h"
#include "core/to_size.h"
#include "decode/engine/engine.h"
#include "decode/search/sentence_search.h"

namespace qkv {

void check(const SearchOptions& o, int64_t V) {
  check_ranges<DecodingOptions>(o);
  if (!o.sampling && o.n_best > o.beam)
    fail("n_best must be at most beam, {}, unless sampling (is {})", o.beam, o.n_best);
  if (o.on_token && !o.sampling && o.beam > 1) fail("on_token requires beam = 1 or sampling (beam is {})", o.beam);
  for (const int32_t token : o.never)
    if (token < 0 || token >= V) fail("never: token must be between 0 and {} (is {})", V - 1, token);
  for (const auto& [name, token] : {std::pair{"start", o.start}, {"end", o.end}})
    if (token < 0 || token >= V) fail("{} token must be between 0 and {} (is {})", name, V - 1, token);
}

int64_t max_tokens(const SearchOptions& options, int64_t S, int64_t model_max_length) {
  const int64_t wanted = options.max_length > 0 ? options.max_length : std::max(2 * S + 16, options.min_length + 1);
  return std::min(wanted, model_max_length);
}

int64_t max_tokens(const Ensemble& models, const SearchInput& input, const SearchOptions& options) {
  return max_tokens(options, std::ssize(input.source), models.max_length() - tokens_forced(input.start));
}

CacheRows rows_needed(const Ensemble& models, const SearchInput& input, const SearchOptions& options) {
  const int64_t tokens = max_tokens(models, input, options) + tokens_forced(input.start);
  return {live_hypotheses(input, options) * tokens, std::ssize(input.source)};
}

void check(const Ensemble& models, const SearchInput& input, const SearchOptions& options) {
  const int64_t V = models.config().target_vocab;
  check(options, V);
  const int64_t longest = max_tokens(models, input, options);
  for (const int32_t id : input.start)
    if (id < 0 || id >= V) fail("start: token must be between 0 and {} (is {})", V - 1, id);
  if (longest < 1) fail("start must have fewer tokens than the model's max_length");
  for (const int32_t id : input.prefix)
    if (id < 0 || id >= V || id == options.end)
      fail("prefix: token must be between 0 and {} and not the end token (is {})", V - 1, id);
  if (input.terms && options.sampling) fail("required terms need beam search or greedy search, not sampling");
  if (input.terms && options.on_token) fail("required terms cannot be combined with on_token");
  if (std::ssize(input.prefix) >= longest)
    fail("prefix must have fewer than {} tokens, the maximum length of a translation (has {})", longest,
         input.prefix.size());
}

void rehearse_search(const Ensemble& models, const std::vector<SearchInput>& inputs, const SearchOptions& options,
                     Arena& arena) {
  const Arena::Scope scope(arena);
  CacheRows rows;
  for (const SearchInput& input : inputs) {
    check(models, input, options);
    rows = rows + rows_needed(models, input, options);
  }
  KeyValueCache cache(models, rows, arena);
  Engine engine(cache, {}, arena);
  for (const SearchInput& input : inputs) engine.add(std::make_unique<SentenceSearch>(models, 0, input, options));
  engine.rehearse([&](Sequence& search) { static_cast<SentenceSearch&>(search).enlarge(cache); });
}

}  // namespace qkv
