// The normalizer of a tokenizer.json: the changes to a text before it is cut into words.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer_json/bert_text.h"

namespace qkv {

// Reads a BertNormalizer. Throws Error, beginning with `where`, for members that are not known.
BertCleaning read_bert_cleaning(const nlohmann::json& value, const std::string& where);

// Immutable; its methods may be called from many threads.
class Normalizer {
 public:
  Normalizer() = default;  // changes nothing
  // `value` may be null. Steps: NFC, NFD, NFKC, NFKD, Nmt, Lowercase, StripAccents, BertNormalizer, Precompiled,
  // Replace, Prepend, Strip, ByteLevel, and a Sequence of them. Throws Error, beginning with `where`, for others.
  Normalizer(const nlohmann::json* value, const std::string& where);

  // text is valid UTF-8.
  std::string apply(std::string_view text) const;

 private:
  std::vector<std::function<std::string(std::string_view)>> steps_;
};

}  // namespace qkv
