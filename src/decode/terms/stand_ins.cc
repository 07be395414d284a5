#include "decode/terms/stand_ins.h"

#include <algorithm>
#include <cstddef>
#include <unordered_map>
#include <utility>

#include "core/to_size.h"
#include "text/sentence_characters.h"
#include "text/sentence_context.h"
#include "text/unicode.h"

namespace qkv {
namespace {

using sentence::Character;
using sentence::character_at;
using sentence::character_before;

// Whether a character belongs to a word that has spaces around it.
bool is_of_spaced_word(int32_t code) { return sentence::is_alphanumeric(code) && sentence::has_spaced_words(code); }

size_t index_of(const std::vector<std::string>& tokens, std::string_view token) {
  return to_size(std::ranges::find(tokens, token) - tokens.begin());
}

// Returns the text with each part in the place of its stand-in. Between words and parts that were apart from them in
// the source, there is a space.
std::string with_parts(std::string_view text, std::span<const KeptPart> kept) {
  std::string all;
  std::vector<bool> is_done(kept.size());
  bool follows_part = false;
  for (Character c = character_at(text, 0); c.begin < text.size(); c = character_at(text, c.end)) {
    const std::string_view written = text.substr(c.begin, c.end - c.begin);
    const auto part = std::ranges::find(kept, written, &KeptPart::stand_in);
    if (part == kept.end()) {
      all += written;
      follows_part = false;
      continue;
    }
    const auto k = to_size(part - kept.begin());
    if (is_done[k]) continue;
    is_done[k] = true;
    const bool touches = follows_part ? part->space_before && !all.ends_with(' ')
                                      : is_of_spaced_word(sentence::last_character(all)) && !part->follows_word;
    if (touches) all += ' ';
    all += part->text;
    if (is_of_spaced_word(character_at(text, c.end).code) && !part->touches_word) all += ' ';
    follows_part = true;
  }
  return all;
}

void erase_at(auto& values, size_t place) { values.erase(values.begin() + static_cast<std::ptrdiff_t>(place)); }

}  // namespace

void protect_reserved(std::string_view text, std::span<const std::string> reserved, std::vector<ProtectedPart>& parts) {
  std::vector<ProtectedPart> found;
  for (const std::string& character : reserved)
    for (size_t at = text.find(character), end = 0; at != text.npos; at = text.find(character, end)) {
      end = at + character.size();
      const auto next = std::ranges::upper_bound(parts, at, {}, &ProtectedPart::end);
      if (next == parts.end() || next->begin >= end) found.push_back({at, end});
    }
  parts.insert(parts.end(), found.begin(), found.end());
  std::ranges::sort(parts, {}, &ProtectedPart::begin);
}

ReducedText stand_in(std::string_view text, std::span<const ProtectedPart> parts, std::span<const StandIn> stand_ins,
                     bool in_lower_case) {
  ReducedText reduced;
  size_t done = 0;
  for (size_t k = 0; k < parts.size(); k++) {
    const auto [begin, end] = parts[k];
    reduced.append(text.substr(done, begin - done), in_lower_case);
    const int32_t before = character_before(text, begin).code, after = character_at(text, end).code;
    KeptPart& part = reduced.kept.emplace_back();
    part.text = text.substr(begin, end - begin);
    part.at = reduced.text.size();
    part.space_before = sentence::is_blank(before);
    part.space_after = sentence::is_blank(after);
    part.follows_word = sentence::is_alphanumeric(before);
    part.touches_word = sentence::is_alphanumeric(after);
    part.stand_in = stand_ins[k].text;
    reduced.text += part.stand_in;
    done = end;
  }
  reduced.append(text.substr(done), in_lower_case);
  return reduced;
}

std::vector<size_t> surplus_stand_ins(std::span<const int32_t> source, std::span<const int32_t> translation,
                                      const TranslationTokens& tokens, const Tokenizer& target) {
  std::unordered_map<int32_t, int64_t> left;  // by the token of the target
  for (const StandIn& s : tokens.stand_ins) left[s.target] = std::ranges::count(source, s.source);
  std::vector<size_t> places;
  for (size_t i = 0; i < translation.size(); i++) {
    const auto found = left.find(translation[i]);
    if (found == left.end() || found->second-- > 0) continue;
    const bool has_mark =
        i > 0 && (places.empty() || places.back() != i - 1) && target.piece(translation[i - 1]) == "▁";
    if (has_mark) places.push_back(i - 1);
    places.push_back(i);
  }
  return places;
}

Decoded without_tokens(const Decoded& translation, std::span<const size_t> places) {
  Decoded rest = translation;
  for (size_t k = places.size(); k-- > 0;) {
    rest.log_probability -= static_cast<double>(rest.token_log_probabilities[places[k]]);
    erase_at(rest.ids, places[k]);
    erase_at(rest.token_log_probabilities, places[k]);
  }
  return rest;
}

Forced without_tokens(const Forced& translation, std::span<const size_t> places, size_t source_tokens) {
  Forced rest = translation;
  for (size_t k = places.size(); k-- > 0;) {
    if (!rest.log_probabilities.empty()) erase_at(rest.log_probabilities, places[k]);
    if (rest.attention.empty()) continue;
    const auto row = rest.attention.begin() + static_cast<std::ptrdiff_t>(places[k] * source_tokens);
    rest.attention.erase(row, row + static_cast<std::ptrdiff_t>(source_tokens));
  }
  return rest;
}

bool has_stand_ins(std::span<const KeptPart> kept, std::span<const int32_t> translation,
                   std::span<const StandIn> stand_ins) {
  return std::ranges::all_of(kept, [&](const KeptPart& part) {
    const auto own = std::ranges::find(stand_ins, part.stand_in, &StandIn::text);
    return own != stand_ins.end() && std::ranges::find(translation, own->target) != translation.end();
  });
}

void replace_stand_ins(std::span<const KeptPart> kept, std::string_view source,
                       const std::vector<std::string>& source_tokens, bool has_attention, Hypothesis& translation) {
  std::vector<KeptPart> lost;
  for (const KeptPart& part : kept) {
    if (translation.text.find(part.stand_in) != std::string::npos) continue;
    KeptPart& next = lost.emplace_back(part);
    next.text = part.stand_in;  // replaced below
    next.source_token = index_of(source_tokens, part.stand_in);
  }
  put_back(lost, source, source_tokens, has_attention, translation);
  translation.text = with_parts(translation.text, kept);
  for (WordScore& word : translation.words) word.word = with_parts(word.word, kept);
  for (const KeptPart& part : kept) {
    const size_t from = index_of(source_tokens, part.stand_in), to = index_of(translation.tokens, part.stand_in);
    for (Alignment& pair : translation.alignment)
      if (to_size(pair.target) == to) pair.source = static_cast<int32_t>(from);
  }
  for (std::string& token : translation.tokens)
    if (const auto part = std::ranges::find(kept, token, &KeptPart::stand_in); part != kept.end()) token = part->text;
}

}  // namespace qkv
