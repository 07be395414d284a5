// Long runs of characters that a SentencePiece model does not know. It makes one unknown token of each run, and copies
// the beginning of the run again for every character, which takes n² bytes for n characters.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace qkv {

class UnknownRuns {
 public:
  static constexpr size_t kShortText = 1024;  // bytes of a text without such a run

  UnknownRuns() = default;  // shortens nothing
  // pieces: those of the model that text is cut into; charsmap: its normalizer's table, which has been checked and must
  // outlive the object.
  UnknownRuns(const std::vector<std::string>& pieces, std::string_view charsmap);

  // Returns the text with U+10FFFD in place of the middle of each run of over 1,024 characters that no piece contains
  // and that the normalizer leaves as they are: it has the same tokens. Returns "" if there is no such run. text is
  // valid UTF-8.
  std::string without_middles(std::string_view text) const;

 private:
  std::vector<bool> is_known_;  // by character; empty: nothing is shortened
  std::string_view charsmap_;
};

}  // namespace qkv
