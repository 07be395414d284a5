#include "data/masking.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/to_size.h"

namespace qkv {
namespace {

// Tokens that are chosen together.
struct MaskUnit {
  int64_t begin, end;
};

// Returns the words, or all tokens, of a text without its fixed tokens.
std::vector<MaskUnit> units_of(std::span<const int32_t> ids, bool whole_words, const MaskingVocabulary& vocabulary) {
  std::vector<MaskUnit> units;
  for (int64_t i = 0; i < std::ssize(ids); i++) {
    const size_t id = to_size(ids[to_size(i)]);
    if (vocabulary.fixed[id]) continue;
    const bool continues = whole_words && !vocabulary.begins_word[id] && !units.empty() && units.back().end == i;
    if (continues)
      units.back().end++;
    else
      units.push_back({i, i + 1});
  }
  return units;
}

// Returns a length of mean `mean` with a geometric distribution.
int64_t span_length(int64_t mean, Random& random) {
  if (mean == 1) return 1;
  return 1 + static_cast<int64_t>(std::log(random.uniform()) / std::log1p(-1 / static_cast<double>(mean)));
}

// Returns the places of the tokens of random units, at most `wanted`. Every unit is the start of a span once, in random
// order, until there are enough tokens; one that does not fit is left out.
std::vector<int32_t> choose_units(const std::vector<MaskUnit>& units, int64_t wanted, int64_t span, Random& random) {
  std::vector<int64_t> starts(units.size());
  std::iota(starts.begin(), starts.end(), 0);
  random.shuffle(starts);
  std::vector<bool> is_chosen(units.size());
  int64_t chosen = 0;
  for (size_t i = 0; i < starts.size() && chosen < wanted; i++) {
    if (is_chosen[to_size(starts[i])]) continue;
    const int64_t end = std::min(std::ssize(units), starts[i] + span_length(span, random));
    for (int64_t u = starts[i]; u < end; u++) {
      const int64_t size = units[to_size(u)].end - units[to_size(u)].begin;
      if (is_chosen[to_size(u)] || chosen + size > wanted) break;
      is_chosen[to_size(u)] = true;
      chosen += size;
    }
  }
  std::vector<int32_t> places;
  for (size_t u = 0; u < units.size(); u++)
    for (int64_t i = units[u].begin; is_chosen[u] && i < units[u].end; i++) places.push_back(static_cast<int32_t>(i));
  return places;
}

// Returns the tokens of a unit as units of their own.
std::vector<MaskUnit> tokens_of(const MaskUnit& unit) {
  std::vector<MaskUnit> tokens;
  for (int64_t i = unit.begin; i < unit.end; i++) tokens.push_back({i, i + 1});
  return tokens;
}

}  // namespace

std::vector<int32_t> choose_masked(std::span<const int32_t> ids, const MaskingOptions& options,
                                   const MaskingVocabulary& vocabulary, Random& random) {
  const std::vector<MaskUnit> units = units_of(ids, options.whole_words, vocabulary);
  int64_t tokens = 0;
  for (const MaskUnit& unit : units) tokens += unit.end - unit.begin;
  const double share = options.share * static_cast<double>(tokens);
  const int64_t wanted = std::max<int64_t>(1, static_cast<int64_t>(share + random.uniform()));
  const std::vector<int32_t> places = choose_units(units, wanted, options.span, random);
  if (!places.empty() || units.empty()) return places;
  return choose_units(tokens_of(units[random.below(units.size())]), wanted, options.span, random);
}

void mask_tokens(std::span<int32_t> ids, std::span<const int32_t> places, const MaskingOptions& options,
                 const MaskingVocabulary& vocabulary, Random& random) {
  for (const int32_t place : places) {
    const double u = random.uniform();
    if (u < options.masked)
      ids[to_size(place)] = vocabulary.mask;
    else if (u < options.masked + options.random)
      ids[to_size(place)] = vocabulary.replacements[random.below(vocabulary.replacements.size())];
  }
}

}  // namespace qkv
