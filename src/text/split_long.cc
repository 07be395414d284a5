#include "text/split_long.h"

#include <unicode/uchar.h>
#include <unicode/utf8.h>

#include <algorithm>
#include <array>
#include <cstdint>

#include "core/fail.h"
#include "core/to_size.h"

namespace qkv {
namespace {

enum Level { sentence, clause, space, character, levels };  // character: any boundary, the line's end too

using Fits = std::function<bool(std::string_view)>;
using Cuts = std::array<std::vector<size_t>, levels>;  // rising positions in the line

bool one_of(UChar32 c, std::u32string_view set) { return set.find(static_cast<char32_t>(c)) != set.npos; }
bool ends_sentence(UChar32 c) { return one_of(c, U".!?…。！？"); }
bool ends_clause(UChar32 c) { return one_of(c, U",;:—，、；："); }
bool closes(UChar32 c) { return one_of(c, U"\"'”’»)]」』）》"); }
bool needs_no_space(UChar32 c) { return one_of(c, U"—。！？，、；："); }

// Every boundary in the list of its best level, and in that of the characters.
Cuts find_cuts(std::string_view line) {
  Cuts cuts;
  Level mark = character;  // the punctuation before here, with only closing marks and spaces in between
  bool alone = false;      // it ends its part without a space
  bool after_space = false;
  const int64_t length = static_cast<int64_t>(line.size());
  for (int64_t i = 0; i < length;) {
    const size_t position = to_size(i);
    UChar32 c;
    U8_NEXT_OR_FFFD(line.data(), i, length, c);
    const bool blank = u_isUWhiteSpace(c), punctuation = ends_sentence(c) || ends_clause(c);
    const bool attached = blank || (!after_space && (punctuation || closes(c)));  // belongs to what stands before it
    if (position > 0) {
      Level level = character;
      if (!attached && after_space) level = mark == character ? space : mark;
      if (!attached && !after_space && alone) level = mark;
      if (level != character) cuts[level].push_back(position);
      cuts[character].push_back(position);
    }
    if (punctuation) {
      mark = ends_sentence(c) ? sentence : clause;
      alone = needs_no_space(c);
    } else if (!attached) {
      mark = character;
      alone = false;
    }
    after_space = blank;
  }
  cuts[character].push_back(line.size());
  return cuts;
}

// The last of the rising cuts that keeps line from begin to it fitting, or begin if there is none: the step doubles
// until a part is too long, then the gap is halved.
size_t furthest(std::string_view line, size_t begin, const std::vector<size_t>& cuts, const Fits& fits) {
  const auto first = std::upper_bound(cuts.begin(), cuts.end(), begin);
  const auto fits_to = [&](int64_t n) { return fits(line.substr(begin, first[n - 1] - begin)); };
  int64_t good = 0, bad = cuts.end() - first + 1;
  for (int64_t step = 1; good + 1 < bad; step *= 2) {
    const int64_t next = std::min(good + step, bad - 1);
    if (!fits_to(next)) {
      bad = next;
      break;
    }
    good = next;
  }
  while (good + 1 < bad) {
    const int64_t middle = good + (bad - good) / 2;
    (fits_to(middle) ? good : bad) = middle;
  }
  return good == 0 ? begin : first[good - 1];
}

// The best cut in (begin, limit]: the last one of the first level that has one. The fits of a prefix is asked again,
// for fewer characters may be more tokens.
size_t best_cut(std::string_view line, size_t begin, size_t limit, const Cuts& cuts, const Fits& fits) {
  if (limit == line.size()) return limit;
  for (const std::vector<size_t>& list : cuts)
    for (auto cut = std::upper_bound(list.begin(), list.end(), limit); cut != list.begin() && *--cut > begin;)
      if (fits(line.substr(begin, *cut - begin))) return *cut;
  return limit;
}

}  // namespace

std::vector<std::string> split_long(std::string_view line, const Fits& fits) {
  if (fits(line)) return {std::string(line)};
  const Cuts cuts = find_cuts(line);
  std::vector<std::string> parts;
  for (size_t begin = 0; begin < line.size();) {
    const size_t limit = furthest(line, begin, cuts[character], fits);
    if (limit == begin) fail("split: the character at byte {} of the line is longer than the limit alone", begin + 1);
    const size_t end = best_cut(line, begin, limit, cuts, fits);
    parts.emplace_back(line.substr(begin, end - begin));
    begin = end;
  }
  return parts;
}

}  // namespace qkv
