// Patterns that the steps of a tokenizer look for in a text, and how they cut the text there.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "text/tokenizer_json/regex.h"
#include "text/tokenizer_json/word_pattern.h"

namespace qkv {

// A string, a regular expression, or a kind of character.
class TextPattern {
 public:
  using Is = bool (*)(int32_t code);

  explicit TextPattern(std::string text) : what_(std::move(text)) {}
  explicit TextPattern(Is is) : what_(is) {}
  // {"String": "…"} or {"Regex": "…"} of a tokenizer.json. Throws Error, beginning with `where`, for anything else.
  static TextPattern read(const nlohmann::json& value, const std::string& where);

  // Calls match(begin, end) for the matches from the left; none overlaps another. An empty string matches nowhere; a
  // regular expression may match the empty text, but not where its last match ended. Throws Error for one that takes
  // too long.
  void find_all(std::string_view text, const std::function<void(size_t begin, size_t end)>& match) const;

  // Returns the text with each match replaced. Throws as check_growth does.
  std::string replace(std::string_view text, std::string_view by) const;

 private:
  explicit TextPattern(Regex regex) : what_(std::move(regex)) {}
  explicit TextPattern(WordPattern words) : what_(words) {}

  std::variant<std::string, Is, Regex, WordPattern> what_;
};

// Throws Error if the text that a tokenizer makes of one of `before` bytes is too long: untrusted replacements may grow
// with each step.
void check_growth(size_t before, size_t after);

// The treatment of matches:
//   removed               they are left out
//   isolated              each is a part of its own
//   merged_with_previous  each belongs to the part before it
//   merged_with_next      each belongs to the part behind it
//   contiguous            adjacent ones are one part
enum class SplitBehavior { removed, isolated, merged_with_previous, merged_with_next, contiguous };
// Reads a name such as "MergedWithNext"; nullopt for others.
std::optional<SplitBehavior> split_behavior(std::string_view name);

// Appends the parts of a text that are not empty. With `invert` the text between the matches takes their place.
void split_text(std::string_view text, const TextPattern& pattern, SplitBehavior behavior, bool invert,
                std::vector<std::string_view>& parts);

}  // namespace qkv
