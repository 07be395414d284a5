// Regular expressions of tokenizer.json files, which are untrusted: Pike's machine runs all alternatives side by side
// ("Regular expression search algorithm", Thompson, 1968; priorities as in RE2), so no expression takes exponential
// time.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace qkv {

// Characters, ., classes with ranges, \s \d \w \p{…} and their complements, &&, groups (?:…) and (?i:…), alternatives,
// greedy and lazy repetition up to 1,000 times, ^ $ \A \z \b \B, and what stands before or behind: (?=c), (?!c), (?<=c)
// and (?<!c) with a single character or class c. White space, letters and so forth are those of Unicode.
class Regex {
 public:
  // Throws Error, beginning with `where`, for an expression that is broken, too large, or has anything else in it.
  Regex(std::string_view expression, const std::string& where);

  // Returns the begin and the end of the first match in text from `begin` on, in bytes. It is the one
  // that backtracking finds first among the matches that begin there. `work` counts steps, so that its owner can bound
  // them: throws Error beyond `most_work` of them.
  std::optional<std::pair<size_t, size_t>> find(std::string_view text, size_t begin, uint64_t& work,
                                                uint64_t most_work) const;

  size_t size() const;  // instructions

 private:
  struct Program;
  std::shared_ptr<const Program> program_;
};

}  // namespace qkv
