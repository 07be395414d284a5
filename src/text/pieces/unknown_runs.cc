#include "text/pieces/unknown_runs.h"

#include <unicode/utf8.h>

#include <algorithm>
#include <cstdint>

#include "core/to_size.h"
#include "text/pieces/charsmap.h"

namespace qkv {
namespace {

constexpr size_t kCharacters = 0x110000;
// Characters that stay at either end of a run. A rule of the normalizer or a user-defined piece that begins before the
// run may include some of them: a rule has at most 256 bytes (charsmap.cc).
constexpr size_t kKept = UnknownRuns::kShortText / 2;
constexpr std::string_view kMiddle = "\U0010FFFD";
constexpr unsigned char kMiddleByte = 0xF4;  // its first byte, which only characters from U+100000 on have

UChar32 next_character(std::string_view text, size_t& place) {
  auto end = static_cast<int64_t>(place);
  UChar32 c;
  U8_NEXT_OR_FFFD(text.data(), end, static_cast<int64_t>(text.size()), c);
  place = to_size(end);
  return c;
}

}  // namespace

// U+10FFFD is unknown, and part of no rule: so what stands around it is normalized as before.
UnknownRuns::UnknownRuns(const std::vector<std::string>& pieces, std::string_view charsmap) : charsmap_(charsmap) {
  const auto has_middle = [](const std::string& piece) {
    return piece.find(static_cast<char>(kMiddleByte)) != piece.npos;
  };
  if (has_byte(charsmap, kMiddleByte) || std::ranges::any_of(pieces, has_middle)) return;
  is_known_.resize(kCharacters);
  for (const size_t space : {0x20, 0x2581}) is_known_[space] = true;  // ▁
  for (const std::string& piece : pieces)
    for (size_t place = 0; place < piece.size();) is_known_[to_size(next_character(piece, place))] = true;
}

std::string UnknownRuns::without_middles(std::string_view text) const {
  if (is_known_.empty() || text.size() <= kShortText) return "";
  std::string result;
  std::vector<size_t> starts(kKept);  // of the last characters of the run, in turn
  size_t run = 0, done = 0;           // characters of the run; what is in the result
  size_t cut = 0;                     // the end of the first kKept of them
  const auto end_run = [&] {
    if (run > 2 * kKept) {
      result.append(text, done, cut - done).append(kMiddle);
      done = starts[run % kKept];
    }
    run = 0;
  };
  for (size_t place = 0; place < text.size();) {
    if (const size_t replaced = longest_key(charsmap_, text.substr(place)); replaced > 0) {
      end_run();
      place += replaced;
      continue;
    }
    const size_t begin = place;
    if (is_known_[to_size(next_character(text, place))]) {
      end_run();
      continue;
    }
    starts[run % kKept] = begin;
    run++;
    if (run == kKept) cut = place;
  }
  end_run();
  if (done > 0) result.append(text, done);
  return result;
}

}  // namespace qkv
