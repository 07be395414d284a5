// Parts of a text that a translation must keep: addresses, placeholders, tags, numbers with units, identifiers.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer_json/regex.h"

namespace qkv {

// A part of a text that its translation keeps, byte for byte.
struct ProtectedPart {
  size_t begin = 0, end = 0;  // bytes

  bool operator==(const ProtectedPart&) const = default;
};

// A finder of protected parts. It is conservative: an ordinary sentence has none.
class ProtectedPartFinder {
 public:
  // built_in: finds the kinds of protected_kinds.h. pattern: a regular expression for further parts, as Regex accepts
  // it; "" for none. Throws Error, naming the option "protect", for an expression that is not accepted.
  ProtectedPartFinder(bool built_in, const std::string& pattern);

  // Returns the parts of a valid UTF-8 text, in order and not empty. Parts that overlap or touch are one part. An empty
  // match of the expression is no part. Throws Error if the expression takes too long for the text. Thread-safe.
  std::vector<ProtectedPart> find(std::string_view text) const;

 private:
  void append_matches(std::string_view text, std::vector<ProtectedPart>& parts) const;

  bool built_in_;
  std::shared_ptr<const Regex> pattern_;  // nullptr if there is none
};

}  // namespace qkv
