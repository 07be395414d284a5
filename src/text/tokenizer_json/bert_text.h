// How BERT cleans a text and cuts it into words: Devlin et al., "BERT" (2019), as the library tokenizers does it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace qkv {

struct BertCleaning {
  bool clean_text = true;     // no control characters, white space becomes spaces
  bool space_chinese = true;  // spaces around the characters of Chinese
  bool strip_accents = true;
  bool lowercase = true;  // a character at a time

  bool operator==(const BertCleaning&) const = default;
};

// Whether a character is a punctuation mark for the library tokenizers: by its category in Unicode 8, or one of ASCII.
bool is_bert_punctuation(int32_t code);

// text is valid UTF-8.
std::string clean(const BertCleaning& how, std::string_view text);

// Appends the words of a text: what stands between white space, and each punctuation mark by itself.
void split_bert_words(std::string_view text, std::vector<std::string_view>& words);

}  // namespace qkv
