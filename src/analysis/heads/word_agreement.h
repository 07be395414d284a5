// The share of words whose most attended word is the right one by true links between words. The weights of the pieces
// of a word are summed over columns and averaged over rows. Special tokens and the word itself are not counted, and in
// causal attention only words before the word itself.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "analysis/heads/attention_pass.h"
#include "analysis/heads/word_links.h"
#include "qkv/heads.h"
#include "qkv/matrix.h"

namespace qkv {

class WordAgreements {
 public:
  // alignments: of the texts, for cross-attention, or none. trees: of the source or, without one, of the target.
  // target_trees: of the targets of a model with an encoder, for its decoder, or none.
  WordAgreements(const HeadTexts& texts, const std::vector<WordLinks>& alignments, const std::vector<WordLinks>& trees,
                 const std::vector<WordLinks>& target_trees = {});

  // Returns the number of measures, each a relation in one direction in one part.
  size_t size() const { return measures_.size(); }
  // Adds to hits[m] the number of pairs of a text whose most attended word is the right one.
  void count(AttentionPart part, size_t text, Matrix<const float> A, std::span<int64_t> hits) const;
  // Returns the measures of a part, given all hits of a head.
  std::vector<WordAgreement> of_part(AttentionPart part, std::span<const int64_t> hits) const;

 private:
  struct Measure {
    AttentionPart part;
    WordAgreement values;
  };
  using Words = std::vector<std::vector<int32_t>>;  // rows or columns of the pieces of each word
  struct Pair {
    size_t measure;
    int32_t row;                 // word
    std::vector<int32_t> right;  // words
  };
  struct TextPairs {
    Words rows = {}, columns = {};
    std::vector<Pair> pairs = {};  // by row
  };

  size_t measure_of(AttentionPart part, const std::string& relation, const std::string& direction);
  void add_links(const AttentionAxes& axes, size_t text, const WordLinks& links);
  void set_baselines();
  static int32_t most_attended(const TextPairs& pairs, AttentionPart part, int32_t row, Matrix<const float> A);
  static bool is_candidate(const TextPairs& pairs, AttentionPart part, int32_t row, int32_t word);

  std::vector<Measure> measures_;
  std::vector<std::vector<TextPairs>> pairs_;  // [part][text]
};

}  // namespace qkv
