// Sentences of a paragraph of UTF-8 text in any language.
#pragma once

#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

namespace qkv {

// A splitter of paragraphs into sentences. It decides at each full stop, question mark and the like by the words on
// both sides, in one pass and without knowing the language. Immutable; all methods may be called from many threads.
//
// Only ICU's tables of characters are used, not its sentence iterator: docs/results.md has its scores. It ends a
// sentence at most abbreviations and never before a small letter, so each of its boundaries would have to be decided
// again.
class SentenceSplitter {
 public:
  SentenceSplitter() = default;
  // `abbreviations`: words without their final full stop, used in addition to the built-in ones. Case does not matter.
  explicit SentenceSplitter(const std::vector<std::string>& abbreviations);

  // Returns the sentences in order, as views into the paragraph. They begin and end with characters other than white
  // space, and only white space is between them. A line feed is white space like any other. Bytes that are not UTF-8
  // are kept. Takes time linear in the length.
  std::vector<std::string_view> split(std::string_view paragraph) const;

 private:
  std::unordered_set<std::string> abbreviations_;  // in lower case
};

}  // namespace qkv
