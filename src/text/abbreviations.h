// Abbreviations that are learned from a text, and files of them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace qkv {

// A counter of words that finds abbreviations by the statistic of Punkt (Kiss and Strunk 2006, Unsupervised
// multilingual sentence boundary detection, section 3): short words that nearly always have a full stop. Not counted
// are a word with a full stop before one that is likely to begin a sentence, and the last word of a line or before a
// tab, because a full stop there ends a sentence in most texts. So text with a sentence per line gives better evidence
// than paragraphs do.
//
// Memory is bounded: of more than 2¹⁸ different words, the rarest are forgotten. The result depends on the lines and
// their order alone.
class AbbreviationCounter {
 public:
  // Counts the words of a line. Bytes that are not UTF-8 belong to no word.
  void add(std::string_view line);

  // Returns the abbreviations in lower case, without their final full stop, in the order of their bytes.
  std::vector<std::string> abbreviations() const;

 private:
  struct Counts {
    int64_t with_stop = 0, without_stop = 0;
  };

  void count(std::string_view word);
  void forget_rare();
  double score(const std::string& word, const Counts& counts) const;

  std::unordered_map<std::string, Counts> words_;  // in lower case, without the final full stop
  int64_t all_ = 0, all_with_stop_ = 0;            // words
};

// Reads a list of abbreviations, one per line, with or without the final full stop. Empty lines are skipped. Throws
// Error, naming the file and the line, for invalid UTF-8, for a line with white space between characters, and for one
// longer than 64 bytes; naming the file if it has more than 16 MiB.
std::vector<std::string> read_abbreviations(const std::string& path);

}  // namespace qkv
