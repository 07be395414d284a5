// The pre-tokenizer of a tokenizer.json: cuts a text into the words that the model works on.
#pragma once

#include <deque>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace qkv {

// The words of a text so far. A word that a step changes is kept in `changed`.
struct Words {
  struct Word {
    std::string_view text;
    bool first = false;  // whether it begins where the whole text begins
  };
  std::vector<Word> words;
  std::deque<std::string> changed = {};
};

// Immutable; its methods may be called from many threads.
class PreTokenizer {
 public:
  PreTokenizer() = default;  // cuts nothing
  // `value` may be null. Steps: Metaspace, ByteLevel, Whitespace, WhitespaceSplit, BertPreTokenizer, Punctuation,
  // Digits, Split, CharDelimiterSplit, FixedLength, and a Sequence of them. Throws Error, beginning with `where`, for
  // others.
  PreTokenizer(const nlohmann::json* value, const std::string& where);

  // Returns the words of a text of valid UTF-8. `first`: whether the whole text begins with it.
  Words apply(std::string_view text, bool first) const;

 private:
  std::vector<std::function<void(Words&)>> steps_;
};

}  // namespace qkv
