// UTF-8 text: validity, lower case, normal forms, and the words between white space.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace qkv {

// Position of the first byte that is not part of valid UTF-8, or npos.
size_t find_invalid_utf8(std::string_view text);

// Length of the text without the beginning of a character that is not whole at its end.
size_t whole_characters(std::string_view text);

// Returns the number of characters of valid UTF-8; otherwise of bytes that do not continue one.
int64_t count_characters(std::string_view text);

// Describes a file whose text is not valid UTF-8, and the reason, for the end of an error; `beginning` are its
// first bytes, or none where they are fine.
std::string encoding_hint(std::string_view beginning);

// Full Unicode lower case, without a language's own rules (what Python's str.lower does). text is valid UTF-8.
std::string lowercase(std::string_view text);

// The normal forms C, with characters composed, and D, with them decomposed, of Unicode 9, which the library tokenizers
// goes by: characters that came later stay as they are. text is valid UTF-8.
std::string compose(std::string_view text);
std::string decompose(std::string_view text);
// The normal forms KC and KD, which also replace characters by those that they are compatible with, in the same way.
std::string compose_compatible(std::string_view text);
std::string decompose_compatible(std::string_view text);

// Whether \w of a regular expression matches a character: letters, marks, digits, connecting punctuation.
bool is_word_character(int32_t code);

// Returns the text in normal form KD without combining marks, as ALBERT's tokenizer reads it. text is valid UTF-8.
std::string strip_accents(std::string_view text);

// Returns " (the file is UTF-16, …)" for the beginning of a file in UTF-16, a compressed file or an archive, with the
// command that makes text of it; otherwise "".
std::string mark_hint(std::string_view beginning);

// The non-empty runs between white space, views into text. White space is what Python's str.isspace() accepts: the
// characters of Unicode's bidirectional classes WS, B and S and of category Zs, the no-break spaces among them.
std::vector<std::string_view> split_words(std::string_view text);

// Returns the place of the first character from byte `at` on that is no white space, or the size of the text.
size_t skip_space(std::string_view text, size_t at);

}  // namespace qkv
