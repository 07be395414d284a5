#include "text/sentences.h"

#include <algorithm>
#include <array>

#include "text/sentence_characters.h"
#include "text/sentence_context.h"
#include "text/sentence_words.h"
#include "text/unicode.h"

namespace qkv {
namespace sentence {
namespace {

constexpr size_t kBracketBytes = 600;  // within which a bracket must close to hold sentences together
constexpr size_t kGermanBytes = 256;   // before a number, in which German is looked for

// A run of stops and what belongs to it.
struct Place {
  size_t begin = 0;  // of the first stop
  size_t end = 0;    // of the last stop
  size_t tail = 0;   // end of the quotes, brackets and smileys that follow
  size_t next = 0;   // end of the white space that follows
  Stop stop = Stop::none;
  bool is_quoted = false;  // a quote is in the tail
};

// A pass over a paragraph. Its decisions depend on the sentence so far and on the next word only.
class Scan {
 public:
  Scan(std::string_view text, const std::unordered_set<std::string>& abbreviations)
      : text_(text), abbreviations_(abbreviations) {}

  std::vector<std::string_view> sentences();

 private:
  // Reading.
  void begin_sentence(size_t at);
  Stop next_stop();
  Stop special_stop(char byte) const;
  void note_mark(const Character& mark);
  Place read_place(Stop first);
  void read_tail(Place& place);
  bool closes(const Character& mark, bool is_spaced) const;
  bool has_words(size_t end);

  // Context of a place.
  std::string_view sentence_before(size_t end) const { return text_.substr(begin_, end - begin_); }
  std::string_view before(std::string_view word) const { return without_blanks(sentence_before(place_of(word))); }
  size_t place_of(std::string_view word) const { return static_cast<size_t>(word.data() - text_.data()); }

  // Decisions.
  bool ends(const Place& place);
  bool ends_before_lower(const Place& place, const Start& start) const;
  bool ends_at_dot(const Place& place, const Start& start) const;
  bool ends_at_number(std::string_view number, const Place& place, const Start& start) const;
  bool ends_at_abbreviation(Abbreviation kind, std::string_view word, const Start& start) const;
  bool ends_at_unit(std::string_view word, const Start& start) const;
  bool ends_without_space(const Place& place) const;
  bool ends_at_gap(const Place& place) const;
  bool is_list_marker(std::string_view word) const;

