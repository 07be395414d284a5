#include "decode/terms/kept_parts.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <utility>

#include "core/to_size.h"
#include "decode/generation/readable.h"
#include "text/alignment/aligned_units.h"
#include "text/sentence_characters.h"
#include "text/sentence_context.h"
#include "text/unicode.h"

namespace qkv {
namespace {

using sentence::character_at;
using sentence::character_before;

// ---- Taking parts out of the source

constexpr std::array<std::pair<std::string_view, std::string_view>, 14> kEnclosing = {{{"(", ")"},
                                                                                       {"[", "]"},
                                                                                       {"{", "}"},
                                                                                       {"<", ">"},
                                                                                       {"\"", "\""},
                                                                                       {"'", "'"},
                                                                                       {"«", "»"},
                                                                                       {"»", "«"},
                                                                                       {"“", "”"},
                                                                                       {"„", "“"},
                                                                                       {"‘", "’"},
                                                                                       {"‚", "‘"},
                                                                                       {"「", "」"},
                                                                                       {"（", "）"}}};

// Returns a part with the quotation marks and brackets around it.
ProtectedPart with_enclosing(std::string_view text, ProtectedPart part) {
  const auto encloses = [&](const auto& pair) {
    return text.substr(0, part.begin).ends_with(pair.first) && text.substr(part.end).starts_with(pair.second);
  };
  for (auto pair = std::ranges::find_if(kEnclosing, encloses); pair != kEnclosing.end();
       pair = std::ranges::find_if(kEnclosing, encloses)) {
    part.begin -= pair->first.size();
    part.end += pair->second.size();
  }
  return part;
}

bool begins_with_word(std::string_view text) { return sentence::is_alphanumeric(character_at(text, 0).code); }
bool ends_with_word(std::string_view text) { return sentence::is_alphanumeric(sentence::last_character(text)); }

// Extends each part by the brackets and quotation marks around it, and joins parts without a word between them.
std::vector<ProtectedPart> widened(std::string_view text, std::span<const ProtectedPart> parts) {
  const auto are_one = [&](const ProtectedPart& a, const ProtectedPart& b) {
    return b.begin <= a.end || !sentence::has_letter_or_digit(text.substr(a.end, b.begin - a.end));
  };
  std::vector<ProtectedPart> wide;
  for (const ProtectedPart& part : parts) {
    ProtectedPart next = with_enclosing(text, part);
    for (; !wide.empty() && are_one(wide.back(), next); wide.pop_back())
      next = {std::min(wide.back().begin, next.begin), std::max(wide.back().end, next.end)};
    wide.push_back(next);
  }
  return wide;
}

// ---- Putting parts back into the translation

// Returns the first token with text of which at least a half stands after the byte; if there is none, the place after
// the last token with text.
size_t token_after(const std::vector<TokenPlace>& tokens, size_t byte) {
  size_t after_last = 0;
  for (size_t t = 0; t < tokens.size(); t++) {
    if (tokens[t].is_empty()) continue;
    if (tokens[t].begin + tokens[t].end >= 2 * byte) return t;
    after_last = t + 1;
  }
  return after_last;
}

// Finds the place in a translation that a place between two words of the source has.
class PlaceFinder {
 public:
  explicit PlaceFinder(const AlignedUnits& aligned) : source_(aligned.source), units_(aligned.units) {}

  // Returns the unit before which a part stands, from `least` on; their number: at the end. The weight of the units on
  // the wrong side is the least there, with a preference for places next to what translates the words around the part.
  size_t find(size_t byte, size_t least) const {
    size_t after = 0;  // the source token after the byte
    while (after < source_.size() && source_[after].begin + source_[after].end < 2 * byte) after++;
    int64_t wrong = 0;
    for (const TargetUnit& unit : units_) wrong += belongs_before(unit, after) ? weight_of(unit) : 0;
    size_t best = least;
    int64_t best_cost = std::numeric_limits<int64_t>::max();
    for (size_t u = 0; u <= units_.size(); u++) {
      const int64_t cost = wrong - preference(u, after);
      if (u >= least && cost < best_cost && !parts_mark(u)) best = u, best_cost = cost;
      if (u < units_.size()) wrong += belongs_before(units_[u], after) ? -weight_of(units_[u]) : weight_after(u);
    }
    return best;
  }

