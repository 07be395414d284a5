#include "text/alignment/aligned_units.h"

#include <unicode/brkiter.h>
#include <unicode/normalizer2.h>
#include <unicode/uchar.h>
#include <unicode/unistr.h>
#include <unicode/utext.h>
#include <unicode/utf8.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "core/fail.h"
#include "core/to_size.h"
#include "text/pieces/byte_pairs.h"

namespace qkv {
namespace {

constexpr std::string_view kSpaceMark = "▁", kByteSpaceMark = "Ġ", kContinues = "@@", kContinuation = "##";
constexpr UChar32 kSpaceMarkCode = 0x2581;
constexpr size_t kSearchedCharacters = 128;  // for a token that is not where the one before it ends

// A character in the form in which texts and tokens are compared.
struct FoldedCharacter {
  UChar32 code;
  size_t begin, end;  // bytes of the text
  bool begins_word;   // after white space
};

// Folds case and compatible characters, and decomposes what remains.
icu::UnicodeString folded(UChar32 code) {
  UErrorCode status = U_ZERO_ERROR;
  const icu::Normalizer2* fold = icu::Normalizer2::getNFKCCasefoldInstance(status);
  const icu::Normalizer2* decompose = icu::Normalizer2::getNFDInstance(status);
  if (U_FAILURE(status)) fail("normal form: {}", u_errorName(status));
  icu::UnicodeString text = decompose->normalize(fold->normalize(icu::UnicodeString(code), status), status);
  if (U_FAILURE(status)) fail("normal form: {} on a character", u_errorName(status));
  return text;
}

// Appends the characters of a text that are not white space.
void append_folded(std::string_view text, std::vector<FoldedCharacter>& to) {
  bool begins_word = true;
  for (int64_t i = 0; i < static_cast<int64_t>(text.size());) {
    const size_t begin = to_size(i);
    UChar32 code;
    U8_NEXT_OR_FFFD(text.data(), i, static_cast<int64_t>(text.size()), code);
    const auto append = [&](UChar32 c) {
      if (u_isUWhiteSpace(c) || c == kSpaceMarkCode) {
        begins_word = true;
      } else {
        to.push_back({c, begin, to_size(i), begins_word});
        begins_word = false;
      }
    };
    if (code < 0x80) {
      append(code >= 'A' && code <= 'Z' ? code + 32 : code);
    } else {
      const icu::UnicodeString characters = folded(code);
      for (int32_t k = 0; k < characters.length(); k = characters.moveIndex32(k, 1)) append(characters.char32At(k));
    }
  }
}

enum class Spelling { plain, space_marks, bytes, continues, continuation };

Spelling spelling_of(const std::vector<std::string>& tokens) {
  const auto any = [&](auto test) { return std::ranges::any_of(tokens, test); };
  if (any([](const std::string& t) { return t.starts_with(kSpaceMark); })) return Spelling::space_marks;
  if (any([](const std::string& t) { return t.starts_with(kByteSpaceMark); })) return Spelling::bytes;
  if (any([](const std::string& t) { return t.size() > 2 && t.ends_with(kContinues); })) return Spelling::continues;
  if (any([](const std::string& t) { return t.size() > 2 && t.starts_with(kContinuation); }))
    return Spelling::continuation;
  return Spelling::plain;
}

std::string token_text(const std::string& token, Spelling spelling) {
  if (spelling == Spelling::bytes) return bytes_of_spelling(token);
  if (spelling == Spelling::continues && token.size() > 2 && token.ends_with(kContinues))
    return token.substr(0, token.size() - kContinues.size());
  if (spelling == Spelling::continuation && token.size() > 2 && token.starts_with(kContinuation))
    return token.substr(kContinuation.size());
  return token;
}

class TokenFinder {
 public:
  TokenFinder(std::string_view text, const std::vector<std::string>& tokens)
      : tokens_(tokens), spelling_(spelling_of(tokens)), places_(tokens.size()) {
    append_folded(text, text_);
  }

  std::vector<TokenPlace> find() {
    for (size_t i = 0; i < tokens_.size(); i++) {
      token_.clear();
      append_folded(token_text(tokens_[i], spelling_), token_);
      marks_word_ |= tokens_[i].starts_with(spelling_ == Spelling::bytes ? kByteSpaceMark : kSpaceMark);
      if (token_.empty()) continue;  // "▁", which marks the next token
      if (const std::optional<size_t> found = search()) {
        give_gap(*found);
        at_ = *found + token_.size();
        set_place(i, *found, at_);
      } else if (!missing_) {
        missing_ = i;
      }
      marks_word_ = false;
    }
    give_gap(text_.size());
    return make_ordered();
  }

 private:
  bool matches(size_t at) const {
    return at + token_.size() <= text_.size() &&
           std::equal(token_.begin(), token_.end(), text_.begin() + static_cast<int64_t>(at),
                      [](const FoldedCharacter& a, const FoldedCharacter& b) { return a.code == b.code; });
  }

