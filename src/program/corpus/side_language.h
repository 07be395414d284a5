// The language of a sentence, learned from the two sides of a text: sequences of four bytes that are more frequent on
// one side are evidence for its language.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

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

}  // namespace qkv