 private:
  static constexpr int64_t kNeighbour = 2;  // letters

  static int64_t weight_of(const TargetUnit& unit) { return static_cast<int64_t>(unit.weight); }
  bool belongs_before(const TargetUnit& unit, size_t after) const {
    return unit.source != TargetUnit::kNone && unit.source < after;
  }
  int64_t weight_after(size_t unit) const {
    return units_[unit].source == TargetUnit::kNone ? 0 : weight_of(units_[unit]);
  }
  int64_t preference(size_t unit, size_t after) const {
    const bool follows = unit > 0 && after > 0 && units_[unit - 1].source == after - 1;
    const bool precedes = unit < units_.size() && units_[unit].source == after;
    return (follows ? kNeighbour : 0) + (precedes ? kNeighbour : 0);
  }
  // Whether a part would stand between a word and a mark without an alignment that touches it.
  bool parts_mark(size_t unit) const {
    return unit > 0 && unit < units_.size() && units_[unit].source == TargetUnit::kNone &&
           units_[unit].begin == units_[unit - 1].end;
  }

  const std::vector<TokenPlace>& source_;
  const std::vector<TargetUnit>& units_;
};

// Returns for each part the unit of the translation before which it stands; their number: at the end.
std::vector<size_t> units_after(std::span<const KeptPart> kept, const AlignedUnits& aligned) {
  const PlaceFinder finder(aligned);
  std::vector<size_t> units;
  for (const KeptPart& part : kept) units.push_back(finder.find(part.at, units.empty() ? 0 : units.back()));
  return units;
}

// Returns the text with each part before its unit, and spaces between parts and words.
std::string joined_text(std::span<const KeptPart> kept, std::span<const size_t> units_after, const std::string& text,
                        const std::vector<TargetUnit>& units) {
  std::string all;
  size_t done = 0;  // bytes of the text
  for (size_t k = 0; k < kept.size(); k++) {
    const size_t unit = units_after[k];
    const size_t before = unit == 0 ? 0 : units[unit - 1].end;
    const size_t after = unit == units.size() ? text.size() : units[unit].begin;
    if (before > done) all.append(text, done, before - done);
    done = std::max(done, before);
    const bool follows_part = k > 0 && units_after[k - 1] == unit;
    if (!all.empty() && !all.ends_with(' ') && (follows_part || kept[k].space_before || ends_with_word(all)))
      all += ' ';
    all += kept[k].text;
    const std::string_view rest = std::string_view(text).substr(after);
    const bool precedes_part = k + 1 < kept.size() && units_after[k + 1] == unit;
    if (rest.empty() || precedes_part) continue;
    const int32_t next = character_at(rest, 0).code;
    const bool needs_space = begins_with_word(rest)
                                 ? !kept[k].touches_word
                                 : kept[k].space_after && (sentence::is_opening(next) || sentence::is_dash(next));
    if (after > before || needs_space) all += ' ';
    done = after;
  }
  return all.append(text, done);
}

// Inserts a token of each side into the alignment. is_new: the source did not have it before.
void insert_aligned(Hypothesis& h, size_t source, size_t target, bool is_new) {
  for (Alignment& pair : h.alignment) {
    pair.source += is_new && to_size(pair.source) >= source ? 1 : 0;
    pair.target += to_size(pair.target) >= target ? 1 : 0;
  }
  const auto after = std::ranges::lower_bound(h.alignment, static_cast<int32_t>(target), {}, &Alignment::target);
  h.alignment.insert(after, {static_cast<int32_t>(source), static_cast<int32_t>(target)});
}

// Inserts a token of each side into the attention weights. sources: the tokens of the source, with this one. is_new:
// the source did not have it before.
void insert_attention(Hypothesis& h, size_t source, size_t target, size_t sources, bool is_new) {
  for (std::vector<float>& row : h.attention)
    if (is_new) row.insert(row.begin() + static_cast<std::ptrdiff_t>(source), 0);
  std::vector<float> row(sources);
  row[source] = 1;
  h.attention.insert(h.attention.begin() + static_cast<std::ptrdiff_t>(target), std::move(row));
}

// Inserts a part before a target token and a word.
void insert_token(Hypothesis& h, const std::string& text, size_t token, size_t word) {
  h.words.insert(h.words.begin() + static_cast<std::ptrdiff_t>(std::min(word, h.words.size())), WordScore{text, 0});
  const auto place = static_cast<std::ptrdiff_t>(token);
  h.tokens.insert(h.tokens.begin() + place, text);
  h.token_scores.insert(h.token_scores.begin() + place, 0);
}

}  // namespace

void ReducedText::append(std::string_view rest, bool in_lower_case) {
  if (in_lower_case)
    text += lowercase(rest);
  else
    text += rest;
}

ReducedText take_out(std::string_view text, std::span<const ProtectedPart> parts, bool in_lower_case) {
  ReducedText reduced;
  size_t done = 0;
  for (const ProtectedPart& part : widened(text, parts)) {
    reduced.append(text.substr(done, part.begin - done), in_lower_case);
    done = part.end;
    const bool space_before = sentence::is_blank(character_before(text, part.begin).code);
    const std::string_view rest = text.substr(done);
    const size_t blanks = sentence::skip_blanks(rest, 0);
    const bool touches_word = begins_with_word(rest), space_after = blanks > 0;
    if (!touches_word) reduced.text.resize(sentence::without_blanks(reduced.text).size());
    if (reduced.text.empty()) done += blanks;
    const std::string_view kept = text.substr(part.begin, part.end - part.begin);
    reduced.kept.push_back({std::string(kept), reduced.text.size(), space_before, space_after, touches_word});
  }
  reduced.append(text.substr(done), in_lower_case);
  return reduced;
}

void put_back(std::span<const KeptPart> kept, std::string_view source, const std::vector<std::string>& source_tokens,
              bool has_attention, Hypothesis& translation) {
  if (kept.empty()) return;
  const AlignedUnits aligned = align_units(source, source_tokens, translation);
  const std::vector<size_t> units = units_after(kept, aligned);
  const std::vector<TokenPlace> sources = token_places(source, source_tokens);
  const std::vector<TokenPlace> targets = token_places(translation.text, translation.tokens);
  const std::vector<PieceRange> words = words_of_pieces(translation.tokens);
  size_t added = 0;                           // tokens of the source
  for (size_t k = 0; k < kept.size(); k++) {  // k parts are there
    const size_t byte = units[k] == aligned.units.size() ? translation.text.size() : aligned.units[units[k]].begin;
    const bool is_new = !kept[k].source_token;
    const size_t source_token = is_new ? token_after(sources, kept[k].at) + added : *kept[k].source_token;
    const size_t target_token = token_after(targets, byte);
    const auto word = std::ranges::lower_bound(words, target_token, {}, &PieceRange::begin) - words.begin();
    added += is_new ? 1 : 0;
    insert_aligned(translation, source_token, target_token + k, is_new);
    if (has_attention)
      insert_attention(translation, source_token, target_token + k, source_tokens.size() + added, is_new);
    insert_token(translation, kept[k].text, target_token + k, to_size(word) + k);
  }
  translation.text = joined_text(kept, units, translation.text, aligned.units);
}

std::vector<std::string> tokens_with(std::span<const KeptPart> kept, std::string_view source,
                                     std::vector<std::string> source_tokens) {
  const std::vector<TokenPlace> places = token_places(source, source_tokens);
  for (std::string& token : source_tokens)
    if (const auto part = std::ranges::find(kept, token, &KeptPart::stand_in); part != kept.end() && !token.empty())
      token = part->text;
  for (size_t k = 0; k < kept.size(); k++) {
    if (!kept[k].stand_in.empty()) continue;
    const size_t token = token_after(places, kept[k].at) + k;
    source_tokens.insert(source_tokens.begin() + static_cast<std::ptrdiff_t>(token), kept[k].text);
  }
  return source_tokens;
}

}  // namespace qkv
