// What lies between text and the search: lines to parts in ids, parts that were translated to results.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "decode/pipeline.h"
#include "decode/readable.h"
#include "io/translator_run.h"

namespace qkv {

class TranslationText {
 public:
  // max_length: tokens of the longest sequence.
  TranslationText(const TranslatorRun& run, int64_t max_length);

  const TokenizerPair& tokenizers() const { return tokenizers_; }
  const TranslationTokens& tokens() const { return tokens_; }

  // Valid UTF-8, in lower case if the run says so. Throws Error.
  std::string prepare(const std::string& text) const;
  // With what stands around a source sentence; nothing for text of spaces.
  std::vector<int32_t> source_ids(std::string_view text) const;
  std::vector<int32_t> target_ids(std::string_view text) const { return tokenizers_.target.encode(text); }
  std::vector<int32_t> target_ids(const std::vector<std::string>& pieces) const;

  SearchOptions search_options(const TranslateOptions& options) const;

  // The parts of a line, cut where it is too long. Throws Error, naming the line.
  void read(Line& line, const TranslateOptions& options) const;

  // A whole line, its parts joined. Throws Error, naming the line, where the model gave no number.
  Translation result(const Line& line, const TranslateOptions& options) const;

  // One hypothesis of a part.
  Hypothesis hypothesis(const Part& part, const Decoded& decoded, const Forced* forced,
                        const TranslateOptions& options) const;

  bool has_unknown(const Decoded& decoded) const;

 private:
  std::vector<Part> parts(const Line& line, const TranslateOptions& options) const;
  TokenRange source_range(const Part& part) const;

  const TokenizerPair tokenizers_;
  const TranslationTokens tokens_;
  const int64_t max_length_;
  std::unordered_map<std::string, int32_t> target_id_;  // of each piece
};

}  // namespace qkv