  // Where word starts are marked, a token is looked for at the starts of words, or within this one.
  std::optional<size_t> search() const {
    const bool has_marks = spelling_ == Spelling::space_marks || spelling_ == Spelling::bytes;
    const size_t end = std::min(text_.size(), at_ + kSearchedCharacters);
    for (size_t at = at_; at < end; at++) {
      if (has_marks && at > at_ && !marks_word_ && text_[at].begins_word) break;
      if (has_marks && at > at_ && marks_word_ && !text_[at].begins_word) continue;
      if (matches(at)) return at;
    }
    return std::nullopt;
  }

  // The text up to `end` that no token has belongs to the first one that was not found.
  void give_gap(size_t end) {
    if (missing_ && at_ < end) set_place(*missing_, at_, end);
    missing_.reset();
  }

  void set_place(size_t token, size_t begin, size_t end) { places_[token] = {text_[begin].begin, text_[end - 1].end}; }

  // Tokens without text get a place between their neighbours, and a character that several share belongs to the first.
  std::vector<TokenPlace> make_ordered() {
    size_t done = 0;
    for (TokenPlace& place : places_) {
      place.begin = std::max(place.begin, done);
      place.end = std::max(place.end, place.begin);
      done = place.end;
    }
    return places_;
  }

  const std::vector<std::string>& tokens_;
  const Spelling spelling_;
  std::vector<TokenPlace> places_;
  std::vector<FoldedCharacter> text_, token_;
  size_t at_ = 0;                  // characters of the text that tokens have
  bool marks_word_ = false;        // the token begins a word
  std::optional<size_t> missing_;  // the first token that was not found since the last one that was
};

// Returns for each token whether it belongs to a prefix behind the first sentence: the tokens of the first prefix, with
// those before it, again after an end token. places: of the tokens in the first prefix and the source.
std::vector<bool> find_later_prefixes(size_t prefix, const std::vector<std::string>& tokens,
                                      const std::vector<TokenPlace>& places) {
  std::vector<bool> is_later(tokens.size());
  size_t size = 0;  // tokens of the first prefix, with those before it
  for (size_t t = 0; t < places.size() && places[t].end <= prefix; t++)
    if (!places[t].is_empty()) size = t + 1;
  if (size == 0) return is_later;
  for (size_t t = size + 1; t + size <= tokens.size(); t++)
    if (tokens[t - 1] == tokens.back() && std::equal(tokens.begin(), tokens.begin() + static_cast<int64_t>(size),
                                                     tokens.begin() + static_cast<int64_t>(t)))
      std::fill_n(is_later.begin() + static_cast<int64_t>(t), size, true);
  return is_later;
}

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

std::vector<TokenPlace> token_places(std::string_view text, const std::vector<std::string>& tokens) {
  return TokenFinder(text, tokens).find();
}

std::vector<TokenPlace> places_in_source(std::string_view prefix, std::string_view source,
                                         const std::vector<std::string>& tokens) {
  if (prefix.empty()) return token_places(source, tokens);
  const std::string text = std::string(prefix) + std::string(source);
  const std::vector<bool> is_later = find_later_prefixes(prefix.size(), tokens, token_places(text, tokens));
  std::vector<std::string> once;  // without the later prefixes
  for (size_t t = 0; t < tokens.size(); t++)
    if (!is_later[t]) once.push_back(tokens[t]);
  const auto in_source = [&](size_t byte) { return std::max(byte, prefix.size()) - prefix.size(); };
  const std::vector<TokenPlace> found = token_places(text, once);
  std::vector<TokenPlace> places;
  auto next = found.begin();
  for (size_t t = 0; t < tokens.size(); t++) {
    const size_t done = places.empty() ? 0 : places.back().end;
    places.push_back(is_later[t] ? TokenPlace{done, done} : TokenPlace{in_source(next->begin), in_source(next->end)});
    next += is_later[t] ? 0 : 1;
  }
  return places;
}

AlignedUnits align_units(std::string_view source, const std::vector<std::string>& source_tokens,
                         const Hypothesis& translation) {
  return align_units(source, token_places(source, source_tokens), translation);
}

AlignedUnits align_units(std::string_view source, const std::vector<TokenPlace>& source_places,
                         const Hypothesis& translation) {
  AlignedUnits all;
  std::vector<size_t> place_of(source_places.size(), TargetUnit::kNone);
  std::vector<bool> is_word;
  for (size_t s = 0; s < source_places.size(); s++) {
    if (source_places[s].is_empty()) continue;
    place_of[s] = all.source.size();
    all.source.push_back(source_places[s]);
    is_word.push_back(count_letters(text_at(source, source_places[s])) > 0);
  }

  const std::string_view text = translation.text;
  const std::vector<bool> starts = find_word_starts(text);
  const std::vector<size_t> aligned = aligned_tokens(source_places.size(), translation);
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
