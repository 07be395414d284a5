// The words around a mark that may end a sentence.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "text/sentence_characters.h"

namespace qkv::sentence {

// The first word after a mark.
struct Start {
  // A word that begins a sentence although its first letter is small counts as upper.
  enum class Kind : uint8_t { none, lower, upper, caseless, digit } kind = Kind::none;
  std::string word;        // in lower case
  bool has_stop = false;   // a full stop after it
  bool is_marked = false;  // a quote, a bracket or a dash before it
};

// Returns the first word at a place or after it; kind none if something else than spaces, dashes, quotes, brackets and
// symbols is before it.
Start start_at(std::string_view text, size_t at);

// Returns the word that ends at the end of the text, without quotes and brackets before it: a view into the text, of at
// most 48 bytes.
std::string_view last_word(std::string_view text);

// Returns the text without white space at its end.
std::string_view without_blanks(std::string_view text);

// Returns the first place from `at` on that is not white space.
size_t skip_blanks(std::string_view text, size_t at);

// Returns the number of bytes of a reference to a note, such as [12], at a place; 0 if there is none.
size_t reference_at(std::string_view text, size_t at);

bool is_number(std::string_view word);  // of ASCII digits
bool is_roman(std::string_view word);   // a number in capitals

// Whether a word is one letter of a script in which names are abbreviated to letters.
bool is_initial(std::string_view word);

// Whether one of the words is frequent in German, whose ordinals have a full stop and whose nouns a capital.
bool is_german(std::string_view words);

}  // namespace qkv::sentence
