// The words of a text that byte-level BPE works on, by the patterns that models came with. Regular expressions of files
// are not run: a pattern is one of those known here, which a scanner of its own finds in one pass.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace qkv {

// Which words: contractions, then letters with one character before them, numbers, other characters with a space before
// them, spaces. Named after the model that brought it. digit, digits: numbers apart, one by one or as a run.
enum class WordPattern { gpt2, llama3, qwen2, qwen3_5, digit, digits };

// The pattern of a regular expression, as files spell it; nullopt if it is unknown.
std::optional<WordPattern> pattern_of(std::string_view expression);
std::string_view expression_of(WordPattern pattern);  // "" of digit and digits, which have none

// Appends the words of a text of valid UTF-8, which together are the text.
void split_words(WordPattern pattern, std::string_view text, std::vector<std::string_view>& words);

}  // namespace qkv
