// Words of a training text and their translations, found by how often they occur in the same pair.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "text/byte_range.h"
#include "text/parallel_corpus.h"

namespace qkv {

// Returns the words of a text: letters, digits and the marks on them, without those of scripts that have no spaces
// between words.
std::vector<ByteRange> words_of(std::string_view text);

// A word of a pair and the word of the other side that translates it. Each is the only one of its kind in its sentence.
struct WordPair {
  ByteRange source, target;

  bool operator==(const WordPair& other) const {
    return source.begin == other.source.begin && target.begin == other.target.begin;
  }
};

class WordPairs {
 public:
  WordPairs() = default;
  // Finds words that are each other's most frequent partner by Dice's coefficient, 2 n(s, t) / (n(s) + n(t)), where n
  // is the number of pairs with these words. Words of fewer than 3 letters, words in fewer than 3 pairs and those in
  // more than one of 20 are left out. Case does not matter. Uses a sample of a text of more than some 50,000 pairs. The
  // result depends on the text only.
  explicit WordPairs(const ParallelCorpus& text);

  size_t size() const { return target_of_.size(); }
  // Returns the translation of a source word in lower case; "" if none is known.
  std::string_view target_of(const std::string& source) const;

  // Returns the words of a pair that translate each other, in the order of the source: those that are known, and names
  // and numbers that are the same on both sides.
  std::vector<WordPair> find(std::string_view source, std::string_view target) const;

 private:
  std::unordered_map<std::string, std::string> target_of_;  // in lower case
};

}  // namespace qkv
