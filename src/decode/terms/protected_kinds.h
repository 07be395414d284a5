// Kinds of protected parts. A kind is a hand-written scanner that is tried at each character; all of them together take
// linear time. The longest part that begins at a character is found.
//
// Limits that all kinds share: a part has word boundaries at both ends, except where a mark of the kind, such as a
// brace, is an end. A letter of a script without spaces, such as Chinese or Thai, belongs to no word here. Words with a
// hyphen after a part, such as "COVID-19-Pandemie" and "1,500-year-old", are not protected.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "core/ascii.h"

namespace qkv::protect {

// A text with the pairs of marks that enclose a part, which are found in one pass.
class ScannedText {
 public:
  explicit ScannedText(std::string_view text);

  std::string_view text() const { return text_; }
  // Returns the end of the braces, or of the code between backticks, that begin at a byte; 0 if none do. Braces that
  // are nested deeper than 64 are no pair.
  size_t end_of_pair(size_t at) const;
  // Whether "-->" ends after a byte.
  bool has_comment_end(size_t at) const { return at < end_of_comments_; }

 private:
  void pair_braces();
  void pair_backticks();

  std::string_view text_;
  std::vector<std::pair<size_t, size_t>> pairs_;  // begin and end
  size_t end_of_comments_ = 0;                    // the last of them
};

struct Kind {
  std::string_view name;
  size_t (*match)(const ScannedText& text, size_t at);  // returns the end of the part that begins there, or 0
};

std::span<const Kind> address_kinds();      // URLs, e-mail addresses, domains, IP addresses, paths
std::span<const Kind> placeholder_kinds();  // code, placeholders, entities, tags
std::span<const Kind> number_kinds();       // quantities, dates, times, versions, telephone numbers
std::span<const Kind> identifier_kinds();   // hashtags, mentions, identifiers, hashes

// Returns all kinds.
std::span<const Kind> all_kinds();

// ---- Characters

inline bool is_one_of(char c, std::string_view set) { return set.find(c) != set.npos; }

// Returns a byte of a text, '\0' outside it.
inline char byte_at(std::string_view text, size_t at) { return at < text.size() ? text[at] : '\0'; }
// Returns the byte before a place, '\0' at the start.
inline char byte_before(std::string_view text, size_t at) { return at == 0 ? '\0' : text[at - 1]; }

// Returns the first byte from `at` on, at most `most` bytes later, that is not accepted.
template <class Accepts>
size_t skip(std::string_view text, size_t at, Accepts accepts, size_t most = std::string_view::npos) {
  const size_t begin = at;
  while (at < text.size() && at - begin < most && accepts(text[at])) at++;
  return at;
}

// Whether a character belongs to a word: a letter, a digit or an underscore, but not of a script without spaces.
bool is_word(int32_t code);
bool is_word_at(std::string_view text, size_t at);
bool is_word_before(std::string_view text, size_t at);

// Whether a part may end at a byte: no word, and no hyphen with a letter after it, continues it.
bool ends_part(std::string_view text, size_t at);

}  // namespace qkv::protect
