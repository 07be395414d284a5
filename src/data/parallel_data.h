// Parallel text as token ids in memory: 4 bytes per token and 16 bytes per pair.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/to_size.h"
#include "text/corpus.h"
#include "text/tokenizer.h"

namespace qkv {

// The tokens around the texts of a pair: the source is `source_before` x `source_after`, and the target is
// `target_before` y `target_after`. The first token of the target is not predicted, so there is at least one.
struct PairTokens {
  std::vector<int32_t> source_before, source_after, target_before;
  int32_t target_after = 0;

  // Returns those of SentencePiece models: x </s> and <s> y </s>.
  static PairTokens of(const Tokenizer& source, const Tokenizer& target) {
    return {{}, {source.end()}, {target.start()}, target.end()};
  }
};

// Pairs of sequences, in the order in which they were added.
class ParallelData {
 public:
  // Pairs with a side that gives no tokens, and pairs with a side of more than max_length tokens (including the tokens
  // around it), are skipped and counted. Both tokenizers may be the same object. `tokens` are by default
  // PairTokens::of.
  ParallelData(const Tokenizer& source, const Tokenizer& target, int64_t max_length,
               const std::optional<PairTokens>& tokens = {});
  ParallelData(const ParallelText& text, const Tokenizer& source, const Tokenizer& target, int64_t max_length,
               const std::optional<PairTokens>& tokens = {})
      : ParallelData(source, target, max_length, tokens) {
    add(text);
  }

  void add(const ParallelText& text);  // tokenizes on all threads

  int64_t size() const { return static_cast<int64_t>(source_.offsets.size()) - 1; }  // pairs
  std::span<const int32_t> source(int64_t pair) const { return source_[pair]; }      // x </s>
  std::span<const int32_t> target(int64_t pair) const { return target_[pair]; }      // <s> y </s>

  int64_t source_tokens() const { return static_cast<int64_t>(source_.ids.size()); }           // including </s>
  int64_t target_tokens() const { return static_cast<int64_t>(target_.ids.size()) - size(); }  // to predict
  int64_t longest() const { return longest_; }  // tokens of the longest source or of the longest target to predict
  int64_t skipped_empty() const { return skipped_empty_; }  // pairs
  int64_t skipped_long() const { return skipped_long_; }

 private:
  struct Side {
    Tokenizer tokenizer;
    std::vector<int32_t> ids;
    std::vector<int64_t> offsets = {0};

    std::span<const int32_t> operator[](int64_t i) const {
      return {ids.data() + offsets[to_size(i)], ids.data() + offsets[to_size(i) + 1]};
    }
    void append(const std::vector<int32_t>& sequence);
  };

  Side source_, target_;
  PairTokens tokens_;
  int64_t max_length_, skipped_empty_ = 0, skipped_long_ = 0, longest_ = 0;
};

}  // namespace qkv
