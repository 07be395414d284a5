// Parallel text as token ids in memory: 4 bytes per token and 16 bytes per pair.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/to_size.h"
#include "text/parallel_corpus.h"
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

// Numbers of pairs that were skipped.
struct Skipped {
  int64_t empty = 0, too_long = 0;

  bool operator==(const Skipped&) const = default;
};

// The pairs of a text that are not skipped, without the tokens around them. A side is a list of its texts, one after
// the other: the number of tokens, then the tokens.
struct TokenizedText {
  std::vector<int32_t> source, target;
  Skipped skipped;
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

  TokenizedText tokenize(const ParallelText& text) const;  // on all threads
  // Returns the indices of the pairs that are not skipped.
  std::vector<int64_t> usable(const ParallelText& text) const;
  // Throws Error unless tokenize() can return this text for `pairs` pairs, with any tokenizer of the same vocabulary.
  void check(const TokenizedText& text, int64_t pairs) const;
  void add(const TokenizedText& text);
  void add(const ParallelText& text) { add(tokenize(text)); }

  int64_t size() const { return static_cast<int64_t>(source_.offsets.size()) - 1; }  // pairs
  std::span<const int32_t> source(int64_t pair) const { return source_[pair]; }      // x </s>
  std::span<const int32_t> target(int64_t pair) const { return target_[pair]; }      // <s> y </s>

  int64_t source_tokens() const { return static_cast<int64_t>(source_.ids.size()); }           // including </s>
  int64_t target_tokens() const { return static_cast<int64_t>(target_.ids.size()) - size(); }  // to predict
  int64_t longest() const { return longest_; }  // tokens of the longest source or of the longest target to predict
  const Skipped& skipped() const { return skipped_; }

 private:
  struct Side {
    Tokenizer tokenizer;
    std::vector<int32_t> ids;
    std::vector<int64_t> offsets = {0};

    std::span<const int32_t> operator[](int64_t i) const {
      return {ids.data() + offsets[to_size(i)], ids.data() + offsets[to_size(i) + 1]};
    }
    void append(std::span<const int32_t> before, std::span<const int32_t> text, std::span<const int32_t> after);
  };

  enum class Use { usable, empty, too_long };
  struct EncodedPair {
    std::vector<int32_t> source, target;
  };
  std::vector<EncodedPair> encode(const ParallelText& text) const;
  Use use_of(const EncodedPair& pair) const;
  int64_t source_around() const { return std::ssize(tokens_.source_before) + std::ssize(tokens_.source_after); }
  int64_t target_around() const { return std::ssize(tokens_.target_before); }  // a target's last token is no input

  Side source_, target_;
  PairTokens tokens_;
  int64_t max_length_, longest_ = 0;
  Skipped skipped_;
};

}  // namespace qkv
