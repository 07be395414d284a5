// Pairs of a training text with characters that stand for parts of both sides, and with translations of terms in the
// source: what `placeholders` and `inline_terms` of TextConfig teach.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/random.h"
#include "decode/terms/protected_parts.h"
#include "io/runs/translation_config.h"
#include "text/byte_range.h"
#include "text/parallel_corpus.h"
#include "train/word_pairs.h"

namespace qkv {

// Parts of both sides of a pair that change. `before` and `after` insert a stand-in next to them.
struct ChangedPart {
  enum class Change { replace, before, after, inline_term };

  ByteRange source, target;
  Change change = Change::replace;
};

// How a pair is rewritten follows from the seed, its number and its text. Immutable; may be used from many threads.
class PairRewriter {
 public:
  // tokens: with stand-ins, term marks or both. words: the parts that pairs are rewritten at, in addition to protected
  // parts.
  PairRewriter(const TranslationTokens& tokens, WordPairs words, uint64_t seed);

  // Rewrites a pair. Characters that the model reserves are removed from it first.
  //
  // With stand-ins, three quarters of the pairs with protected parts that stand equally often on both sides have
  // stand-ins in their places. So that all models learn them, up to three stand-ins are added to 40 % of the pairs:
  // instead of a word and its translation, before or after both, or at the start or end of both sides. Numbers of
  // stand-ins follow each other, from a random one on.
  //
  // With term marks, 40 % of the pairs have translations of up to three words after them, or of two that follow each
  // other on both sides. With both, a word has one or the other.
  void rewrite(std::string& source, std::string& target, int64_t number) const;
  // Rewrites pairs that follow each other in the text, on all threads.
  void rewrite(ParallelText& text, int64_t first) const;

 private:
  void make_changes(std::string& source, std::string& target, std::vector<ChangedPart>& changes, Random& random) const;

  const std::vector<std::string> stand_ins_;
  const std::vector<std::string> term_marks_;  // none or two
  const std::vector<std::string> reserved_;
  const WordPairs words_;
  const uint64_t seed_;
  const ProtectedPartFinder finder_;
};

}  // namespace qkv
