#include "program/corpus/pair_filter.h"

#include <algorithm>
#include <cmath>

#include "core/hash.h"
#include "core/to_size.h"
#include "text/unicode.h"

namespace qkv {
namespace {

constexpr size_t kTable = size_t{1} << 16, kBytes = 4;
constexpr uint32_t kFewest = 20;    // occurrences of a sequence on both sides, for it to count
constexpr int kShortest = 8;        // sequences of a text with a language
constexpr double kEvidence = 0.75;  // mean log-odds of its sequences

// Calls f with the hash of each sequence of the text, in lower case (ASCII), with a space before and after it.
template <class F>
void for_each_sequence(std::string_view text, F&& f) {
  uint32_t window = ' ';
  size_t seen = 1;
  const auto take = [&](unsigned char c) {
    window = window << 8 | (c >= 'A' && c <= 'Z' ? c + 32u : c);
    if (++seen >= kBytes) f(hash_mix(0x2545F4914F6CDD1D, window) >> 48);
  };
  for (const char c : text) take(static_cast<unsigned char>(c));
  take(' ');
}

constexpr int64_t kFewCharacters = 20;  // a longer side of fewer has any ratio

constexpr std::pair<const char*, const char*> kKinds[kDefectKinds] = {
    {"tab", "do not have exactly one tab"},
    {"encoding", "are not valid UTF-8"},
    {"empty", "have an empty side"},
    {"garbled", "have replacement characters, or text that was encoded twice or escaped on one side only"},
    {"long", "are too long"},
    {"ratio", "have sides of very different lengths"},
    {"copy", "have equal sides"},
    {"swapped", "have source and target in the wrong order"},
    {"language", "have both sides in one language"},
    {"duplicate", "occurred before"},
    {"overlap", "have a source that is in the dev text"}};

// Returns the bytes at the start of the text that are white space or a control character; 0 if there are none.
size_t space_length(std::string_view text) {
  const auto byte = [&](size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
  if (byte(0) <= 0x20 || byte(0) == 0x7f) return 1;
  if (byte(0) == 0xC2 && (byte(1) == 0xA0 || (byte(1) >= 0x80 && byte(1) <= 0x9f))) return 2;  // no-break space, C1
  if (byte(0) == 0xE2 && byte(1) == 0x80 &&
      ((byte(2) >= 0x80 && byte(2) <= 0x8B) || byte(2) == 0xAF || byte(2) == 0xA8 || byte(2) == 0xA9))
    return 3;                                                           // U+2000 … U+200B, U+2028 …
  if (byte(0) == 0xE3 && byte(1) == 0x80 && byte(2) == 0x80) return 3;  // ideographic space
  if (byte(0) == 0xEF && byte(1) == 0xBB && byte(2) == 0xBF) return 3;  // byte-order mark
  return 0;
}

// Whether the text has U+FFFD, or UTF-8 that was taken for Latin-1 and encoded again: "Ã¤" for "ä".
bool is_garbled(std::string_view text) {
  if (text.find("\xEF\xBF\xBD") != text.npos) return true;
  for (size_t at = text.find('\xC3'); at != text.npos; at = text.find('\xC3', at + 1)) {
    const std::string_view rest = text.substr(at);
    if (rest.size() < 4 || (rest[1] != '\x83' && rest[1] != '\x82' && rest[1] != '\xA2')) continue;
    if (rest[2] == '\xC2' && (rest[3] & 0xC0) == 0x80) return true;
    if (rest.substr(1).starts_with("\xA2\xE2\x82\xAC")) return true;  // "â€", from quotes and dashes
  }
  return false;
}

// Whether one side has a character escaped as in HTML that the other has as it is: "&lt;b&gt;" and "<b>".
bool is_escaped_on_one_side(std::string_view one, std::string_view other) {
  constexpr std::pair<std::string_view, char> kEscapes[] = {{"&lt;", '<'},    {"&gt;", '>'},   {"&quot;", '"'},
                                                            {"&apos;", '\''}, {"&#39;", '\''}, {"&amp;", '&'}};
  return std::ranges::any_of(kEscapes, [&](const auto& escape) {
    const auto& [name, character] = escape;
    return one.find(name) != one.npos && other.find(name) == other.npos && other.find(character) != other.npos;
  });
}

int64_t count_words(std::string_view text) { return text.empty() ? 0 : 1 + std::ranges::count(text, ' '); }

bool is_valid(const RawPair& pair) {
  return pair.has_tab && find_invalid_utf8(pair.source) == std::string::npos &&
         find_invalid_utf8(pair.target) == std::string::npos;
}

}  // namespace

SideLanguage::SideLanguage() : counts_{std::vector<uint32_t>(kTable), std::vector<uint32_t>(kTable)} {}

void SideLanguage::add(std::string_view source, std::string_view target) {
  const std::string_view texts[] = {source, target};
  for (size_t side = 0; side < 2; side++)
    for_each_sequence(texts[side], [&](size_t hash) {
      if (counts_[side][hash] == UINT32_MAX) return;
      counts_[side][hash]++;
      total_[side]++;
    });
}

// Returns the mean log-odds of the text's sequences: above 0 for the source; 0 for a text without enough of them.
double SideLanguage::evidence(std::string_view text) const {
  double sum = 0;
  int count = 0;
  for_each_sequence(text, [&](size_t hash) {
    const uint32_t source = counts_[0][hash], target = counts_[1][hash];
    if (uint64_t{source} + target < kFewest) return;
    sum += std::log((source + 0.5) / (total_[0] + 1)) - std::log((target + 0.5) / (total_[1] + 1));
    count++;
  });
  return count < kShortest ? 0 : sum / count;
}

Side SideLanguage::of(std::string_view text) const {
  const double found = evidence(text);
  return found > kEvidence ? Side::source : found < -kEvidence ? Side::target : Side::unknown;
}

std::vector<Defect> all_defects() {
  std::vector<Defect> defects;
  for (const auto& [name, meaning] : kKinds) defects.push_back({name, meaning, 0, 0});
  return defects;
}

bool clean_spaces(std::string& text) {
  std::string clean;
  clean.reserve(text.size());
  const std::string_view view = text;
  bool space = false;
  for (size_t i = 0; i < view.size();)
    if (const size_t length = space_length(view.substr(i)); length > 0) {
      space = true;
      i += length;
    } else {
      if (space && !clean.empty()) clean += ' ';
      space = false;
      clean += view[i++];
    }
  const bool changed = clean != text;
  text.swap(clean);
  return changed;
}

uint64_t sentence_hash(std::string_view text) { return hash_bytes(text); }
uint64_t pair_hash(const RawPair& pair) { return hash_mix(hash_bytes(pair.source), hash_bytes(pair.target)); }

void TextStatistics::add(const RawPair& pair) {
  if (!is_valid(pair)) return;
  language.add(pair.source, pair.target);
  source_characters += static_cast<double>(count_characters(pair.source));
  target_characters += static_cast<double>(count_characters(pair.target));
}

PairFilter::PairFilter(const PairFilters& filters, const TextStatistics& statistics, const HashSet& excluded,
                       PairReport& report)
    : filters_(filters), statistics_(statistics), excluded_(excluded), report_(report) {
  report_.defects = all_defects();
}

bool PairFilter::take(RawPair& pair) {
  report_.pairs++;
  const bool source_changed = clean_spaces(pair.source), target_changed = clean_spaces(pair.target);
  const std::optional<DefectKind> found = defect(pair);
  if (!found) {
    count_kept(pair, source_changed || target_changed);
    return true;
  }
  Defect& counted = report_.defects[to_size(*found)];
  if (counted.pairs++ == 0) counted.first_line = pair.line;
  return false;
}

std::optional<DefectKind> PairFilter::defect(const RawPair& pair) {
  if (!pair.has_tab) return DefectKind::tab;
  if (!is_valid(pair)) return DefectKind::encoding;
  if (pair.source.empty() || pair.target.empty()) return DefectKind::empty;
  if (filters_.garbled &&
      (is_garbled(pair.source) || is_garbled(pair.target) || is_escaped_on_one_side(pair.source, pair.target) ||
       is_escaped_on_one_side(pair.target, pair.source)))
    return DefectKind::garbled;
  if (too_long(pair.source) || too_long(pair.target)) return DefectKind::long_text;
  if (out_of_proportion(pair)) return DefectKind::ratio;
  if (filters_.copies && pair.source == pair.target) return DefectKind::copy;
  if (const auto found = language(pair)) return found;
  if (filters_.duplicates && !pairs_.insert(pair_hash(pair))) return DefectKind::duplicate;
  if (filters_.overlap && excluded_.contains(sentence_hash(pair.source))) return DefectKind::overlap;
  return {};
}

bool PairFilter::too_long(std::string_view text) const {
  return (filters_.max_words > 0 && count_words(text) > filters_.max_words) ||
         (filters_.max_characters > 0 && count_characters(text) > filters_.max_characters);
}

bool PairFilter::out_of_proportion(const RawPair& pair) const {
  const int64_t source = count_characters(pair.source), target = count_characters(pair.target);
  if (filters_.max_ratio <= 0 || std::max(source, target) < kFewCharacters) return false;
  const double ratio = static_cast<double>(source) / static_cast<double>(target) * statistics_.target_characters /
                       statistics_.source_characters;
  return ratio > filters_.max_ratio || ratio < 1 / filters_.max_ratio;
}

std::optional<DefectKind> PairFilter::language(const RawPair& pair) {
  const bool source_wrong = statistics_.language.of(pair.source) == Side::target;
  const bool target_wrong = statistics_.language.of(pair.target) == Side::source;
  swapped_ += source_wrong && target_wrong ? 1 : 0;
  if (!filters_.languages || (!source_wrong && !target_wrong)) return {};
  return source_wrong && target_wrong ? DefectKind::swapped : DefectKind::language;
}

void PairFilter::count_kept(const RawPair& pair, bool changed) {
  const auto number = [](int64_t n) { return static_cast<double>(n); };
  report_.kept++;
  report_.spaces += changed ? 1 : 0;
  report_.several += sources_.insert(sentence_hash(pair.source)) ? 0 : 1;
  report_.source_words += number(count_words(pair.source));
  report_.target_words += number(count_words(pair.target));
  report_.source_characters += number(count_characters(pair.source));
  report_.target_characters += number(count_characters(pair.target));
}

}  // namespace qkv
