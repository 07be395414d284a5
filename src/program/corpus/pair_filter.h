// The tests that a pair of sentences has to pass, among them the language of a sentence.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "program/corpus/corpus.h"
#include "program/corpus/hash_set.h"
#include "program/corpus/pair_reader.h"

namespace qkv {

enum class Side { source, target, unknown };

// Takes 1 MiB for any text. Sequences are counted by a hash of 16 bits, so that some share a count.
class SideLanguage {
 public:
  SideLanguage();

  void add(std::string_view source, std::string_view target);

  // Returns the side whose language the text is in; unknown for a short text, or where the sides do not differ.
  Side of(std::string_view text) const;

 private:
  double evidence(std::string_view text) const;

  std::vector<uint32_t> counts_[2];
  double total_[2] = {0, 0};
};

// The kinds of defects, in the order in which they are tested.
enum class DefectKind { tab, encoding, empty, garbled, long_text, ratio, copy, swapped, language, duplicate, overlap };
inline constexpr size_t kDefectKinds = 11;

// Returns the kinds with their names and meanings, without pairs.
std::vector<Defect> all_defects();

// Replaces control characters and other kinds of white space by spaces, and reduces these to single ones between words.
// Returns whether anything changed.
bool clean_spaces(std::string& text);

// The parts of a text that a filter needs before the first pair.
struct TextStatistics {
  SideLanguage language;
  double source_characters = 0, target_characters = 0;  // of all valid pairs

  void add(const RawPair& pair);  // with clean spaces
};

// Tests pairs in the order of a text, and counts them in a report.
class PairFilter {
 public:
  // excluded: hashes of sources that a training text must not have.
  PairFilter(const PairFilters& filters, const TextStatistics& statistics, const HashSet& excluded, PairReport& report);

  // Cleans the spaces of the pair, tests it and counts it. Returns whether it passes.
  bool take(RawPair& pair);

  int64_t swapped() const { return swapped_; }  // pairs with both sides in the other's language

 private:
  std::optional<DefectKind> defect(const RawPair& pair);
  bool too_long(std::string_view text) const;
  bool out_of_proportion(const RawPair& pair) const;
  std::optional<DefectKind> language(const RawPair& pair);
  void count_kept(const RawPair& pair, bool changed);

  const PairFilters& filters_;
  const TextStatistics& statistics_;
  const HashSet& excluded_;
  PairReport& report_;
  HashSet pairs_, sources_;
  int64_t swapped_ = 0;
};

// Returns the hash of a sentence or a pair.
uint64_t sentence_hash(std::string_view text);
uint64_t pair_hash(const RawPair& pair);

}  // namespace qkv
