#include "text/unicode.h"

#include <fmt/format.h>
#include <unicode/bytestream.h>
#include <unicode/casemap.h>
#include <unicode/normalizer2.h>
#include <unicode/uchar.h>
#include <unicode/uniset.h>
#include <unicode/utf8.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>
#include <utility>

#include "core/fail.h"
#include "core/to_size.h"

namespace qkv {
namespace {

constexpr size_t kShortRun = 32;  // marks, which ICU orders by itself

// A combining mark: a character with a canonical class other than 0.
struct Mark {
  std::string_view bytes;
  uint8_t order = 0;  // the class
};

// Appends the marks that a character is in normal form D, or KD if `compatible`, to a run; none if it is no mark.
void append_marks(UChar32 c, std::string_view bytes, bool compatible, std::vector<Mark>& run) {
  constexpr std::string_view kAa = "\u0F71";  // of class 129
  switch (c) {                                // those of class 0
    case 0xF73:
      run.insert(run.end(), {{kAa, 129}, {"\u0F72", 130}});
      break;
    case 0xF75:
      run.insert(run.end(), {{kAa, 129}, {"\u0F74", 132}});
      break;
    case 0xF81:
      run.insert(run.end(), {{kAa, 129}, {"\u0F80", 130}});
      break;
    case 0xFF9E:
      if (compatible) run.push_back({"\u3099", 8});
      break;
    case 0xFF9F:
      if (compatible) run.push_back({"\u309A", 8});
      break;
    default:
      if (const uint8_t order = u_getCombiningClass(c); order > 0) run.push_back({bytes, order});
  }
}

// Appends the marks in the order of their classes, those of a class in the order that they have.
void append_sorted(const std::vector<Mark>& run, std::string& text) {
  std::array<size_t, 257> places = {};
  for (const Mark& mark : run) places[mark.order + size_t{1}]++;
  std::partial_sum(places.begin(), places.end(), places.begin());
  std::vector<std::string_view> sorted(run.size());
  for (const Mark& mark : run) sorted[places[mark.order]++] = mark.bytes;
  for (const std::string_view mark : sorted) text += mark;
}

// Returns the text with the marks of each long run in canonical order, which changes no normal form; "" if they are.
// ICU inserts a mark among those before it, which takes n²/4 moves for n marks.
std::string with_ordered_marks(std::string_view text, const icu::UnicodeSet& known, bool compatible) {
  std::string result;
  std::vector<Mark> run;
  size_t done = 0, begin = 0;  // what is in the result, and the start of the run
  const auto end_run = [&](size_t end) {
    if (run.size() > kShortRun && !std::ranges::is_sorted(run, {}, &Mark::order)) {
      result.append(text, done, begin - done);
      append_sorted(run, result);
      done = end;
    }
    run.clear();
  };
  const auto length = static_cast<int64_t>(text.size());
  for (int64_t i = 0; i < length;) {
    const auto place = to_size(i);
    if (static_cast<unsigned char>(text[place]) < 0xCC) {  // of a character before U+0300
      if (!run.empty()) end_run(place);
      i++;
      continue;
    }
    UChar32 c;
    U8_NEXT_OR_FFFD(text.data(), i, length, c);
    if (run.empty()) begin = place;
    const size_t before = run.size();
    if (known.contains(c)) append_marks(c, text.substr(place, to_size(i) - place), compatible, run);
    if (run.size() == before) end_run(place);
  }
  end_run(text.size());
  if (done > 0) result.append(text, done);
  return result;
}

std::string normalize(const icu::Normalizer2* (*form)(UErrorCode&), std::string_view original, bool compatible) {
  UErrorCode status = U_ZERO_ERROR;
  static const icu::UnicodeSet known = [&] {
    icu::UnicodeSet set(u"[:age=9.0:]", status);
    set.freeze();
    return set;
  }();
  const std::string ordered = with_ordered_marks(original, known, compatible);
  const std::string_view text = ordered.empty() ? original : ordered;
  std::string normal;
  icu::StringByteSink<std::string> sink(&normal);
  if (const icu::Normalizer2* all = form(status); U_SUCCESS(status))
    icu::FilteredNormalizer2(*all, known)
        .normalizeUTF8(0, icu::StringPiece(text.data(), static_cast<int32_t>(text.size())), sink, nullptr, status);
  if (U_FAILURE(status)) fail("normal form: {} on a text of {} bytes", u_errorName(status), text.size());
  return normal;
}

bool is_space(UChar32 c) {
  return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20) || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

}  // namespace

size_t find_invalid_utf8(std::string_view text) {
  const int64_t length = static_cast<int64_t>(text.size());
  for (int64_t i = 0; i < length;) {
    uint64_t eight;  // bytes: most text is ASCII
    if (length - i >= 8 && (std::memcpy(&eight, text.data() + i, 8), (eight & 0x8080808080808080) == 0)) {
      i += 8;
      continue;
    }
    const int64_t begin = i;
    UChar32 c;
    U8_NEXT(text.data(), i, length, c);
    if (c < 0) return to_size(begin);
  }
  return std::string_view::npos;
}

int64_t count_characters(std::string_view text) {
  return std::count_if(text.begin(), text.end(), [](char byte) { return (byte & 0xC0) != 0x80; });
}

size_t whole_characters(std::string_view text) {
  const std::string_view end = text.substr(text.size() - std::min<size_t>(text.size(), 4));
  auto whole = static_cast<int32_t>(end.size());
  U8_TRUNCATE_IF_INCOMPLETE(end.data(), 0, whole);
  return text.size() - end.size() + to_size(whole);
}

std::string encoding_hint(std::string_view beginning) {
  if (std::string hint = mark_hint(beginning); !hint.empty()) return hint;
  return " (Latin-1? \"iconv -f latin1 -t utf-8 FILE\" makes it so)";
}

std::string lowercase(std::string_view text) {
  std::string lower;
  icu::StringByteSink<std::string> sink(&lower);
  UErrorCode status = U_ZERO_ERROR;
  icu::CaseMap::utf8ToLower("", 0, icu::StringPiece(text.data(), static_cast<int32_t>(text.size())), sink, nullptr,
                            status);
  if (U_FAILURE(status)) fail("lower case: {} on a text of {} bytes", u_errorName(status), text.size());
  return lower;
}

std::string compose(std::string_view text) { return normalize(icu::Normalizer2::getNFCInstance, text, false); }
std::string decompose(std::string_view text) { return normalize(icu::Normalizer2::getNFDInstance, text, false); }
std::string compose_compatible(std::string_view text) {
  return normalize(icu::Normalizer2::getNFKCInstance, text, true);
}
std::string decompose_compatible(std::string_view text) {
  return normalize(icu::Normalizer2::getNFKDInstance, text, true);
}

bool is_word_character(int32_t c) {
  return u_hasBinaryProperty(c, UCHAR_ALPHABETIC) || u_hasBinaryProperty(c, UCHAR_JOIN_CONTROL) ||
         (U_GET_GC_MASK(c) & (U_GC_M_MASK | U_GC_ND_MASK | U_GC_PC_MASK));
}

std::string strip_accents(std::string_view text) {
  const std::string parts = normalize(icu::Normalizer2::getNFKDInstance, text, true);
  std::string result;
  const auto length = static_cast<int64_t>(parts.size());
  for (int64_t i = 0; i < length;) {
    const int64_t begin = i;
    UChar32 c;
    U8_NEXT_OR_FFFD(parts.data(), i, length, c);
    if (!(U_GET_GC_MASK(c) & U_GC_M_MASK)) result.append(parts, to_size(begin), to_size(i - begin));
  }
  return result;
}

std::string mark_hint(std::string_view beginning) {
  using namespace std::string_view_literals;
  for (const auto& [mark, hint] :
       {std::pair{"\x1F\x8B"sv, "the file is compressed, \"zcat FILE\" prints its text"sv},
        {"\x28\xB5\x2F\xFD"sv, "the file is compressed, \"zstdcat FILE\" prints its text"},
        {"\xFD\x37zXZ"sv, "the file is compressed, \"xzcat FILE\" prints its text"},
        {"BZh"sv, "the file is compressed, \"bzcat FILE\" prints its text"},
        {"PK\3\4"sv, "the file is a zip archive, \"unzip -p FILE\" prints its text"},
        {"7z\xBC\xAF"sv, "the file is a 7z archive, expected text"},
        {"PAR1"sv,
         "the file is Parquet, \"import pandas; pandas.read_parquet('FILE').to_csv('log.csv', "
         "index=False)\" in Python makes it text"},
        {"ARROW1"sv,
         "the file is Arrow, \"import pandas; pandas.read_feather('FILE').to_csv('log.csv', "
         "index=False)\" in Python makes it text"},
        {"\xFF\xFE"sv, "the file is UTF-16, \"iconv -f utf-16 -t utf-8 FILE\" makes it so"},
        {"\xFE\xFF"sv, "the file is UTF-16, \"iconv -f utf-16 -t utf-8 FILE\" makes it so"}})
    if (beginning.starts_with(mark)) return fmt::format(" ({})", hint);
  return "";
}

std::vector<std::string_view> split_words(std::string_view text) {
  std::vector<std::string_view> words;
  const int64_t length = static_cast<int64_t>(text.size());
  int64_t word = 0;
  for (int64_t i = 0; i < length;) {
    const int64_t begin = i;
    UChar32 c;
    U8_NEXT(text.data(), i, length, c);
    if (!is_space(c)) continue;
    if (word < begin) words.push_back(text.substr(word, begin - word));
    word = i;
  }
  if (word < length) words.push_back(text.substr(word));
  return words;
}

size_t skip_space(std::string_view text, size_t at) {
  const int64_t length = static_cast<int64_t>(text.size());
  for (auto i = static_cast<int64_t>(at); i < length;) {
    UChar32 c;
    U8_NEXT(text.data(), i, length, c);
    if (!is_space(c)) break;
    at = static_cast<size_t>(i);
  }
  return at;
}

}  // namespace qkv
