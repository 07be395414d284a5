// Tokens that stand in a text as they are spelt, "<|endoftext|>", and are found before anything else is done to it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "text/pieces/prefix_table.h"

namespace qkv {

struct AddedToken {
  int32_t id = 0;
  std::string text = {};
  bool single_word = false;   // only where no letter, digit or the like touches it
  bool strips_left = false;   // takes the white space before it
  bool strips_right = false;  // and behind it
  bool normalized = false;    // is looked for in the normalized text
  bool special = true;

  bool operator==(const AddedToken&) const = default;
};

class AddedTokens {
 public:
  AddedTokens() = default;
  // Those of the list that are normalized, or those that are not. `normalize` is what the text goes through.
  AddedTokens(const std::vector<AddedToken>& tokens, bool normalized,
              const std::function<std::string(std::string_view)>& normalize);

  // Whether a token that is spelt in [begin, end) of the text may be found there.
  using Accept = std::function<bool(const AddedToken& token, size_t begin, size_t end)>;

  // The parts of a text in their order: text between tokens, never empty, and tokens. From the left, the longest of
  // those that begin at the same place. accept: null accepts all.
  std::vector<std::variant<std::string_view, int32_t>> find(std::string_view text, const Accept& accept = {}) const;

 private:
  std::vector<AddedToken> tokens_;
  PrefixTable table_;  // of places in tokens_
};

}  // namespace qkv
