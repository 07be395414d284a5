// Characters as the rules for sentences see them: letters, quotes, and the marks that may end a sentence.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace qkv::sentence {

// A character and its bytes. The code is −1 for bytes that are not UTF-8, and outside the text.
struct Character {
  int32_t code = -1;
  size_t begin = 0, end = 0;
};

Character character_at(std::string_view text, size_t at);
// Returns the character that ends at a place.
Character character_before(std::string_view text, size_t at);
inline int32_t last_character(std::string_view text) { return character_before(text, text.size()).code; }

bool is_blank(int32_t code);
bool is_letter(int32_t code);
bool is_digit(int32_t code);
bool is_combining(int32_t code);  // a mark on the letter before it
bool is_dash(int32_t code);
bool is_symbol(int32_t code);  // such as $ and +
inline bool is_alphanumeric(int32_t code) { return is_letter(code) || is_digit(code); }

// Lower case of a script whose sentences begin with a capital, so not Georgian.
bool is_lower(int32_t code);
bool is_upper(int32_t code);

bool is_quote(int32_t code);          // one that opens or closes, but no corner bracket
bool is_closing_quote(int32_t code);  // one that closes in most languages
bool is_closing_bracket(int32_t code);
bool is_opening(int32_t code);  // quotes, brackets, ¿ and ¡

bool is_unspaced(int32_t code);  // of Chinese or Japanese, whose sentences have no space between them
bool is_thai_or_lao(int32_t code);
bool has_spaced_words(int32_t code);  // of a script with spaces between words, so not Chinese, Thai or Khmer
bool is_emoji(int32_t code);

// Returns the number of bytes of an emoticon, such as :-), that white space follows; 0 if there is none at the place.
size_t emoticon_at(std::string_view text, size_t at);

// Returns the number of letters, not counting combining marks.
size_t count_letters(std::string_view text);
bool has_letter_or_digit(std::string_view text);

// A mark that may end a sentence. In a run of them, the last in this order decides.
enum class Stop : uint8_t {
  none,
  dot,          // of a sentence, an abbreviation or a number
  ellipsis,     // … or more than one full stop
  exclamation,  // may also be part of a name
  question,
  full,    // of no other use: 。 । ؟ ։ and others
  smiley,  // an emoticon or an emoji
  gap,     // a space between sentences of Thai
};

// Returns which one a character is, without regard to what surrounds it: none, dot, ellipsis, exclamation, question or
// full.
Stop stop_of(int32_t code);

}  // namespace qkv::sentence
