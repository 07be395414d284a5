// The tokenizer of a run that is served, for the routes of tokens.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "qkv/runs.h"

namespace qkv {

// Thread-safe.
class ServedTokenizer {
 public:
  // Reads the tokenizer of a run, a translator's of its source. Throws Error, naming the file, and for a recommender.
  ServedTokenizer(const std::string& run_directory, RunKind kind);
  ~ServedTokenizer();

  // Returns the tokens of a text. with_edges: with those around it. plain: what spells a special token, such as
  // "<|im_end|>", is ordinary text. Throws Error for text that the tokenizer refuses.
  std::vector<int32_t> encode(const std::string& text, bool with_edges, bool plain = false) const;
  // Returns the text of tokens. skips_special: without those that is_special names. Throws Error for a token that is
  // not in the vocabulary.
  std::string decode(const std::vector<int32_t>& ids, bool skips_special) const;
  // Returns the bytes that a token adds to a text. first: it begins the text.
  std::string bytes_of(int32_t id, bool first) const;
  // Returns the spelling of a special token, or what the token adds to a text.
  std::string spelling(int32_t id, bool first) const;
  // Whether a token is one of those around texts, or is special in tokenizer.json.
  bool is_special(int32_t id) const;
  int32_t size() const;

 private:
  struct State;
  std::unique_ptr<const State> state_;
};

}  // namespace qkv