  const std::string_view text_;
  const std::unordered_set<std::string>& abbreviations_;
  size_t at_ = 0;                        // what has been read
  size_t begin_ = 0;                     // of the sentence
  bool has_words_ = false;               // whether the sentence has a letter or a digit
  Character first_;                      // the first of them
  size_t words_from_ = 0;                // where has_words() continues
  bool is_quote_open_ = false;           // " or a Chinese “
  size_t held_until_ = 0;                // the end of a bracket, before which the sentence does not end
  std::array<size_t, 4> brackets_ = {};  // the next closing one of each kind
};

void Scan::begin_sentence(size_t at) {
  begin_ = at_ = words_from_ = at;
  has_words_ = is_quote_open_ = false;
  held_until_ = 0;
}

// Reads up to the next stop.
Stop Scan::next_stop() {
  while (at_ < text_.size()) {
    const char byte = text_[at_];
    if (static_cast<unsigned char>(byte) < 0x80) {
      if (const Stop stop = special_stop(byte); stop != Stop::none) return stop;
      if (byte == '"' || byte == '(') note_mark(character_at(text_, at_));
      at_++;
    } else {
      const Character c = character_at(text_, at_);
      if (const Stop stop = stop_of(c.code); stop != Stop::none) return stop;
      if (is_emoji(c.code)) return Stop::smiley;
      note_mark(c);
      at_ = c.end;
    }
  }
  return Stop::none;
}

// Returns the stop that an ASCII character is at at_. Some are one in some scripts only.
Stop Scan::special_stop(char byte) const {
  switch (byte) {
    case '.':
      return Stop::dot;
    case '?':
      return Stop::question;
    case '!':
      return Stop::exclamation;
    case ' ':
      return at_ > 0 && is_thai_or_lao(character_before(text_, at_).code) ? Stop::gap : Stop::none;
    case ';':
    case ':':
    case '=': {
      const int32_t before = at_ == begin_ ? -1 : character_before(text_, at_).code;
      if (byte == ';' && before >= 0x370 && before <= 0x3FF && is_letter(before)) return Stop::full;  // Greek
      if (byte == ':' && before >= 0x561 && before <= 0x587) return Stop::full;                       // Armenian
      const bool is_apart = at_ == begin_ || is_blank(before);
      return is_apart && emoticon_at(text_, at_) > 0 ? Stop::smiley : Stop::none;
    }
    default:
      return Stop::none;
  }
}

// Notes a quote that opens or closes, and a bracket that holds sentences together: a round one after the start of the
// sentence, and a corner bracket, the quote of Japanese.
void Scan::note_mark(const Character& mark) {
  static constexpr std::array<std::pair<int32_t, std::string_view>, 4> kBrackets = {
      {{U'(', ")"}, {U'（', "）"}, {U'「', "」"}, {U'『', "』"}}};
  if (mark.code == '"') is_quote_open_ = !is_quote_open_;
  if (mark.code == U'“' && is_unspaced(character_at(text_, mark.end).code)) is_quote_open_ = true;
  if (mark.code == U'”') is_quote_open_ = false;
  for (size_t i = 0; i < kBrackets.size(); i++) {
    const auto& [opening, closing] = kBrackets[i];
    if (mark.code != opening || (mark.begin == begin_ && i < 2)) continue;
    size_t& next = brackets_[i];
    if (next < mark.end) next = std::min(text_.find(closing, mark.end), text_.size());
    if (next < text_.size() && next - mark.begin <= kBracketBytes) held_until_ = std::max(held_until_, next);
  }
}

Place Scan::read_place(Stop first) {
  Place place{at_, at_, at_, at_, first};
  if (first == Stop::full) place.end = character_at(text_, at_).end;  // also what stop_of() does not know
  int dots = 0;
  for (;;) {
    Character c = character_at(text_, place.end);
    if (c.code == ' ' && dots > 0 && character_at(text_, c.end).code == '.') {  // . . .
      c = character_at(text_, c.end);
      if (is_alphanumeric(character_at(text_, c.end).code)) break;  // .NET
    }
    const Stop stop = stop_of(c.code);
    if (stop == Stop::none) break;
    dots += stop == Stop::dot;
    place.stop = std::max(place.stop, dots > 1 ? std::max(stop, Stop::ellipsis) : stop);
    place.end = c.end;
  }
  place.tail = place.end;
  read_tail(place);
  return place;
}

void Scan::read_tail(Place& place) {
  size_t at = place.end;
  for (bool is_spaced = place.stop == Stop::smiley;;) {
    const Character c = character_at(text_, at);
    const size_t bytes = is_spaced ? emoticon_at(text_, at) : reference_at(text_, at);
    if (is_blank(c.code)) {
      at = skip_blanks(text_, at);
      is_spaced = true;
      continue;
    }
    if (closes(c, is_spaced)) {
      note_mark(c);
      place.is_quoted = place.is_quoted || is_quote(c.code) || c.code == U'」' || c.code == U'』';
      at = c.end;
    } else if (bytes > 0) {
      at += bytes;
    } else if (is_emoji(c.code)) {
      at = c.end;
    } else {
      break;
    }
    place.tail = at;
    is_spaced = false;
  }
  place.next = at;
}

// Whether a quote or a bracket closes what comes before it.
bool Scan::closes(const Character& mark, bool is_spaced) const {
  if (is_closing_bracket(mark.code)) return true;
  if (!is_quote(mark.code)) return false;
  const int32_t next = character_at(text_, mark.end).code;
  if (is_spaced) return (next < 0 || is_blank(next)) && mark.code != U'«' && (mark.code != '"' || is_quote_open_);
  if (!is_alphanumeric(next)) return true;
  return mark.code == '"' ? is_quote_open_ : is_closing_quote(mark.code) && is_unspaced(next);
}

// Whether the sentence has a letter or a digit before a place.
bool Scan::has_words(size_t end) {
  while (!has_words_ && words_from_ < end) {
    first_ = character_at(text_, words_from_);
    has_words_ = is_alphanumeric(first_.code);
    words_from_ = first_.end;
  }
  return has_words_;
}

// Whether the sentence begins with this word, which numbers an item of a list: "1.", "II.", "b.".
bool Scan::is_list_marker(std::string_view word) const {
  if (first_.begin < place_of(word)) return false;
  return (is_number(word) && word.size() <= 3) || is_roman(word) || is_initial(word);
}

bool Scan::ends(const Place& place) {
  if (place.next >= text_.size() || held_until_ >= place.tail || !has_words(place.begin)) return false;
  const int32_t before = character_before(text_, place.begin).code;
  if (place.tail > place.end && is_opening(before)) return false;  // (?)
  if (place.stop == Stop::gap) return ends_at_gap(place);
  if (place.next == place.tail) return ends_without_space(place);
  const Start start = start_at(text_, place.next);
  switch (start.kind) {
    case Start::Kind::none:
      return false;
    case Start::Kind::lower:
      return ends_before_lower(place, start);
    default:
      if (place.stop == Stop::smiley) return start.kind == Start::Kind::upper && is_blank(before);
      return place.stop != Stop::dot || ends_at_dot(place, start);
  }
}

// Whether a sentence ends before a word without a capital. It may after a question mark, and if the writer uses none.
bool Scan::ends_before_lower(const Place& place, const Start& start) const {
  if (place.is_quoted || start.is_marked) return false;         // "Why?" he asked
  if (is_dash(character_at(text_, begin_).code)) return false;  // – Why? he asked
  const bool is_casual = is_lower(first_.code) || has_role(start.word, WordRole::pronoun);
  if (place.stop == Stop::question) return true;
  if (place.stop == Stop::exclamation) return is_casual;
  if (place.stop != Stop::dot || !is_casual) return false;
  const std::string_view word = last_word(sentence_before(place.begin));
  const bool is_word = count_letters(word) > 1 || word.size() > 4;
  return is_word && kind_of_abbreviation(word, abbreviations_) == Abbreviation::none && !is_list_marker(word);
}

// Whether a sentence ends at a full stop before a capital, a digit, or a letter of a script without capitals.
bool Scan::ends_at_dot(const Place& place, const Start& start) const {
  const std::string_view word = last_word(sentence_before(place.begin));
  if (word.empty()) return true;
  if (is_list_marker(word)) return false;
  if (is_number(word)) return ends_at_number(word, place, start);
  if (is_thai_or_lao(last_character(word))) return count_letters(word) > 6;
  const Abbreviation kind = kind_of_abbreviation(word, abbreviations_);
  if (place.is_quoted && kind != Abbreviation::before_name) return true;
  if (!is_initial(word) || kind != Abbreviation::none) return ends_at_abbreviation(kind, word, start);
  if (!is_upper(character_at(word, 0).code)) return ends_at_unit(word, start);
  const int32_t previous = last_character(before(word));  // of an initial, or of a unit: 5 °C
  if (is_digit(previous) || previous == U'°') return true;
  return has_role(start.word, WordRole::starter) && !start.has_stop && !has_role(start.word, WordRole::particle);
}

bool Scan::ends_at_number(std::string_view number, const Place& place, const Start& start) const {
  if (has_role(start.word, WordRole::date)) return false;                             // 3. Mai
  if (start.kind == Start::Kind::digit) return number.size() > 2 && !start.has_stop;  // 3. 5. 2020
  if (number.size() > 2 || place.tail > place.end || has_role(start.word, WordRole::starter)) return true;
  const std::string_view words = before(number);
  return !has_role(lowercase(last_word(words)), WordRole::article) &&
         !is_german(words.substr(words.size() - std::min(words.size(), kGermanBytes)));
}

bool Scan::ends_at_abbreviation(Abbreviation kind, std::string_view word, const Start& start) const {
  switch (kind) {
    case Abbreviation::none:
      return true;
    case Abbreviation::before_name:
      return false;
    case Abbreviation::before_number: {
      const bool is_roman_start = start.word.size() > 1 && start.word.find_first_not_of("ivxlc") == start.word.npos;
      return start.kind != Start::Kind::digit && !is_roman_start;
    }
    case Abbreviation::anywhere:
      return has_role(start.word, WordRole::starter) && !start.has_stop;
    case Abbreviation::after_number:
      break;
  }
  return ends_at_unit(word, start);
}

// Whether a sentence ends at a unit ("5 km."): before a word likely to begin one, or after a number, unless the
// sentence would have only a preposition next to it ("В 1990 г. Москва").
bool Scan::ends_at_unit(std::string_view word, const Start& start) const {
  constexpr size_t kFewBytes = 32;
  if (start.has_stop || start.kind == Start::Kind::digit) return false;
  if (has_role(start.word, WordRole::starter)) return true;
  const std::string_view words = before(word);
  if ((word == "д" || word == "п") && last_word(words) == "т.") return true;  // and so on
  if (!is_digit(last_character(words)) && !is_roman(last_word(words))) return false;
  return words.size() > kFewBytes || split_words(words).size() > 2;
}

// Whether a sentence ends where the next one begins without a space.
bool Scan::ends_without_space(const Place& place) const {
  if (place.stop != Stop::full && place.stop != Stop::question && place.stop != Stop::exclamation) return false;
  const int32_t before = character_before(text_, place.begin).code;
  const Character next = character_at(text_, place.tail);
  if (place.stop != Stop::full && !is_unspaced(before) && !is_unspaced(next.code)) return false;
  if (!is_alphanumeric(next.code) && !is_opening(next.code)) return false;
  if (!place.is_quoted) return true;
  // A quote continues with と or って ("…", he said) in Japanese, and with who said it in Chinese.
  if (next.code == U'と' || next.code == U'っ') return false;
  constexpr size_t kNameBytes = 48;
  constexpr std::u32string_view kVerbs = U"说說道问問喊叫答";
  Character last;
  for (Character c = next; is_letter(c.code) && c.begin - next.begin < kNameBytes; c = character_at(text_, c.end))
    last = c;
  return last.code < 0 || kVerbs.find(static_cast<char32_t>(last.code)) == kVerbs.npos;
}

// Whether a space of Thai, which separates clauses as well, is between sentences: after a polite particle, and before a
// word that leads from one sentence to the next.
bool Scan::ends_at_gap(const Place& place) const {
  static constexpr std::array<std::string_view, 4> kLast = {"ครับ", "ค่ะ", "นะคะ", "จ้ะ"};
  static constexpr std::array<std::string_view, 8> kFirst = {"นอกจากนี้",     "อย่างไรก็", "ดังนั้น",      "ต่อมา",
                                                             "ในขณะเดียวกัน", "จากนั้น",   "เพราะฉะนั้น", "ด้วยเหตุนี้"};
  const std::string_view before = text_.substr(begin_, place.begin - begin_), next = text_.substr(place.next);
  return std::ranges::any_of(kLast, [&](std::string_view word) { return before.ends_with(word); }) ||
         std::ranges::any_of(kFirst, [&](std::string_view word) { return next.starts_with(word); });
}

std::vector<std::string_view> Scan::sentences() {
  std::vector<std::string_view> sentences;
  begin_sentence(skip_blanks(text_, 0));
  for (Stop stop = next_stop(); stop != Stop::none; stop = next_stop()) {
    const Place place = read_place(stop);
    if (ends(place)) {
      sentences.push_back(text_.substr(begin_, place.tail - begin_));
      begin_sentence(place.next);
    } else {
      at_ = std::max(place.tail, character_at(text_, at_).end);
    }
  }
  if (const std::string_view rest = without_blanks(text_.substr(begin_)); !rest.empty()) sentences.push_back(rest);
  return sentences;
}

}  // namespace
}  // namespace sentence

SentenceSplitter::SentenceSplitter(const std::vector<std::string>& abbreviations) {
  for (const std::string& word : abbreviations) abbreviations_.insert(lowercase(word));
}

std::vector<std::string_view> SentenceSplitter::split(std::string_view paragraph) const {
  return sentence::Scan(paragraph, abbreviations_).sentences();
}

}  // namespace qkv
