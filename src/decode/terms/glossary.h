// The glossary of a translation: terms of the source language, and the translations that each of them may have.
// read_glossary(), which reads its file, is in qkv/translator.h.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace qkv {

// A term of a glossary that occurs in a source text.
struct GlossaryMatch {
  size_t begin = 0, end = 0;  // bytes of the text
  size_t entry = 0;           // place in Glossary::entries()

  bool operator==(const GlossaryMatch&) const = default;
};

struct GlossaryEntry {
  std::vector<std::string> sources;  // spellings or inflected forms, at least one
  std::vector<std::string> targets;  // any one of them satisfies the entry; at least one, in order of preference
  size_t line = 0;                   // in the file, from 1: the first line with these sources
};

// The search tree of a glossary's terms.
class GlossaryTree;

// A glossary in memory. Immutable; copies share the search tree; all methods may be called from many threads.
class Glossary {
 public:
  static constexpr size_t kMostBytes = size_t{1} << 27;  // of a file: 128 MiB
  static constexpr size_t kMostEntries = 1'000'000;      // lines with a term
  static constexpr size_t kMostForms = 100;              // alternatives of a column, and targets of a source
  static constexpr size_t kMostTermBytes = 1000;

  Glossary() = default;  // without entries

  // Reads a glossary: UTF-8 text, with one entry per line, "source TAB target". A byte-order mark and line ends of
  // Windows are accepted.
  //
  // - Alternatives in a column are separated by "|": "dog | dogs TAB Hund | Hunde | Hundes". "\|" is a bar, "\\" is one
  //   backslash; before other characters, a backslash stands for itself. Inflected forms must be listed.
  // - White space around a term is dropped.
  // - Columns after the second, such as notes, are ignored.
  // - Lines of white space are skipped, and so are lines that begin with "#". A term that begins with "#" is written
  //   with a space before it. There is no header line.
  // - If several lines have the same source, the targets of all of them are accepted; those of earlier lines are
  //   preferred. Sources are the same if they match the same texts. The sources that the same lines share are one
  //   entry.
  //
  // Throws Error, naming file, line, what was found and what is accepted: for a line without a tab, such as one of CSV;
  // an empty source or target, also between bars; invalid UTF-8 and NUL; and more than the limits above. `name` is the
  // name of the file for these errors. Takes time and memory proportional to the text.
  static Glossary parse(std::string_view text, const std::string& name);

  // Returns the entries in the order of their lines.
  const std::vector<GlossaryEntry>& entries() const { return entries_; }
  bool empty() const { return entries_.empty(); }

  // Returns the terms in a text, in order and without overlaps: from left to right, the longest one at each place.
  //
  // - A term without upper-case letters matches in any case: "dog" matches "Dog" and "DOG", "straße" matches "STRASSE".
  //   A term with an upper-case letter matches as it is written, and completely in upper case: "Polish" matches
  //   "POLISH", but not "polish". If both kinds match the same bytes, the one with an upper-case letter is found.
  // - Canonically equivalent characters are equal, such as "ä" and "a" with a combining diaeresis. Characters that are
  //   not displayed, such as soft hyphens, are ignored. A run of white space matches any other one.
  // - A term stands between word boundaries: a letter, digit or combining mark of the term is not next to another one
  //   outside of it. Hyphens, apostrophes and underscores end a word. In scripts without spaces (Chinese, Japanese,
  //   Thai, Lao, Khmer, Burmese), each character is a word.
  //
  // Takes time linear in the text for ordinary glossaries, whatever their number of entries; at most, the number of
  // words of the text times that of the longest term. Bytes that are not UTF-8 belong to no term.
  std::vector<GlossaryMatch> find(std::string_view text) const;

 private:
  std::vector<GlossaryEntry> entries_;
  std::shared_ptr<const GlossaryTree> tree_;  // null if there are no entries
};

// Returns the spellings of an entry's targets that a translation may contain, without duplicates, in order of
// preference: each target as it is written; if it begins with a lower-case letter, also with that letter in upper case,
// for the start of a sentence. If the source is in upper case only in the text, the targets in upper case come before
// these. matched_source: the bytes of the match, in upper case if it has two or more such letters, no lower-case
// letter, and no source of the entry is written so.
std::vector<std::string> target_spellings(std::string_view matched_source, const GlossaryEntry& entry);

}  // namespace qkv
