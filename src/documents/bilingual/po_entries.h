// The entries of a gettext PO file with the places of their strings. Strings are read here and not by libgettextpo,
// which writes the whole file again: other bytes than the translations must stay.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "documents/split_text.h"

namespace qkv {

struct PoEntry {
  static constexpr size_t kMostForms = 16;

  bool is_fuzzy = false;
  ByteRange id = {}, plural = {};       // of msgid and msgid_plural, from the first quote to the last; empty: none
  std::vector<ByteRange> strings = {};  // of msgstr, or msgstr[0], msgstr[1] …
  size_t line = 0;                      // of msgid

  bool has_plural() const { return plural.end > 0; }
};

// Returns the entries that are in use: obsolete ones are comments. Throws Error for text that is not a PO file.
std::vector<PoEntry> read_po(std::string_view file);

// Returns the text of the strings in quotes in this range. Throws Error for a string that cannot be UTF-8.
std::string po_text(std::string_view file, ByteRange strings);

// Appends characters as they are escaped in a string.
void append_as_po(std::string_view text, std::string& to);

}  // namespace qkv
