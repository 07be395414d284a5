#include "documents/aligned_units.h"

#include <unicode/brkiter.h>
#include <unicode/uchar.h>
#include <unicode/utext.h>
#include <unicode/utf8.h>

#include <algorithm>
#include <memory>

#include "core/fail.h"
#include "core/to_size.h"

namespace qkv {
namespace {

// Returns for each byte whether a word begins there, as Unicode's annex 29 and ICU's dictionaries divide text.
std::vector<bool> find_word_starts(std::string_view text) {
  std::vector<bool> starts(text.size() + 1);
  UErrorCode status = U_ZERO_ERROR;
  const std::unique_ptr<icu::BreakIterator> words(
      icu::BreakIterator::createWordInstance(icu::Locale::getRoot(), status));
  const std::unique_ptr<UText, UText* (*)(UText*)> utext(
      utext_openUTF8(nullptr, text.data(), static_cast<int64_t>(text.size()), &status), utext_close);
  if (U_SUCCESS(status)) words->setText(utext.get(), status);
  if (U_FAILURE(status)) fail("word boundaries: {} on a text of {} bytes", u_errorName(status), text.size());
  for (int32_t at = words->first(); at != icu::BreakIterator::DONE; at = words->next()) starts[to_size(at)] = true;
  return starts;
}

size_t count_letters(std::string_view text) {
  size_t count = 0;
  for (int64_t i = 0; i < static_cast<int64_t>(text.size());) {
    UChar32 code;
    U8_NEXT_OR_FFFD(text.data(), i, static_cast<int64_t>(text.size()), code);
    count += u_isalnum(code) ? 1 : 0;
  }
  return count;
}

std::string_view text_at(std::string_view text, const TokenPlace& place) {
  return text.substr(place.begin, place.end - place.begin);
}

// Returns for each target token the source token that it is aligned with, or kNone.
std::vector<size_t> aligned_tokens(size_t sources, const Hypothesis& translation) {
  const size_t T = translation.tokens.size();
  std::vector<size_t> aligned(T, TargetUnit::kNone);
  for (const Alignment& pair : translation.alignment)
    if (pair.target >= 0 && to_size(pair.target) < T && pair.source >= 0 && to_size(pair.source) < sources)
      aligned[to_size(pair.target)] = to_size(pair.source);
  if (translation.alignment.empty())
    for (size_t t = 0; t < T && sources > 0; t++) aligned[t] = t * sources / T;
  return aligned;
}

}  // namespace

AlignedUnits align_units(std::string_view source, const std::vector<std::string>& source_tokens,
                         const Hypothesis& translation) {
  AlignedUnits all;
  std::vector<size_t> place_of(source_tokens.size(), TargetUnit::kNone);
  std::vector<bool> is_word;
  const std::vector<TokenPlace> source_places = token_places(source, source_tokens);
  for (size_t s = 0; s < source_places.size(); s++) {
    if (source_places[s].is_empty()) continue;
    place_of[s] = all.source.size();
    all.source.push_back(source_places[s]);
    is_word.push_back(count_letters(text_at(source, source_places[s])) > 0);
  }

  const std::string_view text = translation.text;
  const std::vector<bool> starts = find_word_starts(text);
  const std::vector<size_t> aligned = aligned_tokens(source_tokens.size(), translation);
  const std::vector<TokenPlace> places = token_places(text, translation.tokens);
  size_t longest = 0;  // bytes of the token whose alignment the last unit has
  for (size_t t = 0; t < places.size(); t++) {
    const TokenPlace& place = places[t];
    if (place.is_empty()) continue;
    if (all.units.empty() || all.units.back().end < place.begin || starts[place.begin]) {
      all.units.push_back({.begin = place.begin, .end = place.end});
      longest = 0;
    }
    TargetUnit& unit = all.units.back();
    unit.end = place.end;
    if (aligned[t] != TargetUnit::kNone && place.end - place.begin > longest) {
      longest = place.end - place.begin;
      unit.source = place_of[aligned[t]];
    }
  }
  for (TargetUnit& unit : all.units) {
    const size_t letters = count_letters(text.substr(unit.begin, unit.end - unit.begin));
    unit.weight = std::max<size_t>(letters, 1);
    if (unit.source != TargetUnit::kNone && is_word[unit.source] != (letters > 0)) unit.source = TargetUnit::kNone;
  }
  return all;
}

}  // namespace qkv
